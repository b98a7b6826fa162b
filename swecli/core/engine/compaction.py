"""Compactions as items of the conversation: carried out as one transaction, accepted or refused as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from swecli.core.context_management.compaction.options import (
    CompactionOptions,
    CompactResult,
    EntrySizes,
    Trigger,
    run_post_hook,
)
from swecli.core.context_management.compaction.package import Attachment
from swecli.core.context_management.compaction.plan import unchanged_tokens
from swecli.core.context_management.compaction.summary import Summary
from swecli.core.context_management.compaction.transaction import Compacted, Compaction, NotCompacted
from swecli.core.context_management.context_manager import ContextManager, PreparedRequest
from swecli.core.context_management.projection import project, thoughts_changed
from swecli.core.context_management.view_stack import View
from swecli.core.engine.compaction_plans import CompactionPlans
from swecli.core.engine.context_changes import ContextChanges
from swecli.core.engine.meter import Meter
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.settings import Settings
from swecli.core.engine.snapshots import SessionSnapshots
from swecli.core.engine.summaries import Summaries
from swecli.core.llm.types import ModelClient
from swecli.core.protocol.commands import ApplyPlan
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    FileRead,
    ItemCompleted,
    ItemStarted,
    ItemStatus,
    Notice,
)

CLEARING_ALONE = ("clearing",)
"""Strategies of a pass that only clears old results."""


class CompactionItems:
    """Records how a compaction ends."""

    def __init__(
        self,
        context: ContextManager,
        recorder: Recorder,
        summaries: Summaries,
        changes: ContextChanges,
        meter: Meter,
        snapshots: SessionSnapshots,
    ) -> None:
        self._context = context
        self._recorder = recorder
        self._summaries = summaries
        self._changes = changes
        self._meter = meter
        self._snapshots = snapshots
        self.after: Callable[[], None] = lambda: None
        """Called after each compaction with which the model's thoughts begin anew."""

    def begin(self, item: str, trigger: Trigger, strategy: str, used: int, effective: int) -> None:
        self._recorder.emit(ItemStarted(item, "compaction"))
        self._recorder.emit(CompactionStarted(item, trigger, strategy, used, effective))

    def fail(self, item: str, status: ItemStatus, reason: str) -> None:
        self._recorder.emit(CompactionFailed(item, reason))
        self._recorder.emit(ItemCompleted(item, status, detail=reason))

    def note(self, notes: Iterable[str]) -> None:
        for note in notes:
            self._recorder.emit(Notice(f"Compaction: {note}.", "info", "context"))

    def commit(
        self,
        item: str,
        outcome: Compacted,
        client: ModelClient,
        effective: int = 0,
        attached: Sequence[Attachment] = (),
    ) -> None:
        """Record an accepted view. The files of ``attached``, whose text the summary includes, count as read."""
        result = outcome.result
        usage = outcome.summary.total_usage if outcome.summary else None
        ledger, info = self._recorder.ledger, client.info
        stubs = {entry.id for entry in ledger.view if entry.kind == "stub"}
        sizes = EntrySizes(self._context.monitor, info)
        unchanged = unchanged_tokens(ledger, outcome.view, sizes, result.before_tokens)
        restorable = self._changes.room(info).fit(ledger.view, outcome.view)
        self.note(outcome.notes)
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
                self._summaries.price(self._summaries.model or info.ref, usage) if usage else None,
                effective,
                sum(entry.kind == "stub" and entry.id not in stubs for entry in outcome.view),
                outcome.quality.anchors,
                outcome.quality.kept,
                outcome.quality.written,
                restorable.clause if restorable is not None else "",
                max(0, result.after_tokens - unchanged),
                thoughts_changed(ledger, outcome.view, info)[0],
            )
        )
        if any(entry.id == item for entry in outcome.view):
            for file in attached:
                self._recorder.emit(FileRead(file.file, file.sha256, 1, file.lines, item))
        detail = f"{result.before_tokens:,} -> {result.after_tokens:,} tokens ({', '.join(result.strategies_run)})"
        self._recorder.emit(ItemCompleted(item, "ok", detail=detail))
        renews = result.strategies_run != CLEARING_ALONE  # else the thoughts before what was cleared live on
        if renews:
            self._changes.make_planned(info)
        self._meter.measure()
        self._snapshots.save_soon(client)
        if renews:
            self.after()


class Compactions:
    """Carries out compactions; an event says why if nothing changes."""

    def __init__(
        self,
        context: ContextManager,
        settings: Settings,
        recorder: Recorder,
        plans: CompactionPlans,
        summaries: Summaries,
        items: CompactionItems,
        around: Callable[[CompactionOptions], CompactionOptions] = lambda options: options,
    ) -> None:
        """``around`` adds callbacks to the options of a compaction that is about to run."""
        self._context = context
        self._settings = settings
        self._recorder = recorder
        self._plans = plans
        self._summaries = summaries
        self._items = items
        self._around = around

    async def run(
        self,
        prepared: PreparedRequest,
        client: ModelClient,
        trigger: Trigger,
        focus: str = "",
        *,
        forced: bool = False,
        without_model: bool = False,
    ) -> CompactResult | NotCompacted:
        """One compaction transaction. ``forced``: no request fits any more."""
        recorder, budget, summaries = self._recorder, prepared.budget, self._summaries
        item = recorder.new_item("k")
        other, by_provider = summaries.other_client(), summaries.are_by_provider(client)
        recorder.reductions.work.absorb(recorder.ledger)
        job = self._plans.job(
            client, trigger, item, prepared.request, without_model=without_model, by_provider=by_provider
        )
        files = job.facts.work(recorder.ledger).files(recorder.ledger.left)
        attached = await asyncio.to_thread(self._plans.attachments, client, budget.effective, files)
        job = replace(
            job, summary_client=other, focus=focus, forced=forced, cover=summaries.cover, attachments=attached
        )
        options = self._around(self._settings.now.compaction)
        compaction = Compaction(self._context, recorder.ledger, job, options, summaries.gateway)
        roomy = budget.level in ("ok", "warn")
        if without_model and roomy and compaction.preview("") is None:
            reason = f"Nothing to free: all {budget.used:,} tokens are in use."
            recorder.emit(Notice(reason, "info", "context"))
            return NotCompacted(reason)
        self._items.begin(item, trigger, compaction.options.strategy, budget.used, budget.effective)
        try:
            outcome = await compaction.run()
        except asyncio.CancelledError:
            self._items.fail(item, "interrupted", "interrupted; nothing was changed")
            raise
        if not isinstance(outcome, Compacted):
            self._items.note(outcome.notes)
            self._items.fail(item, "rejected" if outcome.cancelled else "error", outcome.reason)
            return outcome
        self._items.commit(item, outcome, client, budget.effective, attached)
        self._items.note(filter(None, [await run_post_hook(compaction.options, outcome.result)]))
        return outcome.result

    def clear(self, prepared: PreparedRequest, client: ModelClient, view: View) -> None:
        """Take a view in which only old results are cleared."""
        budget, messages = prepared.budget, len(prepared.request.messages)
        after = self._context.measure(project(self._recorder.ledger, view), client.info).used
        item = self._recorder.new_item("k")
        self._items.begin(item, "auto", "clearing", budget.used, budget.effective)
        result = CompactResult(budget.used, after, messages, messages, CLEARING_ALONE)
        self._items.commit(item, Compacted(view, result), client, budget.effective)

    async def apply_plan(self, client: ModelClient, wish: ApplyPlan) -> None:
        """Carry out the user's plan."""
        recorder = self._recorder
        draft = await asyncio.to_thread(self._plans.draft)
        refused = draft.place(wish.summarise, wish.offload) if draft is not None else "no model is connected."
        if draft is None or refused:
            recorder.emit(Notice(f"Nothing was changed: {refused}", "warning", "context"))
            return
        item = recorder.new_item("k")
        self._items.begin(item, "manual", "plan", draft.before.used, draft.before.effective)
        try:
            summary = wish.summary
            if summary is None:
                written = await self._summaries.draft(draft.fold_wish() if wish.fold else "")
                summary = written.text if written is not None else ""
        except asyncio.CancelledError:
            self._items.fail(item, "interrupted", "interrupted; nothing was changed")
            raise
        arranged = draft.arranged(summary, item, fold=wish.fold)
        if not arranged.view or arranged.after >= arranged.before:
            left = f"the plan would leave {arranged.after:,} of {arranged.before:,} tokens"
            self._items.fail(item, "error", f"nothing was changed: {left}")
            return
        messages = len(project(recorder.ledger)), len(project(recorder.ledger, arranged.view))
        steps = (
            ("fold",) if wish.fold else ("summary",) if summary else ("record",) if wish.summarise else ("clearing",)
        )
        result = CompactResult(arranged.before, arranged.after, *messages, steps, summary)
        made = Compacted(arranged.view, result, (), Summary(summary), arranged.quality)
        self._items.commit(item, made, client, draft.before.effective, () if wish.fold else draft.attached)
