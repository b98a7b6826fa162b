"""History of the context by turn, lessons of earlier requests, and a pure forecast of the next request's size and
cost."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.context_management.budget import fixed_tokens
from swecli.core.context_management.cache import LEAST_EXPECTED
from swecli.core.context_management.counter import IMAGE_TOKENS, PieceEstimator, sampled
from swecli.core.llm.types import SHORTEST_CACHE
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.events import (
    CacheBreak,
    CompactionCompleted,
    CompactionRedone,
    CompactionStarted,
    CompactionUndone,
    ContextEdited,
    Event,
    ModelChanged,
    ModelResponded,
    SessionStarted,
    StepStarted,
)
from swecli.core.protocol.messages import Usage

# History of the context by turn: sizes, cache shares, compactions, misses. A reduction of events.


KEPT = 400
"""Newest turns, marks and compactions to remember."""


class TurnPoint(Struct, frozen=True):
    """The newest request of a turn: its tokens, and those that came from the provider's cache; None: not reported."""

    turn: int
    tokens: int
    cached: int | None


class Mark(Struct, frozen=True):
    """A rewrite of the context, or a cache miss; ``text`` is a clause."""

    turn: int
    kind: Literal["compaction", "miss", "edit"]
    text: str


class CompactionRecord(Struct, frozen=True):
    """One compaction. ``at`` is Unix seconds; ``in_force`` is False while it is undone. ``anchors`` had to be kept;
    ``kept`` of them survived, ``written`` of these in the model's own words, the ``summary``."""

    item: str
    turn: int
    at: float
    trigger: str
    strategies: tuple[str, ...]
    before: int
    after: int
    cost: str | None = None
    in_force: bool = True
    anchors: int = 0
    kept: int = 0
    written: int = 0
    summary: str = ""


class Timeline:
    """Oldest first."""

    def __init__(self) -> None:
        self._points: deque[TurnPoint] = deque(maxlen=KEPT)
        self._marks: deque[Mark] = deque(maxlen=KEPT)
        self._compactions: dict[str, CompactionRecord] = {}
        self._triggers: dict[str, str] = {}

    @property
    def points(self) -> tuple[TurnPoint, ...]:
        return tuple(self._points)

    @property
    def marks(self) -> tuple[Mark, ...]:
        return tuple(self._marks)

    @property
    def compactions(self) -> tuple[CompactionRecord, ...]:
        return tuple(self._compactions.values())

    def apply(self, event: Event) -> None:
        match event.body:
            case ModelResponded(usage=Usage() as usage) if usage.input_total:
                if self._points and self._points[-1].turn == event.turn:
                    self._points.pop()
                self._points.append(TurnPoint(event.turn, usage.input_total, usage.cache_read))
            case CacheBreak(cause=cause):
                self._marks.append(Mark(event.turn, "miss", cause))
            case CompactionStarted(item=item, trigger=trigger):
                self._triggers[item] = trigger
            case CompactionCompleted() as body:
                self._compacted(body, event)
            case CompactionUndone(item=item):
                self._set(item, in_force=False)
            case CompactionRedone(item=item):
                self._set(item, in_force=True)
            case ContextEdited(changes=changes):
                count = len(changes)
                self._marks.append(Mark(event.turn, "edit", f"you changed {count} item{'s' if count > 1 else ''}"))
            case _:
                pass

    def _compacted(self, body: CompactionCompleted, event: Event) -> None:
        trigger = self._triggers.pop(body.item, "")
        self._compactions[body.item] = CompactionRecord(
            body.item,
            event.turn,
            event.ts,
            trigger,
            body.strategies,
            body.tokens_before,
            body.tokens_after,
            body.cost,
            True,
            body.anchors,
            body.anchors_kept,
            body.anchors_written,
            body.summary,
        )
        if len(self._compactions) > KEPT:
            del self._compactions[next(iter(self._compactions))]
        verb = "cleared" if body.strategies == ("clearing",) else "compacted"
        self._marks.append(Mark(event.turn, "compaction", f"{verb} {body.tokens_before:,} to {body.tokens_after:,}"))

    def _set(self, item: str, *, in_force: bool) -> None:
        known = self._compactions.get(item)
        if known is not None:
            self._compactions[item] = replace(known, in_force=in_force)


# --- the forecast --------------------------------------------------------------------------------------------


RECENT_TURNS = 5
"""Turns that count for growth."""
RECENT_ANSWERS = 20
"""Answers that count for the length, and requests that count for the cached share."""
USUAL_ANSWERS = (20, 1_500)
"""Assumed tokens of an answer before the first one: from a short call to a long text."""
TELLING_ANSWERS = 8
"""Number of answers after which the assumption no longer counts."""
ANSWER_SLACK = 1.25
"""Factor by which an answer may leave the observed range."""
TRIMMED = 10
"""One of this many at each end is dropped as an outlier, so that the range stays informative."""
MESSAGE_TOKENS = 4
"""Tokens of a message besides its text."""
SAMPLE = 1_500
"""Characters of each of three samples of a long draft: a key must not wait."""
DRAFT_BAND = 0.2
"""Relative error of the draft's estimated size."""


class RequestTrend:
    """Lessons of a session's requests for the next one; a reduction of its events."""

    def __init__(self) -> None:
        self.model = ""
        self.prefix: int | None = None
        """Tokens of the conversation's prefix that the provider has read; None: not known."""
        self.asked_at: float | None = None
        """Time of that reading, in Unix seconds."""
        self.keeps = False
        """Whether this model's cache ever served anything."""
        self.writes = False
        """Whether the provider reports and prices writes to its cache."""
        self._fixed = 0
        self._turn = -1
        self._source: str = ""
        self._sizes: deque[int] = deque(maxlen=RECENT_TURNS + 1)
        self._answers: deque[int] = deque(maxlen=RECENT_ANSWERS)
        self._shares: deque[float] = deque(maxlen=RECENT_ANSWERS)

    def apply(self, event: Event) -> None:
        match event.body:
            case StepStarted(budget=Budget() as budget):
                self._fixed = fixed_tokens(budget)
                if event.turn != self._turn:
                    if budget.source != self._source:  # a first report corrects the estimate: that is no growth
                        self._sizes.clear()
                    self._turn, self._source = event.turn, budget.source
                    self._sizes.append(budget.used)
            case ModelResponded(usage=Usage() as usage):
                self._answered(usage, event.ts)
            case CompactionCompleted() | CompactionUndone() | CompactionRedone() | ContextEdited() if (
                self.prefix is not None
            ):
                self.prefix = min(self.prefix, self._fixed)
            case SessionStarted(model=model) | ModelChanged(model=model) if model != self.model:
                self.model, self.prefix, self.asked_at = model, None, None
                self.keeps = self.writes = False
                self._shares.clear()
            case _:
                pass

    def _answered(self, usage: Usage, at: float) -> None:
        if usage.output_total:
            self._answers.append(usage.output_total)
        if not usage.input_total:
            return
        if usage.cache_read is not None and self.prefix and self.prefix >= LEAST_EXPECTED:
            self._shares.append(min(1.0, usage.cache_read / min(self.prefix, usage.input_total)))
        self.keeps = self.keeps or bool(usage.cache_read)
        self.writes = self.writes or bool(usage.cache_write)
        self.prefix = usage.input_total if usage.cache_read is not None or usage.cache_write is not None else None
        self.asked_at = at

    @property
    def growth(self) -> float | None:
        """Average tokens added by recent turns; None before the second turn. Turns that shrank it do not count."""
        sizes = [*self._sizes]
        grown = [after - before for before, after in pairwise(sizes) if after > before]
        return sum(grown) / len(grown) if grown else None

    @property
    def answers(self) -> tuple[int, int]:
        """Probable range of the next answer's tokens."""
        seen = sorted(self._answers)
        if not seen:
            return USUAL_ANSWERS
        odd = len(seen) // TRIMMED
        low, high = int(seen[odd] / ANSWER_SLACK), math.ceil(seen[-1 - odd] * ANSWER_SLACK)
        if len(seen) < TELLING_ANSWERS:
            return min(low, USUAL_ANSWERS[0]), max(high, USUAL_ANSWERS[1])
        return low, high

    @property
    def shares(self) -> tuple[float, float, float]:
        """The share of the known prefix served from the cache: lowest, usual, highest."""
        if not self._shares:
            return (0.0, 1.0, 1.0) if self.keeps else (0.0, 0.0, 1.0)
        seen = sorted(self._shares)
        odd, middle = len(seen) // TRIMMED, len(seen) // 2
        return seen[odd], (seen[middle] + seen[-1 - middle]) / 2, seen[-1 - odd]


class Forecast(Struct, frozen=True):
    """Forecast of one request. ``tokens`` is its likely size, between ``low`` and ``high``.

    ``cached`` of them come from the provider's cache, None if it reports none; ``cold_in`` is seconds until the cache
    expires, 0 after that, None without a cache. ``cost`` is US dollars from low to high with one answer, None if the
    price is unknown. ``turns_left`` fit before compaction, None while unknown.
    """

    tokens: int
    low: int
    high: int
    cached: int | None = None
    cost: tuple[Decimal, Decimal] | None = None
    turns_left: int | None = None
    cold_in: float | None = None

    @property
    def new(self) -> int:
        """Tokens that the provider reads for the first time, or again."""
        return self.tokens - (self.cached or 0)


def draft_tokens(text: str, images: int = 0) -> int:
    """Approximate tokens of a message, in the estimator's unit. Takes the same time for any length."""
    if not text and not images:
        return 0
    return MESSAGE_TOKENS + sampled(text, PieceEstimator().count, SAMPLE, 3) + images * IMAGE_TOKENS


def forecast(
    budget: Budget,
    draft: int,
    trend: RequestTrend,
    now: float,
    price: Callable[[Usage], str | None],
    ttl: float = SHORTEST_CACHE,
) -> Forecast:
    """Forecast a request that adds ``draft`` tokens to the measured conversation. ``now`` is Unix seconds; a clock set
    back counts as no time passed."""
    added = draft
    tokens = budget.used + added
    band = max(0, budget.upper - budget.used) + round(DRAFT_BAND * draft)
    low, high = max(0, tokens - band), tokens + band
    reusable = _kept(trend, budget.used)
    cold_in = None
    if reusable and trend.keeps and trend.asked_at is not None:
        cold_in = max(0.0, ttl - max(0.0, now - trend.asked_at))
    warm = cold_in is None or cold_in > 0
    least, usual, most = trend.shares
    cached = None if reusable is None else round(reusable * usual) if warm else 0
    answers = trend.answers
    ends = (
        _usage(low, round((reusable or 0) * most) if warm else 0, answers[0], trend),
        _usage(high, round((reusable or 0) * least) if warm else 0, answers[1], trend),
    )
    return Forecast(
        tokens=tokens,
        low=low,
        high=high,
        cached=cached,
        cost=_costs([price(usage) for usage in ends]),
        turns_left=_turns_left(budget, added, trend.growth),
        cold_in=cold_in,
    )


def lowest_usage(trend: RequestTrend, used: int, now: float) -> Usage:
    """Lowest usage of a request of this size: everything possibly cached is served from the cache, and the answer is
    empty."""
    warm = trend.keeps and trend.asked_at is not None and now - trend.asked_at < SHORTEST_CACHE
    cached = round((_kept(trend, used) or 0) * trend.shares[2]) if warm else 0
    return _usage(used, cached, 0, trend)


def _kept(trend: RequestTrend, used: int) -> int | None:
    return None if trend.prefix is None else min(trend.prefix, used)


def _usage(size: int, cached: int, answer: int, trend: RequestTrend) -> Usage:
    read = min(cached, size)
    return Usage(
        input_total=size, cache_read=read, cache_write=size - read if trend.writes else None, output_total=answer
    )


def _costs(prices: Sequence[str | None]) -> tuple[Decimal, Decimal] | None:
    try:
        amounts = sorted(Decimal(price) for price in prices if price is not None)
    except InvalidOperation:
        return None
    return (amounts[0], amounts[-1]) if len(amounts) == len(prices) and amounts else None


def _turns_left(budget: Budget, added: int, growth: float | None) -> int | None:
    """None also for a message that is too large by itself: no compaction would make room for it."""
    if growth is None or budget.compact_at <= 0 or added >= budget.compact_at:
        return None
    return max(0, int((budget.compact_at - budget.upper - added) / growth))
