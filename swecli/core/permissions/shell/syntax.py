"""The part of the shell language that the strict lexer understands, as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal


class UnprovenError(Exception):
    """A command, or a part of it, is not proven to change nothing; the message says why, as a clause.

    ``soft`` is set where the only objection is what it reads (outside the workspace, secrets), not what it does.
    """

    def __init__(self, reason: str, *, soft: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.soft = soft


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a word. ``home`` is an unquoted tilde, ``commands`` a command substitution, ``process`` the whole
    word ``<( … )``, ``number`` an arithmetic expansion."""

    kind: Literal["text", "variable", "commands", "home", "process", "number"]
    text: str = ""
    quoted: bool = False
    script: Script | None = None


@dataclass(frozen=True, slots=True)
class Word:
    segments: tuple[Segment, ...]

    @property
    def literal(self) -> str | None:
        """The word's value where it is plain text without active wildcards."""
        if any(segment.kind != "text" for segment in self.segments) or self.has_glob:
            return None
        return "".join(segment.text for segment in self.segments)

    @property
    def has_glob(self) -> bool:
        for index, segment in enumerate(self.segments):
            if segment.kind != "text" or segment.quoted:
                continue
            if "*" in segment.text or "?" in segment.text:
                return True
            bracket = segment.text.find("[")
            if bracket >= 0 and "]" in segment.text[bracket:] + "".join(
                rest.text for rest in self.segments[index + 1 :]
            ):
                return True
        return False

    @property
    def bare(self) -> str | None:
        """The text of a word without any quoting, expansion or escape: the form that keywords need."""
        if len(self.segments) == 1 and self.segments[0].kind == "text" and not self.segments[0].quoted:
            return self.segments[0].text
        return None


@dataclass(frozen=True, slots=True)
class Redirect:
    """``fd`` is the number before the operator, if any. Here-documents have a ``body`` and no target."""

    fd: str
    operator: str
    target: Word | None = None
    body: str = ""
    literal_body: bool = False


@dataclass(frozen=True, slots=True)
class Simple:
    assignments: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """``( … )`` or ``{ …; }``."""

    script: Script
    subshell: bool
    redirects: tuple[Redirect, ...]


@dataclass(frozen=True, slots=True)
class For:
    variable: str
    words: tuple[Word, ...]
    body: Script
    redirects: tuple[Redirect, ...]


@dataclass(frozen=True, slots=True)
class If:
    """Conditions and branches in the order in which they stand."""

    scripts: tuple[Script, ...]
    redirects: tuple[Redirect, ...]


@dataclass(frozen=True, slots=True)
class While:
    """``while`` or ``until``."""

    condition: Script
    body: Script
    redirects: tuple[Redirect, ...]


Command = Simple | Group | For | If | While


@dataclass(frozen=True, slots=True)
class Pipeline:
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class AndOr:
    """Pipelines, each with what joins it to the one before: nothing, ``&&`` or ``||``."""

    items: tuple[tuple[str, Pipeline], ...]


@dataclass(frozen=True, slots=True)
class Script:
    items: tuple[AndOr, ...]


def simple_commands(script: Script) -> Iterator[Simple]:
    """Every simple command in the tree, those inside of substitutions included."""
    for and_or in script.items:
        for _, pipeline in and_or.items:
            for command in pipeline.commands:
                yield from _of_command(command)


def _of_command(command: Command) -> Iterator[Simple]:
    words: tuple[Word, ...] = ()
    match command:
        case Simple():
            yield command
            words = command.words + tuple(value for _, value in command.assignments)
        case Group():
            yield from simple_commands(command.script)
        case For():
            words = command.words
            yield from simple_commands(command.body)
        case If():
            for script in command.scripts:
                yield from simple_commands(script)
        case While():
            yield from simple_commands(command.condition)
            yield from simple_commands(command.body)
    targets = tuple(redirect.target for redirect in command.redirects if redirect.target is not None)
    for word in (*words, *targets):
        for segment in word.segments:
            if segment.script is not None:
                yield from simple_commands(segment.script)
