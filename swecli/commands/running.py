"""Running a slash command so that a defect of it ends nothing but itself."""

from __future__ import annotations

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.view import SessionPort

SHELL_USE = "! before a command runs it in your own shell, for example !git status; nothing was run or sent."
"""What is said of a lone exclamation mark."""


async def run_command(command: SlashCommand, port: SessionPort, arguments: str) -> CommandResult:
    """What the command shows; an internal failure of it is reported, and shown as an error."""
    try:
        return await command.run(port, arguments)
    except Exception as error:  # noqa: BLE001 - a defect of one command must end neither session nor screen
        port.report_defect(error)
        detail = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        return CommandResult.text(
            f"/{command.name} failed inside swecli ({detail}). The session is not affected; "
            "the details are in errors.log of the state directory.",
            "error",
        )
