"""Wrapping keeps every character and every width."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len, get_character_cell_size

from swecli.safe_text import SafeText, sanitise
from swecli.tui.transcript.rows import Styled, cells, closed_up, cut, hanging, is_single, label_width, plain_rows, wrap

TEXTS = st.text("ab  cde日本👍e\u0301é…-─", max_size=60).map(sanitise)


@given(TEXTS, st.integers(1, 20), st.booleans())
def test_pieces_and_joins_give_the_text_back(text: SafeText, width: int, words: bool) -> None:
    pieces = wrap(text, width, words=words)
    back = "".join((piece.join or "") + text[piece.start : piece.end] for piece in pieces)
    assert back == text or (words and back == text.rstrip(" "))
    for piece in pieces:
        assert cell_len(text[piece.start : piece.end]) <= max(width, 2)
    assert pieces[0].join is None
    assert all(piece.join is not None for piece in pieces[1:])


@given(TEXTS, st.integers(0, 20), st.sampled_from(["start", "end"]))
def test_a_cut_text_fits(text: SafeText, width: int, keep: str) -> None:
    shown = cut(text, width, "start" if keep == "start" else "end")
    assert cells(shown) <= width
    assert shown == text or width == 0 or "…" in shown


@pytest.mark.parametrize(
    ("text", "width", "rows"),
    [
        ("the quick brown fox", 10, ["the quick", "brown fox"]),
        ("the quick", 9, ["the quick"]),
        ("a verylongwordindeed b", 8, ["a", "verylong", "wordinde", "ed b"]),
        ("    indented text here", 12, ["    indented", "text here"]),
        ("日本語のテキスト", 6, ["日本語", "のテキ", "スト"]),
        ("見 x 日本", 5, ["見 x", "日本"]),
        ("x    y", 3, ["x", "y"]),
        ("", 5, [""]),
        ("👨‍👩‍👧👨‍👩‍👧", 2, ["👨‍👩‍👧", "👨‍👩‍👧"]),
    ],
)
def test_rows(text: str, width: int, rows: list[str]) -> None:
    assert [row.text for row in plain_rows(sanitise(text), width)] == rows


def test_characters_taken_for_single_cells_are_that() -> None:
    wrong = [code for code in range(0x11000) if is_single(chr(code)) and get_character_cell_size(chr(code)) != 1]
    assert wrong == []


@given(st.lists(TEXTS, max_size=8), st.integers(1, 12))
def test_styles_never_split_a_grapheme(parts: list[SafeText], width: int) -> None:
    line = Styled()
    for part in parts:
        line.add(part)
    for row in line.rows(width):
        segments = row.segments()
        assert "".join(part.text for part in segments) == row.body
        assert sum(cell_len(part.text) for part in segments) == cell_len(row.body)


def test_a_value_goes_on_below_where_it_began() -> None:
    line = Styled(SafeText("Sandbox  full, as far as can be told"))
    column = label_width(line.text, 24)
    rows = ["".join(segment.text for segment in row.segments()) for row in hanging(line, 24, column)]
    assert rows == ["Sandbox  full, as far as", "         can be told"]
    assert [row.join for row in hanging(line, 24, column)] == [None, " "]


def test_a_value_moves_to_its_label_where_the_line_is_too_wide() -> None:
    line = SafeText("  Input tokens                     40,362")
    assert closed_up(line, 42) == line
    assert closed_up(line, 30) == "  Input tokens  40,362"
    assert closed_up(line, 20) == line


@pytest.mark.parametrize(
    "text", ["no label here", "A long label that takes more than half  x", "日本  x", "  indented"]
)
def test_a_text_without_a_label_hangs_nowhere(text: str) -> None:
    assert label_width(text, 40) == 0
