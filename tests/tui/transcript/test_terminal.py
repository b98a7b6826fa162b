"""Output of commands: colours, progress bars, everything else as text."""

from __future__ import annotations

import pytest
from rich.style import Style

from swecli.core.protocol.blocks import TerminalBlock
from swecli.tui.transcript.palette import DARK
from swecli.tui.transcript.tool_rows import MAX_LINE, output_lines, output_rows, render_terminal


def styles(output: str) -> list[tuple[str, str]]:
    return [(part.text, str(part.style)) for line in output_lines(output, DARK) for part in line.segments()]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("\x1b[31mred\x1b[0m plain", [("red", "color(1)"), (" plain", "none")]),
        ("\x1b[1;4mx\x1b[22my\x1b[24mz", [("x", "bold underline"), ("y", "not bold not dim underline")]),
        ("\x1b[38;5;208mx", [("x", "color(208)")]),
        ("\x1b[38;2;1;2;3;48;5;4mx", [("x", "#010203 on color(4)")]),
        ("\x1b[38:2:1:2:203mx", [("x", "#0102cb")]),
        ("\x1b[30;40mhidden", [("hidden", "none")]),
        ("\x1b[1;38;2;9;9;9;48;2;12;12;12mhidden\x1b[0mx", [("hidden", "bold"), ("x", "none")]),
        ("\x1b[38;2;20;22;28mhidden", [("hidden", "none")]),
        ("\x1b[48;2;230;230;230mhidden", [("hidden", "none")]),
        ("\x1b[8mhidden", [("hidden", "none")]),
        ("\x1b[91;102mx\x1b[39;49my", [("x", "color(9) on color(10)"), ("y", "default on default")]),
        ("\x1b[31ma\nb\x1b[mc", [("a", "color(1)"), ("b", "color(1)"), ("c", "none")]),
        ("\x1b[38;5mx\x1b[;31my", [("x", "none"), ("y", "color(1)")]),
    ],
)
def test_colours(output: str, expected: list[tuple[str, str]]) -> None:
    assert styles(output)[: len(expected)] == expected


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("10%\r50%\r100%\n", ["100%"]),
        ("10%\r100%\r\n", ["100%"]),
        ("busy\r\x1b[K", ["busy"]),
        ("\x1b[32m10%\r100%\x1b[0m", ["100%"]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("a\x1b[2Kb\x1b[1Ac\x1b[?25ld", ["abcd"]),
        ("Xx\bY\b\b\b\bZ", ["ZY [overwritten: Xx | XY]"]),
        ("a\tb", ["a   b"]),
        ("\n\nx\n\n", ["", "", "x", ""]),
        ("", []),
    ],
)
def test_lines(output: str, shown: list[str]) -> None:
    assert [line.text for line in output_lines(output, DARK)] == shown


def test_colours_set_before_a_carriage_return_stay_in_force() -> None:
    assert styles("\x1b[32m1\r2") == [("2", "color(2)")]
    assert styles("\x1b[32mold\rnew") == [("new [overwritten: old]", "color(2)")]


def test_a_very_long_line_is_cut_and_counted_and_its_colours_go_on() -> None:
    rows = output_lines("\x1b[31m" + "x" * (MAX_LINE + 5) + "\x1b[32m\ny", DARK)
    assert "more characters" in rows[0].text
    assert rows[1].segments()[0].style == Style.parse("color(2)")


def test_how_it_ended_is_said_in_words() -> None:
    rows = render_terminal(TerminalBlock("false", "", 1, duration=0.5), 40, DARK)
    assert [row.text for row in rows] == ["$ false", "exit 1 · 0.5 s"]


def test_rows_say_how_they_were_wrapped() -> None:
    rows = output_rows("abcdef", 4, DARK)
    assert [(row.text, row.join) for row in rows] == [("abcd", None), ("ef", "")]
