"""A slash command that fails internally."""

from __future__ import annotations

from swecli.commands.base import CommandResult, SlashCommand, run_command
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
