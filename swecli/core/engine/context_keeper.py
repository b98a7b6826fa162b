"""Keeps the context within its window: decides before each request whether the view must be compacted."""

from __future__ import annotations

from swecli.core.context_management.budget import budget_too_large
from swecli.core.context_management.cache_watch import TTL_SECONDS
from swecli.core.context_management.compaction.breaker import Breaker
from swecli.core.context_management.compaction.options import CompactResult, Trigger
from swecli.core.context_management.compaction.retention import retain, tidy
from swecli.core.context_management.compaction.sizes import EntrySizes
from swecli.core.context_management.context_manager import PreparedRequest
from swecli.core.context_management.projection import project
from swecli.core.engine.compactions import Compactions
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Services
from swecli.core.llm.types import ModelClient
from swecli.core.ports import Asker
from swecli.core.protocol.commands import Compact
from swecli.core.protocol.events import Notice, Option, Question

FREE = "Make room without a model"
SUMMARISE = "Compact with a summary"
LEAVE = "Leave it as it is"

LOOKS = 4
"""How often it is looked whether a batch pays while the context grows by the least that one frees."""
COLD_LEAST = 5_000
"""Tokens that a pass must free when the provider's cache is cold anyway."""


class ContextKeeper:
    """The policy of compaction: thresholds, the model's wish, the breaker, clearing when it pays."""

    def __init__(self, services: Services, recorder: Recorder, compactions: Compactions, asker: Asker) -> None:
        self._services = services
        self._recorder = recorder
        self._compactions = compactions
        self._asker = asker
        self._breaker = Breaker()
        self._told = False
        self._looked_at = 0
        self._tidied = 0
        self._asked: tuple[str, float] | None = None
        """Model and time of the newest request."""
        self._declined = -1
        """The turn in which a hook cancelled: it is not asked again in it as long as requests fit."""
        self._wanted = False
        self._budget_told: set[str] = set()

    def request_compaction(self) -> str:
        """The model asks for room: done before its next request, when every call has its result."""
        if not self._services.compaction.auto:
            return "The user has turned automatic compaction off, so the conversation stays as it is."
        self._wanted = True
        budget = self._recorder.state.budget
        size = f" ({budget.used:,} of {budget.effective:,} tokens are in use)" if budget else ""
        return f"The conversation will be compacted before your next step{size}."

    async def before_request(self, prepared: PreparedRequest, client: ModelClient) -> bool:
        """Compact if the context is nearly full, or clear old results if that pays. True when the view changed."""
        self._tell_of_budget(client)
        cold = self._is_cold(client)
        self._asked = (client.info.ref, self._services.monotonic())
        if self._wanted:
            self._wanted = False
            result = await self._compactions.run(prepared, client, "model", "", forced=False)
            return isinstance(result, CompactResult)
        if prepared.budget.level in ("compact", "block"):
            if self._services.compaction.auto:
                return await self._automatic(prepared, client, "auto", forced=prepared.blocked)
            if prepared.blocked:
                return await self._offer(prepared, client, prepared.reason)
            self._tell_once("The context is nearly full, and automatic compaction is off; /compact makes room.")
            return False
        self._told = False
        return self._tidy_if_it_pays(prepared, client, cold)

    async def after_overflow(self, prepared: PreparedRequest, client: ModelClient) -> bool:
        """The provider refused the request as too long, whatever we measured. True when the view changed."""
        if not self._services.compaction.auto:
            return await self._offer(prepared, client, "The provider says that the request is too long for the model.")
        return await self._automatic(prepared, client, "overflow", forced=True)

    def measure(self, client: ModelClient) -> None:
        """Publish the size of the context after a step."""
        self._compactions.measure(client)

    async def compact(
        self, client: ModelClient, focus: str, trigger: Trigger = "manual", *, without_model: bool = False
    ) -> CompactResult | None:
        """Compact because the user or the model asked for it; None when nothing changed (an event says why)."""
        self._breaker.reset()
        state = self._recorder.state
        prepared = self._services.context.prepare(
            project(self._recorder.ledger), info=client.info, session=self._recorder.session, effort=state.effort
        )
        result = await self._compactions.run(
            prepared, client, trigger, focus, forced=False, without_model=without_model
        )
        return result if isinstance(result, CompactResult) else None

    async def compact_now(self, client: ModelClient, wish: Compact) -> None:
        """The same as work of the session."""
        await self.compact(client, wish.focus, without_model=wish.without_model)

    async def _offer(self, prepared: PreparedRequest, client: ModelClient, reason: str) -> bool:
        """Nothing is compacted unless the user says so, and no request fits: let the user choose. True when the view
        changed."""
        question = Question(
            f"{reason} Automatic compaction is off.",
            (
                Option(FREE, "old results and messages leave the context, and can be recalled"),
                Option(SUMMARISE, "the model is asked to write it"),
                Option(LEAVE, "no request is sent; nothing changes"),
            ),
            header="Context",
        )
        answers = await self._asker.ask("", (question,))
        chosen = answers[0][0] if answers and answers[0] else LEAVE
        if chosen not in (FREE, SUMMARISE):
            return False
        free = chosen == FREE
        result = await self._compactions.run(prepared, client, "manual", "", forced=True, without_model=free)
        return isinstance(result, CompactResult)

    async def _automatic(
        self, prepared: PreparedRequest, client: ModelClient, trigger: Trigger, *, forced: bool
    ) -> bool:
        stopped = self._breaker.open(self._recorder.state.steps)
        if stopped is not None:
            self._tell_once(
                f"Automatic compaction has stopped: {stopped}. /context shows what takes the room, /clear starts anew."
            )
            return False
        if self._declined == self._recorder.turn and not forced:
            return False
        result = await self._compactions.run(prepared, client, trigger, "", forced=forced)
        if not isinstance(result, CompactResult):
            if result.cancelled:
                self._declined = self._recorder.turn
            else:
                self._breaker.record_failure()
            return False
        self._breaker.record(self._recorder.state.steps, result.before_tokens, result.after_tokens)
        return True

    def _is_cold(self, client: ModelClient) -> bool:
        """Whether the provider has to read the whole prompt anew anyway: after a pause, a switch of the model, or in a
        session that is continued."""
        if self._asked is None:
            return True
        model, at = self._asked
        return model != client.info.ref or self._services.monotonic() - at >= TTL_SECONDS

    def _tidy_if_it_pays(self, prepared: PreparedRequest, client: ModelClient, cold: bool) -> bool:
        """One batch of clearing and of the user's rules, when what it frees is worth the cache that it rewrites."""
        options, ledger = self._services.compaction, self._recorder.ledger
        allowances = options.allowances(prepared.budget.effective)
        # When a summary is near, smaller batches of more of the old results: it would take these away as well.
        near = prepared.budget.level == "warn"
        newest = allowances.tail if near else allowances.protected
        least = allowances.worthwhile // 2 if near else allowances.worthwhile
        used = prepared.budget.used
        self._looked_at = min(self._looked_at, used)
        grown = used - self._looked_at >= allowances.worthwhile // LOOKS
        turn, self._tidied = self._tidied, self._recorder.state.turn  # rules are about earlier turns only
        if not (grown or cold or (options.retention and turn != self._tidied)):
            return False
        sizes = EntrySizes(self._services.context.monitor, client.info)
        if options.auto and (grown or cold):
            found = tidy(ledger, ledger.view, sizes, options.retention, newest)
        else:
            found = retain(ledger, ledger.view, sizes, options.retention)
        if grown:
            self._looked_at = used
        if not (found.freed >= min(COLD_LEAST, least) if cold else found.pays(least)):
            return False
        self._looked_at = self._compactions.clear(prepared, client, found.view)
        return True

    def _tell_of_budget(self, client: ModelClient) -> None:
        """Say once for each model that the budget of the settings is more than there is."""
        limits, info = self._services.context.limits, client.info
        if info.ref not in self._budget_told and budget_too_large(info, limits):
            self._budget_told.add(info.ref)
            text = (
                f"context_budget {limits.context_budget:,} is above the window of {info.ref}, {info.window:,} tokens "
                f"({info.window_source}): the window counts."
            )
            self._recorder.emit(Notice(text, "warning", "context"))

    def _tell_once(self, text: str) -> None:
        if not self._told:
            self._told = True
            self._recorder.emit(Notice(text, "warning", "context"))
