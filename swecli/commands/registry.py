"""All slash commands, and what a line that begins with a slash means."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from swecli.commands.add_dir import ADD_DIR
from swecli.commands.base import SlashCommand
from swecli.commands.cache import CACHE
from swecli.commands.clear import CLEAR
from swecli.commands.compact import COMPACT
from swecli.commands.config import CONFIG
from swecli.commands.context import CONTEXT
from swecli.commands.copy import COPY
from swecli.commands.diff import DIFF
from swecli.commands.doctor import DOCTOR
from swecli.commands.effort import EFFORT
from swecli.commands.find import FIND
from swecli.commands.help import HELP
from swecli.commands.init import INIT
from swecli.commands.jobs import JOBS
from swecli.commands.keys import KEYS
from swecli.commands.login import LOGIN
from swecli.commands.logout import LOGOUT
from swecli.commands.mode import MODE
from swecli.commands.model import MODEL
from swecli.commands.permissions import PERMISSIONS
from swecli.commands.plan import PLAN
from swecli.commands.quit import QUIT
from swecli.commands.recall import RECALL
from swecli.commands.redo import REDO
from swecli.commands.resume import RESUME
from swecli.commands.status import STATUS
from swecli.commands.theme import THEME
from swecli.commands.todos import TODOS
from swecli.commands.undo import UNDO
from swecli.commands.usage import USAGE

COMMANDS: tuple[SlashCommand, ...] = (
    HELP,
    INIT,
    CONTEXT,
    CACHE,
    COMPACT,
    RECALL,
    FIND,
    COPY,
    UNDO,
    REDO,
    DIFF,
    MODEL,
    EFFORT,
    LOGIN,
    LOGOUT,
    MODE,
    PLAN,
    PERMISSIONS,
    TODOS,
    JOBS,
    THEME,
    KEYS,
    CONFIG,
    USAGE,
    STATUS,
    DOCTOR,
    ADD_DIR,
    CLEAR,
    RESUME,
    QUIT,
)
"""In the order in which they are listed."""

_LINE = re.compile(r"/([A-Za-z][\w-]*|\?)(?:\s+(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Invocation:
    """A known command and the text after its name."""

    command: SlashCommand
    arguments: str


@dataclass(frozen=True, slots=True)
class UnknownCommand:
    """A name that no command has. ``nearest`` is the likeliest one, or empty."""

    name: str
    nearest: str

    @property
    def message(self) -> str:
        hint = f"Did you mean /{self.nearest}?" if self.nearest else "/help lists the commands."
        return f"There is no command /{self.name}. {hint} Nothing was sent."


def parse(line: str, commands: Sequence[SlashCommand] = COMMANDS) -> Invocation | UnknownCommand | None:
    """What ``line`` asks for; None when it is text for the model. A path such as ``/etc/hosts is wrong`` is
    text: a command's name has no second slash and no dot."""
    match = _LINE.fullmatch(line.strip())
    if match is None:
        return None
    name, arguments = match.group(1), (match.group(2) or "").strip()
    command = find(name, commands)
    return Invocation(command, arguments) if command else UnknownCommand(name, nearest(name, commands))


def find(name: str, commands: Sequence[SlashCommand] = COMMANDS) -> SlashCommand | None:
    """The command of this name or alias, in any case of letters."""
    wanted = name.lower()
    return next((command for command in commands if wanted == command.name or wanted in command.aliases), None)


def nearest(name: str, commands: Sequence[SlashCommand] = COMMANDS) -> str:
    """The name of the command that ``name`` most likely means; empty when none is close."""
    names = {alias: command.name for command in commands for alias in (command.name, *command.aliases)}
    wanted = name.lower()
    begins = [known for known in names if known.startswith(wanted)]
    close = begins or difflib.get_close_matches(wanted, names, n=1, cutoff=0.5)
    return names[close[0]] if close else ""
