"""What subagents did: the transcript of one as text, and the report that its session gets."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from swecli.core.engine.state import AgentRecord
from swecli.core.protocol.events import Event, ItemCheckpointed, ItemCompleted, ItemStarted, Notice, TurnEnded
from swecli.core.protocol.messages import TextPart, ToolCallPart, ToolResultPart
from swecli.core.tools.base import plural
from swecli.core.tools.bounding import bound_result

_NAMED = 12
"""Changed files that a report names."""


def transcript_of(events: Iterable[Event], agent: str) -> str | None:
    """All that a subagent read, said, called and got, in order; None where there is no such agent."""
    parts: list[str] = []
    kinds: dict[str, ItemStarted] = {}
    known = False
    for event in events:
        if event.agent != agent:
            continue
        known = True
        match event.body:
            case ItemStarted(item=item) as started:
                kinds[item] = started
            case ItemCheckpointed(part=ToolCallPart(name=name, arguments=arguments), running=False, awaits=""):
                parts.append(f"[call of {name}]\n{arguments}")
            case ItemCompleted() as completed:
                parts += _completed(completed, kinds.pop(completed.item, None))
            case Notice(text=text, level="warning" | "error"):
                parts.append(f"[notice]\n{text}")
            case TurnEnded(outcome=outcome, reason=reason):
                parts.append(f"[ended: {outcome}{f', {reason}' if reason and reason != outcome else ''}]")
            case _:
                pass
    return "\n\n".join(parts) if known else None


def _completed(completed: ItemCompleted, started: ItemStarted | None) -> list[str]:
    kind = started.kind if started is not None else ""
    texts: list[str] = []
    for part in completed.parts:
        match part:
            case TextPart(text=text) if kind in ("user", "text", "note") and text.strip():
                texts.append(f"[{'task' if kind == 'user' else 'agent' if kind == 'text' else 'note'}]\n{text}")
            case ToolResultPart(name=name, text=text):
                texts.append(f"[result of {name}, {completed.status}]\n{text}")
            case _:
                pass
    return texts


class Report(Struct, frozen=True):
    """What a subagent hands back. ``answer`` is its last message; ``folder`` is its own work tree, where that was kept,
    ``branch`` what is checked out there."""

    record: AgentRecord
    answer: str
    changed: tuple[str, ...] = ()
    folder: str = ""
    branch: str = ""

    @property
    def done(self) -> bool:
        return self.record.outcome == "done"

    @property
    def detail(self) -> str:
        """How it ended and what it took, in short."""
        record = self.record
        cost = f" · ${record.tally.cost:.4f}" if record.tally.cost else ""
        state = "done" if self.done else record.outcome or "interrupted"
        return f"{state} · {plural(record.steps, 'step')} · {record.tokens:,} tokens{cost}"


def report_text(report: Report, most: int, count: Callable[[str], int]) -> str:
    """What the agent that gave the task gets, at most so many tokens as ``count`` counts them."""
    record = report.record
    how = "is done" if report.done else f"ended early ({record.outcome}: {record.reason or 'no reason is known'})"
    lines = [
        f"[{record.id} ({record.started.profile}) {how}: {plural(record.steps, 'step')}, {record.tokens:,} tokens. "
        f'Its transcript: read_result with ref_id "{record.id}"]'
    ]
    if report.changed:
        more = f" and {len(report.changed) - _NAMED} more" if len(report.changed) > _NAMED else ""
        lines.append(f"Files it changed: {', '.join(report.changed[:_NAMED])}{more}")
    if report.folder:
        lines.append(f"Its changes are in the git worktree {report.folder} (branch {report.branch}), and only there.")
    if not report.done and report.answer:
        lines.append("It did not finish. The last that it said:")
    lines.append(report.answer or "It said nothing.")
    text = "\n".join(lines)
    size = len(text.encode("utf-8", "replace"))
    while (tokens := count(text)) > most and size > 100:
        size = min(size - 1, int(size * min(0.9, most / tokens)))
        text = bound_result("\n".join(lines), size, size)
    return text
