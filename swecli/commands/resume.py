"""/resume: the stored sessions, to go on with one of them."""

from __future__ import annotations

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.view import SessionPort
from swecli.core.protocol.blocks import TextBlock


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    instead = (TextBlock("`swecli sessions` lists the sessions of this folder, `swecli -r ID` continues one."),)
    return CommandResult(screen="sessions", argument=arguments, instead=instead)


RESUME = SlashCommand(
    "resume", "Stored sessions: look into them, continue one", _run, aliases=("sessions",), arguments="[words]"
)
