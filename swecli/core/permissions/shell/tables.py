"""Option tables of commands, read once from ``commands.toml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, cast

from msgspec import Struct

from swecli.lazy_pattern import lazy_pattern


class Options(Struct, frozen=True):
    """Known options: ``alone`` take no value and may be patterns; ``valued`` take one, after ``=`` or as the next
    word."""

    alone: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()

    @classmethod
    def of(cls, text: str) -> Options:
        """Parse a table line; options that take a value end with ``=``."""
        words = text.split()
        return cls(
            frozenset(word for word in words if not word.endswith("=")),
            frozenset(word[:-1] for word in words if word.endswith("=")),
        )

    def operands(self, words: Sequence[str]) -> tuple[frozenset[str], tuple[str, ...]] | None:
        """The options and the operands among the words; None if an option is unknown."""
        options: set[str] = set()
        operands: list[str] = []
        rest = list(words)
        while rest:
            word = rest.pop(0)
            option, equals, _ = word.partition("=")
            if word == "--":
                return frozenset(options), (*operands, *rest)
            if not word.startswith("-"):
                operands.append(word)
            elif word in self.alone:
                options.add(word)
            elif option in self.valued and (equals or rest):
                options.add(option)
                del rest[: 0 if equals else 1]
            elif not word.startswith("--") and word != "-" and {f"-{letter}" for letter in word[1:]} <= self.alone:
                options |= {f"-{letter}" for letter in word[1:]}
            else:
                return None
        return frozenset(options), tuple(operands)

    def length(self, word: str) -> int:
        """Words that this option occupies; 0 if it is unknown."""
        option, equals, _ = word.partition("=")
        if option in self.valued:
            return 1 if equals else 2
        return 1 if any(fnmatchcase(word, wanted) for wanted in self.alone) else 0


_SETS = ("flags", "values", "optional", "files")
_LONG_SETS = ("long", "long_values", "long_optional", "long_files", "long_last")
_LISTS = ("words", "follow", "require", "recursive", "pattern_by", "list_by", "refuse")


class Table(Struct, frozen=True):
    """Arguments that one command accepts; ``commands.toml`` explains the fields."""

    operands: str
    flags: frozenset[str]
    values: frozenset[str]
    optional: frozenset[str]
    files: frozenset[str]
    long: frozenset[str]
    long_values: frozenset[str]
    long_optional: frozenset[str]
    long_files: frozenset[str]
    long_last: frozenset[str]
    words: frozenset[str]
    follow: frozenset[str]
    require: frozenset[str]
    recursive: frozenset[str]
    pattern_by: frozenset[str]
    list_by: frozenset[str]
    refuse: frozenset[str]
    subcommands: frozenset[str]
    digits: bool
    cluster: bool
    apart: bool
    opens_links: bool
    builtin: bool
    max: int | None


class Tables(Struct, frozen=True):
    commands: Mapping[str, Table]
    lists: Mapping[str, frozenset[str]]
    """Words in the languages of individual programs."""
    helpers: Mapping[str, frozenset[str]]
    """Programs by the one that starts them, found on PATH as well."""
    connecting: Mapping[str, frozenset[str]]
    """By program, the subcommands that connect to other machines; ``-`` stands for none."""
    ripgrep_types: Mapping[str, frozenset[str]]
    """Endings of the files of a type."""


@cache
def tables() -> Tables:
    import tomllib
    from pathlib import Path

    data = tomllib.loads(Path(__file__).with_name("commands.toml").read_text(encoding="utf-8"))
    shared = cast("dict[str, dict[str, Any]]", data["options"])
    raw = cast("dict[str, dict[str, Any]]", data["commands"])
    commands = {name: _table(raw[entry.get("same", name)], shared) for name, entry in raw.items()}
    lists, helpers, connecting, ripgrep_types = (
        {name: frozenset(words.split()) for name, words in cast("dict[str, str]", data[table]).items()}
        for table in ("lists", "helpers", "connecting", "ripgrep_types")
    )
    return Tables(commands, lists, helpers, connecting, ripgrep_types)


def _table(entry: Mapping[str, Any], shared: Mapping[str, Mapping[str, Any]]) -> Table:
    sources = [entry, *(shared[name] for name in entry.get("use", ()))]
    letters = {name: frozenset("".join(source.get(name, "") for source in sources)) for name in _SETS}
    words = {name: frozenset(" ".join(source.get(name, "") for source in sources).split()) for name in _LONG_SETS}
    lists = {name: frozenset(cast("list[str]", entry.get(name, []))) for name in _LISTS}
    return Table(
        operands=entry["operands"],
        subcommands=frozenset(entry.get("subcommands", "").split()),
        digits=any(source.get("digits", False) for source in sources),
        cluster=entry.get("cluster", True),
        apart=entry.get("apart", False),
        opens_links=entry.get("opens_links", False),
        builtin=entry.get("builtin", False),
        max=entry.get("max"),
        **letters,
        **words,
        **lists,
    )


_LOWER = lazy_pattern(r"[a-z][a-z0-9_]*")
_SPECIAL = frozenset(("histchars", "auto_resume"))


def is_plain_variable(name: str) -> bool:
    return (_LOWER.fullmatch(name) is not None and name not in _SPECIAL) or name in tables().lists["plain_variables"]


def may_be_shown(name: str) -> bool:
    """Whether the variable's unknown value is never private."""
    return name in ("?", "$", "#", "0") or name in tables().lists["shown_variables"]
