"""/clear: a new conversation."""

from __future__ import annotations

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.view import SessionPort


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    return CommandResult(screen="clear")


CLEAR = SlashCommand(
    "clear", "Start a new conversation; this one stays stored", _run, aliases=("new", "reset"), while_busy=False
)
