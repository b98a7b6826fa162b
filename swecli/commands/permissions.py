"""/permissions: the rules about what runs, with what was granted."""

from __future__ import annotations

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.view import SessionPort
from swecli.core.protocol.blocks import TextBlock


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    instead = (TextBlock("`swecli permissions` lists the rules of this folder, adds and revokes them."),)
    return CommandResult(screen="permissions", argument=arguments, instead=instead)


PERMISSIONS = SlashCommand(
    "permissions",
    "Rules about what runs unasked: look, add, revoke",
    _run,
    aliases=("approvals",),
    arguments="[words | rule]",
)
