"""The index of heights agrees with a plain list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from swecli.tui.transcript.page import Anchor, HeightIndex

STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "set", "remove", "ask"]), st.integers(0, 30), st.integers(0, 5)), max_size=60
)


@given(STEPS)
def test_any_history(steps: list[tuple[str, int, int]]) -> None:
    index = HeightIndex()
    heights: list[int] = []
    for name, place, height in steps:
        if name == "append":
            index.append(height)
            heights.append(height)
        elif heights and name == "set":
            place %= len(heights)
            assert index.set(place, height) == height - heights[place]
            heights[place] = height
            assert index.is_exact(place)
        elif heights and name == "remove":
            place %= len(heights)
            assert index.remove(place) == heights.pop(place)
        assert index.total == sum(heights)
        assert [index.top(n) for n in range(len(heights))] == [sum(heights[:n]) for n in range(len(heights))]
    lines = [Anchor(block, line) for block, height in enumerate(heights) for line in range(height)]
    assert [index.at(line) for line in range(len(lines))] == lines
    assert [index.line(anchor) for anchor in lines] == list(range(len(lines)))


def test_behind_the_end_is_the_end_of_the_last_block() -> None:
    index = HeightIndex()
    assert index.at(7) == Anchor(0, 0)
    index.append(3)
    assert index.at(99) == Anchor(0, 3)
    assert index.at(-5) == Anchor(0, 0)


def test_changing_the_last_block_sums_nothing_up_again() -> None:
    index = HeightIndex()
    index.reset([1] * 10_000)
    assert index.total == 10_000
    index.set(9_999, 5)
    assert index.total == 10_004
    index.reset([2] * 10)
    assert not index.is_exact(0)
    index.set(0, 2)
    assert index.is_exact(0)
    assert not index.is_exact(1)
