"""Keeps the context within its window: runs compaction as an item of the session, and takes it back."""

from __future__ import annotations

import asyncio

from swecli.core.context_management.compaction.breaker import Breaker
from swecli.core.context_management.compaction.clearing import clear
from swecli.core.context_management.compaction.compactor import Compacted, Compactor, Job
from swecli.core.context_management.compaction.options import CompactResult, Trigger
from swecli.core.context_management.compaction.plan import CompactionPlan, plan_compaction
from swecli.core.context_management.compaction.sizes import Allowances, EntrySizes
from swecli.core.context_management.compaction.state_block import SessionFacts
from swecli.core.context_management.compaction.working_set import attachments
from swecli.core.context_management.context_manager import PreparedRequest
from swecli.core.context_management.projection import project
from swecli.core.engine.connection import Connection
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import ModelUnavailable, Services
from swecli.core.llm.types import ModelClient
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionFailed,
    CompactionRedone,
    CompactionStarted,
    CompactionUndone,
    ContextMeasured,
    ItemCompleted,
    ItemStarted,
    ItemStatus,
    Notice,
)


class ContextKeeper:
    """Decides before each request whether the view must be compacted, and does it as one transaction."""

    def __init__(self, services: Services, recorder: Recorder, connection: Connection) -> None:
        self._services = services
        self._recorder = recorder
        self._connection = connection
        self._compactor = Compactor(services.context, services.compaction)
        self._breaker = Breaker()
        self._told = False
        self._cleared_at = 0
        self._wanted = False

    def request_compaction(self) -> str:
        """The model asks for room: done before its next request, when every call has its result."""
        self._wanted = True
        budget = self._recorder.state.budget
        size = f" ({budget.used:,} of {budget.effective:,} tokens are in use)" if budget else ""
        return f"The conversation will be compacted before your next step{size}."

    async def before_request(self, prepared: PreparedRequest, client: ModelClient) -> bool:
        """Compact if the context is nearly full, or clear old results if that pays. True when the view changed."""
        if self._wanted:
            self._wanted = False
            return await self._run(prepared, client, "model", "", forced=False) is not None
        if prepared.budget.level in ("compact", "block"):
            return await self._automatic(prepared, client, "auto", forced=prepared.blocked)
        self._told = False
        return self._clear_if_it_pays(prepared, client)

    async def after_overflow(self, prepared: PreparedRequest, client: ModelClient) -> bool:
        """The provider refused the request as too long, whatever we measured. True when the view changed."""
        return await self._automatic(prepared, client, "overflow", forced=True)

    def plan(self, client: ModelClient) -> CompactionPlan:
        """What a compaction would do now."""
        state = self._recorder.state
        facts = SessionFacts(state.mode, state.todos)
        return plan_compaction(self._recorder.ledger, self._services.context, client.info, facts)

    async def compact(self, client: ModelClient, focus: str, trigger: Trigger = "manual") -> CompactResult | None:
        """Compact because the user or the model asked for it; None when nothing changed (an event says why)."""
        self._breaker.reset()
        state = self._recorder.state
        prepared = self._services.context.prepare(
            project(self._recorder.ledger), info=client.info, session=self._recorder.session, effort=state.effort
        )
        return await self._run(prepared, client, trigger, focus, forced=False)

    async def compact_now(self, client: ModelClient, focus: str) -> None:
        """The same as work of the session."""
        await self.compact(client, focus)

    def measure(self, client: ModelClient) -> None:
        """Publish the size of the context as it is now, for the meter and everything else that shows it."""
        messages = project(self._recorder.ledger)
        self._recorder.emit(ContextMeasured(self._services.context.measure(messages, client.info)))

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

    async def _automatic(
        self, prepared: PreparedRequest, client: ModelClient, trigger: Trigger, *, forced: bool
    ) -> bool:
        if not self._services.compaction.auto:
            self._tell_once("Automatic compaction is off; /compact makes room.")
            return False
        stopped = self._breaker.open(self._recorder.state.steps)
        if stopped is not None:
            self._tell_once(
                f"Automatic compaction has stopped: {stopped}. /context shows what takes the room, /clear starts anew."
            )
            return False
        result = await self._run(prepared, client, trigger, "", forced=forced)
        if result is None:
            self._breaker.record_failure()
            return False
        self._breaker.record(self._recorder.state.steps, result.before_tokens, result.after_tokens)
        return True

    async def _run(
        self,
        prepared: PreparedRequest,
        client: ModelClient,
        trigger: Trigger,
        focus: str,
        *,
        forced: bool,
    ) -> CompactResult | None:
        recorder, ledger = self._recorder, self._recorder.ledger
        item = recorder.new_item("k")
        recorder.emit(ItemStarted(item, "compaction"))
        recorder.emit(CompactionStarted(item, trigger, self._compactor.options.strategy, prepared.budget.used))
        allowances = Allowances.of(prepared.budget.effective)
        job = Job(
            trigger=trigger,
            summary_id=item,
            request=prepared.request,
            client=client,
            facts=SessionFacts(recorder.state.mode, recorder.state.todos),
            summary_client=self._summary_client(),
            focus=focus,
            forced=forced,
            attachments=await asyncio.to_thread(
                attachments,
                ledger,
                self._services.workspace.cwd,
                EntrySizes(self._services.context.monitor, client.info),
                allowances.attached,
            ),
        )
        try:
            outcome = await self._compactor.compact(ledger, job, self._services.sleep)
        except asyncio.CancelledError:
            self._end(item, "interrupted", "interrupted; nothing was changed")
            raise
        if not isinstance(outcome, Compacted):
            self._end(item, "rejected" if outcome.cancelled else "error", outcome.reason)
            return None
        self._commit(item, outcome, client)
        return outcome.result

    def _summary_client(self) -> ModelClient | None:
        """The model for summaries, where there is one of its own; else the model at hand writes them."""
        try:
            return self._connection.beside("summary")
        except ModelUnavailable as error:
            self._notice(f"The model for summaries can't be used, the one at hand writes it: {error}")
            return None

    def _commit(self, item: str, outcome: Compacted, client: ModelClient) -> None:
        result = outcome.result
        for note in outcome.notes:
            self._notice(f"Compaction: {note}.")
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
            )
        )
        detail = f"{result.before_tokens:,} -> {result.after_tokens:,} tokens ({', '.join(result.strategies_run)})"
        self._recorder.emit(ItemCompleted(item, "ok", detail=detail))
        self.measure(client)

    def _end(self, item: str, status: ItemStatus, reason: str) -> None:
        self._recorder.emit(CompactionFailed(item, reason))
        self._recorder.emit(ItemCompleted(item, status, detail=reason))

    def _clear_if_it_pays(self, prepared: PreparedRequest, client: ModelClient) -> bool:
        """One batch of clearing, when what it frees is worth the cache that it rewrites."""
        allowances = Allowances.of(prepared.budget.effective)
        if prepared.budget.used - self._cleared_at < allowances.protected + allowances.worthwhile:
            return False
        ledger = self._recorder.ledger
        cleared = clear(
            ledger, ledger.view, EntrySizes(self._services.context.monitor, client.info), allowances.protected
        )
        self._cleared_at = prepared.budget.used - allowances.protected
        if not cleared.pays(allowances.worthwhile):
            return False
        after = self._compactor.measure(ledger, cleared.view, client.info)
        messages = len(prepared.request.messages)
        item = self._recorder.new_item("k")
        self._recorder.emit(ItemStarted(item, "compaction"))
        self._recorder.emit(CompactionStarted(item, "auto", "clearing", prepared.budget.used))
        result = CompactResult(prepared.budget.used, after, messages, messages, ("clearing",))
        self._commit(item, Compacted(cleared.view, result), client)
        self._cleared_at = after - allowances.protected
        return True

    def _tell_once(self, text: str) -> None:
        if not self._told:
            self._told = True
            self._recorder.emit(Notice(text, "warning", "context"))

    def _notice(self, text: str) -> None:
        self._recorder.emit(Notice(text, "info", "context"))
