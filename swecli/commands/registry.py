"""All slash commands, and parsing of lines that begin with a slash."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from swecli.commands.base import SlashCommand, listed, other_names
from swecli.commands.compaction import COMPACT
from swecli.commands.context import CONTEXT, RECALL
from swecli.commands.export import EXPORT, HANDOFF
from swecli.commands.extensions import AGENTS, CUSTOM, SKILL, SKILLS, custom_commands
from swecli.commands.files import ADD_DIR, DIFF, REDO, UNDO
from swecli.commands.jobs import JOBS
from swecli.commands.mode import MODE
from swecli.commands.models import EFFORT, LOGIN, LOGOUT, MODEL
from swecli.commands.prompts import prompt_commands
from swecli.commands.requests import CACHE, WIRE
from swecli.commands.rewind import FORK, RENAME, REWIND
from swecli.commands.screens import CLEAR, CONFIG, FIND, HELP, KEYS, PERMISSIONS, QUIT, RESUME, THEME, VIM
from swecli.commands.session import BTW, COPY, DOCTOR, PLAN, STATUS, TODOS
from swecli.commands.usage import USAGE
from swecli.core import edit_distance
from swecli.core.protocol.blocks import TableBlock
from swecli.features import wirings

if TYPE_CHECKING:
    from swecli.core.engine.session import Session

_PLUGINS = "`swecli plugin` adds, lists and removes them; /commands, /skills and /agents list what they bring"
_FILES = "mention a file with @ to attach it; /add-dir adds a folder"
_LINE_BREAKS = "Ctrl+J, and \\ before Enter, insert a line break in every terminal"
_LOOK_HERE = "/doctor shows what works, and errors.log in the state directory has the details"
_NO_REPORTS = f"swecli sends no reports; {_LOOK_HERE}"

ELSEWHERE: Mapping[str, str] = {
    "share": "swecli uploads nothing; /export writes the session to a file",
    "unshare": "swecli uploads nothing; /export writes the session to a file",
    "copy-context": "/export writes the conversation to a file",
    "import": "swecli sessions import FILE",
    "load": "/resume lists the stored sessions",
    "session": "/status names the session, /resume lists all",
    "name": "/rename NAME names the session",
    "clone": "/fork continues in a copy of the session",
    "tree": "/rewind goes back to before a message, /fork continues in a copy of the session",
    "restore": "/rewind goes back to before a message, /undo reverts the newest file changes",
    "continue": "/resume lists the stored sessions; swecli -c continues the newest",
    "chat": "/resume lists the stored sessions",
    "cd": "start swecli in the other folder; /add-dir adds one to this session",
    "directory": "/add-dir adds a folder to this session",
    "dir": "/add-dir adds a folder to this session",
    "pwd": "/status shows the folder",
    "title": "/rename NAME names the session",
    "revert": "/undo reverts the newest file changes, /rewind goes back to before a message",
    "remember": "# at the start of a message adds a line to the instructions; /memory lists the memories",
    "instructions": "/status names the instruction files in use; /init writes OPENCLI.md",
    "subagents": "/agents lists the agent profiles",
    "agent": "/agents lists the agent profiles",
    "prompts": "/commands lists your own commands",
    "plugin": _PLUGINS,
    "plugins": _PLUGINS,
    "marketplace": _PLUGINS,
    "rules": "/status names the rules in use and the files that they are for",
    "editor": "Ctrl+G opens the message in your editor",
    "edit": "Ctrl+G opens the message in your editor",
    "multiline-mode": _LINE_BREAKS,
    "voice": "there is no voice input",
    "terminal-setup": _LINE_BREAKS,
    "keybindings": "/keys shows and changes them",
    "hotkeys": "/keys shows and changes them",
    "shortcuts": "/keys shows them, ? lists keys and commands",
    "statusline": "/config status_line sets the command that prints it",
    "output-style": "Ctrl+O switches the view; instructions in OPENCLI.md set the model's tone",
    "details": "Ctrl+O switches between short, normal and full view",
    "verbose": "Ctrl+O switches between short, normal and full view",
    "personality": "instructions in OPENCLI.md set the model's tone",
    "focus": "Ctrl+O switches between short, normal and full view",
    "themes": "/theme lists and previews them",
    "color": "/theme lists and previews them",
    "experimental": "/config lists all settings",
    "keymap": "/keys shows and changes them",
    "tools": "/context shows the tools and their tokens, /mcp those of servers, /permissions what may run",
    "auto": "/mode auto",
    "accept": "/mode accept-edits",
    "approve": "answer in the panel; /permissions shows, adds and revokes rules",
    "allowed-tools": "/permissions shows, adds and revokes rules",
    "yolo": "/mode auto; swecli --yolo never asks",
    "sandbox": "/status shows how commands are sandboxed, /doctor why",
    "trust": "swecli asks about a folder when it starts there; swecli --trust trusts it once",
    "tasks": "/jobs lists background commands, /todos the model's steps",
    "bashes": "/jobs lists background commands",
    "ps": "/jobs lists background commands",
    "stop": "Esc interrupts the turn, /jobs stop JOB stops a background command",
    "kill": "/jobs stop JOB stops a background command",
    "run": "!COMMAND runs a command in your shell",
    "test": "!make test runs the tests in your shell",
    "lint": "!make lint runs the linters in your shell",
    "git": "!git log runs git in your shell",
    "shell": "!COMMAND runs a command in your shell",
    "bash": "!COMMAND runs a command in your shell",
    "pr-comments": "!gh pr view --comments shows them",
    "security-review": "/review security",
    "loop": "swecli starts nothing by itself; cron can run swecli -p",
    "schedule": "swecli starts nothing by itself; cron can run swecli -p",
    "install-github-app": "there is no app to install; in CI, swecli -p reviews a change",
    "map": "/where WORDS shows the likely files and lines",
    "map-refresh": "/where WORDS shows the likely files and lines; the index follows the files",
    "mention": _FILES,
    "add": _FILES,
    "read-only": _FILES,
    "drop": "/context shows what fills the window, /compact free moves old output out",
    "ls": f"/context shows what the model sees; {_FILES}",
    "files": f"/context shows what the model sees; {_FILES}",
    "paste": "the terminal's paste key inserts text, Ctrl+V an image",
    "file": _FILES,
    "attach": "mention a file or an image with @, or paste an image",
    "img": "mention the file with @, or paste it",
    "image": "mention the file with @, or paste it",
    "side": "/btw asks a side question",
    "pr": "!gh pr create opens one",
    "issue": "!gh issue view 12 shows one",
    "web": "give the address in a message",
    "architect": "/plan only reads and proposes",
    "ask": "/plan only reads and proposes, /btw asks a side question",
    "code": "/mode default",
    "chat-mode": "/mode lists the modes",
    "collab": "/mode lists the modes",
    "models": "/model lists the available models",
    "provider": "/model lists the available models, /login adds a key",
    "providers": "/model lists the available models, /login adds a key",
    "connect": "/model lists the available models, /login adds a key",
    "auth": "/login adds a key",
    "api-key": "/login adds a key",
    "think": "/effort sets the reasoning effort",
    "think-tokens": "/effort sets the reasoning effort",
    "reasoning-effort": "/effort sets the reasoning effort",
    "fast": "/effort low thinks less, /model selects another model",
    "variant": "/effort sets the reasoning effort",
    "reasoning": "/effort sets the reasoning effort",
    "history": "/resume lists the stored sessions, Ctrl+R searches your messages",
    "search": "/find searches the transcript, /recall the whole session",
    "bug": _NO_REPORTS,
    "feedback": _NO_REPORTS,
    "upgrade": "your package manager upgrades swecli, which never checks for updates",
    "update": "your package manager upgrades swecli, which never checks for updates",
    "release-notes": "CHANGELOG.md has them",
    "changelog": "CHANGELOG.md has it",
    "reload": "changed instructions, skills and commands count at once; settings, see /config",
    "report": _NO_REPORTS,
    "debug": _LOOK_HERE,
    "version": "/status shows it",
    "about": "/status shows version, model and folder",
    "privacy": "swecli talks only to the model provider you choose",
    "privacy-settings": "swecli talks only to the model provider you choose",
    "ide": "there is no IDE extension",
}
"""By name: alternative as a clause."""


_OWN: tuple[SlashCommand, ...] = (
    HELP,
    CONTEXT,
    CACHE,
    COMPACT,
    WIRE,
    RECALL,
    FIND,
    BTW,
    COPY,
    EXPORT,
    HANDOFF,
    UNDO,
    REDO,
    REWIND,
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


def _with_features() -> tuple[SlashCommand, ...]:
    """Those of the features among swecli's own."""
    listed = list(_OWN)
    for wiring in wirings():
        index = next(index for index, command in enumerate(listed) if command.name == wiring.before)
        listed[index:index] = wiring.commands()
    return tuple(listed)


COMMANDS = _with_features()
"""In order of display; those ``under`` another work, but lists leave them out."""


def commands_of(session: Session) -> tuple[SlashCommand, ...]:
    """All commands of a session: swecli's own, then present Markdown commands and skills, then prompts of MCP servers.
    May read files."""
    return (*COMMANDS, *session_commands(session))


def session_commands(session: Session) -> tuple[SlashCommand, ...]:
    """Commands of a session that are not swecli's own."""
    own = (command for command in custom_commands(session) if find(command.name) is None)
    return (*own, *prompt_commands(session))


def command_table(commands: Sequence[SlashCommand] = COMMANDS) -> TableBlock:
    rows = (
        (f"/{each.name} {each.arguments}".rstrip(), each.summary, other_names(each, commands))
        for each in listed(commands)
    )
    return TableBlock(("Command", "What it does", "Also"), tuple(rows), "Commands")


_LINE = re.compile(r"/([A-Za-z0-9][\w-]*(?::[\w-]+)*|\?)(?:\s+(.*))?", re.DOTALL)


class CommandCall(Struct, frozen=True):
    command: SlashCommand
    arguments: str


class UnknownCommand(Struct, frozen=True):
    """An unknown name. ``nearest`` is the likeliest command, or empty; ``elsewhere`` is the alternative to another
    agent's command of this name."""

    name: str
    nearest: str
    elsewhere: str = ""

    @property
    def message(self) -> str:
        if self.elsewhere:
            return f"/{self.name} is not a command here: {self.elsewhere}. Nothing was sent."
        path = f"/help lists the commands; write a path as /{self.name}/."
        hint = f"Did you mean /{self.nearest}?" if self.nearest else path
        return f"Unknown command /{self.name}. {hint} Nothing was sent."


def parse(line: str, commands: Sequence[SlashCommand] = COMMANDS) -> CommandCall | UnknownCommand | None:
    """Parse a line; None if it is text for the model. A path such as ``/etc/hosts is wrong`` or ``/tmp/ is full`` is
    text: a command's name has no second slash and no dot. So is ``/2 of them``, unless a command has this name. The
    disk does not matter, so a line means the same everywhere."""
    match = _LINE.fullmatch(line.strip())
    if match is None:
        return None
    name, arguments = match.group(1), (match.group(2) or "").strip()
    command = find(name, commands)
    if command is not None:
        return CommandCall(command, arguments)
    if name[0].isdigit():
        return None
    return UnknownCommand(name, nearest(name, commands), ELSEWHERE.get(name.lower(), ""))


def find(name: str, commands: Sequence[SlashCommand] = COMMANDS) -> SlashCommand | None:
    """The command of this name or alias, ignoring case."""
    wanted = name.lower()
    exact = (command for command in commands if name == command.name or name in command.aliases)
    return next(exact, None) or next(
        (command for command in commands if wanted in map(str.lower, (command.name, *command.aliases))), None
    )


def nearest(name: str, commands: Sequence[SlashCommand] = COMMANDS) -> str:
    """The likely command or alias behind a misspelt ``name``; empty if none is close."""
    aliases = (alias for command in commands for alias in command.aliases)
    names = dict.fromkeys((*(command.name for command in commands), *aliases))  # names win over equally close aliases
    return edit_distance.nearest(name.lower(), names)
