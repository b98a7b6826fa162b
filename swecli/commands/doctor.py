"""/doctor: what works and what does not."""

from __future__ import annotations

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.view import SessionPort


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    if arguments not in ("", "online"):
        return CommandResult.text("/doctor looks at what is set up; /doctor online asks each provider, too.", "error")
    blocks = await port.examine(online=arguments == "online")
    return CommandResult(tuple(blocks)) if blocks else CommandResult.text("There is nothing to examine here.")


DOCTOR = SlashCommand("doctor", "Check providers, keys, models and the sandbox", _run, arguments="[online]")
