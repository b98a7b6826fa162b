"""The status bar's text: what it says, and what gives way when it is narrow."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len

from swecli.core.protocol.budget import Budget, ContextLevel
from swecli.core.protocol.events import Mode, SandboxChanged
from swecli.safe_text import safe_line
from swecli.tui.status_bar import STARTING, Facts, Piece, line


def budget(share: float = 0.45, level: ContextLevel = "ok", source: str = "measured") -> Budget:
    used = int(120_000 * share)
    return Budget((), used, used, 120_000, 128_000, 8_000, level, source)  # type: ignore[arg-type]


FULL = Facts("default", "anthropic/sonnet-5", budget(), 0.93, Decimal("0.42"), "main*")


def text(facts: Facts, width: int) -> str:
    return "".join(piece.text for piece in line(facts, width))


def test_everything_at_full_width() -> None:
    whole = "default · sonnet-5 · context ▕███▋    ▏ 45% of 120K · 93% cached · $0.42 · main*"
    assert text(FULL, 90) == whole


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (78, "default · sonnet-5 · context ▕███▋    ▏ 45% of 120K · $0.42 · main*"),
        (62, "default · sonnet-5 · ▕███▋    ▏ 45% of 120K · $0.42 · main*"),
        (56, "default · sonnet-5 · ▕███▋    ▏ 45% · $0.42 · main*"),
        (48, "default · sonnet-5 · ▕███▋    ▏ 45% · $0.42"),
        (40, "default · sonnet-5 · ▕███▋    ▏ 45%"),
        (30, "default · ▕███▋    ▏ 45%"),
        (20, "▕███▋    ▏ 45%"),
        (8, "45%"),
        (1, ""),
    ],
)
def test_words_give_way_before_the_meter(width: int, expected: str) -> None:
    assert text(FULL, width) == expected


def test_an_estimate_is_marked_and_the_unknown_left_out() -> None:
    assert "~45%" in text(Facts("plan", "m", budget(source="estimated")), 80)
    assert text(Facts("plan", "m", budget(source="unknown")), 80) == "plan · m"
    assert text(Facts("plan", None), 80) == "plan · no model"
    assert text(Facts("plan", STARTING, branch="main"), 80) == "plan · main"


@pytest.mark.parametrize(("level", "word"), [("warn", "filling up"), ("compact", "nearly full"), ("block", "full")])
def test_levels_are_readable_without_colour(level: ContextLevel, word: str) -> None:
    pieces = line(Facts("default", "m", budget(0.97, level)), 80)
    assert f"% of 120K {word}" in "".join(piece.text for piece in pieces)
    assert any(piece.tone == level for piece in pieces)


@settings(deadline=None)
@given(st.integers(0, 200), st.floats(0, 2), st.text(max_size=60))
def test_it_never_is_wider_than_the_screen(width: int, share: float, model: str) -> None:
    assert cell_len(safe_line(text(Facts("accept-edits", model, budget(share)), width))) <= width


@pytest.mark.parametrize("width", [58, 78, 98])
def test_a_long_name_gives_way_before_the_figures(width: int) -> None:
    model = "eu.anthropic.claude-sonnet-5-20260929-thinking-v1:0"
    bar = text(replace(FULL, model=model, branch="feature/4711-an-endlessly-long-name-of-a-branch*"), width)
    assert "45%" in bar
    assert "eu.ant" in bar
    assert "1:0" in bar
    assert ("$0.42" in bar) == (width > 60)


def contained(level: Literal["off", "partial", "full"], label: str, mode: Mode = "auto") -> Facts:
    return Facts(mode, "m", budget(), sandbox=SandboxChanged(level, "bwrap", label=label))


def test_auto_is_named_after_what_it_does_and_the_sandbox_is_not_repeated() -> None:
    assert text(contained("full", "bwrap"), 80).startswith("auto · m · ")
    assert text(contained("off", "off"), 80).startswith("auto (edits only) · m · ")
    assert text(contained("partial", "landlock, partial"), 80).startswith("auto (edits only) · m · ")
    held = SandboxChanged("partial", "landlock", label="landlock", contains=True)
    assert text(Facts("auto", "m", budget(), sandbox=held), 80).startswith("auto · m · ")
    assert text(contained("off", "off", "default"), 80).startswith("default · m · ")


def test_the_name_of_the_mode_gives_way_late() -> None:
    assert "auto (edits only)" in text(contained("off", "off"), 46)
    assert len(text(contained("partial", "landlock, partial"), 20)) <= 20


def test_yolo_is_named_but_for_plan_mode_which_changes_nothing_even_then() -> None:
    assert line(Facts("accept-edits", "m", budget(), yolo=True), 80)[0] == Piece("yolo", "block")
    assert text(Facts("plan", "m", budget(), yolo=True), 80).startswith("plan · m · ")


def test_from_100_columns_on_the_bar_shows_the_used_tokens() -> None:
    bar = text(FULL, 98)
    assert "45% · 54K/120K" in bar
    assert "of 120K" not in bar
    assert "93% cached" in bar
    assert "of 120K" in text(FULL, 78)
    crowded = replace(FULL, branch="a-branch-with-quite-a-long-name-of-its-own")
    assert "of 120K" in text(crowded, 98)


@pytest.mark.parametrize(("width", "meter"), [(78, "of 120K (assumed)"), (98, "54K/120K (assumed)")])
def test_the_meter_says_that_its_window_is_assumed(width: int, meter: str) -> None:
    assumed = replace(budget(), window_source="assumed")
    assert meter in text(Facts("default", "m", assumed), width)
