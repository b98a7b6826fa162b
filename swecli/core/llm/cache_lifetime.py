"""Which lifetime of the prompt cache a conversation asks for: the user's, or the one that costs less with the pauses
that this user makes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from swecli.core.llm.catalog import Rates

SECONDS: Mapping[str, float] = {"5m": 300.0, "30m": 1_800.0, "1h": 3_600.0, "12h": 43_200.0}
"""Lifetimes that providers offer."""
FRESH = Decimal("0.2")
"""Share of the prompt that a turn adds, on the average: it is written to the cache whatever the lifetime."""
LEAST_PAUSES = 10
"""With fewer known pauses nothing is certain, and the provider's default counts."""
_LONG_WRITE = Decimal(2)
"""Rate of a long-lived write, in units of the input rate, if the catalogue has none (Anthropic's for an hour)."""


def lifetime(wanted: str, selectable: Sequence[str]) -> str:
    """The selectable lifetime for a wish such as "1h": itself, else the next longer one, else the longest; empty if
    none is selectable."""
    if not selectable or wanted in selectable:
        return wanted if wanted in selectable else ""
    least = SECONDS[wanted]
    return next((name for name in selectable if SECONDS.get(name, 0.0) >= least), selectable[-1])


def cheapest(selectable: Sequence[str], pauses: Sequence[float], rates: Rates | None) -> str:
    """The lifetime that costs least over ``pauses`` (seconds between turns); the default one if too little is known.

    A turn writes what it adds. After a pause it reads the rest of the prompt from the cache, or writes it again if the
    cache has expired.
    """
    if not selectable or len(pauses) < LEAST_PAUSES or rates is None or rates.cache_read is None:
        return selectable[0] if selectable else ""
    costs = {name: _cost(name, name == selectable[0], pauses, rates) for name in selectable if name in SECONDS}
    return min(costs, key=lambda name: costs[name], default=selectable[0])


def _cost(name: str, usual: bool, pauses: Sequence[float], rates: Rates) -> Decimal:
    """Cost of the turns after these pauses, in units of one prompt times a rate."""
    assert rates.cache_read is not None
    write = rates.input if rates.cache_write is None else rates.cache_write
    if not usual:
        write = rates.cache_write_1h if rates.cache_write_1h is not None else _LONG_WRITE * rates.input
    expired = sum(pause > SECONDS[name] for pause in pauses)
    return FRESH * len(pauses) * write + expired * write + (len(pauses) - expired) * rates.cache_read
