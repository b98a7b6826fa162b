"""Markdown by its parts: text, styles, and code that is read when it is seen."""

from __future__ import annotations

import pytest
from rich.style import Style

from swecli.safe_text import SafeText
from swecli.tui.transcript import code as code_module
from swecli.tui.transcript.code import MAX_AHEAD, CodeLines
from swecli.tui.transcript.markdown import LARGE, MAX_NESTING, MarkdownStream, markdown_rows
from swecli.tui.transcript.palette import DARK
from swecli.tui.transcript.rows import cells


def texts(source: str, width: int = 40) -> list[str]:
    return [row.text for row in markdown_rows(source, width, DARK)]


def styled(source: str) -> dict[str, Style]:
    rows = markdown_rows(source, 60, DARK)
    return {part.text: part.style or Style() for row in rows for part in row.segments()}


@pytest.mark.parametrize(
    ("source", "rows"),
    [
        ("one\ntwo", ["one", "two"]),
        ("one\n\n\n\ntwo", ["one", "", "two"]),
        ("- a\n- b\n\n- c", ["• a", "• b", "• c"]),
        ("- a\n  - b\n    - c\n      - d", ["• a", "  ◦ b", "    ▪ c", "      ▪ d"]),
        ("9. a\n10. b\n    more", ["9. a", "10. b", "    more"]),
        ("3) a\n\n   b", ["3) a", "   ", "   b"]),
        ("- ", ["• "]),
        ("- [ ] a\n- [x] b", ["• ☐ a", "• ☑ b"]),
        ("> a\n> - b", ["▎ a", "▎ ", "▎ • b"]),
        ("```\na\n\n\tb\n```", ["  a", "  ", "      b"]),
        ("```py\nopen", ["  open"]),
        ("a[b](http://c) d", ["ab (http://c) d"]),
        ("<http://c> [http://d](http://d)", ["http://c http://d"]),
        ("<me@example.org>", ["me@example.org"]),
        ("![alt](pic.png)", ["[alt](pic.png)"]),
        ("[javascript](javascript:alert)", ["[javascript](javascript:alert)"]),
        ("[ref]\n\n[ref]: http://c", ["[ref]", "", "[ref]: http://c"]),
        ("a <b>c</b> &amp; d", ["a <b>c</b> & d"]),
        ("a  \nb\\\nc", ["a", "b", "c"]),
        ("Title\n=====\ntext", ["Title", "", "text"]),
        ("", []),
        (" \n\n", []),
    ],
)
def test_layout(source: str, rows: list[str]) -> None:
    assert texts(source) == rows


def test_emphasis_is_told_by_style() -> None:
    parts = styled("**bold** *slanted* ~~gone~~ `code` [link](http://c) ***both***")
    assert parts["bold"].bold
    assert parts["slanted"].italic
    assert parts["gone"].strike
    assert parts["code"].color == DARK.inline_code.color
    assert parts["link"].underline
    assert parts["both"].bold
    assert parts["both"].italic
    assert not any(style.link for style in parts.values())


def test_headings_are_bold() -> None:
    parts = styled("# one\n\n### three *x*")
    assert parts["one"].color == DARK.heading.color
    assert parts["three "].bold
    assert parts["x"].italic


def test_a_table_is_aligned_by_cells_and_broken_where_it_is_too_wide() -> None:
    source = "| 名前 | n |\n|---|--:|\n| 日本語 | 1 |\n| a | 1000 |"
    assert texts(source) == ["名前   │    n", "───────┼─────", "日本語 │    1", "a      │ 1000"]
    narrow = markdown_rows("| a | b |\n|---|---|\n| " + "word " * 8 + "| x |", 20, DARK)
    assert len(narrow) > 3
    assert all(cells(row.text) <= 20 for row in narrow)


def test_code_has_the_colours_of_its_language_over_several_lines() -> None:
    parts = styled("```python\ndef f():\n    '''one\n    two'''\n    return 1\n```")
    assert parts["def"].color == DARK.tokens.keyword.color
    assert parts["    two'''"].color == DARK.tokens.string.color
    assert parts["1"].color == DARK.tokens.number.color
    assert styled("```no-such-language\ndef f\n```")["def f"] == Style()


def test_code_is_read_only_as_far_as_it_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    original = code_module._read

    def counting(lexer: object, text: str, colours: object) -> object:
        for runs in original(lexer, text, colours):  # type: ignore[arg-type]
            read.append(text)
            yield runs

    monkeypatch.setattr(code_module, "_read", counting)
    lines = [SafeText(f"x{number} = {number}") for number in range(5_000)]
    code = CodeLines(lines, "python", DARK.tokens)
    assert read == []
    code.runs(3)
    assert len(read) == 4
    code.runs(3)
    assert len(read) == 4
    assert code.runs(4_000).ends
    assert len(read) == 5
    code.runs(3 + MAX_AHEAD)
    assert len(read) == 5 + MAX_AHEAD


def test_nesting_beyond_the_limit_is_shown_as_it_was_written() -> None:
    source = "> " * (MAX_NESTING + 5) + "deep"
    assert "".join(texts(source, 300)) == source


def test_a_large_unfinished_paragraph_is_drawn_seldom_and_complete_in_the_end() -> None:
    stream = MarkdownStream(60, DARK)
    text = "word " * (LARGE // 5 + 200)
    stream.feed(text)
    before = list(stream.rows)
    for _ in range(20):
        assert stream.feed("x ") == len(before)
    assert stream.rows == before
    stream.finish()
    assert [row.text for row in stream.rows] == texts(text + "x " * 20, 60)


def test_finished_blocks_are_drawn_once() -> None:
    stream = MarkdownStream(60, DARK)
    stream.feed("# one\n\ntext\n\n- a\n- b\n\n```\ncode\n```\n\n")
    first = list(stream.rows)
    for number in range(50):
        changed = stream.feed(f"line {number}\n")
        assert changed >= len(first) - 1
    assert all(old is new for old, new in zip(first[:-1], stream.rows, strict=False))


def test_items_of_a_growing_list_are_drawn_once() -> None:
    stream = MarkdownStream(60, DARK)
    for number in range(100):
        changed = stream.feed(f"{number + 1}. item {number}\n")
        assert changed >= number - 1
    stream.finish()
    assert [row.text for row in stream.rows] == [f"{number + 1}. item {number}" for number in range(100)]


def test_a_table_whose_columns_do_not_fit_is_shown_row_by_row_with_all_cells() -> None:
    source = (
        "| Name | Size | What it does | When |\n|---|--:|---|---|\n| `a.py` | 12 | Reads *all* | now |\n| b | | 1 | |"
    )
    assert texts(source, 40)[2] == "a.py │   12 │ Reads all    │ now"
    assert texts(source, 24) == ["a.py", "  Size 12", "  What it does Reads all", "  When now", "b", "  What it does 1"]
    assert texts("| Name | Size | What it does | When |\n|---|---|---|---|", 24) == [
        "Name",
        "  Size · What it does",
        "  When",
    ]
