"""/keys: what every key does."""

from __future__ import annotations

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.view import SessionPort
from swecli.core.protocol.blocks import TextBlock


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    instead = (TextBlock("There are no keys here; `swecli config` shows the section [keys] of the settings."),)
    return CommandResult(screen="keys", argument=arguments, instead=instead)


KEYS = SlashCommand("keys", "What every key does, and how to change it", _run, arguments="[words]")
