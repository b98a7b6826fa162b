"""Detects which of the user's own commands need the whole terminal; the others run inside swecli."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from functools import cache

from msgspec import Struct, toml

from swecli.core.permissions.shell.scan import ScanError
from swecli.core.permissions.shell.started import Started, started
from swecli.lazy_pattern import lazy_pattern

_ABOUT_ITSELF = frozenset(("--help", "-help", "--version", "-version", "-V", "-v"))
"""Options with which a program only describes itself."""
_MISSED = lazy_pattern(
    r"not a (?:tty|terminal)|not a valid tty|(?:terminal|tty) is required|no tty|requires? a (?:tty|terminal)|/dev/tty"
    r"|must be run (?:from|in) a terminal|input device is not|inappropriate ioctl|could not read (?:username|password)"
    r"|terminal is dumb|error opening terminal|TERM environment variable",
    re.IGNORECASE,
)


class _Programs(Struct, frozen=True):
    """Contents of the data file of the same name, which documents the fields; ``rules`` is its section ``with``."""

    always: frozenset[str]
    alone: frozenset[str]
    rules: Mapping[str, Sequence[Sequence[str]]]


@cache
def _programs() -> _Programs:
    from pathlib import Path

    data = toml.decode(Path(__file__).with_name("terminal_programs.toml").read_bytes())
    rules = {name: tuple(tuple(entry.split()) for entry in entries) for name, entries in data["with"].items()}
    return _Programs(frozenset(data["always"].split()), frozenset(data["alone"].split()), rules)


def needs_terminal(command: str, environment: Mapping[str, str]) -> bool:
    """Whether part of the command edits, pages, draws full-screen, or prompts. The user's own editor does, whatever its
    name. An unparsable command runs inside: its shell reports the error."""
    try:
        items = started(command)
    except ScanError:
        return False
    editors = {_editor(environment.get(name, "")) for name in ("VISUAL", "EDITOR")}
    return any(item.name in editors or _wants(item) for item in items if item.name)


def missed_a_terminal(output: str) -> bool:
    """Whether a command that ran inside reports a missing terminal."""
    return bool(_MISSED.search(output))


def _editor(command: str) -> str:
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    return words[0].rpartition("/")[2].casefold() if words else ""


def _wants(item: Started) -> bool:
    programs = _programs()
    words = [word.text for word in item.words[1:]]
    if words and all(word in ("--help", "--version") for word in words):
        return False
    if item.name in programs.always:
        return True
    if item.found.piped or item.found.reads or item.found.stdin is not None:
        return False
    if item.name in programs.alone and not any(word in _ABOUT_ITSELF or not _is_option(word) for word in words):
        return True
    return any(_fits(rule, words) for rule in programs.rules.get(item.name, ()))


def _is_option(word: str) -> bool:
    return word.startswith("-")


def _fits(rule: Sequence[str], words: Sequence[str]) -> bool:
    names: list[str] = []
    for token in rule:
        if token.startswith("<"):
            if sum(not _is_option(word) for word in words) >= int(token[1:]):
                return False
        elif token.startswith(("-", "!")):
            if any(_is(token.removeprefix("!"), word) for word in words) == token.startswith("!"):
                return False
        else:
            names.append(token)
    return _begins(names, words)


def _begins(names: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the subcommand is this one. Options, each with a value, may come in between."""
    index, after_option = 0, False
    for word in words:
        if index == len(names):
            break
        if word == names[index]:
            index += 1
        elif not _is_option(word) and not after_option:
            break
        after_option = _is_option(word)
    return index == len(names)


def _is(token: str, word: str) -> bool:
    """Whether the token is the option (also with a value or in a cluster of letters) or the plain word."""
    if word == token or word.startswith(f"{token}="):
        return True
    letter = re.fullmatch(r"-(\w)", token)
    return letter is not None and re.match(rf"-\w*{letter[1]}", word) is not None
