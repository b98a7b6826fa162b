"""Single values as TOML text, and back from what a person types."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel


def toml_text(value: object) -> str:
    """A value on one line, as it would stand behind a key."""
    if isinstance(value, BaseModel):
        return toml_text(
            {name: getattr(value, name) for name in type(value).model_fields if name in value.model_fields_set}
        )
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return "{" + ", ".join(f"{toml_key(name)} = {toml_text(item)}" for name, item in items) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(toml_text(item) for item in cast("Sequence[object]", value)) + "]"
    return str(value)


def toml_key(name: str) -> str:
    """A key as TOML writes it, in quotes where it needs them."""
    return name if name and all(c.isascii() and (c.isalnum() or c in "_-") for c in name) else toml_text(name)


def typed_value(text: str, *, words: bool, many: bool) -> Any:
    """What a person means by ``text``. It is TOML; where texts are expected (``words``) quotes may be left out, and
    where a list is (``many``) so may the brackets around a single entry.

    Raises:
        ValueError: it is no value; one sentence.
    """
    stripped = text.strip()
    if not stripped:
        raise ValueError("is empty; a value is missing")
    if words and stripped[0] not in "\"'[{":
        return [stripped] if many else stripped
    try:
        value = tomllib.loads(f"value = {stripped}\n")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        if words and stripped[0] not in "[{":
            return [stripped] if many else stripped
        said = str(error).partition(" (at ")[0]
        raise ValueError(f"is no value in TOML: {said}") from None
    if set(value) != {"value"}:
        raise ValueError("must be one value on one line")
    found: object = value["value"]
    return [found] if many and not isinstance(found, list) else cast("Any", found)


def key_parts(text: str) -> tuple[str, ...]:
    """The parts of a dotted key, of which some may be in quotes; empty where it is none."""
    try:
        tree: Any = tomllib.loads(f"{text.strip()} = 0\n")
    except (tomllib.TOMLDecodeError, RecursionError):
        return ()
    parts: list[str] = []
    while isinstance(tree, dict) and len(cast("dict[str, Any]", tree)) == 1:
        name, tree = next(iter(cast("dict[str, Any]", tree).items()))
        parts.append(name)
    return tuple(parts) if tree == 0 else ()
