"""What the usage that one model reports teaches about the size of what was sent to it.

Estimates are in tokens of another encoding than the model's. Each response tells the true size of a whole prompt,
hence of what was added since the one before. From that every message gets its own factor (true tokens per
estimated one), and the messages to come get the average of what was seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
from weakref import WeakKeyDictionary

from swecli.core.context_management.components import REASONING
from swecli.core.context_management.message_size import MessageSize
from swecli.core.protocol.usage import Usage

PRIOR_TOKENS = 2_000
"""Weight of the family's ratio against what was observed, in estimated tokens."""

MOST_CARRIED = 20_000
"""Weight of what earlier sessions learned at the most: a model behind a name may be replaced by another one."""

MOSTLY_FIXED = 0.6
"""From this share of the first request on, its ratio is taken for that of system prompt and tools."""

TELLING = 200
"""Estimated tokens of a new part from which on its error counts: below, the borders of messages weigh too much."""

FORGETTING = 0.9
"""What remains of an old error of prediction after each report."""

LOWEST_RATIO, HIGHEST_RATIO = 0.5, 2.0

LEAST_PLAUSIBLE = 0.3
"""A report below this share of the estimate is not of the whole prompt: some local servers leave out what they had
in their cache."""


def family_ratio(model: str) -> float:
    """Tokens of a model per token of o200k_base before anything was observed, by its name."""
    name = model.rpartition("/")[2].lower()
    if "claude" in name:
        return 1.3
    if "deepseek" in name:
        return 1.13
    if name.startswith(("gpt", "o1", "o3", "o4", "chatgpt", "codex")):
        return 1.0
    return 1.15


@dataclass(frozen=True, slots=True)
class Learned:
    """What is known of a model's tokenizer: tokens of the model per estimated one. ``tokens`` is how many estimated
    tokens the ratio rests on; ``fixed_ratio`` is that of system prompt and tools, None = not known apart."""

    ratio: float
    tokens: float = 0.0
    fixed_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """Estimates of one request: its fixed part (system prompt and tools), its messages and its tail."""

    fixed: object
    """Identifies the fixed part: equal values mean equal bytes."""
    fixed_tokens: int
    messages: tuple[MessageSize, ...]
    tail_tokens: int


@dataclass(frozen=True, slots=True)
class Prediction:
    """Tokens of a request by part; ``messages`` are those of the messages by component.

    ``estimated`` is how much of ``total`` rests on no report at all; ``anchored`` is False while the model has
    reported nothing. ``missed`` is by how much of what was estimated predictions were wrong lately, at the most.
    """

    total: float
    estimated: float
    anchored: bool
    fixed: float
    messages: Mapping[str, float]
    tail: float
    missed: float = 0.0


@dataclass(slots=True)
class _Sums:
    """Messages added up: ``estimated`` and true tokens, and the true ones by component."""

    estimated: int = 0
    true: float = 0.0
    shares: dict[str, float] = field(default_factory=lambda: {})

    def add(self, size: MessageSize, factor: float) -> None:
        """One more message with so many true tokens per estimated one."""
        self.estimated += size.total
        self.true += factor * size.total
        for component, tokens in size.counts:
            self.shares[component] = self.shares.get(component, 0.0) + factor * tokens

    def copy(self) -> _Sums:
        return _Sums(self.estimated, self.true, dict(self.shares))


@dataclass(frozen=True, slots=True)
class _Anchor:
    """The newest request whose size was reported, and the answer to it.

    ``offset`` is the part of the size that the sizes of its parts don't explain. ``sums`` adds up its messages, whose
    sizes are settled, so that a long history costs nothing at each step.
    """

    messages: tuple[MessageSize, ...]
    sums: _Sums
    offset: float
    output: int | None
    reasoning: int


class RatioStore(Protocol):
    """Where ratios outlive a session. Neither raises; ``keep`` may take the time of a disk."""

    def known(self, model: str) -> Learned: ...

    def keep(self, model: str, learned: Learned) -> None: ...


class FamilyRatios:
    """No memory: every session starts with what the model's name tells."""

    def known(self, model: str) -> Learned:
        """The ratio of the family."""
        return Learned(family_ratio(model))

    def keep(self, model: str, learned: Learned) -> None:
        """Forgets it."""


class Calibration:
    """What was learned of one model in one session. Every prediction rests on all reports so far.

    ``known`` is what the model's family, or earlier sessions, tell of it.
    """

    def __init__(self, known: Learned) -> None:
        self._prior = _clamp(known.ratio)
        self._weight = PRIOR_TOKENS + min(MOST_CARRIED, max(0.0, known.tokens))
        self._fixed_ratio = _clamp(known.fixed_ratio) if known.fixed_ratio is not None else None
        self._missed = 0.0
        self._seen_estimated = 0.0
        self._seen_reported = 0.0
        self._fixed: object = None
        self._fixed_tokens: float | None = None
        self._factors: WeakKeyDictionary[MessageSize, float] = WeakKeyDictionary()
        """As long as somebody remembers the size of the message."""
        self._anchor: _Anchor | None = None
        self._sends_reasoning_back = True

    @property
    def ratio(self) -> float:
        """Tokens of this model per estimated token, for parts that no report covers."""
        return _clamp((self._prior * self._weight + self._seen_reported) / (self._weight + self._seen_estimated))

    @property
    def learned(self) -> Learned:
        """What is worth to be kept for later sessions."""
        return Learned(self.ratio, self._weight - PRIOR_TOKENS + self._seen_estimated, self._fixed_ratio)

    def predict(self, sent: Sent) -> Prediction:
        """The size of a request that was not sent yet."""
        ratio = self.ratio
        fixed_known = self._fixed_tokens is not None and sent.fixed == self._fixed
        if fixed_known and self._fixed_tokens is not None:
            fixed = self._fixed_tokens
        else:
            fixed = (self._fixed_ratio or ratio) * sent.fixed_tokens
        anchor = self._anchor if self._extends_anchor(sent) else None
        sums = anchor.sums.copy() if anchor is not None else _Sums()
        new = sent.messages[len(anchor.messages) :] if anchor is not None else sent.messages
        factors = [self._factors.get(size, 0.0) for size in new]
        if anchor is not None:
            self._add_answer(factors, new, anchor)
        tail = ratio * sent.tail_tokens
        estimated = tail if fixed_known else tail + fixed
        for size, factor in zip(new, factors, strict=True):
            if not factor:
                estimated += ratio * size.total
            sums.add(size, factor or ratio)
        total = fixed + tail + sums.true + (anchor.offset if anchor is not None and fixed_known else 0.0)
        return Prediction(max(0.0, total), estimated, self._anchor is not None, fixed, sums.shares, tail, self._missed)

    def observe(self, sent: Sent, usage: Usage) -> None:
        """Take in what the model reported for a request. Reports that can't be true are passed over."""
        reported = usage.input_total
        before = self._anchor if self._extends_anchor(sent) else None
        sums = before.sums.copy() if before is not None else _Sums()
        new = sent.messages[len(before.messages) :] if before is not None else sent.messages
        everything = sent.fixed_tokens + sent.tail_tokens + sums.estimated + sum(size.total for size in new)
        if reported is None or reported <= LEAST_PLAUSIBLE * everything:
            return
        prompt = reported - self.ratio * sent.tail_tokens
        if self._fixed_tokens is None or sent.fixed != self._fixed:
            self._begin(sent, prompt)
        else:
            self._continue(new, before, prompt - self._fixed_tokens)
        for size in new:
            sums.add(size, self._factors[size])
        offset = prompt - (self._fixed_tokens or 0.0) - sums.true
        self._anchor = _Anchor(sent.messages, sums, offset, usage.output_total, usage.reasoning or 0)

    def _begin(self, sent: Sent, prompt: float) -> None:
        """First report with this fixed part: spread it over the fixed part and all messages not known yet."""
        new = [size for size in sent.messages if size not in self._factors]
        rest = prompt - sum(self._factors.get(size, 0.0) * size.total for size in sent.messages)
        estimated = sent.fixed_tokens + sum(size.total for size in new)
        factor = _clamp(rest / estimated) if estimated else self.ratio
        if sent.fixed_tokens >= MOSTLY_FIXED * estimated > 0:
            self._fixed_ratio = factor
        for size in new:
            self._factors[size] = factor
        self._fixed = sent.fixed
        # Whatever the provider adds on its own (a preamble for tools, for example) is in here as well.
        self._fixed_tokens = max(0.0, rest - factor * sum(size.total for size in new))

    def _continue(self, messages: tuple[MessageSize, ...], anchor: _Anchor | None, prompt: float) -> None:
        """A further report: what the known parts don't explain belongs to the messages that are new.

        ``messages`` are those after the anchor, or all; ``prompt`` is what was reported for anchor and messages.
        """
        factors = [self._factors.get(size, 0.0) for size in messages]
        answer = self._add_answer(factors, messages, anchor) if anchor is not None else None
        new = [size for size, factor in zip(messages, factors, strict=True) if not factor]
        known = sum(factor * size.total for size, factor in zip(messages, factors, strict=True))
        rest = prompt - known - (anchor.sums.true + anchor.offset if anchor is not None else 0.0)
        estimated = sum(size.total for size in new)
        if anchor is not None and answer is not None:
            rest = self._settle_reasoning(answer, anchor, rest, self.ratio * estimated)
        if estimated:
            observed = rest / estimated
            if anchor is not None and LOWEST_RATIO / 2 <= observed <= HIGHEST_RATIO * 2:
                if estimated >= TELLING:
                    error = abs(rest / (self.ratio * estimated) - 1)
                    self._missed = max(self._missed * FORGETTING, min(1.0, error))
                self._seen_estimated += estimated
                self._seen_reported += _clamp(observed) * estimated
            for size in new:
                self._factors[size] = _clamp(observed)

    def _add_answer(
        self, factors: list[float], messages: tuple[MessageSize, ...], anchor: _Anchor
    ) -> MessageSize | None:
        """Put in the size of the answer that followed the anchor, as far as the model reported it. ``messages`` are
        those after the anchor."""
        if not messages or factors[0]:
            return None
        answer = messages[0]
        if answer.role != "assistant" or anchor.output is None or not answer.total:
            return None
        has_reasoning = any(component == REASONING for component, _ in answer.counts)
        kept = has_reasoning and self._sends_reasoning_back
        factors[0] = max(1, anchor.output - (0 if kept else anchor.reasoning)) / answer.total
        return answer

    def _settle_reasoning(self, answer: MessageSize, anchor: _Anchor, rest: float, expected: float) -> float:
        """Find out whether reasoning is part of the next prompt: providers differ. Returns the corrected rest."""
        has_reasoning = any(component == REASONING for component, _ in answer.counts)
        if has_reasoning and anchor.reasoning:
            other = rest + (anchor.reasoning if self._sends_reasoning_back else -anchor.reasoning)
            if abs(other - expected) < abs(rest - expected):
                self._sends_reasoning_back = not self._sends_reasoning_back
                rest = other
        kept = has_reasoning and self._sends_reasoning_back
        output = anchor.output or 0
        self._factors[answer] = max(1, output - (0 if kept else anchor.reasoning)) / answer.total
        return rest

    def _extends_anchor(self, sent: Sent) -> bool:
        """Whether the request begins with all messages of the newest reported one."""
        anchor = self._anchor
        return anchor is not None and sent.messages[: len(anchor.messages)] == anchor.messages


def _clamp(ratio: float) -> float:
    return min(HIGHEST_RATIO, max(LOWEST_RATIO, ratio))
