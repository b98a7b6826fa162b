"""/theme: the colours of the screen."""

from __future__ import annotations

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.view import SessionPort
from swecli.core.protocol.blocks import TextBlock


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    instead = (
        TextBlock("There are no colours to choose here; `theme` in the section [ui] of the settings sets them."),
    )
    return CommandResult(screen="pick_theme", argument=arguments, instead=instead)


THEME = SlashCommand("theme", "Choose the colours of the screen", _run, arguments="[name]")
