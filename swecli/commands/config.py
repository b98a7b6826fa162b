"""/config: every setting, where it comes from, and changing it."""

from __future__ import annotations

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.view import SessionPort
from swecli.core.protocol.blocks import TextBlock


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    instead = (TextBlock("`swecli config` shows every setting; `swecli config set KEY VALUE` changes one."),)
    return CommandResult(screen="settings", argument=arguments, instead=instead)


CONFIG = SlashCommand("config", "All settings: look, search, change", _run, aliases=("settings",), arguments="[words]")
