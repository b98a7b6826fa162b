"""Tool calls that a model writes as text, because it or its server knows no other way. Pure.

Two forms count: ``<tool_call>`` around JSON, anywhere; and JSON alone, in a fence at the end of the answer or as the
whole answer. Either must name a tool that was offered, and hold nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from swecli.core.llm.json_values import JsonObject, compact, is_list, is_object, parse_json, parse_object

OPEN, CLOSE = "<tool_call>", "</tool_call>"
FENCE = "```"

_NAMES = ("name", "tool", "tool_name", "function")
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_OTHERS = ("id", "type")
_FENCE_START = re.compile(r"^```[\w-]*[ \t]*\n", re.MULTILINE)
_TRIES = 50
"""Ends of a block that are tried, as its JSON may contain what looks like an end."""


@dataclass(frozen=True, slots=True)
class TextCall:
    """``arguments`` is the text of a JSON object."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Split:
    """What remains of the text, and the calls that were in it."""

    text: str
    calls: tuple[TextCall, ...]


def split_calls(text: str, tools: Collection[str]) -> Split | None:
    """Take the calls out of an answer; None where it has none."""
    return _tagged(text, tools) or _fenced(text, tools) or _alone(text, tools)


def read_calls(text: str, tools: Collection[str]) -> tuple[TextCall, ...]:
    """The calls that a piece of JSON is; none where it is anything else."""
    try:
        value = parse_json(text)
    except ValueError:
        return ()
    calls = [_call(item, tools) for item in (value if is_list(value) else [value])]
    return tuple(call for call in calls if call is not None) if all(calls) else ()


def _tagged(text: str, tools: Collection[str]) -> Split | None:
    kept: list[str] = []
    calls: list[TextCall] = []
    position = 0
    while (start := text.find(OPEN, position)) >= 0:
        inside = start + len(OPEN)
        found, end = (), inside
        for stop, after in _ends(text, inside):
            if found := read_calls(text[inside:stop], tools):
                end = after
                break
        kept.append(text[position : start if found else inside])
        calls.extend(found)
        position = end
    if not calls:
        return None
    return Split(_joined([*kept, text[position:]]), tuple(calls))


def _ends(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Where the JSON of a block may end, and where what follows begins. A model may stop without a closing tag."""
    position = start
    for _ in range(_TRIES):
        stop = text.find(CLOSE, position)
        if stop < 0:
            break
        position = stop + len(CLOSE)
        yield stop, position
    yield len(text), len(text)


def _fenced(text: str, tools: Collection[str]) -> Split | None:
    """Fences at the end, the last one last."""
    body, calls = text.rstrip(), list[TextCall]()
    while body.endswith(FENCE):
        inside = body[: -len(FENCE)]
        starts = list(_FENCE_START.finditer(inside))[-_TRIES:]
        hit = next(
            ((match.start(), found) for match in starts if (found := read_calls(inside[match.end() :], tools))), None
        )
        if hit is None:
            break
        body, calls = body[: hit[0]].rstrip(), [*hit[1], *calls]
    return Split(body, tuple(calls)) if calls else None


def _alone(text: str, tools: Collection[str]) -> Split | None:
    if not text.lstrip().startswith(("{", "[")):
        return None
    calls = read_calls(text, tools)
    return Split("", calls) if calls else None


def _joined(pieces: list[str]) -> str:
    filled = [piece.strip("\n") for piece in pieces]
    return "\n".join(piece for piece in filled if piece.strip()).rstrip()


def _call(value: object, tools: Collection[str]) -> TextCall | None:
    if not is_object(value) or not value.keys() <= {*_NAMES, *_ARGUMENTS, *_OTHERS}:
        return None
    names = [value[key] for key in _NAMES if key in value]
    if len(names) != 1:
        return None
    if is_object(names[0]):  # the form of the native protocol
        return _call(names[0], tools) if not any(key in value for key in _ARGUMENTS) else None
    given = [value[key] for key in _ARGUMENTS if key in value]
    arguments = _object(given[0]) if given else {}
    if len(given) > 1 or arguments is None or not isinstance(names[0], str) or names[0] not in tools:
        return None
    return TextCall(names[0], compact(arguments))


def _object(value: object) -> JsonObject | None:
    if isinstance(value, str):
        return parse_object(value)
    return value if is_object(value) else None
