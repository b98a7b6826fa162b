"""Durations, token counts, shares and bars as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.figures import bar, cut, cut_line, duration, narrowed_bars, percent, plural, tokens


def test_durations_are_as_exact_as_anybody_needs() -> None:
    shown = [duration(seconds) for seconds in (-1, 0, 0.4, 0.97, 2.04, 24.4, 59.6, 140, 165, 3600, 7320)]
    assert shown == [
        *("0 s", "0 s", "0.4 s", "1 s", "2 s", "24 s", "1m00s", "2m20s", "2m45s", "1h00m", "2h02m"),
    ]


def test_token_counts() -> None:
    counts = (0, 999, 5_400, 9_990, 54_321, 999_900, 1_234_567)
    assert [tokens(n) for n in counts] == ["0", "999", "5.4K", "10K", "54K", "1.0M", "1.2M"]


def test_a_hundred_percent_only_when_it_is_reached() -> None:
    assert (percent(0.996), percent(1.0), percent(1.204)) == ("99%", "100%", "120%")


@pytest.mark.parametrize(
    ("share", "drawn"),
    [
        (0, "▕        ▏"),
        (0.001, "▕▎       ▏"),
        (0.45, "▕███▋    ▏"),
        (0.5, "▕████    ▏"),
        (0.999, "▕███████▉▏"),
        (1, "▕████████▏"),
        (3, "▕████████▏"),
    ],
)
def test_bars(share: float, drawn: str) -> None:
    assert bar(share, 8) == drawn


@settings(deadline=None)
@given(st.floats(-1, 3), st.floats(-1, 3), st.integers(-2, 60))
def test_a_bar_has_its_width_and_grows_with_its_share(one: float, other: float, cells: int) -> None:
    order = " ▎▍▌▋▊▉█"
    small, large = (bar(share, cells) for share in sorted((one, other)))
    assert len(small) == len(large) == max(1, cells) + 2
    assert [order.index(sign) for sign in small[1:-1]] <= [order.index(sign) for sign in large[1:-1]]


def test_bars_of_a_text_fit_a_narrow_window() -> None:
    line = f"{bar(0.5, 40)} used"
    assert narrowed_bars(line, 60) == line
    assert narrowed_bars(line, 27) == f"{bar(0.5, 20)} used"
    assert narrowed_bars("  free   98,760  96%  ███████▍", 20) == "  free   98,760  96%"
    assert narrowed_bars("a line without a bar", 9) == "a line without a bar"


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (1, "line", "1 line"),
        (0, "line", "0 lines"),
        (1_200, "line", "1,200 lines"),
        (2, "match", "2 matches"),
        (3, "miss", "3 misses"),
        (1, "entry", "1 entry"),
        (2, "entry", "2 entries"),
        (2, "key", "2 keys"),
    ],
)
def test_a_count_with_its_noun(count: int, noun: str, text: str) -> None:
    assert plural(count, noun) == text


def test_a_long_text_ends_with_an_ellipsis() -> None:
    assert [cut("abcd", most) for most in (4, 3, 1)] == ["abcd", "ab…", "…"]
    assert cut("ab cde", 4) == "ab…"
    assert cut_line("one\n  two\n", 7) == "one two"
    assert cut_line("one\n  two\n", 6) == "one t…"
