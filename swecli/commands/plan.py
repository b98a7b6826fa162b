"""/plan: switch to the mode that changes nothing."""

from __future__ import annotations

from swecli.commands.base import CommandResult, SlashCommand
from swecli.commands.mode import MODE_MEANINGS
from swecli.core.engine.view import SessionPort
from swecli.core.protocol.commands import SetMode


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    if arguments:
        return CommandResult.text(
            "/plan stands alone: it switches the mode. Nothing was changed or sent; type /plan, then the message.",
            "error",
        )
    port.send(SetMode("plan"))
    return CommandResult.text(f"Mode plan: {MODE_MEANINGS['plan']}. /mode default ends it.")


PLAN = SlashCommand("plan", "Switch to plan mode: look, change nothing", _run)
