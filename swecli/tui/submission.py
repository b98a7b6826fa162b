"""What a line of the prompt means."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swecli.commands.base import SlashCommand


@dataclass(frozen=True, slots=True)
class Nothing:
    """An empty line."""


@dataclass(frozen=True, slots=True)
class Say:
    """A message for the model."""

    text: str


@dataclass(frozen=True, slots=True)
class Shell:
    """The user's own command."""

    command: str


@dataclass(frozen=True, slots=True)
class Slash:
    """A known slash command and the text after its name."""

    command: SlashCommand
    arguments: str


@dataclass(frozen=True, slots=True)
class NotSent:
    """Nothing that can be done, as a slash command that does not exist; ``message`` says so and names the nearest."""

    message: str


Submission = Nothing | Say | Shell | Slash | NotSent


def interpret(
    text: str, commands: Sequence[SlashCommand], exists: Callable[[str], bool] = os.path.exists
) -> Submission:
    """The meaning of ``text``. A line that begins with a path (one with a second slash, or one that
    ``exists``) is a message."""
    from swecli.commands.registry import Invocation, parse
    from swecli.commands.running import SHELL_USE

    stripped = text.strip()
    if not stripped:
        return Nothing()
    if stripped == "?":
        stripped = "/help"
    if stripped.startswith("!") and stripped[1:].strip():
        return Shell(stripped[1:].strip())
    if stripped == "!":
        return NotSent(SHELL_USE)
    parsed = parse(stripped, commands)
    if parsed is None:
        return Say(text)
    if isinstance(parsed, Invocation):
        return Slash(parsed.command, parsed.arguments)
    return Say(text) if exists("/" + parsed.name) else NotSent(parsed.message)
