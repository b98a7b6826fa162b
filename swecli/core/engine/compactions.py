"""Compaction as an item of the session: run, recorded, shown, undone and redone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from swecli.core.context_management.compaction.compactor import Compacted, Compactor, Job, NotCompacted
from swecli.core.context_management.compaction.hooks import tell_after
from swecli.core.context_management.compaction.options import CompactResult, Trigger
from swecli.core.context_management.compaction.package import Attachment
from swecli.core.context_management.compaction.plan import CompactionPlan, plan_compaction
from swecli.core.context_management.compaction.retention import RuleReport, report
from swecli.core.context_management.compaction.sizes import Allowances, EntrySizes
from swecli.core.context_management.compaction.state_block import SessionFacts
from swecli.core.context_management.compaction.working_set import attachments
from swecli.core.context_management.context_manager import PreparedRequest
from swecli.core.context_management.projection import project
from swecli.core.engine.compaction_hooks import with_session_hooks
from swecli.core.engine.connection import Connection
from swecli.core.engine.limit_notices import LimitNotices
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.resumption import known_size
from swecli.core.engine.services import ModelUnavailable, Services
from swecli.core.engine.snapshots import SessionSnapshots
from swecli.core.engine.state import SessionState
from swecli.core.engine.way_out import door_of
from swecli.core.llm.types import ModelClient, ModelRequest
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionFailed,
    CompactionRedone,
    CompactionStarted,
    CompactionUndone,
    ContextMeasured,
    FileRead,
    ItemCompleted,
    ItemStarted,
    ItemStatus,
    Notice,
    ViewEntry,
)


class Compactions:
    """Carries out compactions and takes them back. When to compact is the ``ContextKeeper``'s decision."""

    def __init__(self, services: Services, recorder: Recorder, connection: Connection) -> None:
        self._services = services
        self._recorder = recorder
        self._connection = connection
        self.snapshots = SessionSnapshots(services, recorder)
        self._limits = LimitNotices(recorder, services.context.limits)
        options = with_session_hooks(services.compaction, services.hooks)
        self._compactor = Compactor(services.context, options, door_of(services, recorder))

    def plan(self, client: ModelClient) -> CompactionPlan:
        """What a compaction would do now."""
        services, ledger = self._services, self._recorder.ledger
        effective = services.context.measure(project(ledger), client.info).effective
        sizes = EntrySizes(services.context.monitor, client.info)
        job = Job(
            trigger="manual",
            summary_id="plan",
            request=ModelRequest((), (), ()),
            client=client,
            facts=_facts(self._recorder.state),
            attachments=attachments(ledger, services.workspace.cwd, sizes, Allowances.of(effective).attached),
        )
        summaries = services.side_models.get("summary")
        return plan_compaction(ledger, services.context, self._compactor, job, services.price, summaries)

    def retention(self, client: ModelClient) -> tuple[RuleReport, ...]:
        """What the user's rules did so far."""
        sizes = EntrySizes(self._services.context.monitor, client.info)
        return report(self._recorder.ledger, sizes, self._services.compaction.retention)

    def measure(self, client: ModelClient) -> None:
        """Publish the size of the context as it is now, for the meter and everything else that shows it."""
        messages = project(self._recorder.ledger)
        budget = self._services.context.measure(messages, client.info)
        self._recorder.emit(ContextMeasured(budget))
        self._limits.check(budget, client.info.ref)

    def take_up(self, client: ModelClient | None, model: str) -> None:
        """A session goes on: let the measure begin with what was known of its size. ``model`` is how the user calls the
        model."""
        ledger = self._recorder.ledger
        if client is None or not ledger.view:
            return
        told = self.snapshots.take_up(client)
        known = known_size(self._recorder.facts, ledger.view, (model, client.info.ref))
        if known is not None and known.seq > told:
            messages = project(ledger, ledger.view[: known.entries])
            self._services.context.take_up(messages, known.usage, client.info)

    async def run(
        self,
        prepared: PreparedRequest,
        client: ModelClient,
        trigger: Trigger,
        focus: str,
        *,
        forced: bool,
        without_model: bool = False,
    ) -> CompactResult | NotCompacted:
        """One transaction. Where nothing changed, an event says why."""
        recorder, ledger = self._recorder, self._recorder.ledger
        item = recorder.new_item("k")
        allowances = Allowances.of(prepared.budget.effective)
        job = Job(
            trigger=trigger,
            summary_id=item,
            request=prepared.request,
            client=client,
            facts=_facts(recorder.state),
            summary_client=self._summary_client(),
            focus=focus,
            forced=forced,
            without_model=without_model,
            attachments=await asyncio.to_thread(
                attachments,
                ledger,
                self._services.workspace.cwd,
                EntrySizes(self._services.context.monitor, client.info),
                allowances.attached,
            ),
        )
        roomy = prepared.budget.level in ("ok", "warn")
        if without_model and roomy and self._compactor.preview(ledger, job, "") is None:
            reason = f"There is nothing to free: all of the {prepared.budget.used:,} tokens are needed as they are."
            self._notice(reason)
            return NotCompacted(reason)
        recorder.emit(ItemStarted(item, "compaction"))
        recorder.emit(CompactionStarted(item, trigger, self._compactor.options.strategy, prepared.budget.used))
        try:
            outcome = await self._compactor.compact(ledger, job, self._services.sleep)
        except asyncio.CancelledError:
            self._end(item, "interrupted", "interrupted; nothing was changed")
            raise
        if not isinstance(outcome, Compacted):
            self._note(outcome.notes)
            self._end(item, "rejected" if outcome.cancelled else "error", outcome.reason)
            return outcome
        self.commit(item, outcome, client, job.attachments)
        self._note(filter(None, [await tell_after(self._compactor.options, outcome.result)]))
        return outcome.result

    def clear(self, prepared: PreparedRequest, client: ModelClient, view: tuple[ViewEntry, ...]) -> int:
        """Take a view in which old results are stubs. Returns the size of a request over it, in tokens."""
        after = self._compactor.measure(self._recorder.ledger, view, client.info)
        messages = len(prepared.request.messages)
        item = self._recorder.new_item("k")
        self._recorder.emit(ItemStarted(item, "compaction"))
        self._recorder.emit(CompactionStarted(item, "auto", "clearing", prepared.budget.used))
        result = CompactResult(prepared.budget.used, after, messages, messages, ("clearing",))
        self.commit(item, Compacted(view, result), client)
        return after

    def undo(self, client: ModelClient | None) -> None:
        """Bring back the view of before the newest compaction."""
        item = self._recorder.ledger.undoable
        if item is None:
            self._notice("There is no compaction to undo.")
        else:
            self._recorder.emit(CompactionUndone(item))
            self._notice("Compaction undone: the conversation is as it was before it.")
            if client is not None:
                self.measure(client)

    def redo(self, client: ModelClient | None) -> None:
        """Compact again what was undone."""
        item = self._recorder.ledger.redoable
        if item is None:
            self._notice("There is no compaction to redo.")
        else:
            self._recorder.emit(CompactionRedone(item))
            self._notice("Compaction redone.")
            if client is not None:
                self.measure(client)

    def _summary_client(self) -> ModelClient | None:
        """The model for summaries, where there is one of its own; else the model at hand writes them."""
        try:
            return self._connection.beside("summary")
        except ModelUnavailable as error:
            self._notice(f"The model for summaries can't be used, the one at hand writes it: {error}")
            return None

    def commit(self, item: str, outcome: Compacted, client: ModelClient, attached: Sequence[Attachment] = ()) -> None:
        """Record an accepted view. ``attached`` are the files whose text its summary brings: they count as read."""
        result = outcome.result
        usage = outcome.summary.total_usage if outcome.summary else None
        self._note(outcome.notes)
        self._recorder.emit(
            CompactionCompleted(
                item,
                outcome.view,
                result.before_tokens,
                result.after_tokens,
                result.before_msg_count,
                result.after_msg_count,
                result.strategies_run,
                result.summary,
                usage,
                self._services.price(self._services.side_models.get("summary", client.info.ref), usage)
                if usage
                else None,
            )
        )
        if any(entry.id == item for entry in outcome.view):
            for file in attached:
                self._recorder.emit(FileRead(file.file, file.sha256, 1, file.lines, item))
        detail = f"{result.before_tokens:,} -> {result.after_tokens:,} tokens ({', '.join(result.strategies_run)})"
        self._recorder.emit(ItemCompleted(item, "ok", detail=detail))
        self.measure(client)
        self.snapshots.save_soon(client)

    def _end(self, item: str, status: ItemStatus, reason: str) -> None:
        self._recorder.emit(CompactionFailed(item, reason))
        self._recorder.emit(ItemCompleted(item, status, detail=reason))

    def _note(self, notes: Iterable[str]) -> None:
        for note in notes:
            self._notice(f"Compaction: {note}.")

    def _notice(self, text: str) -> None:
        self._recorder.emit(Notice(text, "info", "context"))


def _facts(state: SessionState) -> SessionFacts:
    running = tuple(f"{job.job} `{job.command}` runs" for job in state.jobs.values() if job.status == "running")
    return SessionFacts(state.mode, state.todos, running)
