"""How what was left open is brought to an end: after a crash, an interrupt or a defect, by the same rule.

Pure: from the reduced state to the events that close it.
"""

from __future__ import annotations

from swecli.core.context_management.ledger import Ledger, OpenItem
from swecli.core.engine.state import SessionState
from swecli.core.protocol.events import (
    Body,
    ItemCompleted,
    JobChanged,
    ModelResponded,
    PermissionResolved,
    QuestionAnswered,
    TurnEnded,
    TurnOutcome,
)
from swecli.core.protocol.messages import Origin, Part, Stop, ToolCallPart, ToolResultPart

EFFECT_UNKNOWN = "Interrupted while this ran: its effect is unknown. Check before you repeat it."
NOT_EXECUTED = "Interrupted before this ran: it was not executed."


def closing_bodies(ledger: Ledger, state: SessionState, detail: str) -> list[Body]:
    """Terminal events for every open request, item and answer. ``detail`` goes into the answer's stop.

    Text that was streaming is kept as an incomplete answer; a call that had begun is marked as of unknown
    effect; a call that had not begun as not executed.
    """
    bodies: list[Body] = [PermissionResolved(request, "cancelled", "engine") for request in state.permissions]
    bodies += [QuestionAnswered(request, (), "engine") for request in state.questions]
    answered = {item for response in ledger.responses.values() for item in response.items}
    kept: list[str] = []
    for item in ledger.open.values():
        bodies.append(ItemCompleted(item.id, "interrupted", _final_parts(item, item.id in answered)))
        if item.id not in answered and item.part is not None and item.kind in ("text", "reasoning", "tool"):
            kept.append(item.id)
    if state.step_open:
        done = [
            item.id
            for item in ledger.items.values()
            if item.id not in answered and item.kind in ("text", "reasoning", "opaque") and item.parts
        ]
        items = sorted({*kept, *done}, key=_number)
        if items:
            origin = Origin("unknown", "", state.model)
            stop = Stop(detail=detail)
            bodies.append(ModelResponded(f"m{state.seq + 1}", tuple(items), origin, stop, complete=False))
    return bodies


def recover(ledger: Ledger, state: SessionState) -> list[Body]:
    """The events that close a session whose process was killed; empty where it ended properly."""
    bodies = closing_bodies(ledger, state, "swecli was stopped")
    bodies += [
        JobChanged(job.job, job.command, "killed", note="swecli was stopped")
        for job in state.jobs.values()
        if job.status == "running"
    ]
    if state.turn_open:
        outcome: TurnOutcome = "interrupted"
        bodies.append(TurnEnded(outcome, "swecli was stopped in the middle of this turn"))
    return bodies


def _final_parts(item: OpenItem, answered: bool) -> tuple[Part, ...]:
    if isinstance(item.part, ToolCallPart):
        if not answered:
            return ()
        text = EFFECT_UNKNOWN if item.running else NOT_EXECUTED
        return (ToolResultPart(item.part.call_id, item.part.name, text, is_error=True),)
    return (item.part,) if item.part is not None and item.kind in ("text", "reasoning", "opaque") else ()


def _number(item: str) -> int:
    digits = "".join(character for character in item if character.isdigit())
    return int(digits) if digits else 0
