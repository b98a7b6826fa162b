"""Typed access to decoded JSON of unknown shape: each accessor returns an empty value where the shape differs."""

from __future__ import annotations

import json
from typing import TypeAlias, TypeGuard, cast

JsonObject: TypeAlias = dict[str, object]


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Whether a decoded JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object]]:
    """Whether a decoded JSON value is an array."""
    return isinstance(value, list)


def as_object(value: object) -> JsonObject:
    """``value`` if it is a JSON object, else an empty one."""
    return value if is_object(value) else {}


def as_list(value: object) -> list[object]:
    """``value`` if it is a JSON array, else an empty one."""
    return value if is_list(value) else []


def as_text(value: object) -> str:
    """``value`` if it is a string, else the empty string."""
    return value if isinstance(value, str) else ""


def as_int(value: object) -> int | None:
    """``value`` if it is a whole number (no boolean), else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else None


def parse_json(text: str | bytes) -> object:
    """The decoded JSON value.

    Raises:
        ValueError: no JSON, or nested too deeply.
    """
    try:
        return cast("object", json.loads(text))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def parse_object(text: str) -> JsonObject | None:
    """The decoded JSON object, or None where the text is anything else."""
    try:
        value = parse_json(text)
    except ValueError:
        return None
    return value if is_object(value) else None


def compact(value: object) -> str:
    """JSON on one line without blanks, keys in the order given, characters beyond ASCII kept."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
