"""All slash commands, and what a line that begins with a slash means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from swecli.commands.base import SlashCommand
from swecli.commands.context import CACHE, COMPACT, CONTEXT, RECALL, WIRE
from swecli.commands.elsewhere import ELSEWHERE
from swecli.commands.export import EXPORT, HANDOFF
from swecli.commands.extensions import AGENTS, CUSTOM, SKILL, SKILLS, custom_commands
from swecli.commands.files import ADD_DIR, DIFF, REDO, UNDO
from swecli.commands.git import COMMIT, REVIEW
from swecli.commands.hooks import HOOKS
from swecli.commands.init import INIT
from swecli.commands.language_servers import LSP
from swecli.commands.mcp import MCP, prompt_commands
from swecli.commands.memory import MEMORY
from swecli.commands.models import EFFORT, LOGIN, LOGOUT, MODEL
from swecli.commands.playbook import PLAYBOOK
from swecli.commands.rewind import FORK, RENAME, REWIND
from swecli.commands.screens import CLEAR, CONFIG, FIND, HELP, KEYS, PERMISSIONS, QUIT, RESUME, THEME, VIM
from swecli.commands.sentinel import SENTINEL
from swecli.commands.session import (
    BTW,
    COPY,
    DOCTOR,
    JOBS,
    MODE,
    PLAN,
    STATUS,
    TODOS,
    USAGE,
)
from swecli.commands.where import WHERE
from swecli.core import edit_distance
from swecli.core.protocol.blocks import TableBlock

if TYPE_CHECKING:
    from swecli.core.engine.session import Session

COMMANDS: tuple[SlashCommand, ...] = (
    HELP,
    INIT,
    CONTEXT,
    CACHE,
    COMPACT,
    WIRE,
    SENTINEL,
    RECALL,
    FIND,
    WHERE,
    BTW,
    COPY,
    EXPORT,
    HANDOFF,
    UNDO,
    REDO,
    REWIND,
    DIFF,
    REVIEW,
    COMMIT,
    MODEL,
    EFFORT,
    LOGIN,
    LOGOUT,
    MODE,
    PLAN,
    PERMISSIONS,
    HOOKS,
    MCP,
    LSP,
    PLAYBOOK,
    TODOS,
    MEMORY,
    JOBS,
    THEME,
    KEYS,
    VIM,
    CONFIG,
    USAGE,
    STATUS,
    DOCTOR,
    SKILLS,
    SKILL,
    CUSTOM,
    AGENTS,
    ADD_DIR,
    CLEAR,
    RESUME,
    FORK,
    RENAME,
    QUIT,
)
"""In the order in which they are listed."""


def commands_of(session: Session) -> tuple[SlashCommand, ...]:
    """All commands that count in a session: those of swecli, then Markdown commands and skills as they are now, then
    prompts of MCP servers. May read files."""
    return (*COMMANDS, *session_commands(session))


def session_commands(session: Session) -> tuple[SlashCommand, ...]:
    """Those of them that do not come with swecli."""
    own = (one for one in custom_commands(session) if find(one.name) is None)
    return (*own, *prompt_commands(session))


def command_table(commands: Sequence[SlashCommand] = COMMANDS) -> TableBlock:
    rows = (
        (f"/{each.name} {each.arguments}".rstrip(), each.summary, ", ".join(f"/{alias}" for alias in each.aliases))
        for each in commands
    )
    return TableBlock(("Command", "What it does", "Also"), tuple(rows), "Commands")


_LINE = re.compile(r"/([A-Za-z][\w-]*(?::[\w-]+)*|\?)(?:\s+(.*))?", re.DOTALL)


class Invocation(Struct, frozen=True):
    command: SlashCommand
    arguments: str


class UnknownCommand(Struct, frozen=True):
    """A name that no command has. ``nearest`` is the likeliest one, or empty; ``elsewhere`` says what to do where
    another agent has a command of this name."""

    name: str
    nearest: str
    elsewhere: str = ""

    @property
    def message(self) -> str:
        if self.elsewhere:
            return f"/{self.name} is not a command here: {self.elsewhere}. Nothing was sent."
        hint = f"Did you mean /{self.nearest}?" if self.nearest else "/help lists the commands."
        return f"Unknown command /{self.name}. {hint} Nothing was sent."


def parse(line: str, commands: Sequence[SlashCommand] = COMMANDS) -> Invocation | UnknownCommand | None:
    """What ``line`` asks for; None when it is text for the model. A path such as ``/etc/hosts is wrong`` is
    text: a command's name has no second slash and no dot."""
    match = _LINE.fullmatch(line.strip())
    if match is None:
        return None
    name, arguments = match.group(1), (match.group(2) or "").strip()
    command = find(name, commands)
    if command is not None:
        return Invocation(command, arguments)
    return UnknownCommand(name, nearest(name, commands), ELSEWHERE.get(name.lower(), ""))


def find(name: str, commands: Sequence[SlashCommand] = COMMANDS) -> SlashCommand | None:
    """The command of this name or alias, in any case of letters."""
    wanted = name.lower()
    exact = (command for command in commands if name == command.name or name in command.aliases)
    return next(exact, None) or next(
        (command for command in commands if wanted == command.name or wanted in command.aliases), None
    )


def nearest(name: str, commands: Sequence[SlashCommand] = COMMANDS) -> str:
    """The name of the command that ``name`` is a slip of; empty when none is close."""
    names = {command.name: command.name for command in commands}  # before aliases, which a slip may be as near to
    names |= {alias: command.name for command in commands for alias in command.aliases if alias not in names}
    return names.get(edit_distance.nearest(name.lower(), names), "")
