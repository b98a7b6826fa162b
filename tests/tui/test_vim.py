"""Vim's keys in the prompt of the whole application."""

from __future__ import annotations

from textual import events

from swecli.core.protocol.commands import Interrupt, Submit
from swecli.core.protocol.events import ItemCompleted, ItemStarted
from swecli.core.protocol.messages import TextPart
from swecli.tui.preferences import Preferences
from tests.support.fake_session import WAIT_FOR_INTERRUPT
from tests.tui.support import running


def vim() -> Preferences:
    return Preferences(editing="vim")


def bar(screen: str) -> str:
    return screen.rstrip("\n").split("\n")[-1]


async def test_escape_is_normal_mode_first_and_interrupts_then() -> None:
    async with running((WAIT_FOR_INTERRUPT,), preferences=vim) as it:
        await it.shows("INSERT · default")
        await it.say("begin")
        await it.until(lambda: it.app.session.state.busy)
        await it.type("one two")
        await it.press("escape")
        await it.shows("NORMAL · default")
        assert not it.session.sent(Interrupt)
        await it.press("b", "d", "w", "x")
        assert it.text == "one"
        await it.press("2", "d")
        await it.shows("NORMAL 2d · default")
        await it.press("escape")
        assert not it.session.sent(Interrupt)
        await it.press("escape")
        await it.until(lambda: it.session.sent(Interrupt))
        assert it.text == "one"


async def test_enter_sends_in_both_modes_and_the_next_message_is_typed() -> None:
    answers = ((ItemStarted(n, "text"), ItemCompleted(n, "ok", (TextPart(f"answer {n}"),))) for n in "12")
    async with running(*answers, preferences=vim) as it:
        await it.say("first")
        await it.shows("answer 1")
        await it.until(lambda: not it.app.session.state.busy)
        await it.type("second line")
        await it.press("escape", "c", "c")
        await it.type("second")
        await it.press("escape", "enter")
        await it.shows("answer 2", "INSERT · default")
        assert [command.text for command in it.session.sent(Submit)] == ["first", "second"]
        await it.until(lambda: not it.app.session.state.busy)
        await it.press("escape", "k")
        await it.until(lambda: it.text == "second")
        await it.press("k")
        await it.until(lambda: it.text == "first")
        await it.press("j")
        await it.until(lambda: it.text == "second")
        await it.press("/")
        await it.press(*"fir")
        await it.until(lambda: it.text == "first")


async def test_paste_mouse_and_composed_text_in_normal_mode() -> None:
    async with running(preferences=vim) as it:
        await it.type("alpha beta gamma")
        await it.press("escape", "0")
        it.editor.selection = type(it.editor.selection)((0, 6), (0, 10))  # as the mouse selects
        await it.press("d")
        assert it.text == "alpha  gamma"
        it.editor.post_message(events.Paste("pasted 日本"))
        await it.until(lambda: it.text == "alpha pasted 日本 gamma")
        it.editor.post_message(events.Key("日", "日"))
        await it.shows("This key does nothing in normal mode; i to type")
        await it.press("i")
        it.editor.post_message(events.Key("日本", "日本"))
        await it.until(lambda: it.text.count("日本") == 2)
        await it.press("escape", "v", "0")
        assert not it.editor.selection.is_empty
        await it.shows("VISUAL · default")
        await it.press("y", "u")
        await it.until(lambda: it.text == "alpha pasted 日本 gamma")


async def test_a_paste_or_click_leaves_the_cursor_on_a_character_in_normal_mode() -> None:
    async with running(preferences=vim) as it:
        await it.type("abc")
        await it.press("escape", "d", "d")
        it.editor.post_message(events.Paste("one two"))
        await it.until(lambda: it.text == "one two" and it.editor.cursor_location == (0, 6))
        await it.press("0")
        assert it.editor.cursor_location == (0, 0)
        it.editor.move_cursor((0, 7))  # as a click past the end does
        await it.until(lambda: it.editor.cursor_location == (0, 6))
        await it.press("a", "!")
        assert it.text == "one two!"
        await it.until(lambda: it.editor.cursor_location == (0, 8))


async def test_a_character_of_several_code_points_is_one_for_every_key() -> None:
    family, syllable, accented = "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u1112\u1161\u11ab", "e\u0301"
    async with running(preferences=vim) as it:
        for one in f"x{accented}y {family}{syllable}!":
            it.editor.post_message(events.Key(one, one))
        await it.until(lambda: it.text == f"x{accented}y {family}{syllable}!")
        await it.press("escape", "0", "l", "x")
        assert it.text == f"xy {family}{syllable}!"
        await it.press("u")
        assert it.text == f"x{accented}y {family}{syllable}!"
        await it.press("w", "x")
        assert it.text == f"x{accented}y {syllable}!"
        await it.press("p", "h", "r", "z", "$")
        assert it.text == f"x{accented}y z{family}!"
        await it.press("b", "b", "a", "q", "escape", "4", "X")
        assert it.text == f"xq{family}!"


async def test_undo_takes_a_paste_back_alone() -> None:
    async with running(preferences=vim) as it:
        await it.type("one two")
        await it.press("escape", "d", "b")
        assert it.text == "one o"
        it.editor.post_message(events.Paste("pasted "))
        await it.until(lambda: it.text == "one pasted o")
        await it.press("u")
        assert it.text == "one o"
        await it.press("u")
        assert it.text == "one two"
        await it.press("ctrl+r", "ctrl+r")
        assert it.text == "one pasted o"


async def test_the_command_switches_at_once_and_keeps_it() -> None:
    kept: list[tuple[str, str]] = []

    def remember(key: str, value: str) -> str:
        kept.append((key, value))
        return "config.toml"

    async with running(remember=remember, preferences=Preferences) as it:
        assert "INSERT" not in bar(it.screen())
        it.app.interface.open("editing")
        await it.shows("INSERT · default", "Vim keys: Esc for normal mode", "saved in config.toml")
        it.app.interface.open("editing")
        await it.hides("INSERT · default")
        await it.until(lambda: len(kept) == 2)
        assert kept == [("ui.editing", "vim"), ("ui.editing", "usual")]
