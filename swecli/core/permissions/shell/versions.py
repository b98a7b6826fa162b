"""Uses of a program that only tell about the program itself: its version, its help. Read from ``versions.toml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import cast

from msgspec import Struct

from swecli.core.permissions.paths import folders_above
from swecli.core.permissions.shell.expand import Situation
from swecli.lazy_pattern import lazy_pattern

_NUMBER = lazy_pattern(r"-?[0-9]+(?:\.[0-9]+)*$")


class _Uses(Struct, frozen=True):
    """``alone`` are programs by all of their words, ``subcommands`` those of a program that it has itself, ``obeys``
    are files that a program obeys, by its name."""

    alone: Mapping[str, frozenset[str]]
    subcommands: Mapping[str, frozenset[str]]
    options: Mapping[str, frozenset[str]]
    obeys: Mapping[str, tuple[str, ...]]


@cache
def _uses() -> _Uses:
    import tomllib
    from pathlib import Path

    data = cast(
        "dict[str, dict[str, str]]",
        tomllib.loads(Path(__file__).with_name("versions.toml").read_text(encoding="utf-8")),
    )
    alone, subcommands, options = (
        {name: frozenset(words.split()) for name, words in data[table].items()}
        for table in ("alone", "subcommands", "options")
    )
    return _Uses(alone, subcommands, options, {name: tuple(files.split()) for name, files in data["obeys"].items()})


def tells_about_itself(name: str, words: Sequence[str | None]) -> bool:
    """Whether these words make a program only print its version or help."""
    known = [word for word in words if word is not None]
    if not known or len(known) != len(words) or len(known) > 4:
        return False
    uses = _uses()
    if not uses.alone.get(" ".join(known), frozenset()).isdisjoint((name, _NUMBER.sub("", name))):
        return True
    *inner, last = known
    double_dash = last == "--help" and name not in uses.options["not_double_dash"]
    if double_dash or (last == "-help" and name in uses.options["single_dash"]):
        return _is_subcommand(name, inner)
    return known[0] == "help" and name in uses.options["help_word"] and _is_subcommand(name, known[1:])


def _is_subcommand(name: str, words: Sequence[str]) -> bool:
    own = _uses().subcommands
    return 0 < len(words) <= 2 and all(
        word in own.get(" ".join((name, *words[:at])), ()) for at, word in enumerate(words)
    )


def obeyed_file(name: str, cwd: str, situation: Situation) -> str:
    """A file in or above a folder that a program obeys whatever its words, as the user would call it; empty if there is
    none."""
    for entry in _uses().obeys.get(name, ()):
        file, _, key = entry.partition(":")
        for folder in folders_above(cwd, situation.roots, situation.home):
            path = f"{folder.rstrip('/')}/{file}"
            if situation.facts.kind(path) != "missing" and (not key or situation.facts.has_key(path, key)):
                return file
    return ""
