"""Snapshots of a session, and resuming from them after an orderly end or a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.counter import mark_of
from swecli.core.context_management.ledger import Ledger, OpenItem
from swecli.core.context_management.projection import project
from swecli.core.context_management.restoring import restoration, view_of
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.reductions import written
from swecli.core.engine.state import SessionState
from swecli.core.llm.types import ModelClient
from swecli.core.ports import Snapshot, SnapshotError, SnapshotMeasure, Snapshots
from swecli.core.protocol.budget import TAIL
from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.events import (
    MAIN,
    Body,
    CompactionCompleted,
    CompactionRedone,
    CompactionUndone,
    ContextEdited,
    Event,
    ItemCompleted,
    JobChanged,
    ModelResponded,
    Notice,
    PermissionResolved,
    QuestionAnswered,
    StepStarted,
    TurnEnded,
    TurnOutcome,
)
from swecli.core.protocol.messages import Message, Origin, Part, Stop, ToolCallPart, ToolResultPart, Usage

WRITTEN_FROM = 500
"""New facts from which on reductions are stored: fewer are read in a few milliseconds."""
GROWN = 0.25
"""Share of all facts that must be new for that while the session runs: the stored form grows with the session, and its
cost per turn must not."""
MOST_TIMES = 2
"""Largest plausible ratio of a reported size to the measure."""


class KnownSize(Struct, frozen=True):
    """Reported size of a request: ``usage`` covers the first ``entries`` of the view, without the request's tail."""

    entries: int
    usage: Usage
    seq: int = 0
    """Event that reported it."""


def known_size(
    events: Sequence[Event],
    view: Sequence[ViewEntry],
    names: Collection[str],
    models: Sequence[tuple[int, str, str]],
) -> KnownSize | None:
    """The newest known size of a beginning of the view; None if the view or the model has changed.

    ``names`` are those of the current model; ``models`` as in ``SessionState``.
    """
    found = _newest_size(events, view)
    if found is None:
        return None
    asked = next((name for seq, name, _ in reversed(models) if seq < found.seq), None)
    return found if asked in names else None


def _newest_size(events: Sequence[Event], view: Sequence[ViewEntry]) -> KnownSize | None:
    places = {entry.id: place for place, entry in enumerate(view) if entry.kind == "live"}
    answer: tuple[int, Usage] | None = None
    for event in reversed(events):
        if event.agent != MAIN:
            continue
        match event.body:
            case CompactionUndone() | CompactionRedone() | ContextEdited():
                return None
            case CompactionCompleted(view=compacted, tokens_after=tokens):
                if tuple(view[: len(compacted)]) != compacted or tokens <= 0:
                    return None
                return KnownSize(len(compacted), Usage(input_total=tokens), event.seq)
            case ModelResponded(items=items, usage=usage) if usage is not None and usage.input_total:
                first = min((places[item] for item in items if item in places), default=0)
                answer = (first, usage) if first else None
            case StepStarted(budget=budget) if answer is not None:
                entries, usage = answer
                tail = sum(part.tokens for part in budget.components if part.name == TAIL)
                size = usage.prompt if usage.prompt <= MOST_TIMES * budget.used else budget.used
                prompt = max(1, size - tail)
                reported = Usage(input_total=prompt, output_total=usage.output_total, reasoning=usage.reasoning)
                return KnownSize(entries, reported, event.seq)
            case _:
                pass
    return None


EFFECT_UNKNOWN = "Interrupted while this ran: its effect is unknown. Check before you repeat it."
NOT_EXECUTED = "Interrupted before this ran: it was not executed."


def closing_bodies(ledger: Ledger, state: SessionState, detail: str, *, turn: bool = False) -> list[Body]:
    """Terminal events for every open request, item and answer. ``detail`` goes into the answer's stop.

    Streaming text is kept as an incomplete answer; a started call is marked as of unknown effect, an unstarted one as
    not executed. ``turn``: only a turn ends, so requests outside its items stay open, as those of background subagents.
    """
    permissions = [request for request, asked in state.permissions.items() if not turn or asked.item in ledger.open]
    questions = [request for request, asked in state.questions.items() if not turn or asked.item in ledger.open]
    bodies: list[Body] = [PermissionResolved(request, "cancelled", "engine") for request in permissions]
    bodies += [QuestionAnswered(request, (), "engine") for request in questions]
    if not ledger.open and not state.step_open:  # as at the end of nearly every turn: no answer has to be looked at
        return bodies
    answered = {item for response in ledger.responses.values() for item in response.items}
    agents = {agent.started.item: agent.id for agent in state.agents.values()}
    kept: list[str] = []
    for item in ledger.open.values():
        bodies.append(
            ItemCompleted(item.id, "interrupted", _final_parts(item, item.id in answered, agents.get(item.id)))
        )
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
    """Events that close a session whose process was killed; empty if it ended properly."""
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


def _final_parts(item: OpenItem, answered: bool, agent: str | None) -> tuple[Part, ...]:
    if isinstance(item.part, ToolCallPart):
        if not answered:
            return ()
        text = EFFECT_UNKNOWN if item.running else NOT_EXECUTED
        text += f' The transcript of its work: read_result with ref_id "{agent}".' if agent else ""
        return (ToolResultPart(item.part.call_id, item.part.name, text, is_error=True),)
    return (item.part,) if item.part is not None and item.kind in ("text", "reasoning", "opaque") else ()


def _number(item: str) -> int:
    digits = "".join(character for character in item if character.isdigit())
    return int(digits) if digits else 0


class SessionSnapshots:
    """Writes snapshots, and checks the validity of an earlier run's."""

    def __init__(self, context: ContextManager, store: Snapshots | None, recorder: Recorder) -> None:
        self._context = context
        self._store = store
        self._recorder = recorder
        self._writing: set[asyncio.Task[None]] = set()
        self._newest: SnapshotMeasure | None = None
        """Measure of the stored snapshot."""
        self._reported = False
        self._since = recorder.reduced
        """Number of facts when the reductions were last stored."""

    # --- writing --------------------------------------------------------------------------------------------

    def save_soon(self, client: ModelClient) -> None:
        snapshot = self._now(client, GROWN)
        if snapshot is not None:
            task = asyncio.create_task(self._save(snapshot))
            self._writing.add(task)
            task.add_done_callback(self._writing.discard)

    async def close(self, client: ModelClient | None) -> None:
        await asyncio.gather(*self._writing)
        snapshot = self._now(client, 0.0) if client is not None else None
        if snapshot is not None and (snapshot.state or not _tells_nothing_new(snapshot.measure, self._newest)):
            await self._save(snapshot)

    def _now(self, client: ModelClient, grown: float) -> Snapshot | None:
        """A snapshot of this moment; with the reductions if this share of the facts is new."""
        ledger, context = self._recorder.ledger, self._context
        if self._store is None or not ledger.view:
            return None
        messages = project(ledger)
        budget = context.measure(messages, client.info)
        measure = SnapshotMeasure(
            budget.used if budget.source == "measured" else 0,
            self._recorder.state.seq,
            client.info.ref,
            context.monitor.unit,
            tuple(mark_of(message) for message in messages),
            context.monitor.sizes(messages),
        )
        return Snapshot(messages, measure, view_of(ledger, messages), self._reductions(grown))

    def _reductions(self, grown: float) -> bytes:
        """Stored form of the reductions; empty if reading all events is fast enough, or if some are unreadable."""
        recorder = self._recorder
        facts = len(recorder.facts)
        if recorder.facts.lost or facts - self._since < max(WRITTEN_FROM, grown * facts):
            return b""
        self._since = facts
        return written(recorder.reductions)

    async def _save(self, snapshot: Snapshot) -> None:
        store = self._store
        if store is None:
            return
        await self._recorder.log.barrier()  # it must not contain anything missing from the record
        trouble = await asyncio.to_thread(store.save_snapshot, snapshot)
        self._newest = snapshot.measure if not trouble else self._newest
        if trouble and not self._reported:
            self._reported = True
            self._notice(trouble)

    # --- resuming -------------------------------------------------------------------------------------------

    def resume(self) -> None:
        """Apply the snapshot of a continued session. If the events of its messages are unreadable, the messages replace
        what is left of them."""
        store, facts = self._store, self._recorder.facts
        if store is None or (not self._recorder.ledger.entries and not facts.lost):
            return
        try:
            self._newest = store.get_measure()
            if self._newest is not None and self._has_unreadable_events(self._newest.seq):
                snapshot = store.get_snapshot()
                if snapshot is not None:
                    self._restore(snapshot)
        except SnapshotError as error:
            self._notice(f"This session's snapshot is damaged ({error}), so swecli read its whole record.")
        else:
            if self._newest is None and self._recorder.ledger.undoable is not None:  # each compaction saves one
                self._notice("This session has no snapshot, so swecli read its whole record.", warn=False)

    def adopt_sizes(self, client: ModelClient, model: str) -> None:
        """Begin with the newest known sizes, from the snapshot or the record. ``model`` is the user's name for the
        model."""
        recorder, ledger = self._recorder, self._recorder.ledger
        snapshot_seq = self._adopt_stored(client)
        known = known_size(recorder.facts.held, ledger.view, (model, client.info.ref), recorder.state.models)
        if known is not None and known.seq > snapshot_seq:
            messages = project(ledger, ledger.view[: known.entries])
            self._context.adopt_size(messages, known.usage, client.info)

    def _adopt_stored(self, client: ModelClient) -> int:
        """Adopt the sizes in the snapshot. Returns the newest event with a reported size; 0 for none."""
        snapshot, context = self._newest, self._context
        if snapshot is None or not snapshot.marks:
            return 0
        messages = project(self._recorder.ledger)
        same = _same(messages, snapshot.marks)
        if snapshot.counter == context.monitor.unit:
            context.monitor.adopt_sizes(messages[:same], snapshot.sizes)
        if not snapshot.token_count or same < len(snapshot.marks) or snapshot.model != client.info.ref:
            return 0
        context.adopt_size(messages[:same], Usage(input_total=snapshot.token_count), client.info)
        return snapshot.seq

    def _has_unreadable_events(self, seq: int) -> bool:
        """Whether events up to this one are unreadable and no snapshot has replaced them yet."""
        return any(lost <= seq for lost in self._recorder.facts.lost)

    def _restore(self, snapshot: Snapshot) -> None:
        recorder = self._recorder
        found = restoration(f"r{recorder.state.seq + 1}", snapshot, recorder.facts, recorder.ledger)
        if found is None:
            return  # the lost events did not matter
        recorder.emit(found)
        self._notice(
            "Parts of this session's record are unreadable. The model continues from the snapshot "
            f"({len(snapshot.messages)} messages); the transcript shows only the readable parts."
        )

    def _notice(self, text: str, *, warn: bool = True) -> None:
        self._recorder.emit(Notice(text, "warning" if warn else "info", "session"))


def _tells_nothing_new(measure: SnapshotMeasure, stored: SnapshotMeasure | None) -> bool:
    return stored is not None and replace(measure, seq=stored.seq) == stored


def _same(messages: Sequence[Message], marks: Sequence[str]) -> int:
    """Number of leading messages that match the marks."""
    for number, (message, mark) in enumerate(zip(messages, marks, strict=False)):
        if mark_of(message) != mark:
            return number
    return min(len(messages), len(marks))
