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
    "Show and change key bindings",
    "No keys here; `swecli config` shows the [keys] settings.",
)
FIND = _opens(
    "find",
    "find",
    "Search the transcript",
    "There is no transcript to search here; /recall WORDS searches the session.",
)
THEME = _opens(
    "pick_theme",
    "theme",
    "Choose a colour theme",
    "There are no colours to choose here; ui.theme in the settings sets them.",
    arguments="[name]",
)
VIM = _opens(
    "editing",
    "vim",
    "Vim keys in the prompt, on or off",
    "Vim keys need the full-screen interface; ui.editing in the settings switches them.",
    arguments="",
)
CONFIG = _opens(
    "settings",
    "config",
    "Show, search and change settings",
    "`swecli config` shows every setting; `swecli config set KEY VALUE` changes one.",
    aliases=("settings",),
)


async def _permissions(session: Session, words: str) -> CommandResult:
    """Without the screen, at least what only the session knows."""
    held = ", ".join(rule.text for rule in session.view.rules)
    own = (TextBlock(f"Allowed by your answers in this session: {held}."),) if held else ()
    rest = TextBlock("`swecli permissions` lists, adds and revokes this folder's rules.")
    return CommandResult(screen="permissions", argument=words, instead=(*own, rest))


PERMISSIONS = SlashCommand(
    "permissions",
    "Show, add and revoke permission rules",
    _permissions,
    ("approvals",),
    "[words | rule]",
    while_busy=True,
)
RESUME = _opens(
    "sessions",
    "resume",
    "Browse stored sessions, continue one",
    "`swecli sessions` lists the sessions of this folder, `swecli -r ID` continues one.",
    aliases=("sessions",),
)
CLEAR = _opens(
    "clear",
    "clear",
    "Start a new conversation; this one is kept",
    aliases=("new", "reset"),
    arguments="",
    while_busy=False,
)
QUIT = _opens("quit", "quit", "Quit; the conversation is stored", aliases=("exit", "q"), arguments="")
