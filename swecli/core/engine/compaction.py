"""Keeping the context within its window: when to clear or compact, compactions as items, undo and redo."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from swecli.core.context_management.budget import (
    budget_too_large,
    fixed_tokens,
    much_fixed,
    no_room,
    over_limit,
)
from swecli.core.context_management.compaction.clearing import RuleReport, report
from swecli.core.context_management.compaction.options import (
    Allowances,
    CompactionOptions,
    CompactResult,
    EntrySizes,
    Trigger,
    run_post_hook,
)
from swecli.core.context_management.compaction.package import Attachment, SessionFacts, attachments
from swecli.core.context_management.compaction.plan import CompactionPlan, PlanDraft, plan_compaction, unchanged_tokens
from swecli.core.context_management.compaction.policy import Breaker, is_small, worth_clearing
from swecli.core.context_management.compaction.quality import cited
from swecli.core.context_management.compaction.selection import covered
from swecli.core.context_management.compaction.summary import Summarizer, Summary
from swecli.core.context_management.compaction.transaction import (
    Compacted,
    Compaction,
    Job,
    NotCompacted,
    checked_summary,
)
from swecli.core.context_management.context_manager import PreparedRequest
from swecli.core.context_management.edits import Edited, edited
from swecli.core.context_management.fitting import Fitted, Room, as_references, with_references
from swecli.core.context_management.ledger import Passes
from swecli.core.context_management.projection import project, thoughts_changed
from swecli.core.context_management.view_stack import View
from swecli.core.engine.model_access import Connection, ModelUnavailable
from swecli.core.engine.model_call import gateway_of
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Services
from swecli.core.engine.snapshots import SessionSnapshots, known_size
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.protocols.anthropic import NAME as ANTHROPIC
from swecli.core.llm.protocols.openai_responses import NAME as OPENAI
from swecli.core.llm.types import ModelClient, ModelInfo, ModelRequest
from swecli.core.ports import Asker
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.commands import ApplyPlan, ChangeContext, Compact
from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionFailed,
    CompactionRedone,
    CompactionStarted,
    CompactionUndone,
    ContextEdited,
    ContextEditPlanned,
    ContextMeasured,
    FileRead,
    ItemCompleted,
    ItemStarted,
    ItemStatus,
    Notice,
    NoticeLevel,
    SideAnswered,
)
from swecli.core.protocol.messages import Message, Usage
from swecli.core.protocol.request_events import Option, Question
from swecli.figures import plural

FREE = "Free space without a model"
SUMMARISE = "Compact with a summary"
LEAVE = "Leave it unchanged"
CLEARING_ALONE = ("clearing",)
"""Strategies of a pass that only clears old results."""
FILLING, NEARLY_FULL, STOPPED = "context is filling", "context is nearly full", "automatic compaction stopped"
"""What warnings are about that are told again only after the context has been smaller, whatever run finds it."""


class LimitNotices:
    """Notices about limits, once for each model and component."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def check(self, budget: Budget, model: str, *, exact: bool = True) -> bool:
        """Report problems in the measure of a request to ``model``. An estimate (not ``exact``) is not reported; True
        if it shows a problem."""
        trouble = no_room(budget)
        if not exact:
            return bool(trouble or much_fixed(budget) or over_limit(budget))
        if trouble:
            self._tell("no room", model, trouble, "error")
            return False
        much = much_fixed(budget)
        if much:
            self._tell("fixed part", model, much)
        for text in over_limit(budget):
            self._tell(text.partition(":")[0], model, text)
        return False

    def _tell(self, what: str, model: str, text: str, level: NoticeLevel = "warning") -> None:
        self._recorder.tell_once(Notice(text, level, "context", about=f"{what}: {model}"))


class Compactions:
    """Compactions of a conversation, triggered by thresholds, the model or the user, and their undo."""

    def __init__(
        self,
        services: Services,
        recorder: Recorder,
        connection: Connection,
        asker: Asker,
        around: Callable[[CompactionOptions], CompactionOptions] = lambda options: options,
    ) -> None:
        """``around`` adds callbacks to the options of a compaction that is about to run."""
        self._services = services
        self._recorder = recorder
        self._connection = connection
        self._around = around
        self.snapshots = SessionSnapshots(services.context, services.store.snapshots, recorder)
        self.after: Callable[[], None] = lambda: None
        """Called after each compaction with which the model's thoughts begin anew."""
        self.in_doubt = False
        """Whether the newest measure shows a problem based only on estimates."""
        self._limits = LimitNotices(recorder)
        self._gateway = gateway_of(services, recorder)
        self._asker = asker
        self._breaker = Breaker()
        self._reported = False
        self._begun = -1
        """Turn whose first request was made."""
        self._declined = -1
        """Turn in which a hook cancelled a compaction: hooks are not asked again in it while requests fit."""
        self._wanted = False
        self._passes = Passes()
        self._freed_nothing = False
        """Whether a compaction for the newest request was tried and freed no space."""
        self._resumed: tuple[int, str] = (0, "")
        """The newest event of earlier runs, and the user's name for the model."""

    def plan(self, client: ModelClient) -> CompactionPlan:
        services = self._services
        by_provider = self.provider_summary(client) == ""
        return plan_compaction(
            self._planned(client, by_provider=by_provider),
            services.access.price,
            services.settings.now.side_models.get("summary"),
        )

    def draft(self, client: ModelClient) -> PlanDraft:
        """Editable plan with movable items."""
        services = self._services
        return PlanDraft(self._planned(client), services.access.price, services.settings.now.side_models.get("summary"))

    def freed(self, client: ModelClient) -> View | None:
        """The view after space was freed without a model; None if there is nothing to free."""
        return self._planned(client, without_model=True).preview("")

    def _planned(self, client: ModelClient, *, without_model: bool = False, by_provider: bool = False) -> Compaction:
        """A compaction at the user's request that is not carried out."""
        services, ledger = self._services, self._recorder.ledger
        effective = services.context.measure(project(ledger), client.info).effective
        sizes = EntrySizes(services.context.monitor, client.info)
        facts = session_facts(self._recorder)
        files = facts.work(ledger).files(ledger.left)
        job = Job(
            "manual",
            "plan",
            ModelRequest((), (), ()),
            client,
            facts,
            when=self._now(),
            without_model=without_model,
            by_provider=by_provider,
            sealed=writes_sealed(client),
            attachments=attachments(files, services.workspace.cwd, sizes, Allowances.of(effective).attached),
        )
        return Compaction(services.context, ledger, job, services.settings.now.compaction)

    def _now(self) -> str:
        """The time for the model, by the user's clock."""
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(self._services.time.clock()))

    async def draft_summary(self, client: ModelClient, focus: str) -> Summary:
        """The model's summary of the conversation; changes nothing but the spending."""
        services, recorder = self._services, self._recorder
        prepared = services.context.prepare(
            project(recorder.ledger), info=client.info, session=recorder.session, effort=recorder.state.effort
        )
        options = services.settings.now.compaction
        summarizer = Summarizer(
            self._gateway, client, options.summarization, services.time.sleep, self._summary_client()
        )
        most = min(options.allowances(prepared.budget.effective).summary, prepared.budget.reserve or 500)
        summary = await summarizer.summarize(prepared.request, focus, most, prepared.budget.effective)
        summary = checked_summary(summary, recorder.ledger, services.store.cover)
        usage, model = summary.total_usage, services.settings.now.side_models.get("summary", client.info.ref)
        if usage is not None:
            recorder.emit(SideAnswered("summary", model, usage, services.access.price(model, usage)))
        self._note(summary.notes)
        sources = covered(recorder.ledger.view)
        return replace(summary, text=await asyncio.to_thread(cited, summary.text, recorder.ledger, sources))

    async def apply_plan(self, client: ModelClient, wish: ApplyPlan) -> None:
        """Carry out the user's plan; an event says why if nothing changes."""
        recorder = self._recorder
        draft = await asyncio.to_thread(self.draft, client)
        refused = draft.place(wish.summarise, wish.offload)
        if refused:
            self._notice(f"Nothing was changed: {refused}", "warning")
            return
        item = recorder.new_item("k")
        recorder.emit(ItemStarted(item, "compaction"))
        recorder.emit(CompactionStarted(item, "manual", "plan", draft.before.used, draft.before.effective))
        try:
            summary = wish.summary
            if summary is None:
                summary = (await self.draft_summary(client, draft.fold_wish() if wish.fold else "")).text
        except asyncio.CancelledError:
            self._end(item, "interrupted", "interrupted; nothing was changed")
            raise
        arranged = draft.arranged(summary, item, fold=wish.fold)
        if not arranged.view or arranged.after >= arranged.before:
            left = f"the plan would leave {arranged.after:,} of {arranged.before:,} tokens"
            self._end(item, "error", f"nothing was changed: {left}")
            return
        messages = len(project(recorder.ledger)), len(project(recorder.ledger, arranged.view))
        steps = (
            ("fold",) if wish.fold else ("summary",) if summary else ("record",) if wish.summarise else ("clearing",)
        )
        result = CompactResult(arranged.before, arranged.after, *messages, steps, summary)
        made = Compacted(arranged.view, result, (), Summary(summary), arranged.quality)
        self._commit(item, made, client, draft.before.effective, () if wish.fold else draft.attached)

    def retention(self, client: ModelClient) -> tuple[RuleReport, ...]:
        sizes = EntrySizes(self._services.context.monitor, client.info)
        return report(self._recorder.ledger, sizes, self._services.settings.now.compaction.retention)

    def measure(self, client: ModelClient) -> None:
        """Publish the current size of the context, for the meter and every other display. It is an estimate while
        servers start whose tools may still join."""
        self._publish(self._budget(client), client)

    def _publish(self, budget: Budget, client: ModelClient) -> None:
        if budget.source == "measured" and self._services.tools.pending:
            budget = replace(budget, source="estimated")
        self._recorder.emit(ContextMeasured(budget))
        self.in_doubt = self._limits.check(budget, client.info.ref, exact=self._services.context.monitor.exact)
        for text in self._services.context.cut_instructions(client.info):
            about = f"{text.partition(' ')[0]} cut: {client.info.ref}"
            self._recorder.tell_once(Notice(text, "warning", "instructions", about=about))

    async def count_in_doubt(self, client: ModelClient) -> None:
        """Count exactly if the newest measure shows a problem based only on estimates."""
        if self.in_doubt:
            await self._services.context.count_exactly(project(self._recorder.ledger), client.info)
            budget = self._services.context.measure(project(self._recorder.ledger), client.info)
            self._recorder.emit(ContextMeasured(budget))
            self._limits.check(budget, client.info.ref)
            self.in_doubt = False

    def adopt_size(self, client: ModelClient | None, model: str) -> None:
        """Initialise the measure of a resumed session with its last known size. ``model`` is the user's name for the
        model."""
        ledger, told = self._recorder.ledger, self._recorder.state.told
        self._resumed = (self._recorder.state.seq, model)
        self._reported = not told.isdisjoint((NEARLY_FULL, STOPPED))
        self._services.context.continue_warned(FILLING in told)
        if client is None or not ledger.view:
            return
        snapshot_seq = self.snapshots.adopt_sizes(client)
        known = known_size(
            self._recorder.facts.held, ledger.view, (model, client.info.ref), self._recorder.state.models
        )
        if known is not None and known.seq > snapshot_seq:
            messages = project(ledger, ledger.view[: known.entries])
            self._services.context.adopt_size(messages, known.usage, client.info)

    def request_compaction(self) -> str:
        """Schedule a compaction that the model asked for: before its next request, when every call has its result."""
        if not self._services.settings.now.compaction.auto:
            return "The user has turned automatic compaction off, so nothing was compacted."
        self._wanted = True
        budget = self._recorder.state.budget
        size = f" ({budget.used:,} of {budget.effective:,} tokens are in use)" if budget else ""
        return f"swecli will compact the conversation before your next step{size}."

    async def before_request(self, prepared: PreparedRequest, client: ModelClient) -> bool:
        """Compact if the context is nearly full, or clear old results if that pays. True if the view changed."""
        if self._services.context.limits.context_budget is not None:
            self._warn_of_budget(client)
        self._freed_nothing = False
        begins, self._begun = self._begun != self._recorder.turn, self._recorder.turn
        if begins:
            self._wanted = False  # of a turn that ended before its next request, as by an interrupt
        if self._wanted:
            self._wanted = False
            result = await self._run(prepared, client, "model", "")
            return isinstance(result, CompactResult)
        if prepared.budget.level in ("compact", "block"):
            if self._services.settings.now.compaction.auto:
                return await self._automatic(prepared, client, "auto", forced=prepared.blocked)
            if prepared.blocked:
                return await self._offer(prepared, client, prepared.reason)
            text = "The context is nearly full, and automatic compaction is off; /compact frees space."
            self._report_once(text, NEARLY_FULL)
            return False
        self._reported = False
        return begins and self._clear_if_it_pays(prepared, client)

    def why_blocked(self, prepared: PreparedRequest) -> str:
        """Reason why this request is not sent, with remedies that have not been tried."""
        return self._services.context.why_blocked(prepared.budget) if self._freed_nothing else prepared.reason

    async def after_overflow(self, prepared: PreparedRequest, client: ModelClient) -> bool:
        """React to a request that the provider refused as too long, regardless of our measure. True if the view
        changed."""
        if not self._services.settings.now.compaction.auto:
            return await self._offer(prepared, client, "The provider rejected the request as too long.")
        return await self._automatic(prepared, client, "overflow", forced=True)

    async def compact_now(self, client: ModelClient, wish: Compact) -> None:
        """Compact at the user's request; an event says why if nothing changes."""
        self._breaker.reset()
        prepared = self._services.context.prepare(
            project(self._recorder.ledger),
            info=client.info,
            session=self._recorder.session,
            effort=self._recorder.state.effort,
        )
        await self._run(prepared, client, "manual", wish.focus, without_model=wish.without_model)

    async def _offer(self, prepared: PreparedRequest, client: ModelClient, reason: str) -> bool:
        """Let the user choose if automatic compaction is off and no request fits. True if the view changed."""
        freed, ledger = self.freed(client), self._recorder.ledger
        free, summarised = (
            thoughts_changed(ledger, freed, client.info)[0] if freed is not None else 0,
            self.plan(client).thoughts,
        )
        question = Question(
            f"{reason} Automatic compaction is off.",
            (
                Option(FREE, f"old results and messages are removed and can be recalled{_lost(free)}"),
                Option(SUMMARISE, f"the model writes it{_lost(summarised)}"),
                Option(LEAVE, "no request is sent; nothing changes"),
            ),
            header="Context",
        )
        answers = await self._asker.ask("", (question,))
        chosen = answers[0][0] if answers and answers[0] else LEAVE
        if chosen not in (FREE, SUMMARISE):
            return False
        free = chosen == FREE
        result = await self._run(prepared, client, "manual", "", forced=True, without_model=free)
        return isinstance(result, CompactResult)

    async def _automatic(
        self, prepared: PreparedRequest, client: ModelClient, trigger: Trigger, *, forced: bool
    ) -> bool:
        stopped = self._breaker.open(self._recorder.state.steps)
        if stopped is not None:
            self._report_once(
                f"Automatic compaction stopped: {stopped}. When no request fits, swecli frees space without a "
                "model. /context shows what fills the context, /clear starts over.",
                STOPPED,
            )
            if not forced:
                return False
        if self._declined == self._recorder.turn and not forced:
            return False
        result = await self._run(prepared, client, trigger, "", forced=forced, without_model=stopped is not None)
        if not isinstance(result, CompactResult):
            self._freed_nothing = not result.cancelled
            if result.cancelled:
                self._declined = self._recorder.turn
            else:
                self._breaker.record_failure()
            return False
        fixed = fixed_tokens(prepared.budget)  # no compaction makes it smaller
        self._breaker.record(self._recorder.state.steps, result.before_tokens - fixed, result.after_tokens - fixed)
        return True

    def _is_cold(self, info: ModelInfo) -> bool:
        """Whether the provider has to read the whole prompt uncached anyway. Only time expires its cache, not a new
        process or a model switch, which the user may reverse."""
        asked = self._recorder.state.asked_at
        return asked is None or self._services.time.clock() - asked >= info.cache_seconds

    def _clear_if_it_pays(self, prepared: PreparedRequest, client: ModelClient) -> bool:
        """Clear results and apply the user's rules in one batch between turns, unless the model would lose thoughts by
        it. True if the view changed."""
        if is_small(prepared.budget):
            return False
        ledger, turn = self._recorder.ledger, self._recorder.turn
        cold = self._is_cold(client.info)
        if not self._passes.due(ledger) and not cold and not self._services.settings.now.compaction.retention:
            return False
        running = [one.id for one in ledger.view if one.id in ledger.entries and ledger.entries[one.id].turn == turn]
        sizes = EntrySizes(self._services.context.monitor, client.info)
        found = worth_clearing(
            ledger, prepared.budget, sizes, self._services.settings.now.compaction, running=running, cold=cold
        )
        if found is None or thoughts_changed(ledger, found.view, client.info)[0]:
            return False
        self._take_cleared(prepared, client, found.view)
        return True

    def _warn_of_budget(self, client: ModelClient) -> None:
        """Warn once for each model if the configured budget exceeds the model's window."""
        limits, info = self._services.context.limits, client.info
        if budget_too_large(info, limits):
            text = (
                f"context_budget {limits.context_budget:,} exceeds the window of {info.ref} ({info.window:,} tokens, "
                f"{info.window_source}), so swecli uses the window."
            )
            about = f"context_budget {limits.context_budget}: {info.ref}"
            self._recorder.tell_once(Notice(text, "warning", "context", about=about))

    def _report_once(self, text: str, about: str) -> None:
        if not self._reported:
            self._reported = True
            self._recorder.emit(Notice(text, "warning", "context", about=about))

    # --- one compaction -----------------------------------------------------------------------------------

    async def _run(
        self,
        prepared: PreparedRequest,
        client: ModelClient,
        trigger: Trigger,
        focus: str = "",
        *,
        forced: bool = False,
        without_model: bool = False,
    ) -> CompactResult | NotCompacted:
        """One compaction transaction. An event says why if nothing changed."""
        recorder, ledger = self._recorder, self._recorder.ledger
        item = recorder.new_item("k")
        allowances = Allowances.of(prepared.budget.effective)
        recorder.reductions.work.absorb(ledger)
        facts = session_facts(recorder)
        job = Job(
            trigger=trigger,
            summary_id=item,
            request=prepared.request,
            client=client,
            when=self._now(),
            facts=facts,
            summary_client=self._summary_client(),
            focus=focus,
            forced=forced,
            without_model=without_model,
            by_provider=self._by_provider(client),
            sealed=writes_sealed(client),
            cover=self._services.store.cover,
            attachments=await asyncio.to_thread(
                attachments,
                facts.work(ledger).files(ledger.left),
                self._services.workspace.cwd,
                EntrySizes(self._services.context.monitor, client.info),
                allowances.attached,
            ),
        )
        options = self._around(self._services.settings.now.compaction)
        compaction = Compaction(self._services.context, ledger, job, options, self._gateway)
        roomy = prepared.budget.level in ("ok", "warn")
        if without_model and roomy and compaction.preview("") is None:
            reason = f"Nothing to free: all {prepared.budget.used:,} tokens are in use."
            self._notice(reason)
            return NotCompacted(reason)
        recorder.emit(ItemStarted(item, "compaction"))
        budget, strategy = prepared.budget, compaction.options.strategy
        recorder.emit(CompactionStarted(item, trigger, strategy, budget.used, budget.effective))
        try:
            outcome = await compaction.run(self._services.time.sleep)
        except asyncio.CancelledError:
            self._end(item, "interrupted", "interrupted; nothing was changed")
            raise
        if not isinstance(outcome, Compacted):
            self._note(outcome.notes)
            self._end(item, "rejected" if outcome.cancelled else "error", outcome.reason)
            return outcome
        self._commit(item, outcome, client, prepared.budget.effective, job.attachments)
        self._note(filter(None, [await run_post_hook(compaction.options, outcome.result)]))
        return outcome.result

    def _by_provider(self, client: ModelClient) -> bool:
        """Whether the provider writes the summary: the user wants it and the model can have it. Says once if not."""
        why = self.provider_summary(client)
        if why:
            about = f"provider_summary: {client.info.ref}"
            self._recorder.tell_once(Notice(f"{NO_EFFECT}: {why}.", "warning", "context", about=about))
        return why == ""

    def provider_summary(self, client: ModelClient) -> str | None:
        """Why the provider does not write the summaries, as a clause; empty if it does, None if it is not asked to."""
        if not self._services.settings.now.compaction.provider_summary:
            return None
        return why_not_by_provider(client, self._services.settings.now.side_models)

    def _take_cleared(self, prepared: PreparedRequest, client: ModelClient, view: tuple[ViewEntry, ...]) -> None:
        after = self._services.context.measure(project(self._recorder.ledger, view), client.info).used
        messages = len(prepared.request.messages)
        item = self._recorder.new_item("k")
        self._recorder.emit(ItemStarted(item, "compaction"))
        effective = prepared.budget.effective
        self._recorder.emit(CompactionStarted(item, "auto", "clearing", prepared.budget.used, effective))
        result = CompactResult(prepared.budget.used, after, messages, messages, CLEARING_ALONE)
        self._commit(item, Compacted(view, result), client, effective)

    def undo(self, client: ModelClient | None, item: str = "") -> None:
        """Undo compactions back to and including that of ``item`` (empty: the newest), as far as the window has room
        for what they removed."""
        ledger = self._recorder.ledger
        wanted = item or ledger.undoable or ""
        if wanted not in ledger.compactions[0]:
            why = f"Compaction {item} is not active." if item else "There is no compaction to undo."
            self._notice(f"{why} /compact history lists all.", "warning")
            return
        room = self._room(client) if client is not None else None
        size = room.now.used if room is not None else 0
        if completed := self._of_earlier_run(ledger.undoable, client):
            self._adopt_view(ledger.replaced_view, completed.tokens_before, client)
            room = self._room(client) if client is not None else None
        fitted = room.without(wanted) if room is not None else _whole(ledger.view_without(wanted))
        if fitted is None:
            if completed:
                self._adopt_view(ledger.view, size, client)
            self._notice(
                "Cannot undo the compaction: what every request has and your newest message fill the window. "
                "/recall finds what was removed; /model switches to a model with a larger window.",
                "warning",
            )
            return
        done: list[str] = []
        while wanted in ledger.compactions[0] and (newest := ledger.undoable) is not None:
            view = fitted.view if newest == wanted and not fitted.whole else ()
            self._recorder.emit(CompactionUndone(newest, view))
            done.append(newest)
        back = "/compact redo reapplies it." if len(done) == 1 else f"/compact redo {done[0]} reapplies them."
        self._report_moved("undone", len(done), size, client, back, fitted)

    def undone(self, client: ModelClient | None, item: str) -> Fitted | None:
        """The view if the compaction of this item, and all later ones, were undone; None if it can't be. Without a
        model all of it comes back."""
        if client is not None:
            return self._room(client).without(item)
        return _whole(self._recorder.ledger.view_without(item))

    def _room(self, client: ModelClient, back: Iterable[str] = ()) -> Room:
        """How much of a view fits in this model's window; the entries of ``back`` stay word for word."""
        services = self._services
        return Room(services.context, self._recorder.ledger, client.info, services.settings.now.compaction, back)

    def redo(self, client: ModelClient | None, item: str = "") -> None:
        """Redo compactions up to and including that of ``item`` (empty: the last one undone), and as many more as the
        context needs to fit again."""
        ledger = self._recorder.ledger
        wanted = item or ledger.redoable or ""
        if wanted not in ledger.compactions[1]:
            why = f"Compaction {item} was not undone, or later work replaced it."
            self._notice(why if item else "There is no compaction to redo.", "warning")
            return
        size, done = self._used(client), list[str]()
        if (again := self.redone(client, wanted)) is not None:
            wanted = again[0]
        if completed := self._of_earlier_run(ledger.redoable, client):
            self._adopt_view(completed.view, completed.tokens_after, client)
        while wanted in ledger.compactions[1] and ledger.redoable is not None:
            done.append(ledger.redoable)
            self._recorder.emit(CompactionRedone(ledger.redoable))
        back = "/compact undo undoes it." if len(done) == 1 else f"/compact undo {done[0]} undoes them."
        self._report_moved("redone", len(done), size, client, back)

    def redone(self, client: ModelClient | None, item: str) -> tuple[str, Fitted] | None:
        """The last compaction that a redo of this item would redo, and the view then; None if it was not undone, or
        without a model."""
        return self._room(client).again(item) if client is not None else None

    def _of_earlier_run(self, item: str | None, client: ModelClient | None) -> CompactionCompleted | None:
        """This compaction if an earlier run measured it with the present model and memory still holds it."""
        last, model = self._resumed
        names = (model, client.info.ref) if client is not None else ()
        for event in reversed(self._recorder.facts.held):
            if isinstance(event.body, CompactionCompleted) and event.body.item == item:
                asked = next((name for seq, name, _ in reversed(self._recorder.state.models) if seq < event.seq), None)
                return event.body if event.seq <= last and asked in names else None
        return None

    def _adopt_view(self, view: View, tokens: int, client: ModelClient | None) -> None:
        """Adopt the known size of this view, which may be another one than the present."""
        if client is not None and tokens > 0:
            self._services.context.adopt_size(
                project(self._recorder.ledger, view), Usage(input_total=tokens), client.info
            )

    def _report_moved(
        self,
        how: str,
        count: int,
        before: int,
        client: ModelClient | None,
        back: str,
        fitted: Fitted | None = None,
    ) -> None:
        """Report undone or redone compactions, the size of the context ``before`` and after, and the way ``back``."""
        what = f"Compaction {how}" if count == 1 else f"{count} compactions {how}"
        extent = f" {fitted.extent}" if fitted is not None and not fitted.whole else ""
        now = self._budget(client) if client is not None else None
        after = now.used if now is not None else 0
        sizes = f": {before:,} to {after:,} tokens" if client is not None else ""
        if client is not None and after == before:
            sizes = f": still {after:,} tokens, " + ("as nothing more fits" if extent else "as large as before")
        self._notice(f"{what}{extent}{sizes}. {back}")
        if client is not None and now is not None:
            self._publish(now, client)

    def _used(self, client: ModelClient | None) -> int:
        """Tokens of the present context; 0 without a model."""
        return self._budget(client).used if client is not None else 0

    def _budget(self, client: ModelClient) -> Budget:
        """The measure of the present context."""
        self._services.context.bind(self._recorder.ledger, client.info)
        return self._services.context.measure(project(self._recorder.ledger), client.info)

    def _does_not_fit(self, view: tuple[ViewEntry, ...], client: ModelClient | None) -> str:
        """Excess of this view over the model's window, as a sentence; empty if it fits or is no larger than the current
        view."""
        if client is None:
            return ""
        context, ledger = self._services.context, self._recorder.ledger
        after = context.measure(project(ledger, view), client.info)
        now = context.measure(project(ledger), client.info)
        if after.level != "block" or after.used <= now.used:
            return ""
        over = max(1, after.upper - after.block_at)
        likely = f"{after.used:,}" if after.upper == after.used else f"about {after.used:,}, at most {after.upper:,}"
        return (
            f"with the restored items the context has {likely} tokens, up to {over:,} more than fit: "
            f"{client.info.ref} has room for {after.block_at:,}."
        )

    def change(self, client: ModelClient | None, wish: ChangeContext) -> None:
        """Apply the user's changes to single items: all of them, or none and report why."""
        if client is None:
            self._notice("Nothing was changed: no model is connected to measure the context.", "warning")
            return
        recorder = self._recorder
        done = edited(recorder.ledger, wish.changes, EntrySizes(self._services.context.monitor, client.info))
        refused = [refusal.reason for refusal in done.refusals]
        if refused:
            more = f" ({len(refused) - 1} more failed too)" if len(refused) > 1 else ""
            self._notice(f"Nothing was changed: {refused[0]}{more}", "warning")
            return
        if not done.changes_anything:
            self._notice("Nothing was changed: the items already have this state.")
            return
        if wish.later:
            planned = {change.id: change for change in (*recorder.state.planned, *wish.changes)}
            recorder.emit(ContextEditPlanned(tuple(planned.values())))
            waiting = plural(len(planned), "change")
            self._notice(f"{waiting} will be made with the next compaction (/compact, or when the context is full).")
            return
        if too_much := self._edit(done, client):
            self._notice(f"Nothing was changed: {too_much}", "warning")
            return
        self.measure(client)

    def _edit(self, done: Edited, client: ModelClient) -> str:
        """Record changes to single items, with references for old results where what comes back has no room. Returns
        why they can't be made, or an empty text."""
        ledger, context = self._recorder.ledger, self._services.context
        references = 0
        if too_much := self._does_not_fit(done.view, client):
            fitted = self._room(client, done.restored).shorten(done.view)
            if fitted is None:
                return too_much
            done, references = with_references(done, fitted), fitted.references
        before, after = (context.measure(project(ledger, view), client.info).used for view in (ledger.view, done.view))
        self._recorder.emit(ContextEdited(done.made, done.entries, done.pinned, done.unpinned, before, after))
        if references:
            self._notice(f"Room for what came back: {as_references(references)}.")
        return ""

    def _summary_client(self) -> ModelClient | None:
        """Client of the summary model if one is set; None if the current model writes summaries."""
        try:
            return self._connection.beside("summary")
        except ModelUnavailable as error:
            self._notice(f"The summary model is not available; the current model writes the summary: {error}")
            return None

    def _commit(
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
        sizes = EntrySizes(self._services.context.monitor, info)
        unchanged = unchanged_tokens(ledger, outcome.view, sizes, result.before_tokens)
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
                self._services.access.price(
                    self._services.settings.now.side_models.get("summary", client.info.ref), usage
                )
                if usage
                else None,
                effective,
                sum(entry.kind == "stub" and entry.id not in stubs for entry in outcome.view),
                outcome.quality.anchors,
                outcome.quality.kept,
                outcome.quality.written,
                self._undo_clause(outcome.view, client),
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
            self._make_planned_changes(client)
        self.measure(client)
        self.snapshots.save_soon(client)
        if renews:
            self.after()

    def _undo_clause(self, view: View, client: ModelClient) -> str:
        """What an undo brings back if this view replaces the present one."""
        fitted = self._room(client).fit(self._recorder.ledger.view, view)
        return fitted.clause if fitted is not None else ""

    def _make_planned_changes(self, client: ModelClient) -> None:
        """Make the user's changes that waited for a compaction, as far as their items are still in view."""
        recorder, ledger = self._recorder, self._recorder.ledger
        if not recorder.state.planned:
            return
        here = {entry.id for entry in ledger.view}
        wanted = [change for change in recorder.state.planned if change.id in here]
        recorder.emit(ContextEditPlanned())
        sizes = EntrySizes(self._services.context.monitor, client.info)
        done = edited(ledger, wanted, sizes)
        if done.refusals:
            possible = [change for change in wanted if all(change != refusal.change for refusal in done.refusals)]
            done = edited(ledger, possible, sizes)
        if done.changes_anything and not done.refusals and (too_much := self._edit(done, client)):
            self._notice(f"The changes that waited were not made: {too_much}", "warning")

    def _end(self, item: str, status: ItemStatus, reason: str) -> None:
        self._recorder.emit(CompactionFailed(item, reason))
        self._recorder.emit(ItemCompleted(item, status, detail=reason))

    def _note(self, notes: Iterable[str]) -> None:
        for note in notes:
            self._notice(f"Compaction: {note}.")

    def _notice(self, text: str, level: NoticeLevel = "info") -> None:
        self._recorder.emit(Notice(text, level, "context"))


def _whole(view: View | None) -> Fitted | None:
    return None if view is None else Fitted(view, 0)


def writes_sealed(client: ModelClient) -> bool:
    """Whether only the provider can read its summaries."""
    return isinstance(client, HttpModelClient) and client.config.target.origin.protocol == OPENAI


def _lost(thoughts: int) -> str:
    """The thoughts that an option costs, to follow what it does."""
    return f"; {plural(thoughts, 'thought')} {'is' if thoughts == 1 else 'are'} lost" if thoughts else ""


NO_EFFECT = "context.provider_summary has no effect"


def why_not_by_provider(client: ModelClient, side_models: Mapping[str, str]) -> str:
    """Why the provider of this model writes no summary, as a clause; empty if it can."""
    if (other := side_models.get("summary")) is not None:
        return f"{other} writes the summaries (model.summary)"
    if not isinstance(client, HttpModelClient) or client.config.target.origin.protocol not in (ANTHROPIC, OPENAI):
        return f"only Anthropic and OpenAI's Responses have such summaries, not {client.info.provider}"
    return "" if client.info.capabilities.server_compaction else f"{client.info.ref} has no such summaries"


def session_facts(recorder: Recorder) -> SessionFacts:
    """Session facts for a summary. Their work log goes on from the session's, so that a long one is not read again."""
    state = recorder.state
    running = tuple(f"{job.job} `{job.command}` is running" for job in state.jobs.values() if job.status == "running")
    plan, open_steps = state.plan, any(todo.status != "completed" for todo in state.todos)
    counts = plan is not None and (not plan.accepted or open_steps or not state.todos)
    return SessionFacts(state.mode, state.todos, running, plan if counts else None, recorder.reductions.work.copy())


def report_cache_miss(
    services: Services, recorder: Recorder, info: ModelInfo, prepared: PreparedRequest, message: Message, at: float
) -> None:
    """Compare an answered request with the previous one; emit a cache miss if there was one, and the request's
    beginning if it is new. ``at`` is the send time in Unix seconds."""
    usage, report = (message.response.usage, message.response.report) if message.response else (None, None)
    reduced = report.reduced if report is not None else ""
    miss = services.context.cache_miss(prepared.request, usage, info, recorder.ledger.view, at, reduced)
    if miss is not None:
        recorder.emit(miss.event)
    prefix = services.context.sent_prefix
    if prefix is not None and prefix != recorder.cache.prefix:
        recorder.emit(prefix)
