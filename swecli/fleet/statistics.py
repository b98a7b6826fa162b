"""The statistics of a report: the interval of a pass rate, and whether two runs of the same tasks differ."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from msgspec import Struct

Z = 1.959963984540054
"""Of a two-sided interval of 95 %."""


def interval(passed: int, total: int) -> tuple[float, float]:
    """Wilson's interval of 95 % for a rate (E. B. Wilson, 1927), 0..1; all of it without an observation."""
    if total == 0:
        return 0.0, 1.0
    rate, spread = passed / total, Z * Z / total
    centre = (rate + spread / 2) / (1 + spread)
    half = Z * math.sqrt(rate * (1 - rate) / total + spread / total / 4) / (1 + spread)
    return max(0.0, centre - half), min(1.0, centre + half)


def paired(gained: int, lost: int) -> float:
    """The two-sided exact probability of McNemar's test: how often chance alone moves the tasks that changed at least
    as unevenly. ``gained`` passed only in the second run, ``lost`` only in the first."""
    changed, fewer = gained + lost, min(gained, lost)
    if changed == 0:
        return 1.0
    tail = sum(math.comb(changed, count) for count in range(fewer + 1))
    return min(1.0, 2 * tail / 2**changed)


class Histogram(Struct, frozen=True):
    """``counts`` of values in bins of equal width from ``low`` to ``high``."""

    low: float
    high: float
    counts: tuple[int, ...]


def histogram(values: Sequence[float], bins: int = 20) -> Histogram | None:
    """None without values. Values that are all alike are one bin."""
    if not values:
        return None
    low, high = min(values), max(values)
    if low == high:
        return Histogram(low, high, (len(values),))
    counts = [0] * bins
    for value in values:
        counts[min(bins - 1, int((value - low) / (high - low) * bins))] += 1
    return Histogram(low, high, tuple(counts))


def median(values: Sequence[float]) -> float | None:
    """None without values."""
    return statistics.median(values) if values else None
