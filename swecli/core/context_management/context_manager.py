"""The context manager: from the conversation to the next request, measured and judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from swecli.core.context_management.budget import Limits, window_of
from swecli.core.context_management.cache_watch import CacheMiss, CacheWatch, WatchedRequest
from swecli.core.context_management.gate import BLOCK_ADVICE, decide
from swecli.core.context_management.ledger import Ledger
from swecli.core.context_management.message_size import texts_of
from swecli.core.context_management.monitor import TokenMonitor, is_vague
from swecli.core.context_management.opening import Opening, PromptTexts
from swecli.core.context_management.prompts import read_prompt
from swecli.core.context_management.requests import build_request, fit_output
from swecli.core.context_management.stats import ContextStats, Forecast, context_stats, forecast
from swecli.core.context_management.tail import tail_text
from swecli.core.llm.model_table import look_up_model
from swecli.core.llm.types import ModelClient, ModelInfo, ModelRequest, ToolSchema
from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.events import Budget, Mode, ViewEntry
from swecli.core.protocol.messages import Message, TextPart
from swecli.core.protocol.usage import Usage

if TYPE_CHECKING:
    from swecli.core.context_management.compaction.options import CompactionOptions
    from swecli.core.context_management.history import CompactedHistory

EXACT_FROM = 0.5
"""Share of the effective window from which on exact counts may be worth the memory of the vocabulary: below it nothing
is decided. Above it they are where much rests on no report: what a provider reports of each request needs no other
measure, so that most sessions never load it."""


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """One request with its measure and the gate's verdict.

    ``reason`` says why it is blocked; ``warning`` is set once when the context passes the warning level, and
    again after it has fallen below it.
    """

    request: ModelRequest
    budget: Budget
    reason: str = ""
    warning: str = ""

    @property
    def blocked(self) -> bool:
        return self.budget.level == "block"


class ContextManager:
    """Owns the measure of one session's context. The tools are frozen for the session."""

    def __init__(
        self,
        tools: Sequence[ToolSchema],
        texts: PromptTexts | None = None,
        limits: Limits | None = None,
        monitor: TokenMonitor | None = None,
        advice: Sequence[str] = BLOCK_ADVICE,
        lean_tools: Sequence[ToolSchema] | None = None,
        *,
        special_tools: Callable[[str], Sequence[ToolSchema]] = lambda model: (),
    ) -> None:
        """``advice`` is what the user can do about a full context, as clauses. ``lean_tools`` are told to a model with
        a small window in place of ``tools``, ``special_tools`` besides to a model of that name."""
        texts = texts or PromptTexts()
        self.limits = limits or Limits()
        self._opening = Opening(tools, lean_tools, special_tools, texts, self.limits)
        self._headless = texts.headless
        self.monitor = monitor or TokenMonitor()
        self._advice = tuple(advice)
        self._warned = False
        self._settled = 0
        self._cleared: tuple[tuple[Message, ...], int] = ((), 0)
        """Tokens that the provider left out of the newest request by itself, and the messages of that."""
        self._watch = CacheWatch()
        self._info: ModelInfo | None = None
        self._newest: Budget | None = None

    async def settle(self, ledger: Ledger) -> None:
        """Count what is new in the ledger, long texts in a thread, so that measuring never holds up the event loop."""
        new = islice(reversed(ledger.entries.values()), max(0, len(ledger.entries) - self._settled))
        texts = [text for entry in new for part in entry.parts for text in texts_of(part)]
        self._settled = len(ledger.entries)
        newest = self._newest
        matters = newest is not None and newest.share >= EXACT_FROM and is_vague(newest)
        await self.monitor.count_ahead(texts, exact=matters)
        await self.monitor.keep_ratios()

    def prepare(
        self,
        messages: Sequence[Message],
        *,
        info: ModelInfo,
        mode: Mode = "default",
        todos: Sequence[Todo] = (),
        effort: str | None = None,
        session: str = "",
        notes: Sequence[str] = (),
    ) -> PreparedRequest:
        """Build the next request and measure it: the same number serves gate, meter and ``/context``.

        The tail tells the model about a filling context, so a request at the warning level is measured with
        that note in it. ``notes`` are told in the tail too.
        """
        request, budget = self._measured(messages, info, mode, todos, effort, session, None, notes)
        if budget.level != "ok":
            request, budget = self._measured(messages, info, mode, todos, effort, session, budget, notes)
        self._newest = budget
        decision = decide(budget, self._advice)
        warning = ""
        if budget.level == "ok":
            self._warned = False
        elif not self._warned and budget.level != "block":
            self._warned = True
            warning = decision.reason
        fitted = fit_output(request, budget, info, self.limits)
        return PreparedRequest(fitted, budget, decision.reason if budget.level == "block" else "", warning)

    def measure(self, messages: Sequence[Message], info: ModelInfo) -> Budget:
        """The measure of a request that would be made now, without its tail."""
        return self._measured(messages, info, "default", (), None, "", None)[1]

    def weigh(self, request: ModelRequest, info: ModelInfo) -> Budget:
        """The measure of any request, as it is, against the window of the model that it goes to. It leaves the measure
        of the conversation alone."""
        return self.monitor.measure(request, self.limits, info, cleared=_left_out(request, *self._cleared), beside=True)

    def cache_miss(
        self, request: ModelRequest, usage: Usage | None, info: ModelInfo, view: tuple[ViewEntry, ...], at: float
    ) -> CacheMiss | None:
        """Compare a request that was answered with the one before it. ``at`` is when it was sent, in Unix seconds."""
        names = self._opening.prompt(info).components
        return self._watch.observe(WatchedRequest(info.ref, request, view, at, names), usage)

    def update_usage(self, request: ModelRequest, usage: Usage, info: ModelInfo) -> int:
        """Take in what the provider reported for a request. Returns how many tokens of it the provider left out by
        itself, where that is more than before."""
        self.monitor.observe(request, usage, info)
        before, now = self._cleared[1], usage.cleared or 0
        self._cleared = (request.messages, now)
        return now if now > before else 0

    def take_up(self, messages: Sequence[Message], usage: Usage, info: ModelInfo) -> None:
        """Take in the size that a request with these messages, without its tail, is known to have had earlier."""
        request, _ = self._measured(messages, info, "default", (), None, "", None)
        self.monitor.observe(replace(request, tail=""), usage, info)

    # --- for programs: about any history. Without ``info`` the model of the newest measure is meant ---------

    def count_tokens(self, content: str | Sequence[Message], info: ModelInfo | None = None) -> int:
        """Tokens of a text, or of a whole request with these messages, as the model counts them."""
        model = _known(info or self._info)
        if isinstance(content, str):
            return round(self.monitor.count_tokens(content) * self.monitor.ratio(model))
        return self.measure(content, model).used

    def predict_next(self, messages: Sequence[Message], text: str = "", info: ModelInfo | None = None) -> Forecast:
        """The size of the next request if the user said ``text`` now."""
        said = (Message("user", (TextPart(text),), "forecast"),) if text else ()
        return forecast(self.measure((*messages, *said), _known(info or self._info)))

    def should_compact(self, history: Sequence[Message], info: ModelInfo | None = None) -> bool:
        """Whether a request with this history would have to be compacted first."""
        return self.measure(history, _known(info or self._info)).level in ("compact", "block")

    def needs_compaction(self) -> bool:
        """Whether the newest request has to be compacted."""
        return self._newest is not None and self._newest.level in ("compact", "block")

    def is_blocked(self) -> bool:
        """Whether the newest request must not be sent."""
        return self._newest is not None and self._newest.level == "block"

    def exceeds_budget(self) -> bool:
        """Whether the newest request is larger than the effective window."""
        return self._newest is not None and self._newest.exceeds_budget()

    def get_stats(self, history: Sequence[Message], info: ModelInfo | None = None) -> ContextStats:
        """Figures about a history."""
        return context_stats(self.measure(history, _known(info or self._info)), len(history))

    async def compact(
        self, history: Sequence[Message], client: ModelClient, options: CompactionOptions | None = None, focus: str = ""
    ) -> CompactedHistory:
        """A shorter history, or the same one and why it could not be shortened."""
        from swecli.core.context_management.history import compact_history

        return await compact_history(self, history, client, options, focus)

    @staticmethod
    def get_context_limit(provider: str, model: str) -> int:
        """Context window of a model in tokens by the catalogue; for an unknown model a cautious guess."""
        return window_of(look_up_model(provider, model), Limits()).total

    def _measured(
        self,
        messages: Sequence[Message],
        info: ModelInfo,
        mode: Mode,
        todos: Sequence[Todo],
        effort: str | None,
        session: str,
        known: Budget | None,
        notes: Sequence[str] = (),
    ) -> tuple[ModelRequest, Budget]:
        prompt = self._opening.prompt(info)
        notes = [read_prompt("headless"), *notes] if self._headless else notes
        request = build_request(
            prompt,
            self._opening.tools(info),
            messages,
            info=info,
            limits=self.limits,
            session=session,
            tail=tail_text(mode=mode, todos=todos, budget=known, notes=notes),
            effort=effort,
        )
        budget = self.monitor.measure(request, self.limits, info, prompt.components, _left_out(request, *self._cleared))
        self._info = info
        return request, budget


def _known(info: ModelInfo | None) -> ModelInfo:
    if info is None:
        raise ValueError("nothing was measured yet: say which model is meant")
    return info


def _left_out(request: ModelRequest, before: tuple[Message, ...], cleared: int) -> int:
    """Tokens of the request that the provider leaves out by itself, as far as that is known: it left out ``cleared``
    of these messages."""
    return cleared if cleared and request.messages[: len(before)] == before else 0
