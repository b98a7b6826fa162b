"""What a slash command is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from swecli.core.protocol.commands import Command

if TYPE_CHECKING:
    from swecli.core.engine.session import Session
    from swecli.core.workspace.server_log import ServerLog

Screen = Literal[
    "quit",
    "clear",
    "pick_mode",
    "pick_model",
    "pick_effort",
    "pick_theme",
    "keys",
    "find",
    "login",
    "help",
    "settings",
    "permissions",
    "sessions",
    "rewind",
    "fork",
    "jobs",
    "playbook",
    "context",
    "compact",
    "wire",
    "cache",
    "add_folder",
    "editing",
    "edit_file",
    "price",
    "edit_plan",
    "keep_model",
]
"""What only a front-end can do; one without a screen ignores it or ends."""


class Offer(Struct, frozen=True):
    """Something that is done once the user says yes, and at once where nobody can be asked. ``yes`` and ``no`` are
    labels with what follows from them."""

    title: str
    command: Command
    yes: tuple[str, str]
    no: tuple[str, str]


class Clip(Struct, frozen=True):
    """A text for the clipboard; ``what`` names it in a message."""

    text: str
    what: str


class CommandResult(Struct, frozen=True):
    """What a command shows, and what the front-end has to do, if anything. ``argument`` is for that screen;
    ``instead`` is shown by a front-end that has no such screen."""

    blocks: tuple[DisplayBlock, ...] = ()
    screen: Screen | None = None
    argument: str = ""
    instead: tuple[DisplayBlock, ...] = ()
    offer: Offer | None = None
    clip: Clip | None = None

    @classmethod
    def text(cls, text: str, style: Literal["plain", "dim", "warning", "error"] = "plain") -> CommandResult:
        return cls((TextBlock(text, style),))


Run: TypeAlias = "Callable[[Session, str], Awaitable[CommandResult]]"
"""Takes the session and the text after the command's name."""


class SlashCommand(Struct, frozen=True):
    """One command. ``while_busy`` says whether it may run while a turn runs."""

    name: str
    summary: str
    run: Run
    aliases: tuple[str, ...] = ()
    arguments: str = ""
    """Hint such as "[mode]"."""
    while_busy: bool = True
    asks_model: bool = False
    """Whether it waits for an answer of the model beside the turn, which the user sees and may cancel."""
    own: bool = False
    """Whether it is the user's or the project's, and no command of swecli."""


def opens(screen: Screen, instead: str = "") -> Run:
    """What a command does that only opens a screen; a front-end without it shows the sentence instead."""
    shown = (TextBlock(instead),) if instead else ()

    async def run(session: Session, words: str) -> CommandResult:
        return CommandResult(screen=screen, argument=words, instead=shown)

    return run


def absent(session: Session, what: str, otherwise: str) -> str:
    """Why there is none of ``what``: safe mode turned it off, or ``otherwise``, a sentence."""
    return SAFE_MODE.format(what) if session.view.safe_mode else otherwise


def end_of(log: ServerLog) -> CommandResult:
    """The newest lines of what a server wrote, and where the rest is."""
    text = "\n".join(log.newest.strip().splitlines()[-_LOG_LINES:])
    where = f"Log: {log.path}" if log.path is not None else "Logging is off."
    return CommandResult((TextBlock(text or "The log is empty."), TextBlock(where, "dim")))


_LOG_LINES = 40
SAFE_MODE = "Safe mode (--safe-mode) turned {} off."

SHELL_USE = (
    "! before a command runs it in your own shell, for example !git status; !! gives it the whole terminal."
    " Nothing was run or sent."
)
"""What is said of a lone exclamation mark."""


async def run_command(command: SlashCommand, session: Session, arguments: str) -> CommandResult:
    """What the command shows; an internal failure of it is reported, and shown as an error."""
    try:
        return await command.run(session, arguments)
    except Exception as error:  # noqa: BLE001 - a defect of one command must end neither session nor screen
        session.report_defect(error)
        detail = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        return CommandResult.text(
            f"/{command.name} failed inside swecli ({detail}). The session is not affected; "
            "the details are in errors.log of the state directory.",
            "error",
        )
