"""What slash commands open."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast, get_args

import pytest

from swecli.commands.base import CommandResult, Screen, SlashCommand
from swecli.commands.screens import PERMISSIONS
from swecli.commands.usage import USAGE
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.commands import SetMode
from swecli.core.protocol.events import ItemCheckpointed, ItemStarted
from swecli.core.protocol.messages import ToolCallPart
from swecli.tui.file_editing import edit_file
from tests.support.fake_session import FakeSession
from tests.support.inspected import Inspected
from tests.tui.screens.test_context_screens import prepared
from tests.tui.support import COMMANDS, Accounts, running

NO_ACCOUNTS = Accounts(lambda provider, key: ("", ""))


@pytest.mark.parametrize("name", get_args(Screen))
async def test_everything_that_a_command_can_ask_for_is_there(name: Screen) -> None:
    async with running(
        session=prepared(Inspected().fill(8)), keep_model=lambda ref: "Kept.", accounts=NO_ACCOUNTS.anew
    ) as it:
        it.app.main.transcript.show((TextBlock("What /clear takes away."),))
        await it.shows("What /clear takes away.")
        before = it.screen()
        it.app.interface.open(name)
        await it.until(lambda: it.screen() != before or not it.app.is_running)


@pytest.mark.parametrize(("text", "said"), [("Use tabs.", "Wrote"), (None, "unchanged")])
async def test_what_an_editor_made_of_a_memory_is_said_in_the_transcript(
    text: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def typed(app: Any, path: Path) -> None:
        if text is not None:
            await asyncio.to_thread(path.write_text, text)

    monkeypatch.setattr("swecli.tui.external.open_file", typed)
    async with running() as it:
        await edit_file(it.app.interface, tmp_path / "memory" / "a.md")
        await it.shows(said)


async def test_with_yolo_there_are_two_modes_and_the_screen_names_it() -> None:
    session = prepared(Inspected().fill(2))
    session.view.yolo = True
    async with running(session=session) as it:
        await it.shows("yolo · ")
        await it.press("shift+tab")
        await it.shows("Mode: plan (read-only")
        assert it.session.sent(SetMode) == [SetMode("plan")]
        it.app.interface.open("pick_mode")
        await it.shows("1   yolo", "everything runs without approval", "2 ● plan")
        assert "accept-edits" not in it.screen()


async def test_usage_says_how_to_set_a_price_and_asks_only_on_request() -> None:
    session = prepared(Inspected().fill(2))
    session.offers.unpriced = ("fake/model",)
    async with running(session=session, commands=lambda: (*COMMANDS, USAGE)) as it:
        await it.say("/usage")
        await it.shows("/usage price 3 15 0.3 sets", "Model requests")
        assert it.app.main.dock.panel is None
        await it.say("/usage price")
        await it.shows("$ per million")
        assert it.app.main.dock.panel is not None


@pytest.mark.parametrize(
    ("typed", "kept", "shown"),
    [
        ("and now the tests", "and now the tests", "Not a price, so it was not sent"),
        ("3", "", "Unknown command /usage"),
        ("/other", "", "Unknown command /other"),
    ],
)
async def test_what_is_typed_where_a_price_is_asked_for_is_not_lost(typed: str, kept: str, shown: str) -> None:
    async with running(session=prepared(Inspected().fill(2))) as it:
        it.app.interface.open("price", "fake/model")
        await it.shows("Price of fake/model")
        await it.press(*["space" if sign == " " else sign for sign in typed], "enter")
        await it.until(lambda: it.text == kept and it.editor.has_focus)
        await it.shows(shown)


async def test_a_command_that_calls_a_tool_stands_above_the_call() -> None:
    ended = asyncio.Event()

    async def run(port: Any, text: str) -> CommandResult:
        port.emit(ItemStarted("t1", "tool", "write_file"))
        port.emit(ItemCheckpointed("t1", ToolCallPart("c", "write_file", '{"path": "GUIDE.md"}'), title="GUIDE.md"))
        await ended.wait()
        return CommandResult.text("Wrote the guide.")

    command = SlashCommand("guide", "Write a guide", run, while_busy=False)
    async with running(commands=lambda: (*COMMANDS, command)) as it:
        await it.say("/guide")
        await it.shows("/guide", "Write GUIDE.md")
        ended.set()
        await it.shows("Wrote the guide.")
        screen = it.screen()
        assert screen.count("/guide") == 1
        assert screen.index("/guide") < screen.index("Write GUIDE.md") < screen.index("Wrote the guide.")


async def test_permissions_trust_trusts_the_folder_and_reopens_the_session() -> None:
    class Gate:
        def __init__(self, trouble: str = "") -> None:
            self.trouble = trouble
            self.answers: list[str] = []

        def answer(self, choice: str) -> str:
            self.answers.append(choice)
            return self.trouble

        def question(self) -> None:
            return None

        def items(self) -> tuple[()]:
            return ()

    gate, opened = Gate("Could not store your answer (full)."), FakeSession()

    async def again() -> FakeSession:
        return opened

    async with running(commands=lambda: (PERMISSIONS,), trust=cast("Any", gate), new_session=again) as it:
        await it.say("/permissions trust")
        await it.shows("Could not store your answer (full).")
        assert it.app.session.port is it.session
        gate.trouble = ""
        await it.say("/permissions trust")
        await it.until(lambda: it.app.session.port is opened)
        await it.shows("This folder is now trusted")
    assert gate.answers == ["trust", "trust"]
