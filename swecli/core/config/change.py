"""Changing one setting in its file, and descriptions of all settings for people."""

from __future__ import annotations

import ast
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, lru_cache
from inspect import getsource
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from swecli.core.atomic_text import alone_in, make_private, write_whole
from swecli.core.config.key_actions import BY_NAME
from swecli.core.config.load import (
    PLAIN,
    ConfigError,
    ConfigProblem,
    Loaded,
    Origin,
    key_parts,
    read_toml,
    shown_value,
    toml_key,
    toml_text,
)
from swecli.core.config.settings import NAMED, SECTIONS, SYNONYMS, Key, KeySettings, Section, canonical
from swecli.core.validation import (
    changed,
    choices,
    declared,
    default_of,
    fields_by_name,
    fields_of,
    in_words,
    types_by_name,
)

SECRET = frozenset(("headers", "dialect", "env", "args", "options", "settings"))
"""Settings of providers and servers with possibly secret values, which are never shown."""


class Described(Struct, frozen=True):
    """One setting. ``shown`` is its value for people, ``text`` the same as TOML, empty if it is unset or may not be
    shown; ``takes`` describes the allowed values in words, ``choices`` lists them as TOML if they are few."""

    key: tuple[str, ...]
    shown: str
    text: str
    origin: Origin
    about: str
    takes: str
    choices: tuple[str, ...] = ()
    default: str = ""
    secret: bool = False

    @property
    def name(self) -> str:
        return dotted(self.key)


def dotted(key: tuple[str, ...]) -> str:
    return ".".join(toml_key(part) for part in key)


def own_name(name: str) -> str:
    """The name of a setting for any of its names; other text unchanged."""
    return dotted(canonical(key_parts(name))) or name


def describe(loaded: Loaded) -> tuple[Described, ...]:
    """All settings in the order of their sections; for providers and single models those that exist."""
    return tuple(_all(loaded))


def meaning(key: tuple[str, ...]) -> Described | None:
    """Description of a setting without its value; None for an unknown setting."""
    section = _section_of(key)
    if section is None:
        return None
    name = key[1] if len(key) == 2 or key[0] == "models" else key[-1]
    if name not in fields_by_name(section):
        return None
    return _described(key, name, section, None, Origin("default"))


def instead_of(name: str, known: Iterable[str]) -> str:
    """What to do about a name that is no setting: a clause with the one that was probably meant."""
    names = list(known)
    last = name.rpartition(".")[2]
    by_last = {setting.rpartition(".")[2]: setting for setting in reversed(names)}
    near = get_close_matches(name, names, 1, 0.8) or [
        by_last[word] for word in get_close_matches(last, list(by_last), 1, 0.8)
    ]
    return f"did you mean {near[0]}?" if near else "`swecli config` lists all"


def _section_of(key: tuple[str, ...]) -> type[Section] | None:
    if not key or key[0] not in SECTIONS:
        return None
    if key[0] in NAMED:
        return NAMED[key[0]] if len(key) == 3 and key[1] else None
    whole = len(key) == 2 or (len(key) == 3 and key[0] == "models" and key[2])
    return SECTIONS[key[0]] if whole else None


def _all(loaded: Loaded) -> Iterator[Described]:
    for name, content in fields_of(loaded.settings):
        if isinstance(content, Section):
            yield from _of_section(loaded, (name,), content)
            continue
        for own, named in cast("dict[str, Section]", content).items():
            yield from _of_section(loaded, (name, own), named)


def _of_section(loaded: Loaded, path: tuple[str, ...], section: Section) -> Iterator[Described]:
    for name, value in fields_of(section):
        key = (*path, name)
        origin = loaded.origins.get(key, Origin("default"))
        named = cast("dict[str, object]", value) if path == ("models",) and key not in PLAIN else {}
        for part, item in named.items():
            yield _described((*key, part), name, type(section), item, origin)
        if not named:
            yield _described(key, name, type(section), value, origin)


def _described(key: tuple[str, ...], name: str, section: type[Section], value: object, origin: Origin) -> Described:
    kind = fields_by_name(section)[name].type
    if len(key) == 3 and key[0] == "models":
        kind = declared(kind).within[1]  # of a table's values
    secret = name in SECRET or (name == "base_url" and "@" in str(value))
    default = default_of(section, name)
    unset = value is None or (isinstance(value, Section) and not changed(value))
    return Described(
        key,
        "(unset)" if unset else toml_text(value) if isinstance(value, Section) and not secret else shown_value(value),
        "" if secret or unset else toml_text(value),
        origin,
        descriptions(section).get(name, ""),
        in_words(kind),
        tuple(toml_text(choice) for choice in choices(kind)),
        "(unset)" if default is None or isinstance(default, Section) else "" if secret else toml_text(default),
        secret,
    )


@cache
def _classes(module: str) -> Mapping[str, ast.ClassDef]:
    """The definitions of a module's classes. ``getsource`` of each class would parse the whole module each time."""
    try:
        tree = ast.parse(getsource(sys.modules[module]))
    except (OSError, SyntaxError):
        return {}
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


@lru_cache(maxsize=32)
def descriptions(section: type[Section]) -> Mapping[str, str]:
    """The meaning of each field of a section, by its name, from the docstrings below them."""
    if section is KeySettings:
        return {name: f"Keys that do this: {action.meaning}." for name, action in BY_NAME.items()}
    body = _classes(section.__module__).get(section.__name__)
    if body is None:
        return {}
    kinds = types_by_name(section)
    meanings = {name: " ".join((kind.of.__doc__ or "").split()) for name, kind in kinds.items() if kind.is_struct}
    for field, below in zip(body.body, body.body[1:], strict=False):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            meanings[field.target.id] = " ".join(below.value.value.split())
    return meanings


Table = dict[str, Any]


def set_value(path: Path, key: str, value: object) -> None:
    """Write ``value`` for a dotted ``key`` into a settings file, which is created if it is missing. The file is
    replaced in one step; a link to it is followed.

    Raises:
        ConfigError: the file can't be read or written, or is not TOML; it is unchanged.
    """
    import tomlkit

    def put(document: Table) -> bool:
        *sections, name = _written_as(document, key_parts(key))
        table = document
        for section in sections:
            if section not in table:
                table[section] = tomlkit.table(is_super_table=section is not sections[-1])
            table = cast("Table", table[section])
        old = table.get(name)
        if isinstance(value, Mapping) and isinstance(old, dict):
            _merge(cast("Table", old), cast("Mapping[str, object]", value))
        elif (
            isinstance(old, list)
            and isinstance(value, list)
            and _adjusted(cast("list[object]", old), cast("list[object]", value))
        ):
            pass
        elif isinstance(value, Mapping | list):
            table[name] = _inline(cast("object", value))
        else:
            table[name] = value
        return True

    _change(path, key, put)


def unset_value(path: Path, key: str) -> bool:
    """Remove a dotted ``key`` from a settings file. Whether it was there.

    Raises:
        ConfigError: the file can't be read or written, or is not TOML; it is unchanged.
    """

    def take(document: Table) -> bool:
        *sections, name = _written_as(document, key_parts(key) or (key,))
        table = _below(document, sections)
        return table is not None and table.pop(name, None) is not None

    return _change(path, key, take)


def _written_as(document: Table, key: Key) -> Key:
    """The name under which a file has a setting: two names of one setting in a file are an error. A setting that the
    file lacks gets the usual one."""
    usual = canonical(key)
    for name in (usual, *(other for other, own in SYNONYMS.items() if own == usual)):
        if name[-1] in (_below(document, name[:-1]) or ()):
            return name
    return usual


def _below(document: Table, sections: Sequence[str]) -> Table | None:
    table = document
    for section in sections:
        if not isinstance(table.get(section), dict):
            return None
        table = cast("Table", table[section])
    return table


def _merge(table: Table, wanted: Mapping[str, object]) -> None:
    """Make a table equal to ``wanted``; equal parts keep their places and comments."""
    for removed in [name for name in table if name not in wanted]:
        del table[removed]
    for name, value in wanted.items():
        if name not in table or table[name] != value:
            table[name] = value


def _adjusted(array: list[object], wanted: list[object]) -> bool:
    """Make a list equal to ``wanted`` by removing entries and appending some, so that its comments stay. Whether that
    was enough."""
    common = [each for each in array if each in wanted]
    if wanted[: len(common)] != common:
        return False
    for removed in [each for each in array if each not in wanted]:
        array.remove(removed)
    array.extend(wanted[len(common) :])
    return list(array) == wanted


def _inline(value: object) -> Any:
    """Convert tables inside a value to inline form."""
    import tomlkit

    if isinstance(value, Mapping):
        table: Any = tomlkit.inline_table()
        table.update({name: _inline(item) for name, item in cast("Mapping[str, object]", value).items()})
        return table
    if isinstance(value, list):
        array: Any = tomlkit.array()
        array.extend(_inline(item) for item in cast("list[object]", value))
        return array
    return value


def _change(path: Path, key: str, change: Callable[[Table], bool]) -> bool:
    """Read, change and replace the file, while no other process does; makes its folder."""
    target = path.resolve()
    try:
        if not target.parent.is_dir():
            make_private(target.parent)
        with alone_in(target.parent):
            return _changed(path, target, key, change)
    except OSError as error:
        raise ConfigError([ConfigProblem(str(path), None, f"cannot write it: {error.strerror or error}")]) from None


def _changed(path: Path, target: Path, key: str, change: Callable[[Table], bool]) -> bool:
    """Raises OSError if the file can't be written."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    read = read_toml(path)
    try:
        document = tomlkit.parse(read[1] if read is not None else "")
        changed = change(cast("Table", document))
        text = tomlkit.dumps(document)
    except (TOMLKitError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigError([ConfigProblem(str(path), None, f"cannot set {key} here: {error}")]) from None
    if not changed:
        return False
    if read is None:
        write_whole(target, text)
    else:
        old = target.read_bytes()
        text = text.replace("\n", "\r\n") if b"\r\n" in old else text
        mark = "\ufeff" if old.startswith(BOM_UTF8) else ""
        write_whole(target, f"{mark}{text}", target.stat().st_mode & 0o777)
    return True
