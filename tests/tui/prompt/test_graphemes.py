"""What a reader takes for one character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events

from swecli.safe_text import sanitise
from swecli.tui.dock.panel import CommandEditor
from swecli.tui.line_input import LineInput
from swecli.tui.prompt.editor import PromptEditor
from swecli.tui.prompt.graphemes import StandIns, graphemes, spans
from tests.tui.support import running

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"


@pytest.mark.parametrize(
    "parts",
    [
        ("a", "e\u0301", "x"),
        ("\u1112\u1161\u11ab", "\u1100\u1173", "\u1112"),
        ("\uac00\u11ab", "b"),
        (FAMILY, "\U0001f44d\U0001f3fd", "\u2764\ufe0f", "!"),
        ("\U0001f1e9\U0001f1ea", "\U0001f1eb\U0001f1f7", "\U0001f1ea"),
        ("\n", "\u0301", "a"),
        ("漢", "字", "\u0e01\u0e34"),
        ("\u200d", "a"),
    ],
)
def test_parts_of_a_text(parts: tuple[str, ...]) -> None:
    assert list(graphemes("".join(parts))) == list(parts)


def test_spans_are_those_of_several_code_points() -> None:
    assert spans(f"ae\u0301b{FAMILY}") == [(1, 3), (4, 9)]
    assert spans("plain") == []


@given(st.text(st.sampled_from("ae \n\u0301\u200d\U0001f468\U0001f3fd\u1112\u1161\U00030000\U000f0000")))
def test_stand_ins_lose_nothing(text: str) -> None:
    stand_ins = StandIns()
    encoded = stand_ins.encode(text)
    assert len(encoded) == len(graphemes(text))
    assert stand_ins.decode(encoded) == text
    assert stand_ins.encode(text) == encoded


async def test_the_cursor_and_backspace_take_a_character_as_a_whole() -> None:
    async with running() as it:
        it.editor.insert(f"ae\u0301{FAMILY}b")
        await it.press("left", "left", "left", "delete")
        assert it.text == f"a{FAMILY}b"
        await it.press("right", "backspace")
        assert it.text == "ab"


@pytest.mark.parametrize(
    ("typed", "left"),
    [
        ("\u0e19\u0e49\u0e33", ["\u0e19\u0e49", "\u0e19", ""]),  # Thai
        ("\u0939\u093f", ["\u0939", ""]),  # Hindi
        ("\u0628\u064e", ["\u0628", ""]),  # Arabic
        ("\u1112\u1161", ["\u1112", ""]),  # Hangul
        ("e\u0301", [""]),
        ("\u304b\u3099", [""]),  # voiced kana
        ("\u6f22\U000e0100", [""]),  # a variant
        (FAMILY, [""]),
        ("\U0001f1e9\U0001f1ea", [""]),
    ],
)
@pytest.mark.parametrize("field", ["prompt", "line", "command"])
async def test_backspace_erases_a_mark_alone_where_it_is_typed_alone(typed: str, left: list[str], field: str) -> None:
    async with running() as it:
        editor: PromptEditor | LineInput | CommandEditor = it.editor
        if field != "prompt":
            editor = LineInput() if field == "line" else CommandEditor("")
            await it.app.screen.mount(editor)
            editor.focus()
            await it.until(lambda: editor.has_focus)
        editor.insert_text_at_cursor(f"a{typed}") if isinstance(editor, LineInput) else editor.insert(f"a{typed}")
        for rest in left:
            await it.press("backspace")
            assert (editor.value if isinstance(editor, LineInput) else editor.text) == f"a{rest}"


async def test_a_line_of_a_panel_steps_over_characters() -> None:
    async with running() as it:
        line = LineInput(f"a{FAMILY}b")
        await it.app.screen.mount(line)
        line.focus()
        await it.until(lambda: line.has_focus)
        line.cursor_position = len(line.value)
        await it.press("left", "left", "delete")
        assert line.value == "ab"
        line.put(f"{FAMILY}b")
        line.cursor_position = 0
        await it.press("right", "x")
        assert line.value == f"{FAMILY}xb"


async def test_joiners_that_are_typed_stay() -> None:
    async with running() as it:
        word = "می\u200cخواهم"
        for letter in word:
            it.app.post_message(events.Key("a key", letter))
        await it.until(lambda: it.text == word)
        assert str(sanitise(it.text)) == word
