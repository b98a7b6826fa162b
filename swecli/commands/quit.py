"""/quit: end the program."""

from __future__ import annotations

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.view import SessionPort


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    return CommandResult(screen="quit")


QUIT = SlashCommand("quit", "End swecli; the conversation is stored", _run, aliases=("exit", "q"))
