"""Learning the token sizes of one model from its reported usage.

Estimates are in tokens of another encoding than the model's. Each response reports the true size of a whole prompt,
hence of the content added since the one before. From that every message gets its own factor (true tokens per estimated
one); later messages get the average of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import date
from pathlib import Path
from typing import Literal, Protocol
from weakref import WeakKeyDictionary

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.context_management.counter import MESSAGE_OVERHEAD, MessageSize
from swecli.core.context_management.kind_ratios import KindRatios
from swecli.core.llm.json_values import JsonObject, as_object, as_text
from swecli.core.llm.learned_file import LearnedFile
from swecli.core.protocol.budget import REASONING
from swecli.core.protocol.messages import Usage

PRIOR_TOKENS = 2_000
"""Weight of the family's ratio against observations, in estimated tokens."""

MOST_CARRIED = 20_000
"""Largest weight of earlier sessions: the provider may replace the model behind a name."""

MOSTLY_FIXED = 0.6
"""Share of the fixed part in the first request from which on its ratio counts for system prompt and tools."""

TELLING = 200
"""Estimated tokens of a new part from which on its error counts; in smaller ones the message borders weigh too much."""

MOSTLY_LEFT = 0.25
"""Remaining share of a message from which on it keeps the factor of the whole."""

FORGETTING = 0.9
"""Factor by which an old prediction error fades at each report."""

LOWEST_RATIO, HIGHEST_RATIO = 0.5, 2.0
LEAST_OF_ITS_OWN, MOST_OF_ITS_OWN = 0.1, 16.0
"""Tokens per estimated one that a report may tell of new messages: of blanks or of another script some tokenizers make
many times as much, of one long word far less."""

LEAST_PLAUSIBLE = 0.3
"""A report below this share of the estimate is not of the whole prompt: some local servers omit cached tokens."""


MOSTLY_READ = 0.85
"""A report below this share of the predicted size is of a cut prompt, if servers cut to its size."""
CUT_SLACK = 16
"""Tokens by which such a prompt may exceed that size: Ollama keeps a few of the first."""
LEAST_CUT = 1_024
"""Tokens. Smaller reports are not of a cut prompt."""

MOST_PLAUSIBLE = 4.0
"""A report above this multiple of the count is not of one prompt: some servers report more than they read."""
MOST_NEW = 3.0
"""The same for the reported size of new messages if they are half of the prompt or more: some servers add up the
prompts of all requests."""
SLACK_SHARE, MOST_SLACK = 0.1, 4_000
"""Tokens that a provider may add unseen: a share of the window, and the maximum."""
DOUBTED = 0.6, 1.6
"""After one implausible report, later ones count only between these shares of the count."""


UNKNOWN_FAMILY = 1.15
UNKNOWN_AT_MOST = 1.35
"""Ratio that a tokenizer of unknown kind is guarded against until its model has reported a size."""


def family_ratio(model: str) -> float:
    """Prior ratio of a model's tokens to those of o200k_base, by its name."""
    name = model.rpartition("/")[2].lower()
    if "claude" in name:
        return 1.3
    if "deepseek" in name:
        return 1.13
    if name.startswith(("gpt", "o1", "o3", "o4", "chatgpt", "codex")):
        return 1.0
    return UNKNOWN_FAMILY


Doubt = Literal["", "too much", "cut"]
"""What is wrong with a report; empty if nothing is."""


def _is_cut_size(reported: int, window: int) -> bool:
    """Whether a server cuts a prompt that exceeds its own context window to this size: Ollama to half of the window and
    a few tokens, others to the whole. Windows are powers of two unless known."""
    if reported < LEAST_CUT:
        return False
    power = 1 << (reported.bit_length() - 1)
    return any(size - 1 <= reported <= size + CUT_SLACK for size in (window, window // 2, power, 2 * power))


class Learned(Struct, frozen=True):
    """Knowledge of a model's tokenizer: its tokens per estimated one. ``tokens`` is how many estimated tokens the ratio
    rests on; ``fixed_ratio`` is that of system prompt and tools, None if not known apart."""

    ratio: float
    tokens: float = 0.0
    fixed_ratio: float | None = None


class Sent(Struct, frozen=True):
    """Estimates of one request: its fixed part (system prompt and tools) and its messages."""

    fixed: object
    """Identifies the fixed part: equal values mean equal bytes."""
    fixed_tokens: int
    messages: tuple[MessageSize, ...]


class Prediction(Struct, frozen=True):
    """Tokens of a request by part; ``messages`` are those of the messages by component.

    ``estimated`` is the part of ``total`` without any report; ``anchored`` is False before the model's first report.
    ``missed`` is the largest recent relative error of predictions.
    """

    total: float
    estimated: float
    anchored: bool
    fixed: float
    messages: Mapping[str, float]
    missed: float = 0.0


class _Sums(Struct):
    """Sums over messages: ``estimated`` and true tokens, and the true ones by component."""

    estimated: int = 0
    true: float = 0.0
    shares: dict[str, float] = field(default_factory=dict[str, float])

    def add(self, size: MessageSize, factor: float) -> None:
        self.estimated += size.total
        self.true += factor * size.total
        for component, tokens in size.counts:
            self.shares[component] = self.shares.get(component, 0.0) + factor * tokens

    def copy(self) -> _Sums:
        return self.times(1.0)

    def times(self, scale: float) -> _Sums:
        shares = {component: scale * tokens for component, tokens in self.shares.items()}
        return _Sums(self.estimated, scale * self.true, shares)


class _Anchor(Struct, frozen=True):
    """The newest request of reported size, and its answer.

    ``offset`` is the part of the size that the sizes of its parts don't explain; ``scale`` spreads it over these parts,
    so that a dropped part takes its share along. ``sums`` adds up the messages of settled size, so that a long history
    costs nothing at each step.
    """

    messages: tuple[MessageSize, ...]
    sums: _Sums
    offset: float
    scale: float
    output: int | None
    reasoning: int


class RatioStore(Protocol):
    """Storage of ratios across sessions. Neither method raises; ``keep`` may block for the disk."""

    def known(self, model: str) -> Learned: ...

    def keep(self, model: str, learned: Learned) -> None: ...


class FamilyRatios:
    """No memory: every session starts with the ratio of the model's family."""

    def known(self, model: str) -> Learned:
        return Learned(family_ratio(model))

    def keep(self, model: str, learned: Learned) -> None:
        """Forgets it."""


class Calibration:
    """Calibration of one model in one session. Every prediction rests on all reports so far.

    ``known`` comes from the model's family or earlier sessions.
    """

    def __init__(self, known: Learned) -> None:
        self._prior = _clamp(known.ratio)
        self._weight = PRIOR_TOKENS + min(MOST_CARRIED, max(0.0, known.tokens))
        self._fixed_ratio = _clamp(known.fixed_ratio) if known.fixed_ratio is not None else None
        self._kinds = KindRatios()
        self._missed = 0.0
        self._seen_estimated = 0.0
        self._seen_reported = 0.0
        self._fixed: object = None
        self._fixed_tokens: float | None = None
        self._factors: WeakKeyDictionary[MessageSize, float] = WeakKeyDictionary()
        """Lives as long as the size of the message is referenced."""
        self._anchor: _Anchor | None = None
        self._members: tuple[_Anchor | None, frozenset[MessageSize]] = (None, frozenset())
        """The messages of the anchor."""
        self._answer: tuple[MessageSize, float] | None = None
        """The answer that followed the anchor, with its factor from the model's report."""
        self._sends_reasoning_back = True
        self._doubted = self._cut = False

    @property
    def ratio(self) -> float:
        """Tokens of this model per estimated token, for parts without a report."""
        return _clamp((self._prior * self._weight + self._seen_reported) / (self._weight + self._seen_estimated))

    @property
    def learned(self) -> Learned:
        """Result worth keeping for later sessions."""
        return Learned(self.ratio, self._weight - PRIOR_TOKENS + self._seen_estimated, self._fixed_ratio)

    def recounted(self, before: Mapping[MessageSize, int], fixed: float, *, anew: bool) -> None:
        """Apply better counts than ``before``; ``fixed`` is the ratio of the old to the new estimate of the fixed part.
        Reported true sizes stay. ``anew``: all earlier counts were estimates."""
        known = {size: tokens for size, tokens in before.items() if size in self._factors}
        for size, tokens in known.items():
            self._factors[size] *= tokens / max(1, size.total)
        if known:
            self._seen_estimated *= sum(size.total for size in known) / max(1, sum(known.values()))
        if self._answer is not None and self._answer[0] in before:
            answer, factor = self._answer
            self._answer = (answer, factor * before[answer] / max(1, answer.total))
        if self._anchor is not None:
            self._anchor.sums.estimated = sum(size.total for size in self._anchor.messages)
        if self._fixed_ratio is not None:
            self._fixed_ratio = _clamp(self._fixed_ratio * fixed)
        if anew:
            self._missed = 0.0
            self._kinds = KindRatios()

    def predict(self, sent: Sent) -> Prediction:
        """The size of a request before it is sent."""
        ratio = self.ratio
        fixed_known = self._fixed_tokens is not None and sent.fixed == self._fixed
        if fixed_known and self._fixed_tokens is not None:
            fixed = self._fixed_tokens
        else:
            fixed = (self._fixed_ratio or ratio) * sent.fixed_tokens
        anchor = self._anchor if self._extends_anchor(sent) else None
        scale = self._anchor.scale if self._anchor is not None and fixed_known else 1.0
        sums = anchor.sums.times(scale) if anchor is not None else _Sums()
        new = sent.messages[len(anchor.messages) :] if anchor is not None else sent.messages
        if anchor is not None:
            self._settle_answer(new, anchor)
        fixed *= scale
        estimated = 0.0 if fixed_known else fixed
        members = self._anchored if anchor is None and self._anchor is not None else frozenset[MessageSize]()
        for size in new:
            factor = self._reported(size)
            if not factor:
                factor = self._factor(size, ratio)
                estimated += factor * size.total
            sums.add(size, factor * (scale if members and _is_among(size, members) else 1.0))
        total = fixed + sums.true
        return Prediction(max(0.0, total), estimated, self._anchor is not None, fixed, sums.shares, self._missed)

    def exchanged(
        self, prediction: Prediction, before: Iterable[MessageSize], after: Iterable[MessageSize]
    ) -> Prediction:
        """The prediction for a request with some messages replaced by others."""
        scale, members = self._anchor.scale if self._anchor is not None else 1.0, self._anchored
        total, estimated, shares = prediction.total, prediction.estimated, dict(prediction.messages)
        ratio = self.ratio
        for sizes, sign in ((before, -1), (after, 1)):
            for size in sizes:
                factor = self._reported(size)
                if not factor:
                    factor = self._factor(size, ratio)
                    estimated += sign * factor * size.total
                factor *= sign * (scale if members and _is_among(size, members) else 1.0)
                total += factor * size.total
                for component, tokens in size.counts:
                    shares[component] = shares.get(component, 0.0) + factor * tokens
        return replace(prediction, total=max(0.0, total), estimated=max(0.0, estimated), messages=shares)

    def tokens_per_estimated(self, sizes: Iterable[MessageSize]) -> list[float]:
        """The factor that ``predict`` applies to each message's estimate."""
        scale, members = self._anchor.scale if self._anchor is not None else 1.0, self._anchored
        ratio = self.ratio
        return [self._factor(size, ratio) * (scale if _is_among(size, members) else 1.0) for size in sizes]

    @property
    def _anchored(self) -> frozenset[MessageSize]:
        """The messages of the newest request of reported size."""
        anchor, members = self._members
        if anchor is not self._anchor:
            members = frozenset(self._anchor.messages) if self._anchor is not None else frozenset[MessageSize]()
            self._members = (self._anchor, members)
        return members

    def _factor(self, size: MessageSize, average: float) -> float:
        """Tokens of this message per estimated one: from its report; if a part was removed, from the report of the
        whole and the kinds of what is left; otherwise the ``average``, corrected by its kinds. The remainder never
        counts more than the whole did."""
        known = self._reported(size)
        if known:
            return known
        whole = size.origin
        while whole is not None and not self._reported(whole):
            whole = whole.origin
        if whole is None:
            return self._kinds.factor(size, average)
        likely = self._kinds.factor(size, average)
        of_whole = self._reported(whole) * likely / self._kinds.factor(whole, average)
        if size.total >= MOSTLY_LEFT * whole.total:
            return of_whole
        return min(likely, of_whole * MOSTLY_LEFT * whole.total / max(1, size.total))

    def _reported(self, size: MessageSize) -> float:
        if self._answer is not None and self._answer[0] is size:
            return self._answer[1]
        return self._factors.get(size, 0.0)

    def observe(self, sent: Sent, usage: Usage, window: int) -> Doubt:
        """Learn from the usage reported for a request. Ignores implausible reports, and returns what the user should
        know of the first of a kind: ``too much`` if it exceeds the count by so much that all earlier reports are
        discarded, and the count is trusted from then on; ``cut`` if the server has read only a part of the prompt."""
        reported = usage.input_total
        before = self._anchor if self._extends_anchor(sent) else None
        sums = before.sums.copy() if before is not None else _Sums()
        new = sent.messages[len(before.messages) :] if before is not None else sent.messages
        everything = sent.fixed_tokens + sums.estimated + sum(size.total for size in new)
        if (
            reported is not None
            and _is_cut_size(reported, window)
            and reported < MOSTLY_READ * self.predict(sent).total
        ):
            told, self._cut = self._cut, True
            return "" if told else "cut"
        if reported is None or reported <= LEAST_PLAUSIBLE * everything:
            return ""
        fresh = sum(size.total for size in new)
        if not self._plausible(reported, everything, before, fresh, window):
            return "" if self._forget() else "too much"
        prompt = float(reported)
        if self._fixed_tokens is None or sent.fixed != self._fixed:
            self._begin(sent, prompt)
        else:
            self._continue(new, before, prompt - self._fixed_tokens)
        for size in new:
            sums.add(size, self._factors[size])
        explained = (self._fixed_tokens or 0.0) + sums.true
        offset = prompt - explained
        scale = max(0.0, 1.0 + offset / explained) if explained > 0 else 1.0
        self._anchor = _Anchor(sent.messages, sums, offset, scale, usage.output_total, usage.reasoning or 0)
        self._answer = None
        return ""

    def adopt_answers(self, reports: Mapping[MessageSize, Usage]) -> None:
        """Adopt the sizes that were reported for answers in an earlier run, before the first report in this one. Only
        what they do not explain is then spread over the rest of the request."""
        for size, usage in reports.items():
            if usage.output_total is not None and size.total and size not in self._factors:
                self._factors[size] = self._of_answer(size, usage.output_total, usage.reasoning or 0)

    def is_reported(self, size: MessageSize) -> bool:
        """Whether the size of this message is known."""
        return bool(self._reported(size))

    def counted(self, size: MessageSize, tokens: int) -> None:
        """Adopt the size of a message as the model's own tokenizer counts it, without what the template adds."""
        if size.total:
            self._factors[size] = _clamp((tokens + MESSAGE_OVERHEAD) / size.total)

    def rejected(self, sent: Sent, prompt: int, window: int) -> None:
        """Learn from the size that a provider stated when it rejected a request as too long: for servers without usage
        reports the only one. It counts only where the request is larger than predicted, because it may include the
        answer's limit."""
        predicted, known = self.predict(sent).total, self._extends_anchor(sent)
        everything = sent.fixed_tokens + sum(size.total for size in sent.messages)
        if prompt <= predicted or not self._plausible(prompt, everything, None, everything, window):
            return
        if self._fixed is None or sent.fixed == self._fixed:  # not a transcript beside the conversation
            self.observe(sent, Usage(prompt), window)
        if not known:
            self._seen_estimated += everything
            self._seen_reported += _clamp(prompt / max(1, everything)) * everything

    def _plausible(self, reported: int, everything: int, before: _Anchor | None, fresh: int, window: int) -> bool:
        """Whether a report can be true. ``everything`` and ``fresh`` are estimates of the whole prompt and of the
        messages after the anchor."""
        low, high = DOUBTED
        share = reported / max(1.0, self.ratio * everything)
        if self._doubted:
            return low <= share <= high
        slack = min(MOST_SLACK, SLACK_SHARE * window)
        if reported > MOST_PLAUSIBLE * everything + slack:
            return False
        if before is None or self._fixed_tokens is None or share <= high:
            return True
        known = self._fixed_tokens + before.sums.true + before.offset
        rest = reported - known - (before.output or 0)
        return rest <= MOST_NEW * self.ratio * fresh + slack or rest <= 0.5 * self.ratio * everything

    def _forget(self) -> bool:
        """Reset to the ratio of the model's family. Whether this happened before."""
        doubted, self._doubted = self._doubted, True
        self._missed = self._seen_estimated = self._seen_reported = 0.0
        self._kinds = KindRatios()
        self._fixed, self._fixed_tokens, self._anchor, self._answer = None, None, None, None
        self._factors.clear()
        return doubted

    def _begin(self, sent: Sent, prompt: float) -> None:
        """First report with this fixed part: spread it over the fixed part and all messages without a known size."""
        new = [size for size in sent.messages if size not in self._factors]
        rest = prompt - sum(self._factors.get(size, 0.0) * size.total for size in sent.messages)
        estimated = sent.fixed_tokens + sum(size.total for size in new)
        factor = _clamp(rest / estimated) if estimated else self.ratio
        if sent.fixed_tokens >= MOSTLY_FIXED * estimated > 0:
            self._fixed_ratio = factor
        for size in new:
            self._factors[size] = factor
        self._fixed = sent.fixed
        # Includes the provider's own additions, such as a preamble for tools.
        self._fixed_tokens = max(0.0, rest - factor * sum(size.total for size in new))

    def _continue(self, messages: tuple[MessageSize, ...], anchor: _Anchor | None, prompt: float) -> None:
        """A further report: the size not explained by the known parts belongs to the new messages.

        ``messages`` are those after the anchor, or all; ``prompt`` is the size reported for anchor and messages.
        """
        factors = [self._factors.get(size, 0.0) for size in messages]
        answer = self._add_answer(factors, messages, anchor) if anchor is not None else None
        new = [size for size, factor in zip(messages, factors, strict=True) if not factor]
        known = sum(factor * size.total for size, factor in zip(messages, factors, strict=True))
        rest = prompt - known - (anchor.sums.true + anchor.offset if anchor is not None else 0.0)
        estimated = sum(size.total for size in new)
        expected = {size: self._kinds.factor(size, self.ratio) for size in new}
        likely = sum(factor * size.total for size, factor in expected.items())
        if anchor is not None and answer is not None:
            rest = self._settle_reasoning(answer, anchor, rest, likely)
        if estimated:
            observed = rest / estimated
            if anchor is not None and LOWEST_RATIO / 2 <= observed <= HIGHEST_RATIO * 2:
                if estimated >= TELLING:
                    error = abs(rest / likely - 1)
                    self._missed = max(self._missed * FORGETTING, min(1.0, error))
                self._seen_estimated += estimated
                self._seen_reported += _clamp(observed) * estimated
                self._kinds.learn(new, rest, self.ratio)
            elif anchor is None and LOWEST_RATIO <= observed <= HIGHEST_RATIO:  # a compaction's summary, mostly
                self._kinds.learn(new, rest, self.ratio)
            for size in new:
                factor = expected[size] * rest / likely
                if anchor is not None and max(estimated, rest / 4) >= TELLING:
                    self._factors[size] = min(MOST_OF_ITS_OWN, max(LEAST_OF_ITS_OWN, factor))
                else:  # what the provider adds unseen would weigh too much
                    self._factors[size] = _clamp(factor)

    def _add_answer(
        self, factors: list[float], messages: tuple[MessageSize, ...], anchor: _Anchor
    ) -> MessageSize | None:
        """Apply the reported size of the answer after the anchor. ``messages`` are those after the anchor."""
        if not messages or factors[0]:
            return None
        answer = messages[0]
        if answer.role != "assistant" or anchor.output is None or not answer.total:
            return None
        factors[0] = self._of_answer(answer, anchor.output, anchor.reasoning)
        return answer

    def _of_answer(self, answer: MessageSize, output: int, reasoning: int) -> float:
        """Factor of an answer of ``output`` tokens, ``reasoning`` among them."""
        has_reasoning = any(component == REASONING for component, _ in answer.counts)
        sent_back = has_reasoning and self._sends_reasoning_back
        return max(1, output - (0 if sent_back else reasoning)) / answer.total

    def _settle_answer(self, messages: tuple[MessageSize, ...], anchor: _Anchor) -> None:
        """Remember the answer after the anchor, in case earlier messages change."""
        known = self._answer[0] if self._answer is not None else None
        if not messages or (known is not None and _is_among(messages[0], {known})):
            return
        factors = [self._factors.get(messages[0], 0.0)]
        if self._add_answer(factors, messages, anchor) is not None:
            self._answer = (messages[0], factors[0])

    def _settle_reasoning(self, answer: MessageSize, anchor: _Anchor, rest: float, expected: float) -> float:
        """Find out whether reasoning is part of the next prompt: providers differ. Returns the corrected rest."""
        has_reasoning = any(component == REASONING for component, _ in answer.counts)
        if has_reasoning and anchor.reasoning:
            other = rest + (anchor.reasoning if self._sends_reasoning_back else -anchor.reasoning)
            if abs(other - expected) < abs(rest - expected):
                self._sends_reasoning_back = not self._sends_reasoning_back
                rest = other
        self._factors[answer] = factor = self._of_answer(answer, anchor.output or 0, anchor.reasoning)
        if LOWEST_RATIO <= factor <= HIGHEST_RATIO:
            self._kinds.learn((answer,), factor * answer.total, self.ratio)
        return rest

    def _extends_anchor(self, sent: Sent) -> bool:
        anchor = self._anchor
        return anchor is not None and sent.messages[: len(anchor.messages)] == anchor.messages


def _is_among(size: MessageSize, members: AbstractSet[MessageSize]) -> bool:
    """Whether a message, or its original before a part was removed, is one of these."""
    variant: MessageSize | None = size
    while variant is not None:
        if variant in members:
            return True
        variant = variant.origin
    return False


def _clamp(ratio: float) -> float:
    return min(HIGHEST_RATIO, max(LOWEST_RATIO, ratio))


_MAX_MODELS = 300


class LearnedRatios:
    """Ratios in a file. Nothing here raises: unsaved ratios are learned again.

    ``tell`` gets a sentence for the user, in any thread, if the file can't be used.
    """

    def __init__(self, path: Path, today: Callable[[], date] = date.today) -> None:
        self._file = LearnedFile(path, "models", {"version": 1, "unit": "o200k_base"})
        self._today = today
        self._told = False
        self.tell: Callable[[str], None] = lambda _text: None

    def known(self, model: str) -> Learned:
        """The ratio for ``provider/name``: from its own sessions, else from sessions of the same name at another
        provider, else from its family."""
        models = self._file.read()
        name = model.rpartition("/")[2]
        others = sorted(
            (other for other in models if other.rpartition("/")[2] == name),
            key=lambda other: as_text(as_object(models[other]).get("day")),
        )
        for candidate in (model, *reversed(others)):
            learned = _learned(as_object(models.get(candidate)))
            if learned is not None:
                return learned
        return Learned(family_ratio(model))

    def keep(self, model: str, learned: Learned) -> None:
        entry: JsonObject = {
            "ratio": round(learned.ratio, 4),
            "tokens": round(learned.tokens),
            "day": self._today().isoformat(),
        }
        if learned.fixed_ratio is not None:
            entry["fixed_ratio"] = round(learned.fixed_ratio, 4)
        try:
            with self._file.alone():
                aside = self._file.put_aside_if_damaged()
                self._file.write(_newest({**self._file.read(), model: entry}))
        except OSError as error:
            reason = error.strerror or type(error).__name__
            self._report_once(f"Could not save the token ratio of {model} to {self._file.path}: {reason}.")
            return
        if aside is not None:
            self._report_once(f"{self._file.path} was damaged; it was kept as {aside}.")

    def _report_once(self, text: str) -> None:
        if not self._told:
            self._told = True
            self.tell(text)


def _learned(entry: JsonObject) -> Learned | None:
    ratio = _number(entry.get("ratio"))
    if ratio is None or not LOWEST_RATIO <= ratio <= HIGHEST_RATIO:
        return None
    fixed = _number(entry.get("fixed_ratio"))
    plausible = fixed is not None and LOWEST_RATIO <= fixed <= HIGHEST_RATIO
    return Learned(ratio, max(0.0, _number(entry.get("tokens")) or 0.0), fixed if plausible else None)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _newest(models: JsonObject) -> JsonObject:
    """The models learned most recently, up to a sensible number."""
    days = sorted(models, key=lambda model: as_text(as_object(models[model]).get("day")), reverse=True)
    return {model: models[model] for model in days[:_MAX_MODELS]}
