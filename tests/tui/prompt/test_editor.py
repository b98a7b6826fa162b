"""Pastes, growth and drafts of the editor on the screen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from textual import events

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.session import Session as EngineSession
from swecli.core.protocol.commands import Submit
from swecli.core.protocol.events import TurnEnded
from tests.tui.support import running

DONE = (TurnEnded("done"),)


async def test_a_large_paste_is_a_placeholder_and_is_sent_whole() -> None:
    text = "line of text\n" * 1000
    async with running(DONE) as it:
        await it.type("see ")
        it.editor.post_message(events.Paste(text))
        await it.until(lambda: it.text == "see [Pasted text #1: 1,000 lines, 13K, ~3.6K tokens]")
        await it.press("enter")
        await it.until(lambda: it.session.sent(Submit) == [Submit("see " + text)])


async def test_one_backspace_removes_a_placeholder() -> None:
    async with running() as it:
        it.editor.post_message(events.Paste("x" * 3000))
        await it.until(lambda: it.text)
        await it.press("backspace")
        assert it.text == ""


@pytest.mark.parametrize(
    "keys",
    [
        ("ctrl+w",),
        ("alt+backspace",),
        ("ctrl+a", "alt+d"),
        ("ctrl+a", "delete"),
        ("left", "delete"),
        ("alt+b", "ctrl+k"),
        ("left", "right", "backspace"),
    ],
)
async def test_no_key_cuts_a_placeholder_in_two(keys: tuple[str, ...]) -> None:
    async with running() as it:
        it.editor.take_paste("x" * 3000)
        assert it.text.startswith("[Pasted text #1: 1 line,")
        await it.press(*keys)
        assert it.text == ""


async def test_a_cut_placeholder_comes_back_with_its_text() -> None:
    async with running(DONE) as it:
        it.editor.take_paste("x" * 3000)
        await it.type(" and more")
        await it.press("ctrl+w", "ctrl+w", "ctrl+w", "ctrl+y", "enter")
        await it.until(lambda: it.session.sent(Submit) == [Submit("x" * 3000 + " and more")])


async def test_a_cursor_inside_a_placeholder_deletes_all_of_it() -> None:
    for key in ("backspace", "delete", "ctrl+u", "ctrl+k", "ctrl+w"):
        async with running() as it:
            await it.type("a ")
            it.editor.take_paste("x" * 3000)
            await it.type(" b")
            it.editor.move_cursor((0, 10))  # as the mouse does
            await it.press(key)
            assert "Pasted" not in it.text, key


@pytest.mark.parametrize("keys", [("n",), ("ctrl+j",), ("ctrl+y",)])
async def test_text_typed_inside_a_placeholder_goes_behind_it(keys: tuple[str, ...]) -> None:
    added = {"n": "n", "ctrl+j": "\n", "ctrl+y": "cut"}[keys[0]]
    async with running(DONE) as it:
        await it.type("cut")
        await it.press("ctrl+u")
        it.editor.take_paste("x" * 3000)
        await it.type("!")
        it.editor.move_cursor((0, 10))  # as the mouse does
        await it.press(*keys)
        it.editor.move_cursor((0, 10))
        it.editor.post_message(events.Paste("pasted"))
        await it.until(lambda: "pasted" in it.text)
        assert it.editor.message == f"{'x' * 3000}pasted{added}!"


async def test_text_typed_over_part_of_a_placeholder_replaces_all_of_it() -> None:
    async with running() as it:
        await it.type("a ")
        it.editor.take_paste("x" * 3000)
        await it.type("!")
        it.editor.selection = type(it.editor.selection)((0, 10), (0, 15))  # as the mouse selects
        await it.type("b")
        assert it.text == "a b!"


async def test_returned_pastes_keep_their_places() -> None:
    first, second = "aaaa\n" * 30, "bbbb\n" * 30
    async with running() as it:
        pastes = it.editor.pastes
        typed = f"{pastes.fold(first)} then {pastes.fold(second)}"
        _, returned = pastes.sent(typed)
        it.editor.add("cccc\n" * 30)  # pasted meanwhile, with a placeholder that looks like the first
        it.editor.restore(typed, returned)
        assert it.editor.message == f"{first} then {second}\n" + "cccc\n" * 30


async def test_an_undo_takes_back_more_lines_than_are_visible() -> None:
    lines = "\n".join("abcdefghijklmnopqrst")
    async with running() as it:
        await it.type("one")
        it.editor.history.checkpoint()
        it.editor.insert(f"\n{lines}")
        await it.until(lambda: it.editor.show_vertical_scrollbar)
        await it.press("ctrl+underscore")
        assert (it.text, it.editor.cursor_location) == ("one", (0, 3))


async def test_control_characters_of_a_paste_never_reach_the_screen() -> None:
    async with running(DONE) as it:
        it.editor.post_message(events.Paste("red \x1b[31m text\u202e"))
        await it.until(lambda: it.text)
        assert "\x1b" not in it.screen()
        await it.press("enter")
        await it.until(lambda: it.session.sent(Submit) == [Submit("red \x1b[31m text\u202e")])


async def test_it_grows_with_its_text_and_stops() -> None:
    async with running(size=(80, 40)) as it:
        assert it.editor.size.height == 1
        for _ in range(5):
            await it.press("ctrl+j")
        await it.until(lambda: it.editor.size.height == 6)
        for _ in range(20):
            await it.press("ctrl+j")
        await it.until(lambda: it.editor.size.height == 12)


async def test_it_leaves_room_on_a_small_screen() -> None:
    async with running(size=(80, 10)) as it:
        for _ in range(20):
            await it.press("ctrl+j")
        await it.until(lambda: it.editor.size.height == 4)
        assert it.app.main.transcript.size.height >= 1


async def test_a_draft_of_a_killed_process_comes_back(tmp_path: Path) -> None:
    (tmp_path / "draft-999999999.txt").write_text("left [b]behind[/b]")
    async with running(state=tmp_path) as it:
        await it.until(lambda: it.text == "left [b]behind[/b]")
        assert "left [b]behind[/b]" in it.screen()
        assert "draft-999999999.txt" not in os.listdir(tmp_path)


async def test_what_is_typed_is_saved_after_a_moment(tmp_path: Path) -> None:
    async with running(state=tmp_path) as it:
        await it.type("typed")
        await it.until(lambda: [path.read_text() for path in tmp_path.glob("draft-*.txt")] == ["typed"])


async def test_markup_in_the_prompt_is_text() -> None:
    async with running() as it:
        await it.type("[/foo] [red]x[/red] [@click=app.quit]y[/]")
        await it.shows("› [/foo] [red]x[/red] [@click=app.quit]y[/]")


async def test_what_is_pasted_and_folded_attaches_nothing() -> None:
    async with running(DONE) as it:
        await it.type("see @a.py ")
        it.editor.post_message(events.Paste("and @b.py\n" * 1000))
        await it.until(lambda: "Pasted text" in it.text)
        await it.press("enter")
        await it.until(lambda: [command.mentions for command in it.session.sent(Submit)] == [("a.py",)])


async def no_command(port: EngineSession, arguments: str) -> CommandResult:
    return CommandResult()


async def test_a_long_hint_leaves_most_of_the_line_to_the_summary() -> None:
    long = SlashCommand("long", "What long does", no_command, arguments="[" + "word | " * 20 + "end]")
    full = SlashCommand("full", "What full does", no_command, arguments="[" + "f" * (14) + "]")
    over = SlashCommand("over", "What over does", no_command, arguments="[" + "o" * (15) + "]")
    async with running(commands=lambda: (long, full, over)) as it:
        await it.press("slash")
        await it.shows("What over does")
        lines = {
            name: next(line for line in it.screen().splitlines() if f"/{name} " in line)
            for name in ("long", "full", "over")
        }
        assert lines["long"].startswith(" › /long [word | word…  ")
        assert f"/full {full.arguments}  " in lines["full"]
        assert f"/over {over.arguments[:15]}…  " in lines["over"]
        (column,) = {line.index(f"What {name} does") for name, line in lines.items()}
        assert column == len(" › /long ") + 16 + 2 < 40
