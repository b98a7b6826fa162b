"""Commands that only open a screen. A front-end without it shows a sentence instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult, Screen, SlashCommand
from swecli.core.protocol.blocks import TextBlock

if TYPE_CHECKING:
    from swecli.core.engine.session import Session


def _opens(
    screen: Screen,
    name: str,
    summary: str,
    instead: str = "",
    *,
    aliases: tuple[str, ...] = (),
    arguments: str = "[words]",
    while_busy: bool = True,
) -> SlashCommand:
    shown = (TextBlock(instead),) if instead else ()

    async def run(session: Session, words: str) -> CommandResult:
        return CommandResult(screen=screen, argument=words, instead=shown)

    return SlashCommand(name, summary, run, aliases, arguments, while_busy)


HELP = _opens("help", "help", "Keys and commands", aliases=("?",))
KEYS = _opens(
    "keys",
    "keys",
    "What every key does, and how to change it",
    "There are no keys here; `swecli config` shows the section [keys] of the settings.",
)
FIND = _opens(
    "find",
    "find",
    "Search the transcript",
    "There is no transcript on a screen here; /recall WORDS searches the session.",
)
THEME = _opens(
    "pick_theme",
    "theme",
    "Choose the colours of the screen",
    "There are no colours to choose here; `theme` in the section [ui] of the settings sets them.",
    arguments="[name]",
)
CONFIG = _opens(
    "settings",
    "config",
    "All settings: look, search, change",
    "`swecli config` shows every setting; `swecli config set KEY VALUE` changes one.",
    aliases=("settings",),
)
PERMISSIONS = _opens(
    "permissions",
    "permissions",
    "Rules about what runs unasked: look, add, revoke",
    "`swecli permissions` lists the rules of this folder, adds and revokes them.",
    aliases=("approvals",),
    arguments="[words | rule]",
)
RESUME = _opens(
    "sessions",
    "resume",
    "Stored sessions: look into them, continue one",
    "`swecli sessions` lists the sessions of this folder, `swecli -r ID` continues one.",
    aliases=("sessions",),
)
CLEAR = _opens(
    "clear",
    "clear",
    "Start a new conversation; this one stays stored",
    aliases=("new", "reset"),
    arguments="",
    while_busy=False,
)
QUIT = _opens("quit", "quit", "End swecli; the conversation is stored", aliases=("exit", "q"), arguments="")
