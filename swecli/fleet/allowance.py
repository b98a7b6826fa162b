"""What all workers may spend together: tokens and price of the run, requests and tokens per minute."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from decimal import Decimal, InvalidOperation

from msgspec import Struct

from swecli.figures import dollars
from swecli.fleet.link import Ask, Spent

MINUTE = 60.0


class Caps(Struct, frozen=True):
    """None: no limit. ``price`` is US dollars of the run, ``tokens`` input and output tokens of the run."""

    tokens: int | None = None
    price: Decimal | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


class Allowance:
    """Counts what the run has spent. ``tokens`` and ``price`` are those of earlier parts of the run."""

    def __init__(
        self,
        caps: Caps,
        tokens: int = 0,
        price: Decimal = Decimal(0),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.caps = caps
        self.tokens = tokens
        self.price = price
        self.unpriced = False
        """Whether the price of a request is unknown, so that ``price`` is too low."""
        self._clock = clock
        self._recent: dict[str, deque[tuple[float, int]]] = {}
        """Time and tokens of the last minute's requests, by provider."""
        self._paused: dict[str, float] = {}
        """The time until which a provider wants no request."""

    @property
    def exhausted(self) -> str:
        """Why no further request may be sent; empty if one may."""
        caps = self.caps
        if caps.tokens is not None and self.tokens >= caps.tokens:
            return f"the run's budget of {caps.tokens:,} tokens is used up"
        if caps.price is not None and self.unpriced:
            return f"the price of a request is unknown, so the run's budget of {dollars(caps.price)} cannot be kept"
        if caps.price is not None and self.price >= caps.price:
            return f"the run's budget of {dollars(caps.price)} is used up"
        return ""

    def delay(self, ask: Ask) -> float:
        """Seconds until the request may be sent; 0 counts it as sent now."""
        now = self._clock()
        recent = self._recent.setdefault(ask.provider, deque())
        while recent and recent[0][0] <= now - MINUTE:
            recent.popleft()
        wait = max(self._paused.get(ask.provider, now) - now, self._full(recent, ask.tokens, now))
        if wait <= 0:
            recent.append((now, ask.tokens))
        return max(0.0, wait)

    def _full(self, recent: deque[tuple[float, int]], tokens: int, now: float) -> float:
        """Seconds until the minute has room. A request larger than a whole minute's tokens waits for an empty one."""
        caps, wait = self.caps, 0.0
        if caps.requests_per_minute is not None and len(recent) >= caps.requests_per_minute:
            wait = recent[len(recent) - caps.requests_per_minute][0] + MINUTE - now
        if caps.tokens_per_minute is not None:
            used = sum(size for _, size in recent)
            for at, size in recent:
                if used + tokens <= caps.tokens_per_minute:
                    break
                used -= size
                wait = max(wait, at + MINUTE - now)
        return wait

    def take(self, spent: Spent) -> None:
        """Count a request that has ended."""
        self.tokens += spent.tokens
        try:
            self.price += Decimal(spent.price) if spent.price is not None else Decimal(0)
        except InvalidOperation:
            self.unpriced = True
        self.unpriced |= spent.price is None
        if spent.pause > 0:
            until = self._clock() + spent.pause
            self._paused[spent.provider] = max(until, self._paused.get(spent.provider, until))


async def permission(allowance: Allowance, ask: Ask) -> str:
    """Why a request may not be sent; empty to send it, after waiting for the limits per minute."""
    while not (reason := allowance.exhausted):
        delay = allowance.delay(ask)
        if delay <= 0:
            return ""
        await asyncio.sleep(min(delay, 1.0))
    return reason
