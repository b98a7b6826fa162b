"""/help: keys and commands."""

from __future__ import annotations

from collections.abc import Sequence

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.view import SessionPort
from swecli.core.protocol.blocks import TableBlock


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    return CommandResult(screen="help", argument=arguments)


HELP = SlashCommand("help", "Keys and commands", _run, aliases=("?",), arguments="[words]")


def command_table(commands: Sequence[SlashCommand]) -> TableBlock:
    """All commands as a table, for front-ends without a help screen."""
    rows = tuple(
        (
            f"/{command.name} {command.arguments}".rstrip(),
            command.summary,
            ", ".join(f"/{alias}" for alias in command.aliases),
        )
        for command in commands
    )
    return TableBlock(("Command", "What it does", "Also"), rows, "Commands")
