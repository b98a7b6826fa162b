"""The course of the context: what became of it turn by turn, what earlier requests teach, and a pure forecast of what
the next one will have and cost."""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.context_management.budget import fixed_tokens
from swecli.core.context_management.cache import LEAST_EXPECTED, TTL_SECONDS
from swecli.core.context_management.counter import IMAGE_TOKENS, PieceEstimator, sampled
from swecli.core.protocol.budget import TAIL, Budget
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

# What became of the context, turn by turn: sizes, cache shares, compactions, misses. A reduction of events.


KEPT = 400
"""Turns, marks and compactions that are remembered, the newest ones."""


class TurnPoint(Struct, frozen=True):
    """The newest request of a turn: its tokens, and those that came from the provider's cache; None: not reported."""

    turn: int
    tokens: int
    cached: int | None


class Mark(Struct, frozen=True):
    """Something that rewrote the context, or missed the cache; ``text`` is a clause."""

    turn: int
    kind: Literal["compaction", "miss", "edit"]
    text: str


class CompactionRecord(Struct, frozen=True):
    """One compaction that was made. ``at`` is Unix seconds; ``in_force`` is False while it is undone. ``anchors`` of
    what it replaced had to be kept, ``kept`` of them are in what it left, ``written`` of these in the model's own
    words, which are the ``summary``."""

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


# --- what is foretold ---------------------------------------------------------------------------------------


RECENT_TURNS = 5
"""Turns whose growth counts."""
RECENT_ANSWERS = 20
"""Answers whose length, and requests whose cached share count."""
USUAL_ANSWERS = (20, 1_500)
"""Tokens of an answer before one was seen: from a short call to a long text."""
TELLING_ANSWERS = 8
"""From so many answers on, the usual ones count no more."""
ANSWER_SLACK = 1.25
"""An answer may be so many times longer or shorter than those that were seen."""
TRIMMED = 10
"""One of so many at each end is left out as odd: a range that holds everything tells nothing."""
MESSAGE_TOKENS = 4
"""What a message has besides its text."""
SAMPLE = 1_500
"""Characters of each of three parts by which a long draft is judged: a key must not wait."""
DRAFT_BAND = 0.2
"""By how much the size of the draft may be wrong: it is estimated."""


class RequestTrend:
    """What the requests of a session so far tell of the next one; a reduction of its events."""

    def __init__(self) -> None:
        self.model = ""
        self.tail = 0
        """Tokens that the newest request had after its newest message."""
        self.prefix: int | None = None
        """Tokens of the conversation's beginning that the provider has read; None: not known."""
        self.asked_at: float | None = None
        """When it read them last, in Unix seconds."""
        self.keeps = False
        """Whether anything was ever read from this model's cache."""
        self.writes = False
        """Whether the provider tells what it wrote to its cache, and prices that."""
        self._fixed = 0
        self._turn = -1
        self._source = ""
        self._sizes: deque[int] = deque(maxlen=RECENT_TURNS + 1)
        self._answers: deque[int] = deque(maxlen=RECENT_ANSWERS)
        self._shares: deque[float] = deque(maxlen=RECENT_ANSWERS)

    def apply(self, event: Event) -> None:
        match event.body:
            case StepStarted(budget=Budget() as budget):
                self._asked(budget, event.turn)
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

    def _asked(self, budget: Budget, turn: int) -> None:
        self._fixed = fixed_tokens(budget)
        self.tail = sum(part.tokens for part in budget.components if part.name == TAIL)
        if turn != self._turn:
            if budget.source != self._source:  # a first report corrects the estimate: that is no growth
                self._sizes.clear()
            self._turn, self._source = turn, budget.source
            self._sizes.append(budget.used)

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
        """Tokens that a turn added lately, on average; None before the second turn. Turns that made it smaller say
        nothing."""
        sizes = [*self._sizes]
        grown = [after - before for before, after in pairwise(sizes) if after > before]
        return statistics.fmean(grown) if grown else None

    @property
    def answers(self) -> tuple[int, int]:
        """Tokens between which the next answer probably is."""
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
        """The share of what the provider had read that came from its cache: lowest, usual, highest."""
        if not self._shares:
            return (0.0, 1.0, 1.0) if self.keeps else (0.0, 0.0, 1.0)
        seen = sorted(self._shares)
        odd = len(seen) // TRIMMED
        return seen[odd], statistics.median(seen), seen[-1 - odd]


class Forecast(Struct, frozen=True):
    """One request that was not sent yet. ``tokens`` is its likely size, between ``low`` and ``high``.

    ``cached`` of them come from the provider's cache, None where it tells nothing of one; ``cold_in`` is seconds until
    it forgets them, 0 once it has, None where nothing is kept. ``cost`` is US dollars from low to high with one answer,
    None where the price is unknown. ``turns_left`` fit before the context is compacted, None while that is not known.
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
    """About how many tokens a message takes, in the estimator's unit. As quick for a long text as for a short one."""
    if not text and not images:
        return 0
    return MESSAGE_TOKENS + sampled(text, PieceEstimator().count, SAMPLE, 3) + images * IMAGE_TOKENS


def forecast(
    budget: Budget,
    draft: int,
    trend: RequestTrend,
    now: float,
    price: Callable[[Usage], str | None],
    ttl: float = TTL_SECONDS,
) -> Forecast:
    """What a request would be that adds ``draft`` tokens to the conversation of this measure. ``now`` is Unix seconds;
    a clock that was put back counts as no time passed."""
    added = draft + trend.tail
    tokens = budget.used + added
    band = max(0, budget.upper - budget.used) + round(DRAFT_BAND * draft)
    low, high = max(0, tokens - band), tokens + band
    kept = _kept(trend, budget.used)
    cold_in = None
    if kept and trend.keeps and trend.asked_at is not None:
        cold_in = max(0.0, ttl - max(0.0, now - trend.asked_at))
    warm = cold_in is None or cold_in > 0
    least, usual, most = trend.shares
    cached = None if kept is None else round(kept * usual) if warm else 0
    answers = trend.answers
    ends = (
        _usage(low, round((kept or 0) * most) if warm else 0, answers[0], trend),
        _usage(high, round((kept or 0) * least) if warm else 0, answers[1], trend),
    )
    return Forecast(
        tokens=tokens,
        low=low,
        high=high,
        cached=cached,
        cost=_costs([price(usage) for usage in ends]),
        turns_left=_turns_left(budget, budget.upper + added, trend.growth),
        cold_in=cold_in,
    )


def lowest_usage(trend: RequestTrend, used: int, now: float, ttl: float = TTL_SECONDS) -> Usage:
    """What a request of this size uses at the least: all that the provider may still have comes from its cache, and the
    answer is empty."""
    warm = trend.keeps and trend.asked_at is not None and now - trend.asked_at < ttl
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
        found = sorted(Decimal(one) for one in prices if one is not None)
    except InvalidOperation:
        return None
    return (found[0], found[-1]) if len(found) == len(prices) and found else None


def _turns_left(budget: Budget, upper: int, growth: float | None) -> int | None:
    if growth is None or budget.compact_at <= 0:
        return None
    return max(0, int((budget.compact_at - upper) / growth))
