"""All slash commands, and what a line that begins with a slash means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from swecli.commands.base import SlashCommand
from swecli.commands.context import CACHE, COMPACT, CONTEXT, RECALL, WIRE
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
    EXPORT,
    HANDOFF,
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

_LATER = "not available in this version"
_FILES = "mention a file with @ to attach it; /add-dir adds a folder"

ELSEWHERE: Mapping[str, str] = {
    "share": "swecli uploads nothing; /export writes the session to a file",
    "restore": "/rewind goes back to before a message, /undo reverts the newest file changes",
    "continue": "/resume lists the stored sessions; swecli -c continues the newest",
    "chat": "/resume lists the stored sessions",
    "remember": "# at the start of a message adds a line to the instructions; /memory lists the memories",
    "instructions": "/status names the instruction files in use; /init writes OPENCLI.md",
    "agent": "/agents lists the agent profiles",
    "prompts": "/commands lists your own commands",
    "plugin": f"plugins are {_LATER}",
    "plugins": f"plugins are {_LATER}",
    "editor": "Ctrl+G opens the message in your editor",
    "terminal-setup": "nothing to set up: Ctrl+J is a newline everywhere, and so is \\ before Enter",
    "keybindings": "/keys shows and changes them",
    "hotkeys": "/keys shows and changes them",
    "shortcuts": "/keys shows them, ? lists keys and commands",
    "statusline": "the setting ui.status_line: /config status_line",
    "output-style": "Ctrl+O switches the view; instructions in OPENCLI.md set the model's tone",
    "details": "Ctrl+O switches between short, normal and full view",
    "verbose": "Ctrl+O switches between short, normal and full view",
    "allowed-tools": "/permissions shows, adds and revokes rules",
    "yolo": "/mode auto; swecli --yolo never asks",
    "sandbox": "/status shows how commands are sandboxed, /doctor why",
    "trust": "swecli asks about a folder when it starts there; swecli --trust trusts it once",
    "tasks": "/jobs lists background commands, /todos the model's steps",
    "bashes": "/jobs lists background commands",
    "ps": "/jobs lists background commands",
    "run": "! before a command runs it in your shell: !make test",
    "test": "! before a command runs it in your shell: !make test",
    "lint": "! before a command runs it in your shell: !make lint",
    "git": "! before a command runs it in your shell: !git log",
    "shell": "! before a command runs it in your shell",
    "bash": "! before a command runs it in your shell",
    "add": _FILES,
    "read-only": _FILES,
    "drop": "/context shows what fills the window, /compact free moves old output out",
    "ls": f"/context shows what the model sees; {_FILES}",
    "files": f"/context shows what the model sees; {_FILES}",
    "paste": "the terminal's paste key, or Ctrl+V for an image",
    "image": "mention the file with @, or paste it",
    "web": "give the address in a message",
    "architect": "/plan only reads and proposes",
    "ask": "/plan only reads and proposes, /btw asks a side question",
    "code": "/mode default",
    "models": "/model lists the available models",
    "provider": "/model lists the available models, /login adds a key",
    "providers": "/model lists the available models, /login adds a key",
    "connect": "/model lists the available models, /login adds a key",
    "auth": "/login adds a key",
    "api-key": "/login adds a key",
    "think": "/effort sets the reasoning effort",
    "reasoning": "/effort sets the reasoning effort",
    "history": "/resume lists the stored sessions, Ctrl+R searches your messages",
    "search": "/find searches the transcript, /recall the whole session",
    "bug": "swecli sends no reports; /doctor shows what works, errors.log in the state directory has the details",
    "feedback": "swecli sends no reports; /doctor shows what works",
    "upgrade": "your package manager upgrades swecli, which never checks for updates",
    "update": "your package manager upgrades swecli, which never checks for updates",
    "release-notes": "CHANGELOG.md has them",
    "version": "/status shows it",
    "about": "/status shows version, model and folder",
    "privacy-settings": "swecli talks only to the model provider you choose",
    "ide": "there is no IDE extension",
}
"""By name: what to do, as a clause."""


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


class CommandCall(Struct, frozen=True):
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


def parse(line: str, commands: Sequence[SlashCommand] = COMMANDS) -> CommandCall | UnknownCommand | None:
    """What ``line`` asks for; None when it is text for the model. A path such as ``/etc/hosts is wrong`` is
    text: a command's name has no second slash and no dot."""
    match = _LINE.fullmatch(line.strip())
    if match is None:
        return None
    name, arguments = match.group(1), (match.group(2) or "").strip()
    command = find(name, commands)
    if command is not None:
        return CommandCall(command, arguments)
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
