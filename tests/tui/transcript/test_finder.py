"""Finding and copying: what is shown can be found, and what is copied can be pasted."""

from __future__ import annotations

import pytest

from swecli.core.protocol.blocks import DiffBlock
from swecli.safe_text import sanitise
from swecli.tui.transcript.block_rows import render_block
from swecli.tui.transcript.blocks import AnswerBlock, ToolBlock
from swecli.tui.transcript.finder import match_rows, matching_blocks, row_spans
from swecli.tui.transcript.markdown import markdown_rows
from swecli.tui.transcript.palette import DARK
from swecli.tui.transcript.plain import block_text, for_clipboard
from swecli.tui.transcript.rows import copied, plain_rows
from tests.tui.transcript.samples import blocks


@pytest.mark.parametrize("name", list(blocks()))
def test_words_that_a_block_shows_are_in_its_text(name: str) -> None:
    block = blocks()[name]
    shown = " ".join(row.body for row in render_block(block, 200, DARK, expanded=True))
    wanted = [
        word for word in ("login", "tests", "works", "budget", "refused", "said", "missing", "README") if word in shown
    ]
    assert all(matching_blocks([block], word.upper()) == [0] for word in wanted)


def test_a_match_over_two_rows_is_found_where_it_begins() -> None:
    rows = plain_rows(sanitise("one two three\nTWO three four"), 7)
    assert [row.text for row in rows] == ["one two", "three", "TWO", "three", "four"]
    assert match_rows(rows, "two three") == [0, 2]
    assert match_rows(rows, "three") == [1, 3]
    assert match_rows(rows, "") == []


def test_spans_are_in_characters_of_the_body() -> None:
    (row,) = plain_rows(sanitise("aXbxAx"), 40)
    assert list(row_spans(row, "x")) == [(1, 2), (3, 4), (5, 6)]
    assert list(row_spans(row, "ax")) == [(0, 2), (4, 6)]


def test_unchanged_lines_that_a_diff_does_not_show_do_not_match() -> None:
    old = "hidden\n" * 20 + "x = 1\n"
    block = ToolBlock(
        "t", "edit_file", "a.py", "ok", blocks=(DiffBlock("a.py", "needle\n" + old, "needle\n" + old + "y\n"),)
    )
    assert matching_blocks([block], "needle") == []
    assert matching_blocks([block], "hidden") == [0]
    assert matching_blocks([block, AnswerBlock("a", "needle", "ok")], "Needle") == [1]


def test_a_copy_keeps_tabs_and_loses_what_acts_on_a_terminal() -> None:
    assert for_clipboard("a\tb\n\x1b[201~rm\r") == "a\tb\n␛[201~rm␍"
    assert "\x1b" not in for_clipboard(block_text(ToolBlock("t", "run_command", "x", "ok", result="\x1b[31mred")))


LIST = """1. first words that are wrapped here
   - nested

     ```python
     def f():
         return 1
     ```
2. second
"""


def selected(first: str, last: str, *, from_start: bool = True) -> str:
    """The copy of the rows from one that contains ``first`` to one that contains ``last``."""
    rows = markdown_rows(LIST, 24, DARK)
    begin = next(number for number, row in enumerate(rows) if first in row.text)
    end = next(number for number, row in enumerate(rows) if last in row.text)
    return copied([(row, row.body, from_start or number > begin) for number, row in enumerate(rows)][begin : end + 1])


def test_a_copy_of_a_list_keeps_its_marks() -> None:
    whole = selected("first", "second")
    assert whole.splitlines() == [
        "1. first words that are wrapped here",
        "   - nested",
        "",
        "     def f():",
        "         return 1",
        "2. second",
    ]
    assert selected("nested", "return").splitlines() == ["- nested", "", "  def f():", "      return 1"]


def test_a_copy_that_begins_with_the_rest_of_a_wrapped_line_is_not_indented() -> None:
    assert selected("wrapped here", "nested").splitlines() == ["wrapped here", "- nested"]


def test_a_copy_of_code_in_a_list_begins_at_the_margin() -> None:
    assert selected("def", "return") == "def f():\n    return 1"


def test_a_copy_of_a_single_line_is_its_text() -> None:
    assert selected("first", "wrapped") == "first words that are wrapped here"


def test_a_copy_from_within_a_line_begins_with_its_text() -> None:
    assert selected("nested", "second", from_start=False).splitlines()[0] == "nested"
