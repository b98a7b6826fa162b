"""The forecast of the next request in words, and when they change by themselves."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from swecli.figures import dollars, tokens

if TYPE_CHECKING:
    from swecli.core.context_management.forecast import Forecast

SEPARATOR = " · "
FEW_TURNS = 20
"""Further away, a compaction is nothing to think of."""
COUNTDOWN = 60.0
"""Seconds before the cache is cold from which on they are counted down."""


def forecast_words(forecast: Forecast, width: int) -> str:
    """As much of it as fits into ``width`` cells, in one line; what matters least goes first."""
    size = f"next ~{tokens(forecast.tokens)}"
    cached = f" ({tokens(forecast.cached)} cached)" if forecast.cached else ""
    cost = "" if forecast.cost is None else cost_range(*forecast.cost)
    turns, cold = _turns(forecast.turns_left), _cold(forecast)
    candidates = (
        (size + cached, cost, turns, cold),
        (size + cached, cost, cold),
        (size, cost, cold),
        (size, cold or cost),
        (size,),
    )
    lines = (SEPARATOR.join(filter(None, parts)) for parts in candidates)
    return next((line for line in lines if len(line) <= width), "")


def cost_range(low: Decimal, high: Decimal) -> str:
    """Two costs with one sign; one of them where both look the same."""
    if high == 0:
        return "free"
    first, last = dollars(low), dollars(high)
    return first if first == last else f"{first}-{last.removeprefix('$')}"


def _turns(left: int | None) -> str:
    if left is None or left > FEW_TURNS:
        return ""
    return "compaction now due" if left == 0 else f"compaction in ~{left} turn{'s' if left > 1 else ''}"


def _cold(forecast: Forecast) -> str:
    left = forecast.cold_in
    if left is None or left > COUNTDOWN:
        return ""
    seconds = -int(-left // 1)
    return f"cache cold in {seconds // 60}:{seconds % 60:02d}" if seconds else "cache cold"


def next_change(forecast: Forecast) -> float | None:
    """Seconds after which the words are others although nothing happened; None where they stay."""
    left = forecast.cold_in
    if not left:
        return None
    return left - COUNTDOWN if left > COUNTDOWN else left % 1.0 or 1.0
