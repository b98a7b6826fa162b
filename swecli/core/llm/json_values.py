"""Typed access to decoded JSON of unknown shape: each accessor returns an empty value for another shape."""

from __future__ import annotations

import contextlib
import json
import math
import re
from typing import TypeAlias, TypeGuard, cast

import msgspec

from swecli.core.llm.text import clean
from swecli.lazy_pattern import lazy_pattern

JsonObject: TypeAlias = dict[str, object]

MAX_DEPTH = 200
"""Nesting levels accepted. Deeper values are an attack on the stack."""

_BRACKETS = lazy_pattern(r'[\[\]{}]|"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
"""Brackets, and whole strings, the last of which may be unclosed: each character is examined once."""


def is_object(value: object) -> TypeGuard[JsonObject]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def as_object(value: object) -> JsonObject:
    """``value`` if it is a JSON object, else an empty one."""
    return value if is_object(value) else {}


def as_list(value: object) -> list[object]:
    """``value`` if it is a JSON array, else an empty one."""
    return value if is_list(value) else []


def as_items(value: object) -> list[object]:
    """The items of a JSON array; a single object is its only item."""
    return [value] if is_object(value) else as_list(value)


def as_text(value: object) -> str:
    """``value`` if it is a string, else the empty string."""
    return value if isinstance(value, str) else ""


def as_int(value: object) -> int | None:
    """``value`` if it is a whole number (not a boolean), else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else None


def parse_json(text: str) -> object:
    """The decoded JSON value. Python's extensions (NaN and infinities) are rejected.

    Raises:
        ValueError: invalid JSON, or nested deeper than ``MAX_DEPTH``.
    """
    return _decoded(text, _DECODER)


def parse_event(text: str) -> object:
    """A server's JSON, as ``parse_json`` but with None for NaN and infinities: some servers write NaN for missing
    figures, which must not lose an answer.

    Raises:
        ValueError: invalid JSON, or nested deeper than ``MAX_DEPTH``.
    """
    if not is_too_deep(text):
        with contextlib.suppress(msgspec.DecodeError, UnicodeEncodeError):  # Python's decoder is slower, but reads more
            return cast("object", msgspec.json.decode(text))
    return _decoded(text, _EVENT_DECODER)


def parse_loose(text: str) -> object:
    """A model's JSON value, with line ends and other control characters allowed in its strings.

    Raises:
        ValueError: invalid JSON, or nested deeper than ``MAX_DEPTH``.
    """
    return _decoded(text, _LOOSE_DECODER)


def _decoded(text: str, decoder: json.JSONDecoder) -> object:
    if is_too_deep(text):
        raise ValueError("nested too deeply")
    return cast("object", decoder.decode(text))


def is_too_deep(text: str) -> bool:
    return text.count("[") + text.count("{") > MAX_DEPTH and _depth(text) > MAX_DEPTH


def _depth(text: str) -> int:
    depth = deepest = 0
    for match in _BRACKETS.finditer(text):
        token = match.group()
        if token in ("[", "{"):
            depth += 1
            deepest = max(deepest, depth)
        elif token in ("]", "}"):
            depth -= 1
    return deepest


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is out of range")
    return number


def _finite_or_none(text: str) -> float | None:
    number = float(text)
    return None if math.isinf(number) else number


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
"""Created once: that costs as much as decoding a small event."""
_EVENT_DECODER = json.JSONDecoder(parse_constant=lambda _: None, parse_float=_finite_or_none)
_LOOSE_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite, strict=False)


def parse_object(text: str) -> JsonObject | None:
    """The decoded JSON object, or None for any other text."""
    try:
        value = parse_json(text)
    except ValueError:
        return None
    return value if is_object(value) else None


def encoded(value: object) -> bytes:
    """The bytes of ``compact`` for a request's body. They are valid Unicode: pairs of surrogates are joined, and lone
    ones replaced."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return clean(compact(value)).encode()


def compact(value: object) -> str:
    """JSON on one line without blanks, keys in order, non-ASCII characters kept."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
