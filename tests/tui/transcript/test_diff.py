"""Diffs: what they say is what changed."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.protocol.blocks import DiffBlock
from swecli.tui.transcript.diff import CONTEXT, changed_words, render_diff, text_diff
from swecli.tui.transcript.palette import DARK, SPLIT_FROM, with_preferences
from swecli.tui.transcript.rows import cells
from tests.support.thorough import examples

LINES = st.lists(st.sampled_from(["a", "b", "c", "def f():", "    x", "", "y = 1", "z"]), max_size=25)


@settings(max_examples=examples(80, 400), deadline=None)
@given(LINES, LINES)
def test_the_lines_lead_from_the_old_text_to_the_new_one(old: list[str], new: list[str]) -> None:
    before = "".join(f"{line}\n" for line in old)
    after = "".join(f"{line}\n" for line in new)
    diff = text_diff(before, after)
    left: list[str] = []
    right: list[str] = []
    for line in diff.lines:
        if line.sign == "~":
            assert left[-1:] != ["gap"]
            left += old[len(left) : len(left) + line.number]
            right += new[len(right) : len(right) + line.number]
            continue
        if line.sign in " -":
            assert old[len(left)] == line.text
            assert line.sign == " " or line.number == len(left) + 1
            left.append(line.text)
        if line.sign in " +":
            assert line.number == len(right) + 1
            right.append(line.text)
    if old == new:
        assert diff.lines == ()
    else:
        assert left == old
        assert right == new
    assert diff.added == sum(line.sign == "+" for line in diff.lines)
    assert diff.removed == sum(line.sign == "-" for line in diff.lines)


def test_context_is_three_lines() -> None:
    old = [f"line {n}" for n in range(40)]
    new = [*old[:20], "changed", *old[21:]]
    diff = text_diff("\n".join(old), "\n".join(new))
    assert [line.sign for line in diff.lines] == ["~", *" " * CONTEXT, "-", "+", *" " * CONTEXT, "~"]
    assert [line.number for line in diff.lines if line.sign == "~"] == [17, 16]


def test_a_large_text_without_anything_in_common_is_one_change() -> None:
    old = "x\n" * (2_000)
    new = "y\n" * (2_000)
    diff = text_diff(old, new)
    assert (diff.removed, diff.added) == (2_000, 2_000)


def test_words_that_changed_are_marked_in_both_lines() -> None:
    assert changed_words("return value + 33", "return value + 3") == [(15, 17)]
    assert changed_words("something else", "return value + 3") == []
    rows = render_diff(DiffBlock("a.txt", "return value + 3\n", "return value + 33\n"), 60, DARK, header=False)
    added = next(row for row in rows if "+ return" in row.text)
    assert [part.text for part in added.segments() if part.style and part.style.bold] == ["33"]


def test_added_and_removed_lines_colour_the_whole_row_and_have_a_sign() -> None:
    rows = render_diff(DiffBlock("a.py", "x = 1\n", "x = 2\n"), 60, DARK, header=False)
    assert [row.text[:3] for row in rows] == ["1 -", "1 +"]
    assert [row.fill for row in rows] == [DARK.removed, DARK.added]


def test_line_ends_that_all_changed_are_no_noise_but_a_mix_is_visible() -> None:
    assert [line.text for line in text_diff("a\r\nb\r\n", "a\r\nc\r\n").lines] == ["a", "b", "c"]
    mixed = render_diff(DiffBlock("a", "a\nb\n", "a\r\nb\n"), 60, DARK, header=False)
    assert any("a␍" in row.text for row in mixed)


def test_only_as_many_rows_as_asked_for_are_made() -> None:
    new = "".join(f"line {number}\n" for number in range(5_000))
    rows = render_diff(DiffBlock("a.py", None, new), 60, DARK, limit=12)
    assert len(rows) == 15
    assert rows[-1].text == "… 4,988 lines hidden, Ctrl+O shows all"


def test_rows_far_down_are_painted_without_reading_what_is_above() -> None:
    new = "".join(f"def f{number}(): pass\n" for number in range(3_000))
    row = render_diff(DiffBlock("a.py", None, new), 60, DARK)[-1]
    assert any(part.style is not None and part.style.color for part in row.segments())


def test_what_is_special_is_said() -> None:
    def head(block: DiffBlock) -> list[str]:
        return [row.text for row in render_diff(block, 60, DARK)[:2]]

    assert head(DiffBlock("a", None, "x\n")) == ["a  +1 -0", "new file"]
    assert head(DiffBlock("a", "x\n", None)) == ["a  +0 -1", "deleted file"]
    assert head(DiffBlock("a", None, None, "binary")) == ["a  +0 -0", "binary"]
    assert head(DiffBlock("a", "x", "x")) == ["a  +0 -0", "no difference in text"]
    assert head(DiffBlock("a", "x", "x\n"))[1] == "newline added at the end"


def beside(old: str, new: str, width: int = 100, limit: int | None = None) -> list[str]:
    block = DiffBlock("a.py", old, new)
    palette = with_preferences(DARK, "split", "Ctrl+O")
    return [row.text for row in render_diff(block, width, palette, header=False, limit=limit)]


def test_old_and_new_text_stand_side_by_side() -> None:
    assert beside("a\nb\nc\n", "a\nB\nb2\nc\n", 60) == [
        "1   a                        │1   a",
        "2 - b                        │2 + B",
        "                             │3 + b2",
        "3   c                        │4   c",
    ]


def test_the_colour_of_a_change_goes_on_to_the_end_of_its_column() -> None:
    rows = render_diff(
        DiffBlock("a.py", "a\nb\n", "a\nB\n"), 60, with_preferences(DARK, "split", "Ctrl+O"), header=False
    )
    assert [row.fill for row in rows] == [None, DARK.added]
    assert any(part.text.isspace() and part.style == DARK.removed for part in rows[1].segments())


def test_long_lines_wrap_in_their_column() -> None:
    rows = beside("x = " + "1" * 60 + "\n", "x = 2\n", 60)
    assert [row.partition("│")[0].rstrip() for row in rows] == [
        "1 - x = " + "1" * 20,
        "    " + "1" * 24,
        "    " + "1" * 16,
    ]
    assert rows[0].endswith("│1 + x = 2")
    assert rows[1].rstrip().endswith("│")


def test_width_decides_and_one_sided_changes_stay_whole() -> None:
    def has_rule(block: DiffBlock, width: int) -> bool:
        return any("│" in row.text for row in render_diff(block, width, DARK))

    change = DiffBlock("a.py", "a\n", "b\n")
    assert [has_rule(change, width) for width in (SPLIT_FROM - 1, SPLIT_FROM, 400)] == [False, True, True]
    assert not has_rule(DiffBlock("a.py", None, "b\n"), 400)
    assert not any("│" in row for row in beside("a\n", "b\n", 30))


def test_a_limit_counts_rows_and_names_what_is_hidden() -> None:
    old = "".join(f"old {n}\n" for n in range(100))
    new = "".join(f"new {n}\n" for n in range(100))
    rows = beside(old, new, limit=5)
    assert len(rows) == 6
    assert "190 lines hidden" in rows[-1]


@settings(max_examples=examples(40, 200), deadline=None)
@given(LINES, LINES, st.integers(53, 90))
def test_both_columns_together_are_the_change(old: list[str], new: list[str], width: int) -> None:
    block = DiffBlock("a.py", "".join(f"{line}\n" for line in old), "".join(f"{line}\n" for line in new))
    diff = text_diff(block.old or "", block.new or "")
    rows = render_diff(block, width, with_preferences(DARK, "split", "Ctrl+O"), header=False)
    signs = [row.text for row in rows if "│" in row.text]
    left = [text.partition("│")[0] for text in signs]
    right = [text.partition("│")[2] for text in signs]
    assert sum(" - " in f"{half} " for half in left) == diff.removed
    assert sum(" + " in f"{half} " for half in right) == diff.added
    for row in rows:
        assert "".join(part.text for part in row.segments()) == row.text
        assert cells(row.text) <= width


def test_changed_words_are_marked_on_both_sides() -> None:
    palette = with_preferences(DARK, "split", "Ctrl+O")
    block = DiffBlock("notes.txt", "take the red one\n", "take the blue one\n")
    (row,) = render_diff(block, 80, palette, header=False)
    marked = {part.text: part.style for part in row.segments() if part.text in ("red", "blue")}
    assert marked["red"] is not None
    assert marked["red"].bgcolor == palette.removed_word.bgcolor
    assert marked["blue"] is not None
    assert marked["blue"].bgcolor == palette.added_word.bgcolor
