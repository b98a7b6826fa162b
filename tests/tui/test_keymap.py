"""Keys that were changed, on the running application."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager

import pytest

from swecli.core.config.key_actions import ACTIONS
from swecli.core.protocol.blocks import TerminalBlock
from swecli.core.protocol.commands import ReplyPermission, Submit
from swecli.core.protocol.events import PermissionRequested
from swecli.tui.keymap import Keymap, event_name, shown
from swecli.tui.preferences import Preferences
from tests.tui.support import Running, Session, running


def with_keys(
    keys: Mapping[str, tuple[str, ...]], session: Session | None = None
) -> AbstractAsyncContextManager[Running]:
    return running(session=session, preferences=lambda: Preferences(keys=keys), size=(120, 40))


async def adopted(it: Running) -> None:
    await it.until(lambda: "nord" in it.app.appearance.library.names)


async def test_a_new_key_works_and_the_old_one_does_not() -> None:
    async with with_keys({"find": ("f3",)}) as it:
        await adopted(it)
        await it.press("ctrl+f")
        assert it.app.main.dock.panel is None
        await it.press("f3")
        await it.until(lambda: it.app.main.dock.panel)


async def test_a_key_taken_from_the_editor_belongs_to_its_new_action() -> None:
    async with with_keys({"find": ("ctrl+k",)}) as it:
        await adopted(it)
        await it.type("some text")
        await it.press("ctrl+a", "ctrl+k")
        await it.until(lambda: it.app.main.dock.panel)
        assert it.text == "some text"


async def test_actions_of_the_editor_move_and_their_old_keys_do_nothing() -> None:
    async with with_keys({"kill_left": ("ctrl+x",), "line_start": ("alt+a",), "newline": ("f5",)}) as it:
        await adopted(it)
        await it.type("some text")
        await it.press("ctrl+u", "ctrl+j")
        assert it.text == "some text"
        await it.press("alt+a")
        assert it.editor.cursor_location == (0, 0)
        await it.press("end", "f5")
        assert it.text == "some text\n"
        await it.press("backspace", "ctrl+x")
        assert it.text == ""


async def test_enter_can_make_a_new_line_when_another_key_sends() -> None:
    async with with_keys({"send": ("ctrl+s",), "newline": ("enter",)}, Session(())) as it:
        await adopted(it)
        await it.type("one")
        await it.press("enter")
        await it.type("two")
        await it.press("ctrl+s")
        await it.until(lambda: it.session.sent(Submit))
        assert it.session.sent(Submit) == [Submit("one\ntwo")]


def test_enter_with_any_modifiers_is_a_line_break_unless_it_means_something_else() -> None:
    keymap = Keymap()
    for key in ("alt+shift+enter", "ctrl+shift+enter", "super+enter", "shift+enter"):
        assert keymap.action("prompt", key) == "newline"
        assert keymap.action("everywhere", key) is None
    keymap.adopt({"newline": ("f5",), "expand": ("super+enter",)})
    assert keymap.action("prompt", "super+enter") is None
    assert keymap.action("everywhere", "super+enter") == "expand"
    assert keymap.action("prompt", "shift+enter") is None
    keymap.adopt({"newline": ()})
    assert keymap.action("prompt", "ctrl+shift+enter") is None


def words(it: Running) -> set[str]:
    """The lines of the screen without the blanks between columns."""
    return {" ".join(line.replace("\u203a", "").split()) for line in it.screen().split("\n")}


async def test_keys_of_an_approval_are_shown_and_count() -> None:
    ask = PermissionRequested(
        "p1", "t1", "run_command", "make", (TerminalBlock("make", ""),), "Commands ask.", "hash", "Bash(make)"
    )
    async with with_keys({"approve_once": ("o",), "reject": ("x",)}, Session((ask,))) as it:
        await adopted(it)
        await it.say("go")
        await it.until(lambda: {"1 yes o", "3 no, and say what to do instead x"} <= words(it))
        it.clock.now += 3
        await it.press("y")
        assert not it.session.sent(ReplyPermission)
        it.clock.now += 3
        await it.press("o")
        await it.until(lambda: it.session.sent(ReplyPermission))
        assert it.session.sent(ReplyPermission)[0].choice == "once"


async def test_keys_lists_the_changed_ones_and_finds_words() -> None:
    async with with_keys({"find": ("f3",)}) as it:
        await adopted(it)
        it.app.interface.open("keys", "search the transcript")
        await it.shows("F3", "find", "search the transcript", "[keys]")
        assert "ctrl+f" not in it.screen().lower()
        it.app.interface.open("keys", "no such words")
        await it.shows("No key matches no such words")


def test_the_table_finds_every_default_key_by_the_name_that_events_have() -> None:
    keymap = Keymap()
    for action in ACTIONS:
        for key in action.keys:
            assert keymap.action(action.place, event_name(key)) == action.name


@pytest.mark.parametrize(
    ("key", "name"), [("ctrl+o", "Ctrl+O"), ("pageup", "PgUp"), ("y", "y"), ("N", "N"), ("f2", "F2"), ("?", "?")]
)
def test_keys_as_people_write_them(key: str, name: str) -> None:
    assert shown(key) == name


def test_a_question_mark_has_the_name_of_its_event() -> None:
    assert event_name("?") == "question_mark"
    assert event_name("/") == "slash"
    assert event_name("+") == "plus"
