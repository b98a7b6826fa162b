"""What a submitted line means: a message, a note, the user's own shell command, or a slash command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from swecli.commands.base import SHELL_USE, SlashCommand

if TYPE_CHECKING:
    from swecli.commands.registry import CommandCall


class Say(Struct, frozen=True):
    text: str


class Note(Struct, frozen=True):
    """A line for the instructions, unless the user sends it as a message after all."""

    line: str


class Shell(Struct, frozen=True):
    """A shell command; ``in_terminal``: the user asked for the whole terminal."""

    command: str
    in_terminal: bool = False


class NotSent(Struct, frozen=True):
    """Input that can't be sent, such as an unknown command; ``message`` says why."""

    message: str


Submission: TypeAlias = "Say | Note | Shell | CommandCall | NotSent | None"
"""None for an empty line."""


def interpret(text: str, commands: Callable[[], Sequence[SlashCommand]], *, bare: bool = True) -> Submission:
    """Interpret ``text``, which needs ``commands`` only if it begins with a slash; ``bare``: nothing is attached."""
    from swecli.commands.screens import QUIT_WORDS

    stripped = text.strip()
    if not stripped:
        return None
    if stripped == "?":
        stripped = "/help"
    elif bare and stripped.lower() in QUIT_WORDS:
        stripped = "/quit"
    if stripped.startswith("!"):
        command = stripped.lstrip("!").strip()
        return Shell(command, stripped.startswith("!!")) if command else NotSent(SHELL_USE)
    if bare and stripped.startswith("#"):
        from swecli.commands.instructions import note_of

        line = note_of(stripped)
        return Note(line) if line else Say(text)
    if not stripped.startswith("/"):
        return Say(text)
    from swecli.commands.registry import UnknownCommand, parse  # imports every command

    parsed = parse(stripped, commands())
    if isinstance(parsed, UnknownCommand):
        return NotSent(parsed.message)
    return parsed or Say(text)


def needs_session(meaning: Submission) -> bool:
    match meaning:
        case None | NotSent():
            return False
        case Say() | Note() | Shell():
            return True
        case _:
            return meaning.command.name != "quit"


def needs_rest(meaning: Submission) -> bool:
    """Whether a line cannot run during a turn: a command for the shell, a note, some slash commands."""
    match meaning:
        case Note() | Shell():
            return True
        case None | NotSent() | Say():
            return False
        case _:
            return meaning.command.needs_rest(meaning.arguments)


def sends(meaning: Submission) -> bool:
    """Whether it sends a message, maybe that of one's own command."""
    match meaning:
        case Say():
            return True
        case None | Note() | Shell() | NotSent():
            return False
        case _:
            return meaning.command.own
