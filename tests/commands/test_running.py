"""Slash commands that fail internally, or get words that they do not take."""

from __future__ import annotations

import pytest

from swecli.commands.base import CommandResult, SlashCommand, run_command
from swecli.commands.registry import COMMANDS, find
from swecli.core.engine.session import Session
from swecli.core.protocol.blocks import TextBlock
from tests.support.fake_session import FakeSession


async def test_a_defect_of_a_command_is_reported_and_shown_and_ends_nothing() -> None:
    async def broken(_port: Session, _arguments: str) -> CommandResult:
        raise KeyError("nothing\nhere")

    session = FakeSession()
    result = await run_command(SlashCommand("broken", "", broken), session, "")
    (block,) = result.blocks
    assert isinstance(block, TextBlock)
    assert block.style == "error"
    assert "/broken failed inside swecli (KeyError: 'nothing\\nhere')" in block.text
    assert [type(error) for error in session.defects] == [KeyError]
    assert not session.closed


@pytest.mark.parametrize("name", [command.name for command in COMMANDS if not command.arguments])
async def test_a_command_without_arguments_refuses_words_even_during_a_turn(name: str) -> None:
    command = find(name)
    assert command is not None
    (block,) = (await run_command(command, FakeSession(), "something else")).blocks
    assert block == TextBlock(f"/{name} takes no words. Nothing was done.", "error")
    assert not command.needs_rest("something else")


async def test_an_own_command_gets_its_words() -> None:
    async def echo(_session: Session, words: str) -> CommandResult:
        return CommandResult.text(words)

    own = SlashCommand("own", "", echo, own=True)
    assert (await run_command(own, FakeSession(), "some words")).blocks == (TextBlock("some words"),)


def test_words_to_complete_belong_to_commands_with_arguments() -> None:
    with_words = [command for command in COMMANDS if list(command.words(FakeSession()))]
    assert {"mode", "compact", "export", "plan"} <= {command.name for command in with_words}
    for command in with_words:
        texts = [word.text for word in command.words(FakeSession())]
        assert command.arguments
        assert all(texts)
        assert len(set(texts)) == len(texts)
