"""Help, permissions, sessions, the palette; and what comes while a screen is open."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from textual import events

from swecli.commands.base import Screen
from swecli.commands.registry import COMMANDS
from swecli.core.llm.offers import ModelOffer
from swecli.core.permissions.types import Rule
from swecli.core.protocol.commands import ReplyPermission, RevokeRule, SetMode, SetModel
from swecli.core.protocol.events import TurnStarted
from swecli.launch import StartError
from swecli.tui.dock.palette import RECENT
from swecli.tui.keymap import Keymap
from swecli.tui.screens.board import Board
from swecli.tui.screens.help import WANTED, HelpPage, wanted
from swecli.tui.screens.list_screen import ListScreen
from tests.support.inspected import Inspected
from tests.tui.scenes import DONE, RUN, WORK
from tests.tui.screens.fakes import RULES, SESSIONS, Permissions, Sessions, Settings, ports, rule
from tests.tui.screens.test_context_screens import prepared
from tests.tui.support import Running, Session, running


async def test_help_finds_keys_and_commands_and_puts_a_command_into_the_prompt() -> None:
    async with running() as it:
        await it.say("?")
        await it.shows("Help · the most used of", "While it works", "@path:10-40")
        await it.press(*"tokens")
        await it.shows("/context", "(/tokens)")
        await it.press("ctrl+u", *"mode arg")
        await it.hides("/tokens")
        await it.press("ctrl+u", *"/mode", "enter")
        await it.hides("Help ·")
        assert it.text == "/mode "
        assert it.editor.has_focus


async def test_help_lists_everything_behind_what_is_wanted_most() -> None:
    async with running() as it:
        it.app.keymap.adopt({"external_editor": ("f7",)})
        it.app.interface.open("help")
        await it.shows("F7")
        await it.press("end")
        await it.shows("every key and command", "enter lists all")
        await it.press("enter")
        await it.shows("In a message", "Commands")
        await it.press("escape")
        await it.shows("Help · the most used of")


def test_everything_that_help_names_exists() -> None:
    shown = wanted(COMMANDS, Keymap())
    named = [name for _, rows in WANTED for name, _ in rows]
    assert len([entry for entry in shown if not entry.heading]) == len(named) + 1
    assert all(cells[1] for entry in shown[:-1] if len(cells := entry.cells) > 1)


async def test_help_shows_the_keys_of_the_user() -> None:
    async with running() as it:
        it.app.keymap.adopt({"find": ("f7",)})
        it.app.interface.open("help", "search transcript")
        await it.shows("F7", "search the transcript")
        await it.hides("Ctrl+F")


async def test_an_approval_is_seen_and_answered_while_a_screen_is_open() -> None:
    for size in ((80, 24), (40, 12)):
        session = Session((*WORK, RUN))
        async with running(session=session, **ports(Settings()), size=size) as it:
            it.app.interface.open("settings")
            await it.shows("the most used of 5")
            await it.press(*"hard")
            session.send(_submit())
            await it.until(lambda it=it: it.app.main.dock.panel)
            await it.shows("make test")
            it.clock.now += 5
            await it.press("y")
            await it.until(lambda it=it: it.session.sent(ReplyPermission))
            assert it.session.sent(ReplyPermission)[0].choice == "once"
            await it.until(lambda it=it: it.app.main.dock.panel is None)
            await it.shows("1 of 5")
            await it.press("ctrl+u", *"steps")
            await it.shows("max_steps")


def _submit() -> Any:
    from swecli.core.protocol.commands import Submit

    return Submit("go")


async def test_esc_rejects_the_approval_and_leaves_the_screen_open() -> None:
    session = Session((*WORK, RUN))
    async with running(session=session, **ports(Settings())) as it:
        it.app.interface.open("settings")
        await it.shows("the most used of 5")
        session.send(_submit())
        await it.until(lambda: (panel := it.app.main.dock.panel) is not None and panel.grace is not None)
        it.clock.now += 5
        await it.press("escape")
        await it.until(lambda: it.session.sent(ReplyPermission))
        assert it.session.sent(ReplyPermission)[0].choice == "reject"
        assert it.app.main.list_view is not None


async def test_after_a_revocation_the_next_rule_is_selected() -> None:
    grants = [rule("allow", f"Bash({name})", "granted", id=name) for name in ("one", "two", "three")]
    permissions = Permissions([*grants])
    async with running(**ports(permissions=permissions)) as it:
        it.app.interface.open("permissions")
        await it.shows("Permissions · 3", "›  Bash(one)")
        await it.press("down")
        await it.shows("›  Bash(two)")
        await it.press("ctrl+x")
        await it.shows("Permissions · 2", "›  Bash(three)")
        await it.press("ctrl+x")
        await it.shows("Permissions · 1", "›  Bash(one)")
        await it.press(*"Bash")
        await it.press("escape")
        await it.shows("›  Bash(one)")


async def test_a_grant_is_revoked_and_a_rule_tried_and_added() -> None:
    permissions = Permissions()
    async with running(**ports(permissions=permissions)) as it:
        it.app.interface.open("permissions")
        await it.shows("Permissions · 4", "Granted, in this folder", "31x", "no effect")
        await it.press("ctrl+x")
        await it.shows("Permissions · 3", "Revoked a1b2c3")
        await it.press("ctrl+x")
        await it.shows("This rule is not a grant")
        assert len(permissions.rules) == len(RULES) - 1
        await it.press(*"Bash(npm")
        await it.shows("Not a rule yet")
        await it.press(*" run *)")
        await it.shows("would have decided 3 of the last 120", "npm run build")
        await it.press("down", "enter")
        await it.until(lambda: permissions.added)
        assert permissions.added == [("project", "Bash(npm run *)")]


async def test_words_that_are_neither_a_rule_nor_part_of_one_are_answered() -> None:
    async with running(**ports(permissions=Permissions())) as it:
        it.app.interface.open("permissions", "nonsense")
        await it.shows("Permissions · 0 of 4", "No rule matches “nonsense”.", "Edit(/src/**)")


async def test_a_rule_for_a_program_that_starts_others_says_so_before_it_is_added() -> None:
    async with running(**ports(permissions=Permissions())) as it:
        it.app.interface.open("permissions", "Bash(find *)")
        await it.shows("would have decided 3 of the last 120", "find -exec can start any program or code")


async def test_what_an_answer_allowed_is_listed_and_revoked() -> None:
    session = Session()
    session.view.rules = (Rule("allow", "Edit(/notes.txt)", "session", "always, turn 1"),)
    async with running(session=session, **ports(permissions=Permissions([]))) as it:
        it.app.interface.open("permissions")
        await it.shows(
            "Permissions · 1", "Allowed by your answers", "Edit(/notes.txt)", "this session", "Ctrl+X revokes"
        )
        session.view.rules = ()
        await it.press("ctrl+x")
        await it.shows("Permissions · 0", "Revoked: Edit(/notes.txt)", "No rules yet")
        assert session.sent(RevokeRule) == [RevokeRule("Edit(/notes.txt)")]


async def sessions_open(it: Running) -> None:
    it.app.interface.open("sessions")
    await it.shows("Sessions · 3")


def opener(opened: list[str], next_session: Session | Exception) -> Sessions:
    def open_one(name: str) -> Any:
        async def run() -> Session:
            await asyncio.sleep(0)
            opened.append(name)
            if isinstance(next_session, Exception):
                raise next_session
            return next_session

        return run

    return Sessions(open_one)


async def test_a_session_is_found_looked_into_and_continued_in_place() -> None:
    opened: list[str] = []
    other = Session(history=DONE)
    async with running(**ports(sessions=opener(opened, other))) as it:
        await sessions_open(it)
        await it.shows("Fix the login bug", "1 min ago", "4 messages", "54K tokens", "$0.42", "what was answered")
        assert "\x1b" not in it.screen()
        await it.press(*"gpt-6", "enter")
        await it.until(lambda: opened)
        assert opened == ["20231113-def"]
        await it.shows("Fixed: ten pens", "Continued 20231113-def")
        assert it.session.closed
        assert it.editor.has_focus


@pytest.mark.parametrize(("first", "told"), [("what was asked in 20231114…", False), ("Why is it slow?", True)])
async def test_how_a_session_began_is_told_unless_its_messages_show_it(first: str, told: bool) -> None:
    port = opener([], Session())
    port.sessions = [replace(port.sessions[0], first=first), *port.sessions[1:]]
    async with running(**ports(sessions=port)) as it:
        await sessions_open(it)
        await it.shows("what was answered")
        assert (f"began with: {first}" in it.screen()) is told


async def test_what_can_not_be_continued_says_why() -> None:
    opened: list[str] = []
    async with running(**ports(sessions=opener(opened, Session()))) as it:
        await sessions_open(it)
        await it.shows("enter continues it here")
        await it.press("tab", *"far")
        await it.shows("enter says how to continue it")
        await it.press("enter")
        await it.shows("Another folder")
        await it.press("ctrl+u", *"held")
        await it.shows("! It is open elsewhere")
        await it.press("enter")
        await it.shows("It is open elsewhere")
        assert opened == []


@pytest.mark.parametrize(
    ("width", "shown"),
    [(80, ("1 min ago", "4 messages", "54K tokens", "$0.42")), (40, ("1 min ago",)), (24, ())],
)
async def test_titles_stay_readable_in_a_narrow_window(width: int, shown: tuple[str, ...]) -> None:
    def line(screen: str) -> str:
        return next((row for row in screen.split("\n") if "› " in row and "login bug" in row), "")

    async with running(**ports(sessions=opener([], Session())), size=(width, 24)) as it:
        await sessions_open(it)
        await it.sees(
            lambda screen: "".join(line(screen).split()) == "".join(("›Fix the login bug", *shown)).replace(" ", "")
        )


async def test_a_session_is_deleted_after_a_question_unless_it_is_open() -> None:
    port = opener([], Session())
    async with running(**ports(sessions=port)) as it:
        await sessions_open(it)
        await it.shows("Ctrl+X deletes it")
        await it.press("ctrl+x")
        await it.shows("Delete Fix the login bug?", "not undoable")
        await it.press("escape")
        await it.hides("not undoable")
        assert len(port.sessions) == 4
        port.refuses = "The disk is full."
        await it.press("ctrl+x")
        await it.shows("not undoable")
        await it.press("1")
        await it.shows("The disk is full.", "Sessions · 3")
        port.refuses = ""
        await it.press("ctrl+x")
        await it.shows("not undoable")
        await it.press("1")
        await it.shows("Sessions · 2", "Deleted: Fix the login bug")
        assert [session.id for session in port.sessions] == ["20231113-def", "20231112-ghi", "20231111-jkl"]
        await it.press(*"held", "ctrl+x")
        await it.shows("open in another swecli")
        assert len(port.sessions) == 3


async def test_a_session_is_found_by_what_was_said_in_it() -> None:
    async with running(**ports(sessions=opener([], Session()))) as it:
        await sessions_open(it)
        await it.press(*"needle")
        await it.shows("In the content", "Held", "found: where needle was said")


async def test_a_session_that_can_not_be_opened_leaves_a_session() -> None:
    opened: list[str] = []
    back = Session()

    async def new() -> Session:
        return back

    broken = opener(opened, StartError("it is damaged"))
    async with running(**ports(sessions=broken), new_session=new) as it:
        await sessions_open(it)
        await it.press("enter")
        await it.shows("it is damaged")
        await it.until(lambda: it.app.session.port is back)


async def test_a_conversation_is_opened_again_where_the_other_can_not_be() -> None:
    opened: list[str] = []
    again = Session(history=DONE)

    def open_one(name: str) -> Any:
        async def run() -> Session:
            opened.append(name)
            if name != "fake":
                raise StartError("it is damaged")
            return again

        return run

    async with running(session=Session(history=(TurnStarted("u1"), *DONE)), **ports(sessions=Sessions(open_one))) as it:
        await it.until(lambda: it.app.session.spoke)
        await sessions_open(it)
        await it.press("enter")
        await it.shows("it is damaged", "Fixed: ten pens")
        assert opened == [SESSIONS[0].id, "fake"]


async def test_the_list_of_sessions_can_be_the_first_screen() -> None:
    async with running(**ports(sessions=opener([], Session())), begins_with_sessions=True) as it:
        await it.shows("Sessions · 3", SESSIONS[0].title, "tab other folders")
        await it.press("escape")
        await it.hides("Sessions ·")
        assert it.editor.has_focus


async def test_a_screen_that_is_not_there_says_so() -> None:
    async with running() as it:
        it.app.interface.open("settings")
        await it.shows("This program has only a session")
        it.app.interface.open("sessions")
        await it.shows("Sessions are not stored here")


async def test_the_palette_offers_what_makes_sense_now() -> None:
    async with running(models=lambda: ("fake/model", "other/one")) as it:
        await it.press("ctrl+p")
        await it.shows("Command palette")
        await it.press(*"other")
        await it.shows("model: other/one")
        await it.press("ctrl+u", *"fake")
        await it.hides("model: fake/model")
        await it.press("ctrl+u", *"modeplan", "enter")
        await it.until(lambda: it.session.sent(SetMode))
        assert it.session.sent(SetMode)[0].mode == "plan"


async def test_the_palette_gets_the_models_of_the_servers_when_they_have_answered() -> None:
    session, asked = Session(), asyncio.Event()

    async def models() -> Sequence[ModelOffer]:
        await asked.wait()
        return (ModelOffer("local/served", "environment"),)

    session.offers.find = models  # type: ignore[method-assign]
    async with running(session=session, models=lambda: ("other/one",)) as it:
        await it.press("ctrl+p")
        await it.shows("Command palette")
        await it.press(*"model:")
        await it.shows("› model: other/one")
        await it.hides("model: local/served")
        asked.set()
        await it.shows("› model: other/one", "model: local/served")
        await it.press(*"served", "enter")
        await it.until(lambda: it.session.sent(SetModel))
        assert it.session.sent(SetModel)[0].model == "local/served"


async def test_the_palette_reads_names_once_and_asks_servers_once_a_minute() -> None:
    session, asked, read = Session(), Counter[str](), threading.Event()

    async def models() -> Sequence[ModelOffer]:
        asked["servers"] += 1
        return (ModelOffer("local/served", "environment"),)

    def names() -> Sequence[str]:
        asked["names"] += 1
        read.wait()
        return ("other/one",)

    async def opened() -> None:
        await it.press("ctrl+p")
        await it.shows("Command palette")
        await it.press(*"model:")
        await it.shows("model: other/one", "model: local/served")
        await it.press("escape")
        await it.hides("Command palette")

    session.offers.find = models  # type: ignore[method-assign]
    async with running(session=session, models=names) as it:
        it.app.interface.models.known._clock = lambda: it.clock.now
        try:
            it.post("ctrl+p")
            await it.shows("Looking for models…")
        finally:
            read.set()
        await it.shows("Command palette")
        await it.press("escape")
        await it.hides("Command palette")
        asked.clear()
        it.clock.now += RECENT
        await opened()
        await opened()
        assert asked == {"names": 2, "servers": 1}
        it.clock.now += RECENT
        await opened()
        assert asked["servers"] == 2
        session.offers.unlisted = ("http://a: no answer",)
        it.clock.now += RECENT
        await opened()
        await opened()
        assert asked["servers"] == 4


async def test_the_palette_leaves_out_what_has_to_wait() -> None:
    async with running(**ports(Settings())) as it:
        await it.shows("New session")  # what the start of a session resets is reset
        it.app.session.state.busy = True
        await it.press("ctrl+p")
        await it.shows("Command palette")
        await it.press(*"/clear")
        await it.hides("What clear does")
        await it.press("ctrl+u", *"/context")
        await it.shows("› /context")
        await it.press("enter")
        await it.shows("context got")


async def test_keys_that_come_at_once_act_in_order() -> None:
    async with running() as it:
        it.app.interface.open("help")
        await it.shows("Help ·")
        await it.at_once(*"nothing", "ctrl+u", *"/mode", "down", "enter")
        await it.until(lambda: it.app.main.list_view is None)
        assert it.text == "/model "


async def test_without_rules_it_is_said_what_that_means() -> None:
    async with running(**ports(permissions=Permissions([]))) as it:
        it.app.interface.open("permissions")
        await it.shows("Permissions · 0", "No rules yet", "type a rule to add it")


@pytest.mark.parametrize("screen", ["help", "context", "wire", "cache"])
async def test_keys_that_come_before_a_screen_is_there_count(screen: Screen) -> None:
    async with running(session=prepared(Inspected().fill(2))) as it:
        it.app.interface.open(screen)
        opened = it.app.main.list_view
        for key in ("slash", *"mode"):
            await it.app.on_key(events.Key(key, "/" if key == "slash" else key))
        await it.until(lambda: opened is not None and opened.has_focus_within)
        if isinstance(opened, ListScreen):
            assert opened.text == "/mode"
        elif screen != "wire":  # which has nothing to search
            assert isinstance(opened, Board)
            assert opened.words == "mode"
        assert it.text == ""


def test_the_command_that_was_named_comes_first_in_help() -> None:
    page = HelpPage(COMMANDS, Keymap(), lambda text: None)
    for query in ("undo", "/undo", "UNDO "):
        assert page.matching(query)[0].name == "/undo"
