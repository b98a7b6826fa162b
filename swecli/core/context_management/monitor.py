"""The one measure of a request, shared by the meter, the gate, `/context` and the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct, structs
from msgspec.structs import replace

from swecli.core.context_management.budget import UNLIMITED, Limits, compact_edge, edge, level_of, limited, window_of
from swecli.core.context_management.calibration import (
    UNKNOWN_AT_MOST,
    UNKNOWN_FAMILY,
    Calibration,
    Doubt,
    FamilyRatios,
    Prediction,
    RatioStore,
    Sent,
    family_ratio,
)
from swecli.core.context_management.counter import (
    CountsAhead,
    CountsTokens,
    MakesExact,
    MessageSize,
    SizeCache,
    texts_of,
)
from swecli.core.context_management.entry_bodies import EntryBody
from swecli.core.llm.types import ASSUMED_WINDOW, CountsAtServer, ModelClient, ModelInfo, ModelRequest, ToolSchema
from swecli.core.protocol.budget import (
    ASSISTANT,
    CALLS,
    REASONING,
    RESULTS,
    SYSTEM,
    Budget,
    Component,
    tools_of,
)
from swecli.core.protocol.events import ItemKind
from swecli.core.protocol.messages import ImagePart, Message, Usage

_COMPONENTS: Mapping[ItemKind, str] = {"reasoning": REASONING, "tool": CALLS}


class GrowingBudget:
    """Adds up one answer. ``count`` returns the tokens of a text."""

    def __init__(self, budget: Budget, limits: Limits, count: Callable[[str], float]) -> None:
        self._budget = budget
        self._limits = limits
        self._count = count
        self._come: dict[str, float] = {}

    def add(self, texts: Mapping[ItemKind, str]) -> Budget:
        """The measure including these pieces, by kind, and all added before."""
        for kind, text in texts.items():
            name = _COMPONENTS.get(kind, ASSISTANT)
            self._come[name] = self._come.get(name, 0.0) + self._count(text)
        come = {name: round(tokens) for name, tokens in self._come.items()}
        known = self._budget.components
        parts = [structs.replace(part, tokens=part.tokens + come.pop(part.name, 0)) for part in known]
        parts += [Component(name, tokens) for name, tokens in come.items()]
        more = sum(part.tokens for part in parts) - sum(part.tokens for part in known)
        upper = self._budget.upper + more
        level = level_of(upper, self._budget.effective, self._limits)
        return structs.replace(
            self._budget, components=tuple(parts), used=self._budget.used + more, upper=upper, level=level
        )


GUARD_TOKENS = 1_500
GUARD_WINDOW_SHARE = 0.02
"""Guard band of an anchored measure: the smaller of the two. The largest underestimate in 17,000 recorded calls was
1,009 tokens."""

UNSEEN_TOKENS = 350
UNSEEN_WINDOW_SHARE = 0.04
"""Least guard before the first report, the smaller of the two: a provider adds some tokens unseen, such as a preamble
for tools. In the first requests of 60 recorded sessions they were 343 at the most."""

MEASURED_TOKENS = 20
"""Least tokens of an answer that tell how fast a model writes."""

LEAST_KEPT = 1_000
"""Estimated tokens behind a ratio from which on it is kept."""

GUARD_ESTIMATE_SHARE = 0.10
"""Guard band of unreported content, as a share of it."""


class Weighed(Struct, frozen=True):
    """Sizes of one request: estimates of its fixed part by component, the prediction of the whole, and how many tokens
    of its results the provider clears by itself."""

    fixed: Mapping[str, int]
    prediction: Prediction
    cleared: int = 0


class TokenMonitor:
    """Measures requests of one session. After each response the sizes are anchored on the reported usage; text is
    counted once and never again. Not thread-safe."""

    def __init__(self, counter: CountsTokens | None = None, ratios: RatioStore | None = None) -> None:
        self._sizes = SizeCache(counter)
        self.counter = self._sizes.counter
        self.ratios: RatioStore = ratios or FamilyRatios()
        self.part_counts: dict[str, tuple[EntryBody, int]] = {}
        """Estimates of ledger entries by id, with the counted body; kept by ``EntrySizes``."""
        self._kept: dict[str, float] = {}
        self._fixed: tuple[tuple[object, ...], Mapping[str, str], dict[str, int]] | None = None
        """What the newest request of the conversation begins with, the names of its blocks, and what they count."""
        self._calibrations: dict[str, Calibration] = {}
        self._speeds: dict[str, float] = {}
        """Tokens that each model wrote per second in its newest long answer."""

    def wrote(self, info: ModelInfo, tokens: int, seconds: float) -> None:
        """Learn from an answer how fast a model writes; a short answer says little about that."""
        if tokens >= MEASURED_TOKENS and seconds > 0:
            self._speeds[info.ref] = tokens / seconds

    def writes_in(self, info: ModelInfo, seconds: float) -> int | None:
        """Tokens that a model writes in this time; None = unknown."""
        speed = self._speeds.get(info.ref)
        return int(speed * seconds) if speed is not None else None

    def count_tokens(self, text: str) -> int:
        """Estimated tokens of a text, in the counter's own unit."""
        return self.counter.count(text)

    def count_once(self, message: Message) -> int:
        """Estimated tokens of a message with its calls and results, in the counter's own unit, without keeping its
        size."""
        return self._sizes.measure(message).total

    @property
    def unit(self) -> str:
        """Unit of the sizes; those of an earlier run are valid while it is the same."""
        return type(self.counter).__name__

    def sizes(self, messages: Sequence[Message]) -> tuple[tuple[tuple[str, int], ...], ...]:
        """Estimated tokens of each message by component, in the counter's own unit."""
        return tuple(size.counts for size in self._sizes.messages(messages))

    def shares(self, messages: Sequence[Message], info: ModelInfo) -> list[dict[str, float]]:
        """Tokens of each message of the conversation, now or earlier, by component, as ``measure`` counts them."""
        return self._as_measured(self._sizes.beside(messages), info)

    def tokens_of(self, messages: Sequence[Message], info: ModelInfo) -> float:
        """Tokens of some messages of the conversation, or of edited versions of them, as ``measure`` counts them."""
        sizes = self._as_measured([self._sizes.message(message) for message in messages], info)
        return sum(sum(size.values()) for size in sizes)

    def _as_measured(self, sizes: Sequence[MessageSize], info: ModelInfo) -> list[dict[str, float]]:
        factors = self._calibration(info).tokens_per_estimated(sizes)
        return [
            {component: factor * tokens for component, tokens in size.counts}
            for size, factor in zip(sizes, factors, strict=True)
        ]

    def adopt_sizes(self, messages: Sequence[Message], sizes: Sequence[tuple[tuple[str, int], ...]]) -> None:
        """Adopt the ``sizes`` of these messages from an earlier run, so that they are not counted again."""
        for message, counts in zip(messages, sizes, strict=False):
            self._sizes.adopt(message, counts)

    def tool_tokens(self, tools: Iterable[ToolSchema], info: ModelInfo) -> int:
        """Estimated tokens of tool descriptions in this model's units."""
        return round(sum(map(self._sizes.schema, tools)) * self.ratio(info))

    async def count_ahead(self, texts: Iterable[str], *, exact: bool = True) -> None:
        """Count texts about to join the conversation, without blocking the event loop."""
        if isinstance(self.counter, CountsAhead):
            await self.counter.count_ahead(texts, exact=exact)

    @property
    def exact(self) -> bool:
        """Whether counts are as exact as possible now."""
        return not isinstance(self.counter, MakesExact) or self.counter.exact

    async def count_exactly(self, request: ModelRequest) -> bool:
        """Count the estimated parts of a request exactly, without blocking the event loop. True if counts are exact now
        and may differ from earlier ones; reported sizes stay."""
        counter = self.counter
        if not isinstance(counter, MakesExact):
            return False
        before, fixed = counter.exact, sum(self._fixed_components(request, {}).values())
        if not await counter.make_exact():
            return False
        if not before:
            self.part_counts.clear()
            self._sizes.forget_fixed()
            self._fixed = None
            await self.count_ahead(block.text for block in request.system)
        await self.count_ahead(text for sent in request.messages for part in sent.parts for text in texts_of(part))
        recounted: dict[MessageSize, MessageSize] = {}
        for message, size in self._sizes.estimated(request.messages):
            recounted[size] = self._sizes.measure(message)
            await asyncio.sleep(0)
        old = {size: size.total for size in recounted}
        for size, better in recounted.items():
            size.recount(better.counts)
        self._sizes.settle(recounted)
        now = sum(self._fixed_components(request, {}).values())
        for calibration in self._calibrations.values():
            calibration.recounted(old, fixed / now if fixed and now else 1.0, anew=not before)
        return bool(recounted) or not before

    def ratio(self, info: ModelInfo) -> float:
        """Known tokens of this model per token of the counter."""
        return self._calibration(info).ratio

    def measure(
        self,
        request: ModelRequest,
        limits: Limits,
        info: ModelInfo,
        names: Mapping[str, str] | None = None,
        cleared: int = 0,
        *,
        beside: bool = False,
    ) -> Budget:
        """The request by component against the effective window; the provider clears ``cleared`` tokens of its results.
        ``beside``: it does not replace the conversation's newest request.

        ``names`` gives the component of a system block by its text; others count as the system prompt. The components
        add up to ``used``.
        """
        return self.budget(self.weighed(request, info, names, cleared, beside=beside), limits, info)

    def weighed(
        self,
        request: ModelRequest,
        info: ModelInfo,
        names: Mapping[str, str] | None = None,
        cleared: int = 0,
        *,
        beside: bool = False,
    ) -> Weighed:
        """The predicted sizes of a request, of which messages can be exchanged. Arguments as in ``measure``."""
        fixed = self._fixed_components(request, names or {})
        return Weighed(
            fixed, self._calibration(info).predict(self._sent(request, sum(fixed.values()), beside)), cleared
        )

    def exchanged(
        self, weighed: Weighed, before: Sequence[Message], after: Sequence[Message], info: ModelInfo
    ) -> Weighed:
        """The sizes with some messages replaced by others, as if the whole request were weighed again; costs only
        these. Remembers nothing."""
        sizes = (list(map(self._sizes.aside, messages)) for messages in (before, after))
        return replace(weighed, prediction=self._calibration(info).exchanged(weighed.prediction, *sizes))

    def budget(self, weighed: Weighed, limits: Limits, info: ModelInfo) -> Budget:
        """The sizes of a request against the effective window."""
        fixed, prediction = weighed.fixed, weighed.prediction
        window = window_of(info, limits)
        results = min(weighed.cleared, round(prediction.messages.get(RESULTS, 0.0)))
        if results:
            less = {**prediction.messages, RESULTS: prediction.messages[RESULTS] - results}
            prediction = replace(prediction, messages=less, total=max(0.0, prediction.total - results))
        used = round(prediction.total)
        share = GUARD_ESTIMATE_SHARE
        if prediction.anchored:
            least = _anchored_guard(window.total)
        else:
            least = min(float(UNSEEN_TOKENS), UNSEEN_WINDOW_SHARE * window.total)
            # No report has told anything of this model's tokenizer, of a kind that is not known either.
            if self._calibration(info).learned.tokens <= 0 and family_ratio(info.ref) == UNKNOWN_FAMILY:
                share = UNKNOWN_AT_MOST / UNKNOWN_FAMILY - 1
        upper = used + round(max(least, max(share, prediction.missed) * prediction.estimated))
        components = _components(fixed, prediction, used)
        if limits.components != UNLIMITED:
            components = limited(components, limits.components, window.effective)
        return Budget(
            components=components,
            used=used,
            upper=upper,
            effective=window.effective,
            window=window.total,
            reserve=window.reserve,
            level=level_of(upper, window.effective, limits),
            source="measured" if prediction.anchored else "estimated",
            window_source=window.source,
            warn_at=edge(limits.warn, window.effective),
            compact_at=compact_edge(window.effective, limits),
            block_at=edge(limits.block, window.effective),
        )

    def observe(self, request: ModelRequest, usage: Usage, info: ModelInfo) -> Doubt:
        """Learn from the usage reported for ``request``; without a prompt size nothing changes. Content that the
        provider cleared by itself counts as sent. Returns what is wrong with the first implausible report."""
        if usage.input_total is not None and usage.cleared:
            usage = structs.replace(usage, input_total=usage.input_total + usage.cleared)
        sent = self._sent(request, sum(self._fixed_components(request, {}).values()))
        return self._calibration(info).observe(sent, usage, info.window or ASSUMED_WINDOW)

    async def count_at_server(self, messages: Sequence[Message], client: ModelClient) -> None:
        """Count new messages of the user and new results with the tokenizer of the model's server, if it has one, each
        once. Answers are counted in its reports."""
        if not client.info.tells_progress or not isinstance(client, CountsAtServer):
            return
        calibration = self._calibration(client.info)
        for message in messages:
            if message.role == "assistant" or calibration.is_reported(size := self._sizes.message(message)):
                continue
            texts = [text for part in message.parts for text in texts_of(part)]
            if any(isinstance(part, ImagePart) or getattr(part, "images", ()) for part in message.parts):
                continue
            tokens = await client.count_tokens("\n".join(texts))
            if tokens is None:
                return
            calibration.counted(size, tokens)

    def adopt_answers(self, messages: Sequence[Message], info: ModelInfo) -> None:
        """Adopt what this model reported for its answers in an earlier run. Only before its first report in this
        one."""
        answers = {
            self._sizes.message(message): message.response.usage
            for message in messages
            if message.response is not None
            and message.response.usage is not None
            and message.response.origin.model == info.name
        }
        self._calibration(info).adopt_answers(answers)

    def rejected(self, request: ModelRequest, prompt: int, info: ModelInfo) -> None:
        """Learn from the size, in tokens, that the provider stated when it rejected ``request`` as too long."""
        beside = self._fixed is None or self._fixed[0] != (request.system, request.tools)
        sent = self._sent(request, sum(self._fixed_components(request, {}).values()), beside)
        self._calibration(info).rejected(sent, prompt, info.window or ASSUMED_WINDOW)

    async def keep_ratios(self) -> None:
        """Pass learned ratios to the store, in a thread, each time that they rest on twice as much as before."""
        for model, calibration in tuple(self._calibrations.items()):
            learned = calibration.learned
            if learned.tokens >= max(LEAST_KEPT, 2 * self._kept.get(model, 0.0)):
                self._kept[model] = learned.tokens
                await asyncio.to_thread(self.ratios.keep, model, learned)

    def _calibration(self, info: ModelInfo) -> Calibration:
        calibration = self._calibrations.get(info.ref)
        if calibration is None:
            known = self.ratios.known(info.ref)
            calibration = self._calibrations[info.ref] = Calibration(known)
            self._kept[info.ref] = calibration.learned.tokens
        return calibration

    def _sent(self, request: ModelRequest, fixed_tokens: int, beside: bool = False) -> Sent:
        return Sent(
            fixed=(tuple(block.text for block in request.system), request.tools),
            fixed_tokens=fixed_tokens,
            messages=(self._sizes.beside if beside else self._sizes.messages)(request.messages),
        )

    def _fixed_components(self, request: ModelRequest, names: Mapping[str, str]) -> dict[str, int]:
        known, fixed = self._fixed, (request.system, request.tools)
        if known is not None and known[1] is names and known[0] == fixed:
            return known[2]
        counts: dict[str, int] = {}
        for block in request.system:
            name = names.get(block.text, SYSTEM)
            counts[name] = counts.get(name, 0) + self._sizes.stable_text(block.text)
        for schema in request.tools:
            name = tools_of(schema.source)
            counts[name] = counts.get(name, 0) + self._sizes.schema(schema)
        if names:
            self._fixed = (fixed, names, counts)
        return counts


def is_vague(budget: Budget) -> bool:
    """Whether so much of a measure is unreported that its band is wider than that of a reported request."""
    return budget.upper - budget.used > round(_anchored_guard(budget.window))


def _anchored_guard(window: int) -> float:
    return min(float(GUARD_TOKENS), GUARD_WINDOW_SHARE * window)


def _components(fixed: Mapping[str, int], prediction: Prediction, used: int) -> tuple[Component, ...]:
    """Exact shares as whole tokens that add up to ``used``."""
    estimate = sum(fixed.values())
    shares = {name: prediction.fixed * count / estimate for name, count in fixed.items()} if estimate else {}
    if not estimate and prediction.fixed:
        shares[SYSTEM] = prediction.fixed
    for name, tokens in prediction.messages.items():
        shares[name] = shares.get(name, 0.0) + tokens
    total = sum(shares.values())
    if total <= 0:
        return ()
    whole = {name: int(share * used / total) for name, share in shares.items()}
    whole[max(whole, key=whole.__getitem__)] += used - sum(whole.values())
    return tuple(Component(name, tokens) for name, tokens in whole.items())
