"""Text that tries to break the screen gets through every renderer as harmless text."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace
from rich.style import Style

from swecli.core.protocol.blocks import (
    DiffBlock,
    FileEntry,
    FileListBlock,
    MarkdownBlock,
    TableBlock,
    TerminalBlock,
    TextBlock,
    Todo,
    TodoBlock,
)
from swecli.tui.transcript.block_rows import render_block
from swecli.tui.transcript.palette import DARK, LIGHT
from swecli.tui.transcript.rows import Row, cells
from swecli.tui.transcript.tool_rows import MAX_LINE, render_display
from tests.support.thorough import examples
from tests.tui.transcript.samples import DISPLAYS, HOSTILE, blocks

TRAPS = {
    "controls": HOSTILE,
    "markup": "[/foo] [red]x[/red] [[ ]] [@click=app.quit]y[/]",
    "brackets": "[" * 5_000,
    "stars": "**a " * 3_000,
    "ticks": "`a``b" * 2_000,
    "quotes": "> " * 500 + "x",
    "lists": "\n".join("  " * n + "- x" for n in range(200)),
    "entities": "&#x202e;&#27;&#x9b;&ZeroWidthSpace; &amp;",
    "links": "[x](https://a/\x1b]8;;b) <javascript:alert(1)> ![\u202e](\x07)",
    "one_line": "x" * 300_000,
    "words": "wide 日本 " * 2_000,
    "table": "|" + "|".join(f"c{n}" for n in range(400)) + "|\n|" + "-|" * 400 + "\n|" + "v|" * 400,
    "carriages": "a\r" * 10_000 + "\b" * 10_000,
    "colours": "\x1b[31;99999999m\x1b[38;2;999;1m\x1b[38;5m\x1b[m\x1b[5;8mhidden" * 200,
    "numbers": "123456789012. x\n0) y",
    "fence": "```" + "\x1b[0m" * 50 + "\ncode\x1b]0;title\x07\n",
}

LENGTH = examples(4_000, 10_000)
"""Characters of a trap in a block, which shows it in several places and forms."""


def put(value: Any, text: str) -> Any:
    """The value with all of its free strings replaced."""
    if not isinstance(value, Struct):
        return value
    fixed = {"id", "status", "style", "type", "outcome", "level"}
    changed: dict[str, Any] = {}
    for name in value.__struct_fields__:
        old = getattr(value, name)
        if name in fixed:
            continue
        if isinstance(old, str):
            changed[name] = text
        elif isinstance(old, tuple):
            changed[name] = tuple(text if isinstance(item, str) else put(item, text) for item in old)
    return replace(value, **changed)


def check(rows: list[Row], width: int) -> None:
    """Of the styles and characters, few are different: each of them is looked at once."""
    styles: set[Style | None] = set()
    characters: set[str] = set()
    for row in rows if len(rows) <= 350 else rows[:300] + rows[-50:]:
        parts = row.segments()
        text = "".join(part.text for part in parts)
        assert text == row.text
        assert cells(text) <= width, text
        assert all(part.control is None for part in parts)
        styles.update(part.style for part in parts)
        characters.update(text)
    for style in styles:
        if style is None:
            continue
        assert style.link is None
        assert not style.meta
        assert not style.conceal
        assert not style.blink
    for character in characters:
        assert unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp")
        assert not 0x202A <= ord(character) <= 0x202E
        assert not 0x2066 <= ord(character) <= 0x2069


@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize("width", [20, 78])
def test_display_blocks(trap: str, width: int) -> None:
    for display in DISPLAYS.values():
        check(render_display(put(display, TRAPS[trap]), width, DARK), width)


@pytest.mark.parametrize("trap", TRAPS)
def test_blocks(trap: str) -> None:
    length = MAX_LINE + 2_000 if trap == "one_line" else LENGTH
    for block in blocks().values():
        for expanded in (False, True):
            check(render_block(put(block, TRAPS[trap][:length]), 60, LIGHT, expanded=expanded), 60)


def test_entities_of_markdown_pass_the_door_after_decoding() -> None:
    text = "".join(row.text for row in render_display(MarkdownBlock("a&#x202e;b"), 40, DARK))
    assert text == "a⟨U+202E⟩b"


def test_hidden_and_blinking_text_of_a_command_is_shown() -> None:
    rows = render_display(TerminalBlock("", "\x1b[8;5mhidden\x1b[0m"), 40, DARK)
    assert rows[0].text == "hidden"


def test_sequences_that_are_no_colours_stay_visible() -> None:
    rows = render_display(TerminalBlock("", "\x1b]52;c;x\x07\x1b[6n"), 40, DARK)
    assert rows[0].text == "␛]52;c;x␇␛[6n"


def test_a_table_too_wide_for_the_screen_says_what_it_leaves_out() -> None:
    block = TableBlock(tuple(f"c{n}" for n in range(400)), (tuple("v" * 400),))
    rows = render_display(block, 78, DARK)
    assert "more columns do not fit" in rows[-1].text


def test_deep_nesting_loses_no_text() -> None:
    for source in ("> " * 300 + "end", "\n".join("  " * n + "- x" for n in range(90)) + " end"):
        shown = "".join(row.text for row in render_display(MarkdownBlock(source), 200, DARK))
        assert "end" in shown


def test_names_of_files_and_todos_are_text() -> None:
    name = "\x1b[31m[red]\u202e.py"
    for block in (
        FileListBlock((FileEntry(name), FileEntry(name, 1, name))),
        TodoBlock((Todo(name),)),
        DiffBlock(name, "a\n", "b\n"),
        TextBlock(name),
    ):
        shown = "\n".join(row.text for row in render_display(block, 78, DARK))
        assert "␛[31m[red]⟨U+202E⟩.py" in shown
