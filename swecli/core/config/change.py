"""Changing one setting in its file, and descriptions of all settings for people."""

from __future__ import annotations

import ast
import inspect
import textwrap
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from pydantic import BaseModel

from swecli.core.atomic_text import make_private, write_whole
from swecli.core.config.key_actions import BY_NAME
from swecli.core.config.load import (
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
from swecli.core.config.settings import NAMED, KeySettings, Settings

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


def describe(loaded: Loaded) -> tuple[Described, ...]:
    """All settings in the order of their sections; for providers and single models those that exist."""
    return tuple(_all(loaded))


def meaning(key: tuple[str, ...]) -> Described | None:
    """Description of a setting without its value; None for an unknown setting."""
    model = _model_of(key)
    if model is None:
        return None
    name = key[1] if len(key) == 2 or key[0] == "models" else key[-1]
    if name not in model.model_fields:
        return None
    return _described(key, name, model, None, Origin("default"))


def instead_of(name: str, known: Iterable[str]) -> str:
    """What to do about a name that is no setting: a clause with the one that was probably meant."""
    names = list(known)
    last = name.rpartition(".")[2]
    by_last = {one.rpartition(".")[2]: one for one in reversed(names)}
    near = get_close_matches(name, names, 1, 0.8) or [
        by_last[one] for one in get_close_matches(last, list(by_last), 1, 0.8)
    ]
    return f"did you mean {near[0]}?" if near else "`swecli config` lists all"


def _model_of(key: tuple[str, ...]) -> type[BaseModel] | None:
    if key and key[0] in NAMED:
        return NAMED[key[0]] if len(key) == 3 and key[1] else None
    section = Settings.model_fields.get(key[0]) if key else None
    if section is None or not (len(key) == 2 or (len(key) == 3 and key[0] == "models" and key[2])):
        return None
    annotation = section.annotation
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _all(loaded: Loaded) -> Iterator[Described]:
    for section, model in loaded.settings:
        if isinstance(model, BaseModel):
            yield from _section(loaded, (section,), model)
            continue
        for name, named in cast("dict[str, BaseModel]", model).items():
            yield from _section(loaded, (section, name), named)


def _section(loaded: Loaded, path: tuple[str, ...], model: BaseModel) -> Iterator[Described]:
    for name, value in model:
        key = (*path, name)
        origin = loaded.origins.get(key, Origin("default"))
        named = cast("dict[str, object]", value) if path == ("models",) else {}
        for one, item in named.items():
            yield _described((*key, one), name, type(model), item, origin)
        if not named:
            yield _described(key, name, type(model), value, origin)


def _described(key: tuple[str, ...], name: str, model: type[BaseModel], value: object, origin: Origin) -> Described:
    schema = _schemas(model).get(name, {})
    if len(key) == 3 and key[0] == "models":
        schema = schema.get("additionalProperties", {})
    secret = name in SECRET or (name == "base_url" and "@" in str(value))
    default = model.model_fields[name].get_default(call_default_factory=True)
    unset = value is None or (isinstance(value, BaseModel) and not value.model_fields_set)
    return Described(
        key,
        "(unset)" if unset else toml_text(value) if isinstance(value, BaseModel) and not secret else shown_value(value),
        "" if secret or unset else toml_text(value),
        origin,
        _about(model).get(name, ""),
        takes(schema),
        _choices(schema),
        "(unset)" if default is None or isinstance(default, BaseModel) else "" if secret else toml_text(default),
        secret,
    )


@lru_cache(maxsize=32)
def _about(model: type[BaseModel]) -> Mapping[str, str]:
    if issubclass(model, KeySettings):
        return {name: f"Keys that do this: {action.meaning}." for name, action in BY_NAME.items()}
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]
    except (OSError, SyntaxError):
        return {}
    assert isinstance(body, ast.ClassDef)
    sections = {name: field.annotation for name, field in model.model_fields.items()}
    found = {name: " ".join((kind.__doc__ or "").split()) for name, kind in sections.items() if _is_section(kind)}
    for field, below in zip(body.body, body.body[1:], strict=False):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            found[field.target.id] = " ".join(below.value.value.split())
    return found


def _is_section(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


Schema = dict[str, Any]


@lru_cache(maxsize=32)
def _schemas(model: type[BaseModel]) -> dict[str, Schema]:
    whole = model.model_json_schema()
    named = cast("dict[str, Schema]", whole.get("$defs", {}))

    def resolved(schema: Schema) -> Schema:
        reference = schema.get("$ref", "")
        return {**named.get(str(reference).rpartition("/")[2], {}), **schema} if reference else schema

    return {name: resolved(schema) for name, schema in cast("dict[str, Schema]", whole["properties"]).items()}


def takes(schema: Schema) -> str:
    """Allowed values of a JSON schema, in words."""
    if "anyOf" in schema:
        kinds = [each for each in cast("list[Schema]", schema["anyOf"]) if each.get("type") != "null"]
        return " or ".join(takes(each) for each in kinds)
    if "enum" in schema:
        return "one of " + ", ".join(toml_text(each) for each in schema["enum"])
    match schema.get("type"):
        case "boolean":
            return "true or false"
        case "integer" | "number" as kind:
            return ("a whole number" if kind == "integer" else "a number") + _bounds(schema)
        case "array":
            return f"a list, each {takes(cast('Schema', schema.get('items', {})))}"
        case "object":
            return "a table"
        case "string":
            return "text"
        case _:
            return "a table"


def _bounds(schema: Schema) -> str:
    words: list[str] = []
    for name, word in (
        ("minimum", "from"),
        ("exclusiveMinimum", "above"),
        ("maximum", "to"),
        ("exclusiveMaximum", "below"),
    ):
        if name in schema:
            words.append(f"{word} {schema[name]:,g}" if isinstance(schema[name], float) else f"{word} {schema[name]:,}")
    return " " + " ".join(words) if words else ""


def _choices(schema: Schema) -> tuple[str, ...]:
    if "anyOf" in schema:
        kinds = [each for each in cast("list[Schema]", schema["anyOf"]) if each.get("type") != "null"]
        return _choices(kinds[0]) if len(kinds) == 1 else ()
    if schema.get("type") == "boolean":
        return ("true", "false")
    return tuple(toml_text(each) for each in schema.get("enum", ()))


Table = dict[str, Any]


def set_value(path: Path, key: str, value: object) -> None:
    """Write ``value`` for a dotted ``key`` into a settings file, which is created if it is missing. The file is
    replaced in one step; a link to it is followed.

    Raises:
        ConfigError: the file can't be read or written, or is not TOML; it is unchanged.
    """
    import tomlkit

    def put(document: Table) -> bool:
        *sections, name = key_parts(key)
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
        *sections, name = key_parts(key)
        table = document
        for section in sections:
            if not isinstance(table.get(section), dict):
                return False
            table = cast("Table", table[section])
        return table.pop(name, None) is not None

    return _change(path, key, take)


def _merge(table: Table, wanted: Mapping[str, object]) -> None:
    """Make a table equal to ``wanted``; equal parts keep their places and comments."""
    for gone in [name for name in table if name not in wanted]:
        del table[gone]
    for name, value in wanted.items():
        if name not in table or table[name] != value:
            table[name] = value


def _adjusted(array: list[object], wanted: list[object]) -> bool:
    """Make a list equal to ``wanted`` by removing entries and appending some, so that its comments stay. Whether that
    was enough."""
    kept = [each for each in array if each in wanted]
    if wanted[: len(kept)] != kept:
        return False
    for gone in [each for each in array if each not in wanted]:
        array.remove(gone)
    array.extend(wanted[len(kept) :])
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


def _like(old: bytes, text: str) -> str:
    """``text`` with the byte order mark and the line ends of the file's old content."""
    text = text.replace("\n", "\r\n") if b"\r\n" in old else text
    return f"\ufeff{text}" if old.startswith(BOM_UTF8) else text


def _change(path: Path, key: str, change: Callable[[Table], bool]) -> bool:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    read = read_toml(path)
    target = path.resolve()
    try:
        document = tomlkit.parse(read[1] if read is not None else "")
        changed = change(cast("Table", document))
        text = tomlkit.dumps(document)
    except (TOMLKitError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigError([ConfigProblem(str(path), None, f"cannot set {key} here: {error}")]) from None
    if not changed:
        return False
    try:
        if not target.parent.is_dir():
            make_private(target.parent)
        if read is None:
            write_whole(target, text)
        else:
            write_whole(target, _like(target.read_bytes(), text), target.stat().st_mode & 0o777)
    except OSError as error:
        raise ConfigError([ConfigProblem(str(path), None, f"cannot write it: {error.strerror or error}")]) from None
    return True
