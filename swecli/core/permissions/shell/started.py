"""Every command that a shell text may start: also those behind wrappers, shells, ``eval``, ``find -exec`` and
``xargs``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from swecli.core.permissions.shell.inner_scripts import inner_scripts, program_name, set_for_programs
from swecli.core.permissions.shell.scan import FoundCommand, ScanError, ScanWord, scan
from swecli.core.permissions.shell.tables import tables
from swecli.lazy_pattern import lazy_pattern

MAX_UNPACKED = 2_000
_MOST_WORDS = 100_000
"""Words of all commands, each counted as often as it may be a command's."""
_DEEPEST = 6
"""Levels of commands within commands."""

_RUNS_SCRIPTS = lazy_pattern(r"(?:python|ruby|php|node)[\d.]*")
"""Interpreters that start a script, which may have the name of a program (``php artisan``, ``node .bin/prisma``)."""
_SETTING = lazy_pattern(r"[A-Za-z_]\w*=")
_NUMBER = lazy_pattern(r"[\d.+]|(?:inf|infinity|nan)\Z", re.IGNORECASE)
_LOADER = lazy_pattern(r"ld(?:-linux|-musl)?[\w.-]*\.so")
"""The dynamic loader, which starts the program that it is given."""
_EXEC = frozenset(("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"))


class Started(Struct, frozen=True):
    """A command that may run. ``name`` is the program without its directory, empty if computed. ``computed``: a shell
    gets unknown text."""

    name: str
    words: tuple[ScanWord, ...]
    found: FoundCommand
    computed: bool = False


@lru_cache(maxsize=8)
def started(text: str, variables: tuple[tuple[str, str], ...] = ()) -> tuple[Started, ...]:
    """Every command that the text may start, with these variables set to these values. The last ones are kept, as one
    command is decided about several times.

    Raises:
        ScanError: the text can't be read.
    """
    known = dict(variables)
    result: list[Started] = []
    searched = 0
    pending: list[tuple[FoundCommand, int]] = [(command, 0) for command in scan(text, known)]
    while pending:
        command, depth = pending.pop(0)
        for item, scripts in _unpacked(command):
            if len(result) >= MAX_UNPACKED or depth > _DEEPEST:
                raise ScanError("it starts too many commands through others")
            result.append(item)
            searched += len(item.words)
            if searched > _MOST_WORDS:
                raise ScanError("it is too long")
            for script in scripts:
                pending += [(inner, depth + 1) for inner in scan(script, known)]
    return tuple(result)


def started_with(words: Sequence[str | None]) -> tuple[Started, ...]:
    """A command with these words, None where unknown, and those that it wraps."""
    found = FoundCommand(tuple(ScanWord("", known=False) if word is None else ScanWord(word) for word in words))
    return tuple(item for item, _ in _unpacked(found))


def _unpacked(command: FoundCommand) -> Iterator[tuple[Started, list[str]]]:
    """The command itself, then the commands it wraps, each with the scripts that it passes to a shell."""
    values, unknown = set_for_programs(command)
    for words in _suffixes(command.words):
        scripts, computed = inner_scripts(words, command)
        yield Started(program_name(words[0]), words, command, computed or unknown), [*values, *scripts]
        values, unknown = [], False
    if not command.words:
        yield Started(":", (ScanWord(":"),), command, unknown), values


def _suffixes(words: tuple[ScanWord, ...], depth: int = 0) -> Iterator[tuple[ScanWord, ...]]:
    if not words:
        return
    if depth > _DEEPEST:
        raise ScanError("it is nested too deeply")
    yield words
    name, lists = program_name(words[0]), tables().lists
    runner = name in lists["runners"] or _RUNS_SCRIPTS.fullmatch(name) is not None
    if name in lists["wrappers"] or runner or _LOADER.match(name):
        named, given, direct = False, False, name in lists["direct_wrappers"]
        for index in range(1, min(len(words), 40)):
            word = words[index]
            if "{}" in word.text and (runner or named or words[index - 1].text in ("-I", "--replace")):
                continue  # an argument
            if (word.known and word.text.endswith("/")) or (word.glob and (runner or given)):
                continue  # a folder or files, as no path of a program ends in a slash
            direct &= program_name(word) not in lists["wrappers"] - lists["direct_wrappers"]
            given |= direct and _gives_program(word, words[index - 1])
            named |= not (word.text.startswith("-") or word.text.isdigit() or _is_wrapper(word))
            if word.text.startswith("-") or _SETTING.match(word.text):
                continue
            if word.known and re.search(r"\s", word.text):
                # No program has a name like this; texts that a shell would run are read elsewhere.
                continue
            if word.known or not runner:
                yield words[index:]
    if name in ("find", "fd", "fdfind", "gfind"):
        for index, word in enumerate(words[:-1]):
            if word.text in _EXEC:
                stop = next((i for i in range(index + 1, len(words)) if words[i].text in (";", "+")), len(words))
                if words[index + 1 : stop]:
                    yield from _suffixes(words[index + 1 : stop], depth + 1)


def _is_wrapper(word: ScanWord) -> bool:
    """Whether a word is a wrapper, or computed, so that it may be one."""
    name = program_name(word)
    return not name or name in tables().lists["wrappers"]


def _gives_program(word: ScanWord, before: ScanWord) -> bool:
    """Whether a word behind a wrapper is surely the program, so that what follows are its arguments."""
    text = word.text
    return (
        word.known
        and not (word.glob or text.startswith("-") or before.text.startswith("-") or not before.known)
        and not (_SETTING.match(text) or _NUMBER.match(text))
        and not _is_wrapper(word)
    )
