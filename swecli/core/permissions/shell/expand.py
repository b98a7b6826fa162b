"""From words of the tree to the arguments that a program would get."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from swecli.core.permissions.facts import FileFacts
from swecli.core.permissions.paths import inside
from swecli.core.permissions.shell.syntax import UnprovenError, Word

MAX_EXPANSIONS = 500
PROCESS = "/dev/fd/63"
"""Stands for the name of a pipe to commands that are judged by themselves."""

_BRACKET = re.compile(r"\[[!^]?[A-Za-z0-9_.,+-]+\]")

_OPAQUE_VARIABLES = frozenset(("PATH", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "HOSTNAME", "?", "$", "#"))
"""Variables whose value is harmless to show but not known."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known at one point of the script. ``cwds`` are all directories that may be the current one;
    empty when unknown. ``start`` is where the command as a whole starts."""

    facts: FileFacts
    roots: tuple[str, ...]
    home: str
    start: str
    cwds: tuple[str, ...]
    variables: Mapping[str, str | None] = field(default_factory=lambda: {})


def expand(word: Word, situation: Situation) -> list[str | None]:
    """The arguments of one word; None is an argument whose text is not known.

    Raises:
        UnprovenError: what it becomes can't be told.
    """
    text = ""
    pattern: list[str] = []
    """One regular expression per character or wildcard, ``/`` as itself."""
    globbing = word.has_glob
    unknown = [None] if _all_quoted(word) else [None, None]
    """Without quotes it may become any number of arguments, so it stands for more than one."""
    for segment in word.segments:
        if segment.kind == "process":
            return [PROCESS]
        if segment.kind == "commands":
            if globbing:
                raise UnprovenError("wildcards are mixed with a computed text")
            return list(unknown)
        value = _value(segment.kind, segment.text, segment.quoted, situation)
        if value is None:
            if globbing:
                raise UnprovenError("wildcards are mixed with a variable")
            return list(unknown)
        text += value
        pattern += _pieces(value, active=globbing and segment.kind == "text" and not segment.quoted)
    if not globbing:
        return [text]
    return _matches(text, pattern, situation)


def _all_quoted(word: Word) -> bool:
    return all(segment.quoted for segment in word.segments if segment.kind in ("variable", "commands"))


def _value(kind: str, text: str, quoted: bool, situation: Situation) -> str | None:
    if kind == "text":
        return text
    if kind == "home" or text == "HOME":
        if not situation.home:
            raise UnprovenError("the home directory is not known")
        return situation.home
    if text == "PWD" and len(situation.cwds) == 1:
        return situation.cwds[0]
    if text in situation.variables:
        value = situation.variables[text]
        if value is None:
            return None
        if not quoted and any(char in value for char in " \t\n*?["):
            raise UnprovenError(f"${text} is not quoted and would be split or expanded")
        if not quoted and not value:
            raise UnprovenError(f"${text} is empty and not quoted")
        return value
    if text in _OPAQUE_VARIABLES:
        return None
    raise UnprovenError(f"the value of ${text} is not known")


def _pieces(text: str, *, active: bool) -> list[str]:
    """Wildcards as regular expressions that match at least what bash matches."""
    pieces: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if active and char == "*":
            pieces.append("[^/]*")
        elif active and char == "?":
            pieces.append("[^/]")
        elif active and char == "[":
            bracket = _BRACKET.match(text, at)
            if bracket is None:
                raise UnprovenError("these brackets are not understood")
            pieces.append("[^/]")
            at = bracket.end() - 1
        else:
            pieces.append("/" if char == "/" else re.escape(char))
        at += 1
    return pieces


def _matches(text: str, pattern: list[str], situation: Situation) -> list[str | None]:
    if len(situation.cwds) != 1:
        raise UnprovenError("wildcards stand where the current directory is not certain")
    components = _components(pattern)
    found = _walk(components, situation)
    if any(item.startswith("-") for item in found):
        raise UnprovenError("the wildcards match a name that looks like an option")
    # Where brackets or dots are involved more may be found here than by bash, which then takes the word as it stands.
    if not found or "[" in text or any(path.rpartition("/")[2] in (".", "..") for path in found):
        found.append(text)
    return sorted(set(found))  # pyright: ignore[reportReturnType]


def _components(pattern: list[str]) -> list[str]:
    parts = [""]
    for piece in pattern:
        if piece == "/":
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def _walk(components: list[str], situation: Situation) -> list[str]:
    paths = [""]
    first_glob = next(index for index, component in enumerate(components) if "[^/]" in component)
    for index, component in enumerate(components):
        last = index == len(components) - 1
        separator = "" if last else "/"
        literal = re.sub(r"\\(.)", r"\1", component, flags=re.DOTALL)
        if "[^/]" not in component:
            paths = [path + literal + separator for path in paths]
            if index > first_glob:
                # Names behind a wildcard have to be there, or the wildcard does not match.
                paths = [path for path in paths if situation.facts.kind(_from(path, situation)) != "missing"]
            continue
        expression = re.compile(component, re.DOTALL)
        hidden = literal.startswith(".")
        following: list[str] = []
        for path in paths:
            folder = _from(path, situation)
            if inside(situation.facts.resolve(folder), situation.roots) is None:
                raise UnprovenError("the wildcards look into a place outside the workspace", soft=True)
            names = situation.facts.names(folder)
            if names is None:
                raise UnprovenError("the wildcards stand for too many files to judge")
            if hidden:
                names = (*names, ".", "..")
            following += [
                path + name + separator
                for name in names
                if name.startswith(".") == hidden and expression.fullmatch(name)
            ]
        if len(following) > MAX_EXPANSIONS:
            raise UnprovenError("the wildcards stand for too many files to judge")
        paths = following
    return [path for path in paths if path]


def _from(path: str, situation: Situation) -> str:
    return path if path.startswith("/") else f"{situation.cwds[0]}/{path}"
