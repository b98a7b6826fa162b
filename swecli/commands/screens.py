"""Commands that open a screen where there is one: /config, /help, /keys, /find, /theme."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.protocol.blocks import TableBlock, TextBlock

if TYPE_CHECKING:
    from swecli.core.engine.session import Session


async def _run_help(port: Session, arguments: str) -> CommandResult:
    return CommandResult(screen="help", argument=arguments)


HELP = SlashCommand("help", "Keys and commands", _run_help, aliases=("?",), arguments="[words]")


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


async def _run_keys(port: Session, arguments: str) -> CommandResult:
    instead = (TextBlock("No keys here; `swecli config` shows the [keys] settings."),)
    return CommandResult(screen="keys", argument=arguments, instead=instead)


KEYS = SlashCommand("keys", "Show and change key bindings", _run_keys, arguments="[words]")


async def _run_find(port: Session, arguments: str) -> CommandResult:
    instead = (TextBlock("There is no transcript to search here; /recall WORDS searches the session."),)
    return CommandResult(screen="find", argument=arguments, instead=instead)


FIND = SlashCommand("find", "Search the transcript", _run_find, arguments="[words]")


async def _run_theme(port: Session, arguments: str) -> CommandResult:
    instead = (TextBlock("There are no colours to choose here; ui.theme in the settings sets them."),)
    return CommandResult(screen="pick_theme", argument=arguments, instead=instead)


THEME = SlashCommand("theme", "Choose a colour theme", _run_theme, arguments="[name]")


async def _run_config(port: Session, arguments: str) -> CommandResult:
    instead = (TextBlock("`swecli config` shows every setting; `swecli config set KEY VALUE` changes one."),)
    return CommandResult(screen="settings", argument=arguments, instead=instead)


CONFIG = SlashCommand(
    "config", "Show, search and change settings", _run_config, aliases=("settings",), arguments="[words]"
)
