"""How far two words are apart, and which one was meant."""

from __future__ import annotations

import pytest

from swecli.core.edit_distance import edit_distance, nearest


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [("", "", 0), ("diff", "diff", 0), ("dif", "diff", 1), ("idff", "diff", 1), ("dixf", "diff", 1), ("a", "abc", 2)],
)
def test_distance_counts_slips(one: str, other: str, distance: int) -> None:
    assert edit_distance(one, other, 3) == distance
    assert edit_distance(other, one, 3) == distance


def test_it_stops_counting() -> None:
    assert edit_distance("kitten", "parliament", 2) == 3
    assert edit_distance("abcdef", "uvwxyz", 2) == 3


def test_the_nearest_is_a_slip_and_nothing_wilder() -> None:
    words = ("compact", "context", "copy", "diff", "redo", "undo")
    assert nearest("contxt", words) == "context"
    assert nearest("ndo", words) == "undo"
    assert nearest("export", words) == ""
    assert nearest("co", words) == ""
    assert nearest("", words) == ""
