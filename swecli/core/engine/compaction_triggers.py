"""When to clear or compact: before a request, after one that was too long, and at the user's wish."""

from __future__ import annotations

from swecli.core.context_management.budget import budget_too_large, fixed_tokens
from swecli.core.context_management.compaction.options import CompactResult, EntrySizes, Trigger
from swecli.core.context_management.compaction.policy import Breaker, is_small, worth_clearing
from swecli.core.context_management.context_manager import ContextManager, PreparedRequest
from swecli.core.context_management.ledger import Passes
from swecli.core.context_management.projection import project, thoughts_changed
from swecli.core.engine.compaction import Compactions
from swecli.core.engine.compaction_plans import CompactionPlans
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.settings import Settings
from swecli.core.llm.types import ModelClient, ModelInfo
from swecli.core.ports import Asker
from swecli.core.protocol.commands import Compact
from swecli.core.protocol.events import Notice
from swecli.core.protocol.request_events import Option, Question
from swecli.figures import plural

FREE = "Free space without a model"
SUMMARISE = "Compact with a summary"
LEAVE = "Leave it unchanged"
NEARLY_FULL, STOPPED = "context is nearly full", "automatic compaction stopped"
"""What warnings are about that are told again only after the context has been smaller, whatever run finds it."""


class CompactionTriggers:
    """Keeps the context of one session within its window."""

    def __init__(
        self,
        context: ContextManager,
        settings: Settings,
        recorder: Recorder,
        asker: Asker,
        plans: CompactionPlans,
        compactions: Compactions,
    ) -> None:
        self._context = context
        self._settings = settings
        self._recorder = recorder
        self._asker = asker
        self._plans = plans
        self._compactions = compactions
        self._breaker = Breaker()
        self._passes = Passes()
        self._reported = not recorder.state.told.isdisjoint((NEARLY_FULL, STOPPED))
        self._begun = -1
        """Turn whose first request was made."""
        self._declined = -1
        """Turn in which a hook cancelled a compaction: hooks are not asked again in it while requests fit."""
        self._wanted = False
        self._freed_nothing = False
        """Whether a compaction for the newest request was tried and freed no space."""

    def request_compaction(self) -> str:
        """Schedule a compaction that the model asked for: before its next request, when every call has its result."""
        if not self._settings.now.compaction.auto:
            return "The user has turned automatic compaction off, so nothing was compacted."
        self._wanted = True
        budget = self._recorder.state.budget
        size = f" ({budget.used:,} of {budget.effective:,} tokens are in use)" if budget else ""
        return f"swecli will compact the conversation before your next step{size}."

    async def before_request(self, prepared: PreparedRequest, client: ModelClient) -> bool:
        """Compact if the context is nearly full, or clear old results if that pays. True if the view changed."""
        if self._context.limits.context_budget is not None:
            self._warn_of_budget(client)
        self._freed_nothing = False
        begins, self._begun = self._begun != self._recorder.turn, self._recorder.turn
        if begins:
            self._wanted = False  # of a turn that ended before its next request, as by an interrupt
        if self._wanted:
            self._wanted = False
            result = await self._compactions.run(prepared, client, "model")
            return isinstance(result, CompactResult)
        if prepared.budget.level in ("compact", "block"):
            if self._settings.now.compaction.auto:
                return await self._automatic(prepared, client, "auto", forced=prepared.blocked)
            if prepared.blocked:
                return await self._offer(prepared, client, prepared.reason)
            text = "The context is nearly full, and automatic compaction is off; /compact frees space."
            self._report_once(text, NEARLY_FULL)
            return False
        self._reported = False
        return begins and not is_small(prepared.budget) and self._clear_if_it_pays(prepared, client)

    def why_blocked(self, prepared: PreparedRequest) -> str:
        """Reason why this request is not sent, with remedies that have not been tried."""
        return self._context.why_blocked(prepared.budget) if self._freed_nothing else prepared.reason

    async def after_overflow(self, prepared: PreparedRequest, client: ModelClient) -> bool:
        """React to a request that the provider refused as too long, regardless of our measure. True if the view
        changed."""
        if not self._settings.now.compaction.auto:
            return await self._offer(prepared, client, "The provider rejected the request as too long.")
        return await self._automatic(prepared, client, "overflow", forced=True)

    async def compact_now(self, client: ModelClient, wish: Compact) -> None:
        """Compact at the user's request."""
        self._breaker.reset()
        recorder = self._recorder
        prepared = self._context.prepare(
            project(recorder.ledger), info=client.info, session=recorder.session, effort=recorder.state.effort
        )
        await self._compactions.run(prepared, client, "manual", wish.focus, without_model=wish.without_model)

    async def _offer(self, prepared: PreparedRequest, client: ModelClient, reason: str) -> bool:
        """Let the user choose if automatic compaction is off and no request fits. True if the view changed."""
        freed, plan, ledger = self._plans.freed(), self._plans.plan(), self._recorder.ledger
        free = thoughts_changed(ledger, freed, client.info)[0] if freed is not None else 0
        question = Question(
            f"{reason} Automatic compaction is off.",
            (
                Option(FREE, f"old results and messages are removed and can be recalled{_lost(free)}"),
                Option(SUMMARISE, f"the model writes it{_lost(plan.thoughts if plan is not None else 0)}"),
                Option(LEAVE, "no request is sent; nothing changes"),
            ),
            header="Context",
        )
        answers = await self._asker.ask("", (question,))
        chosen = answers[0][0] if answers and answers[0] else LEAVE
        if chosen not in (FREE, SUMMARISE):
            return False
        result = await self._compactions.run(prepared, client, "manual", forced=True, without_model=chosen == FREE)
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
        result = await self._compactions.run(
            prepared, client, trigger, forced=forced, without_model=stopped is not None
        )
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
        return asked is None or self._recorder.clock() - asked >= info.cache_seconds

    def _clear_if_it_pays(self, prepared: PreparedRequest, client: ModelClient) -> bool:
        """Clear results and apply the user's rules in one batch between turns, unless the model would lose thoughts by
        it. True if the view changed."""
        ledger, turn, options = self._recorder.ledger, self._recorder.turn, self._settings.now.compaction
        cold = self._is_cold(client.info)
        if not self._passes.due(ledger) and not cold and not options.retention:
            return False
        running = [one.id for one in ledger.view if one.id in ledger.entries and ledger.entries[one.id].turn == turn]
        sizes = EntrySizes(self._context.monitor, client.info)
        clearing = worth_clearing(ledger, prepared.budget, sizes, options, running=running, cold=cold)
        if clearing is None or thoughts_changed(ledger, clearing.view, client.info)[0]:
            return False
        self._compactions.clear(prepared, client, clearing.view)
        return True

    def _warn_of_budget(self, client: ModelClient) -> None:
        """Warn once for each model if the configured budget exceeds the model's window."""
        limits, info = self._context.limits, client.info
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


def _lost(thoughts: int) -> str:
    """The thoughts that an option costs, to follow what it does."""
    return f"; {plural(thoughts, 'thought')} {'is' if thoughts == 1 else 'are'} lost" if thoughts else ""
