"""The forecast of the next request above the prompt."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from swecli.figures import dollars, tokens

if TYPE_CHECKING:
    from swecli.core.context_management.forecast import Forecast

SEPARATOR = " · "
FEW_TURNS = 20
"""Turns until a compaction above which it is not mentioned."""
COUNTDOWN = 60.0
"""Seconds before the cache expires at which a countdown starts."""


def forecast_words(forecast: Forecast, width: int) -> str:
    """Forecast in one line of at most ``width`` cells; the least important parts are dropped first."""
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
    """Range of two costs with one sign; a single cost if both look the same."""
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
    """Seconds until the text changes without any event; None if it does not."""
    left = forecast.cold_in
    if not left:
        return None
    return left - COUNTDOWN if left > COUNTDOWN else left % 1.0 or 1.0
