"""Numbered choices: by number, by letter, or by moving and Enter; never by Enter alone or by a key that came early."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from swecli.core.protocol.commands import ReplyPermission
from swecli.tui.dock.choices import ChoiceList
from swecli.tui.dock.panel import brief_danger
from swecli.tui.preferences import Preferences
from tests.support.fake_session import WAIT_FOR_INTERRUPT
from tests.tui.dock.test_approval import appear, ask, replies, run
from tests.tui.support import Running, Session, running


@pytest.mark.parametrize(
    ("keys", "choice"),
    [
        (("1",), "once"),
        (("2",), "always"),
        (("down", "enter"), "always"),
        (("down", "up", "enter"), "once"),
        (("up", "enter", "enter"), "reject"),
        (("3", "enter"), "reject"),
    ],
)
async def test_ways_to_choose(keys: tuple[str, ...], choice: Any) -> None:
    async with running((ask(),)) as it:
        await appear(it)
        await it.press(*keys)
        await it.until(lambda: [reply.choice for reply in replies(it)] == [choice])
        assert it.text == ""


async def test_a_key_that_answers_twice_is_not_typed_and_sends_no_draft() -> None:
    session = Session((WAIT_FOR_INTERRUPT,))
    async with running(session=session) as it:
        await it.say("go")
        await it.until(lambda: it.app.session.state.busy)
        await it.press("s", "o")
        it.clock.now += 2
        session.emit(ask())
        await it.shows("1 yes")
        it.clock.now += 2
        await it.press("1")
        await it.until(lambda: [reply.choice for reply in replies(it)] == ["once"])
        await it.until(lambda: it.app.main.dock.panel is None)
        for key in ("1", "enter", "2", "up", "1"):
            it.clock.now += 0.2
            await it.press(key)
        assert it.text == "so", "keys that follow the answer without a pause are meant for the panel"
        it.clock.now += 0.2
        await it.press("x", "1")
        assert it.text == "sox1", "a letter is meant for the prompt, and so is what follows it"


async def test_a_message_may_begin_with_a_digit_once_the_panel_has_been_gone() -> None:
    async with running((ask(),)) as it:
        await appear(it)
        await it.press("1")
        await it.until(lambda: it.app.main.dock.panel is None)
        it.clock.now += 0.31
        await it.press("2")
        assert it.text == "2"


async def test_a_step_past_the_no_to_something_dangerous_stays_there() -> None:
    async with running((replace(ask(), danger="deletes 36 files"),)) as it:
        await appear(it)
        await it.press("down", "down", "enter", "enter")
        await it.until(lambda: [reply.choice for reply in replies(it)] == ["reject"])


async def test_enter_on_the_untouched_panel_approves_nothing_and_says_so() -> None:
    async with running((ask(),)) as it:
        await appear(it)
        await it.press("enter", "enter")
        await it.shows("Press 1-3, or move with ↑↓ before Enter.")
        assert not replies(it)
        await it.press("1")
        await it.until(lambda: [reply.choice for reply in replies(it)] == ["once"])


async def test_arrows_enter_and_digits_that_come_early_do_nothing_and_are_said() -> None:
    async with running((ask(),)) as it:
        await it.say("go")
        await it.shows("1 yes")
        for key in ("down", "enter", "1", "up", "enter", "2", "3"):
            it.clock.now += 0.1
            await it.press(key)
        await it.shows("Ignored: you pressed that key before you could read this.")
        assert not replies(it)
        assert it.text == ""
        it.clock.now += 1
        await it.press("enter")
        await it.shows("Press 1-3, or move with ↑↓ before Enter.")
        assert not replies(it), "no early arrow has moved the highlight"


async def test_three_opens_a_note_for_the_model() -> None:
    async with running((ask(),)) as it:
        await appear(it)
        await it.shows("3 no, and say what to do instead")
        await it.press("3")
        await it.shows("What should it do instead?", "enter rejects with this note")
        await it.press(*"12y", "enter")
        await it.until(lambda: replies(it) == [ReplyPermission("p1", "reject", "12y")])


async def test_a_danger_is_one_line_before_the_choices_and_no_is_highlighted() -> None:
    danger = "deletes 36 files, 1,204 bytes (/undo restores them)"
    async with running((replace(run("rm -rf build"), danger=danger),)) as it:
        await it.say("go")
        await it.shows(danger, "\u203a 3 no")
        shown = it.screen()
        assert shown.index("$ rm -rf build") < shown.index(danger) < shown.index("1 yes")
        it.clock.now += 1
        await it.press("2")
        await it.shows("2 does nothing here")
        await it.press("up", "enter")
        await it.until(lambda: [reply.choice for reply in replies(it)] == ["once"])


async def test_the_selected_choice_is_marked_over_its_whole_width_as_in_lists() -> None:
    async with running((ask(),), preferences=lambda: Preferences(theme="terminal")) as it:
        await appear(it)
        await it.press("down")
        await it.shows("\u203a 2 yes")
        choices = it.app.screen.query_one(ChoiceList)
        assert choices.size.width > 60
        rows = [choices.render_line(y) for y in range(choices.size.height)]
        marked = [all(piece.style is not None and piece.style.reverse for piece in row) for row in rows]
        assert marked == [False, True, False]
        assert rows[1].cell_length == choices.size.width


async def several(it: Running, session: Session) -> None:
    await it.say("go")
    await it.until(lambda: it.app.session.state.busy)
    for number in (1, 2, 3):
        session.emit(replace(ask(number), acceptable=True))
    session.emit(replace(run("make"), request="p4"))
    await it.shows("(1 of 4)", "4 yes to all 3 waiting edits")


@pytest.mark.parametrize("key", ["4", "w"])
async def test_all_waiting_edits_are_accepted_at_once_and_nothing_else(key: str) -> None:
    session = Session((WAIT_FOR_INTERRUPT,))
    async with running(session=session) as it:
        await several(it, session)
        it.clock.now += 1
        await it.press(key)
        await it.shows("Run this command?")
        assert sorted(reply.request for reply in replies(it)) == ["p1", "p2", "p3"]
        assert {reply.choice for reply in replies(it)} == {"once"}


async def test_an_edit_that_has_just_joined_is_not_accepted_with_the_others() -> None:
    session = Session((WAIT_FOR_INTERRUPT,))
    async with running(session=session) as it:
        await several(it, session)
        it.clock.now += 1
        session.emit(replace(ask(5), acceptable=True))
        await it.shows("yes to all 4 waiting edits")
        await it.press("4")
        await it.shows("Ignored")
        assert not replies(it)


@pytest.mark.parametrize("size", [(80, 24), (40, 15), (20, 6), (12, 3)])
async def test_sizes(size: tuple[int, int]) -> None:
    async with running((replace(run("rm -rf build"), danger="deletes 3 files"),), size=size) as it:
        await it.say("go")
        await it.until(lambda: it.app.main.dock.panel)
        it.clock.now += 1
        await it.pilot.pause()
        lines = it.screen().split("\n")
        assert len(lines) == size[1]
        if size[1] >= 6:
            await it.shows("deletes 3", "rm -rf build", "yes")
        if size[1] >= 15:
            await it.shows("1 yes", "3 no")


@pytest.mark.parametrize(
    ("command", "danger", "brief"),
    [
        ("git push --force origin main", "git push --force origin main can destroy work", "can destroy work"),
        ("cd x && sed -i s/a/b/ f", "sed -i rewrites files in place", "rewrites files in place"),
        ("rm -rf 'a b' c", "rm -rf a b c removes whole directories", "a b c removes whole directories"),
        (f"tool {'x ' * 90}", f"tool {'x ' * 37}… can destroy work", "can destroy work"),
        ("python3 -c 'x'", "The python3 code contains 'rmtree(p)'", "contains 'rmtree(p)'"),
        ("echo deletes 3 files", "deletes 3 files (/undo restores them)", "deletes 3 files (/undo restores them)"),
        ("deletes 3 files", "deletes 3 files", "deletes 3 files"),
        ("true", "The program's name is computed", "The program's name is computed"),
    ],
)
def test_a_brief_danger_leaves_out_what_the_command_shows(command: str, danger: str, brief: str) -> None:
    assert brief_danger(danger, command) == brief


async def test_a_danger_that_does_not_fit_says_what_the_command_does() -> None:
    command = "git push --force origin main"
    danger = f"{command} can destroy work or change what other programs do"
    asked = replace(run(command), danger=danger, arguments={"command": command})
    async with running((asked,), size=(20, 6)) as it:
        await it.say("go")
        await it.shows("can destroy work or", "yes")


async def test_letters_stay_in_sight_beside_a_choice_that_is_too_long() -> None:
    asked = replace(ask(), rule=None, rules=(), rule_note="Can't be allowed in general: swecli always asks about this.")
    async with running((asked,), size=(40, 20)) as it:
        await appear(it)
        (line,) = [line for line in it.screen().splitlines() if " yes" in line and "(" not in line]
        assert line.rstrip().endswith(" y")
        assert "…" not in line


async def test_a_choice_of_several_lines_has_one_cursor() -> None:
    async with running((ask(),), size=(40, 24)) as it:
        await appear(it)
        await it.press("down")
        await it.until(lambda: any(line.lstrip().startswith("› 2") for line in it.screen().splitlines()))
        block = it.screen().partition("1 yes")[2]
        assert block.count("›") == 1
