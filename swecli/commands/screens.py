"""Commands that only open a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult, SlashCommand, fixed_words, opens
from swecli.core.protocol.blocks import TextBlock

if TYPE_CHECKING:
    from swecli.core.engine.session import Session

_WORDS = "[words]"

HELP = SlashCommand("help", "Keys and commands", opens("help"), ("?",), _WORDS)
KEYS = SlashCommand(
    "keys",
    "Show and change key bindings",
    opens("keys", "Keys need the full-screen interface; `swecli config` shows the [keys] settings."),
    arguments=_WORDS,
    under="help",
)
FIND = SlashCommand(
    "find",
    "Search the transcript",
    opens(
        "find",
        "This needs the full-screen interface; `swecli sessions search WORD` searches stored sessions.",
    ),
    arguments=_WORDS,
    under="recall",
)
THEME = SlashCommand(
    "theme",
    "Choose a colour theme",
    opens("pick_theme", "Themes need the full-screen interface; ui.theme in the settings sets one."),
    arguments="[name]",
    under="config",
)
VIM = SlashCommand(
    "vim",
    "Vim keys in the prompt, on or off",
    opens("editing", "Vim keys need the full-screen interface; ui.editing in the settings switches them."),
    under="config",
)
CONFIG = SlashCommand(
    "config",
    "Show, search and change settings",
    opens("settings", "`swecli config` shows every setting; `swecli config set KEY VALUE` changes one."),
    ("settings",),
    _WORDS,
)


async def _permissions(session: Session, words: str) -> CommandResult:
    """Without the screen, at least the session's own rules."""
    if words.strip() == "trust":
        how = TextBlock("`swecli permissions trust` trusts this folder; it counts from the next session.")
        return CommandResult(screen="trust_folder", instead=(how,))
    rules = ", ".join(rule.text for rule in session.view.rules)
    own = (TextBlock(f"Allowed by your answers in this session: {rules}."),) if rules else ()
    rest = TextBlock("`swecli permissions` lists, adds and revokes this folder's rules.")
    return CommandResult(screen="permissions", argument=words, instead=(*own, rest))


PERMISSIONS = SlashCommand(
    "permissions",
    "Show, add and revoke permission rules",
    _permissions,
    ("approvals",),
    "[words | rule | trust]",
    words=fixed_words(trust="trust this folder's settings and instructions"),
)
RESUME = SlashCommand(
    "resume",
    "Browse stored sessions, continue one",
    opens("sessions", "`swecli sessions` lists the sessions of this folder, `swecli -r ID` continues one."),
    ("sessions",),
    _WORDS,
)
CLEAR = SlashCommand(
    "clear", "Start a new conversation; this one is kept", opens("clear"), ("new", "reset"), while_busy=False
)
QUIT_WORDS = frozenset(("exit", "quit", ":q"))
"""Whole messages that mean ``/quit`` where a person types them, as in a shell and in vim."""
QUIT = SlashCommand("quit", "Quit; the conversation is stored", opens("quit"), ("exit", "q"))
