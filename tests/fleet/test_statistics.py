"""The statistics of a report, against known values."""

from __future__ import annotations

import pytest

from swecli.fleet.statistics import histogram, interval, median, paired


@pytest.mark.parametrize(
    ("passed", "total", "low", "high"),
    [(0, 0, 0.0, 1.0), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (7, 10, 0.3968, 0.8922), (50, 100, 0.4038, 0.5962)],
)
def test_wilsons_interval(passed: int, total: int, low: float, high: float) -> None:
    assert interval(passed, total) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("gained", "lost", "chance"), [(0, 0, 1.0), (1, 1, 1.0), (5, 0, 0.0625), (6, 0, 0.03125), (1, 9, 22 / 1024)]
)
def test_mcnemars_exact_test(gained: int, lost: int, chance: float) -> None:
    assert paired(gained, lost) == pytest.approx(chance)


def test_a_histogram_counts_every_value_once() -> None:
    assert histogram([]) is None
    alike = histogram([2.0, 2.0])
    assert alike is not None
    assert alike.counts == (2,)
    found = histogram([0.0, 0.1, 5.0, 10.0], bins=10)
    assert found is not None
    assert (sum(found.counts), found.counts[0], found.counts[-1]) == (4, 2, 1)


def test_a_median() -> None:
    assert (median([]), median([3.0]), median([1.0, 9.0, 2.0]), median([1.0, 2.0])) == (None, 3.0, 2.0, 1.5)
