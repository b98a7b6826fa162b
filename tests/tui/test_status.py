"""The status bar's text: what it says, and what gives way when it is narrow."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.protocol.budget import Budget, ContextLevel
from swecli.core.protocol.events import Mode, SandboxChanged
from swecli.tui.status_bar import Facts, line, money, percent, tokens


def budget(share: float = 0.45, level: ContextLevel = "ok", source: str = "measured") -> Budget:
    used = int(120_000 * share)
    return Budget((), used, used, 120_000, 128_000, 8_000, level, source)  # type: ignore[arg-type]


FULL = Facts("default", "anthropic/sonnet-5", budget(), 0.93, Decimal("0.42"), "main*")


def text(facts: Facts, width: int) -> str:
    return "".join(piece.text for piece in line(facts, width))


def test_everything_at_full_width() -> None:
    assert text(FULL, 80) == "default · sonnet-5 · ctx ▓▓▓▓░░░░ 45% 54K/120K · cache 93% · $0.42 · main*"


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (70, "default · sonnet-5 · ctx 45% 54K/120K · cache 93% · $0.42 · main*"),
        (60, "default · sonnet-5 · ctx 45% 54K/120K · cache 93% · $0.42"),
        (40, "default · sonnet-5 · ctx 45% · $0.42"),
        (30, "default · sonnet-5 · ctx 45%"),
        (20, "default · ctx 45%"),
        (8, "ctx 45%"),
        (3, "45%"),
        (1, ""),
    ],
)
def test_narrow_forms(width: int, expected: str) -> None:
    assert text(FULL, width) == expected


def test_an_estimate_and_the_unknown_are_marked() -> None:
    assert "~45%" in text(Facts("plan", "m", budget(source="estimated")), 80)
    assert text(Facts("plan", "m", budget(source="unknown")), 80) == "plan · m · ctx ? · $?"
    assert text(Facts("plan", None), 80) == "plan · no model · ctx ? · $?"


@pytest.mark.parametrize(("level", "word"), [("warn", "high"), ("compact", "nearly full"), ("block", "FULL")])
def test_levels_are_readable_without_colour(level: ContextLevel, word: str) -> None:
    pieces = line(Facts("default", "m", budget(0.97, level)), 80)
    assert word in "".join(piece.text for piece in pieces)
    assert any(piece.tone == level for piece in pieces)


def test_a_hundred_percent_only_when_it_is_reached() -> None:
    assert (percent(0.996), percent(1.0), percent(1.204)) == ("99%", "100%", "120%")
    assert "▓▓▓▓▓▓▓░" in text(Facts("default", "m", budget(0.999)), 80)
    assert "▓░░░░░░░" in text(Facts("default", "m", budget(0.001)), 80)


def test_numbers() -> None:
    assert [tokens(n) for n in (0, 999, 5_400, 9_990, 54_321, 999_900, 1_234_567)] == [
        "0",
        "999",
        "5.4K",
        "10K",
        "54K",
        "1.0M",
        "1.2M",
    ]
    assert [money(cost) for cost in (None, Decimal(0), Decimal("0.0042"), Decimal("1.005"))] == [
        "$?",
        "$0.00",
        "$0.0042",
        "$1.00",
    ]


@settings(deadline=None)
@given(st.integers(0, 200), st.floats(0, 2), st.text(max_size=60))
def test_it_never_is_wider_than_the_screen(width: int, share: float, model: str) -> None:
    assert len(text(Facts("accept-edits", model, budget(share)), width)) <= width


def contained(level: Literal["off", "partial", "full"], label: str, mode: Mode = "auto") -> Facts:
    return Facts(mode, "m", budget(), sandbox=SandboxChanged(level, "bwrap", label=label))


def test_the_sandbox_is_shown_and_auto_is_named_after_what_it_does() -> None:
    assert "auto · sandbox bwrap · m" in text(contained("full", "bwrap"), 80)
    assert "auto (edits only) · sandbox off · m" in text(contained("off", "off"), 80)
    assert "auto (edits only) · sandbox landlock, partial" in text(contained("partial", "landlock, partial"), 80)
    held = SandboxChanged("partial", "landlock", label="landlock", contains=True)
    assert "auto · sandbox landlock · m" in text(Facts("auto", "m", budget(), sandbox=held), 80)
    assert "default · sandbox off · m" in text(contained("off", "off", "default"), 80)
    assert "sandbox" not in text(Facts("auto", "m", budget()), 80)


def test_a_missing_sandbox_gives_way_last_in_auto_mode() -> None:
    assert "auto (edits only) · sandbox off" in text(contained("off", "off"), 46)
    assert "sandbox" not in text(contained("full", "bwrap"), 46)
    assert len(text(contained("partial", "landlock, partial"), 20)) <= 20
