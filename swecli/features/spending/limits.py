"""Budgets of money and tokens for a turn, a session and a day: their values, and which one a request would exceed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal

from msgspec import Struct, field

from swecli.core.engine.state import Tally

Span = Literal["turn", "session", "day"]
SPANS: tuple[Span, ...] = ("turn", "session", "day")
FRESH_SECONDS = 20.0
"""Seconds before the day's usage by other sessions is read again."""


class Amount(Struct, frozen=True):
    """US dollars and tokens; as a limit, None means unlimited."""

    dollars: Decimal | None = None
    tokens: int | None = None


class Spent(Struct, frozen=True):
    """Past or expected usage. ``unpriced``: the price of a part is unknown and not included in ``dollars``."""

    dollars: Decimal = Decimal(0)
    tokens: int = 0
    unpriced: bool = False

    @classmethod
    def of(cls, tally: Tally) -> Spent:
        usage = tally.usage
        return cls(tally.known, (usage.input_total or 0) + (usage.output_total or 0), tally.unpriced > 0)

    def plus(self, other: Spent) -> Spent:
        return Spent(self.dollars + other.dollars, self.tokens + other.tokens, self.unpriced or other.unpriced)

    def minus(self, other: Spent) -> Spent:
        return Spent(max(Decimal(0), self.dollars - other.dollars), max(0, self.tokens - other.tokens), self.unpriced)


class Crossing(Struct, frozen=True):
    """A limit that is reached, or that the next request would exceed. ``reason`` is a clause; ``limit`` and ``needed``
    are US dollars or tokens, ``needed`` the limit required for that request; None if unknown."""

    span: Span
    unit: Literal["dollars", "tokens"]
    limit: Decimal
    needed: Decimal | None
    reason: str

    @property
    def setting(self) -> str:
        return f"budget.{self.span}{'_tokens' if self.unit == 'tokens' else ''}"

    @property
    def raised(self) -> Decimal:
        """The smallest multiple of the limit that allows the request."""
        if self.needed is None:
            return self.limit
        return self.limit * (self.needed // self.limit + 1)


def crossing(limits: Mapping[Span, Amount], spent: Mapping[Span, Spent], following: Spent) -> Crossing | None:
    """The first limit that blocks a request with the minimum cost ``following``; None if none does."""
    for span in SPANS:
        limit, used = limits.get(span, Amount()), spent.get(span, Spent())
        exceeded = _of_tokens(span, limit.tokens, used, following) or _of_money(span, limit.dollars, used, following)
        if exceeded is not None:
            return exceeded
    return None


def _of_tokens(span: Span, limit: int | None, used: Spent, following: Spent) -> Crossing | None:
    if limit is None or (used.tokens < limit and used.tokens + following.tokens <= limit):
        return None
    words = f"{used.tokens:,} of the {limit:,} tokens of {_named(span)} are used"
    return _found(span, "tokens", Decimal(limit), Decimal(used.tokens), Decimal(following.tokens), words)


def _of_money(span: Span, limit: Decimal | None, used: Spent, following: Spent) -> Crossing | None:
    if limit is None:
        return None
    if used.unpriced or following.unpriced:
        reason = f"swecli cannot enforce the budget of {shown(limit)} for {_named(span)} because a price is unknown"
        return Crossing(span, "dollars", limit, None, reason)
    if used.dollars < limit and used.dollars + following.dollars <= limit:
        return None
    words = f"{shown(used.dollars)} of the {shown(limit)} of {_named(span)} are spent"
    return _found(span, "dollars", limit, used.dollars, following.dollars, words)


def _found(
    span: Span, unit: Literal["dollars", "tokens"], limit: Decimal, used: Decimal, following: Decimal, words: str
) -> Crossing:
    if used < limit:
        least = shown(following) if unit == "dollars" else f"about {following:,} tokens"
        words = f"{words}, and the next request takes at least {least}"
    return Crossing(span, unit, limit, used + following, words)


def _named(span: Span) -> str:
    return {"turn": "this turn", "session": "this session", "day": "today"}[span]


def shown(dollars: Decimal) -> str:
    """Dollars with as many digits as a small amount needs."""
    return f"${dollars:.2f}" if dollars >= Decimal("0.10") or not dollars else f"${dollars:.4f}"


# --- the day ------------------------------------------------------------------------------------------------------

DaySpent = Callable[[float, float, str], Spent]
"""Usage by stored sessions of all folders between two times (Unix seconds), except one session."""


def day_of(now: float) -> tuple[float, float]:
    """Start and end of the local day of ``now``, in Unix seconds."""
    start = datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0)
    return start.timestamp(), (start + timedelta(days=1)).timestamp()


class DayAccount:
    """Usage by all sessions today. ``stored`` may block on the disk and is called in a thread."""

    def __init__(self, stored: DaySpent, session: str, before: Spent) -> None:
        """``before`` is this session's usage when it began or was resumed."""
        self._stored = stored
        self._session = session
        self._base = before
        self._own = Spent()
        """Today's usage by this session before it was resumed."""
        self._others = Spent()
        self._day: tuple[float, float] | None = None
        self._looked = 0.0

    async def spent(self, now: float, total: Spent) -> Spent:
        """Today's sum; ``total`` is that of this session from its beginning on, and is stored by now."""
        day = day_of(now)
        if day != self._day:
            if self._day is None:
                everything = await asyncio.to_thread(self._stored, *day, "")
                self._others = await asyncio.to_thread(self._stored, *day, self._session)
                self._own = everything.minus(self._others).minus(total.minus(self._base))
            else:
                self._base, self._own = total, Spent()
                self._others = await asyncio.to_thread(self._stored, *day, self._session)
            self._day, self._looked = day, now
        elif not 0 <= now - self._looked < FRESH_SECONDS:
            self._others, self._looked = await asyncio.to_thread(self._stored, *day, self._session), now
        since = total.minus(self._base)
        # Another session's unknown price does not restrict this one.
        return Spent(
            self._others.dollars + self._own.dollars + since.dollars,
            self._others.tokens + self._own.tokens + since.tokens,
            since.unpriced,
        )


def nothing_stored(start: float, end: float, without: str) -> Spent:
    return Spent()


class SpendingLimits(Struct, frozen=True):
    """Configured budgets, and the source of the day's usage."""

    amounts: Mapping[Span, Amount] = field(default_factory=dict[Span, Amount])
    stored: DaySpent = nothing_stored

    @property
    def any(self) -> bool:
        return any(amount != Amount() for amount in self.amounts.values())
