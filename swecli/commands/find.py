"""/find: search the transcript."""

from __future__ import annotations

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.view import SessionPort
from swecli.core.protocol.blocks import TextBlock


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    instead = (TextBlock("There is no transcript on a screen here; /recall WORDS searches the session."),)
    return CommandResult(screen="find", argument=arguments, instead=instead)


FIND = SlashCommand("find", "Search the transcript", _run, arguments="[words]")
