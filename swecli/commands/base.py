"""Types of slash commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from swecli.core.protocol.commands import Command
from swecli.own_files import REPLACED, replaced
from swecli.safe_text import safe_line

if TYPE_CHECKING:
    from swecli.core.engine.session import Session
    from swecli.core.engine.session_view import SessionView
    from swecli.core.workspace.jobs import JobInfo
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
    "trust_folder",
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
"""Actions that only a front-end can do; one without the screen ignores it or ends."""


class Offer(Struct, frozen=True):
    """An action that needs the user's yes. ``yes`` and ``no`` are labels with the consequences."""

    title: str
    command: Command
    yes: tuple[str, str]
    no: tuple[str, str]
    later: Command | None = None
    """The same at the next compaction, which costs no thoughts; None if it can't wait."""
    named: bool = True
    """Whether the typed words alone say what happens; a line that waited for the turn to end then does it unasked."""
    unattended: bool = True
    """Whether it happens at once in an unattended run, or not at all."""


LATER = ("At the next compaction", "costs no thoughts then")
"""Label and consequence of ``Offer.later``."""
LATER_WORD: Final = "later"
"""The word at the end of a command with which it waits for the next compaction."""


class Clip(Struct, frozen=True):
    """A text for the clipboard; ``what`` names it in a message."""

    text: str
    what: str


class CommandResult(Struct, frozen=True):
    """Output of a command, and the action for the front-end, if any. ``argument`` is for that screen; a front-end
    without the screen shows ``instead`` after the blocks."""

    blocks: tuple[DisplayBlock, ...] = ()
    screen: Screen | None = None
    argument: str = ""
    instead: tuple[DisplayBlock, ...] = ()
    slow: Callable[[], Awaitable[tuple[DisplayBlock, ...]]] | None = None
    """More of ``instead`` that takes a moment, so a front-end with the screen does not wait for it."""
    offer: Offer | None = None
    clip: Clip | None = None

    @classmethod
    def text(cls, text: str, style: Literal["plain", "dim", "warning", "error"] = "plain") -> CommandResult:
        return cls((TextBlock(text, style),))


Run: TypeAlias = "Callable[[Session, str], Awaitable[CommandResult]]"
"""Takes the session and the text after the command's name."""


class Word(Struct, frozen=True):
    """What a command's arguments may begin with, for completion; ``meaning`` is a phrase."""

    text: str
    meaning: str = ""


def fixed_words(**meanings: str) -> Callable[[Session], Iterable[Word]]:
    """The same words in every session, in this order."""
    words = tuple(Word(text, meaning) for text, meaning in meanings.items())
    return lambda session: words


class SlashCommand(Struct, frozen=True):
    """One command. ``while_busy``: it may run during a turn, unless ``waits`` says otherwise for its arguments."""

    name: str
    summary: str
    run: Run
    aliases: tuple[str, ...] = ()
    arguments: str = ""
    """Hint such as "[mode]"."""
    while_busy: bool = True
    asks_model: bool = False
    """Whether it waits for a model's answer outside a turn, which the user sees and may cancel."""
    shows_tools: bool = False
    """Whether it shows the tools of servers: a front-end that shows one answer and ends waits for them."""
    own: bool = False
    """Whether it is the user's or the project's rather than swecli's."""
    waits: Callable[[str], bool] = lambda arguments: False
    words: Callable[[Session], Iterable[Word]] = lambda session: ()
    """What the arguments may begin with, as far as that is known at once; other arguments are as good."""
    under: str = ""
    """Name of the listed command that help shows it with; empty for a listed one. It works like any other."""

    def takes(self, arguments: str) -> bool:
        """Whether it may be called with these words; one without a hint for arguments takes none. The user's own
        commands take what their text makes of it."""
        return self.own or bool(self.arguments) or not arguments

    def needs_rest(self, arguments: str) -> bool:
        """Whether it cannot run during a turn with these arguments."""
        return self.takes(arguments) and (not self.while_busy or self.waits(arguments))


def listed(commands: Iterable[SlashCommand]) -> list[SlashCommand]:
    """The commands that lists show by themselves."""
    return [command for command in commands if not command.under]


def other_names(command: SlashCommand, commands: Iterable[SlashCommand]) -> str:
    """The aliases of a listed command and the commands that help shows with it, as the user types them."""
    names = (*command.aliases, *(each.name for each in commands if each.under == command.name))
    return ", ".join(f"/{name}" for name in names)


def opens(screen: Screen, instead: str = "") -> Run:
    """A command that only opens a screen; a front-end without it shows the sentence instead."""
    shown = (TextBlock(instead),) if instead else ()

    async def run(session: Session, words: str) -> CommandResult:
        return CommandResult(screen=screen, argument=words, instead=shown)

    return run


def absent(session: Session, what: str, otherwise: str) -> str:
    """Reason for the absence of ``what``: safe mode turned it off, or ``otherwise``, a sentence."""
    return SAFE_MODE.format(what) if session.view.safe_mode else otherwise


def no_instructions(view: SessionView) -> str:
    """Reason for a prompt without instructions, or the remedy."""
    return view.no_instructions or "none; /init writes OPENCLI.md"


def running_jobs(jobs: Iterable[JobInfo]) -> list[str]:
    """Names of the background jobs that end with the session."""
    return [f"{job.id} {job.command}" for job in jobs if job.status == "running"]


def jobs_words(jobs: Sequence[str]) -> tuple[str, str]:
    """That these background jobs are running, and their names."""
    more = f" and {len(jobs) - 3} more" if len(jobs) > 3 else ""
    count = "A job is" if len(jobs) == 1 else f"{len(jobs)} jobs are"
    return f"{count} running in the background", safe_line(", ".join(jobs[:3]) + more)


def end_of(log: ServerLog) -> CommandResult:
    """The newest lines of a server's output, and the place of the rest."""
    text = "\n".join(log.newest.strip().splitlines()[-_LOG_LINES:])
    where = f"Log: {log.path}" if log.path is not None else "Logging is off."
    return CommandResult((TextBlock(text or "The log is empty."), TextBlock(where, "dim")))


_LOG_LINES = 40
SAFE_MODE = "Safe mode (--safe-mode) turned {} off."

SHELL_USE = (
    "! before a command runs it in your own shell, for example !git status; !! gives it the whole terminal."
    " Nothing was run or sent."
)
"""Hint for a lone exclamation mark."""


async def run_command(
    command: SlashCommand, session: Session, arguments: str, *, screens: bool = False
) -> CommandResult:
    """Run a command; an internal failure is logged and shown as an error. ``screens``: the front-end has them, so what
    they replace is not needed."""
    if not command.takes(arguments):
        return CommandResult.text(f"/{command.name} takes no words. Nothing was done.", "error")
    try:
        result = await command.run(session, arguments)
        if screens or result.slow is None:
            return result
        return replace(result, instead=(*result.instead, *await result.slow()), slow=None)
    except Exception as error:  # noqa: BLE001 - a defect of one command must end neither session nor screen
        session.report_defect(error)
        if replaced():
            text = f"/{command.name} failed inside swecli: {REPLACED}. The conversation is kept; restart swecli."
            return CommandResult.text(text, "error")
        detail = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        return CommandResult.text(
            f"/{command.name} failed inside swecli ({detail}). The session is not affected; "
            "the details are in errors.log of the state directory.",
            "error",
        )
