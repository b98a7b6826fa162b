"""What a line of the prompt means."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
class UnknownSlash:
    """A slash command that does not exist; ``nearest`` is its likeliest meaning, or empty."""

    name: str
    nearest: str


Submission = Nothing | Say | Shell | Slash | UnknownSlash

_SLASH = re.compile(r"/([A-Za-z][A-Za-z0-9_-]*|\?)(?:\s+(.*))?\s*", re.DOTALL)


def interpret(
    text: str, commands: Sequence[SlashCommand], exists: Callable[[str], bool] = os.path.exists
) -> Submission:
    """The meaning of ``text``. A line that begins with a path (one with a second slash, or one that
    ``exists``) is a message."""
    stripped = text.strip()
    if not stripped:
        return Nothing()
    if stripped == "?":
        stripped = "/help"
    if stripped.startswith("!") and stripped[1:].strip():
        return Shell(stripped[1:].strip())
    match = _SLASH.fullmatch(stripped)
    if match is None:
        return Say(text)
    name, arguments = match.group(1).lower(), (match.group(2) or "").strip()
    command = find(name, commands)
    if command is not None:
        return Slash(command, arguments)
    if exists("/" + match.group(1)):
        return Say(text)
    return UnknownSlash(name, nearest(name, commands))


def find(name: str, commands: Sequence[SlashCommand]) -> SlashCommand | None:
    """The command of this name or alias."""
    return next((command for command in commands if name == command.name or name in command.aliases), None)


def nearest(name: str, commands: Sequence[SlashCommand]) -> str:
    """The command whose name or alias is most like ``name``, or an empty string."""
    names = {alias: command.name for command in commands for alias in (command.name, *command.aliases)}
    begins = [names[known] for known in sorted(names) if known.startswith(name)]
    close = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return begins[0] if begins else names[close[0]] if close else ""
