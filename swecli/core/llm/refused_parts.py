"""The parts of a conversation that a server's complaint is about, and what stands in their place."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable

from msgspec import Struct, structs
from msgspec.structs import replace

from swecli.core.llm.json_values import JsonObject, as_list, as_object
from swecli.core.llm.types import ModelRequest
from swecli.core.protocol.messages import (
    DocumentPart,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from swecli.lazy_pattern import lazy_pattern

_STEP = r"(?:\.\[?|\[|\s*->\s*|['\"],\s*)"
_NEXT = r"(?:\.\[?|\[|\s*->\s*|['\"]?,\s*)"
_PLACE = lazy_pattern(
    rf"\b(?:messages|input|contents){_STEP}(\d+)\b\]?"
    rf"(?:{_NEXT}['\"]?(content|parts|output|tool_calls)\b(?:{_NEXT}(\d+)\b)?)?"
)
"""Matches ``messages.5.content.0``, ``input[5]``, ``contents[5].parts[0]``, ``'messages', 5, 'content', 0`` and
similar."""
ARGUMENTS = lazy_pattern(
    r"failed to parse tool[ _]call arguments"  # llama.cpp
    r"|(?:unterminated string|expecting |invalid (?:control character|\\)|extra data|illegal trailing comma)"
    r"[^\n]{0,80}: line \d+ column \d+"  # vLLM: the parser's own sentence
    r"|can only get item pairs from a mapping"  # a chat template that iterates over them
    r"|tool[ _]calls?\b[^\n]{0,60}\barguments\b[^\n]{0,60}\b(?:json|dict|object|mapping)\b",
    re.IGNORECASE,
)
"""The server fails to read the arguments of earlier calls."""
_DOUBTFUL = lazy_pattern(r"\\u[dD][89a-fA-F]|\d{19}|[eE][+-]?\d{3}")
"""JSON that only some parsers accept: lone surrogates, and numbers beyond 64 bits."""
_NOT_IN_NAMES = lazy_pattern(r"[^A-Za-z0-9_-]")
_LISTS = ("messages", "input", "contents")

Build = Callable[[ModelRequest], JsonObject]
"""Builder of a request body."""


class Place(Struct, frozen=True):
    """An item of the conversation in the body, and the index in its ``key`` (None: uncertain)."""

    item: int
    key: str = ""
    index: int | None = None


def place_of(text: str) -> Place | None:
    """The place that a complaint names, if any."""
    match = _PLACE.search(text)
    if match is None:
        return None
    return Place(int(match[1]), match[2] or "", int(match[3]) if match[3] is not None else None)


def items_in(body: JsonObject) -> list[object]:
    """The items of the conversation in a body."""
    return next((as_list(body[name]) for name in _LISTS if name in body), list[object]())


def parts_at(place: Place, request: ModelRequest, build: Build) -> list[Part]:
    """The parts behind the place in the body: without them it would not exist."""
    spots = [(at, end) for at, message in enumerate(request.messages) for end in range(1, len(message.parts) + 1)]

    def first(item: int, key: str = "", index: int | None = None) -> int:
        def there(number: int) -> bool:
            at, end = spots[number]
            last = structs.replace(request.messages[at], parts=request.messages[at].parts[:end])
            body = build(replace(request, messages=(*request.messages[:at], last), breakpoints=()))
            items = items_in(body)
            return len(items) > item and (index is None or len(as_list(as_object(items[item]).get(key))) > index)

        return bisect_left(range(len(spots)), True, key=there)

    empty = build(replace(request, messages=(), breakpoints=()))
    if len(items_in(empty)) > place.item:
        return []  # the system prompt
    begin = first(place.item, place.key, place.index)
    end = begin + 1 if place.index is not None else first(place.item + 1)
    parts = [request.messages[at].parts[number - 1] for at, number in spots[begin:end]]
    calls: list[Part] = [part for part in parts if isinstance(part, ToolCallPart)]
    others: list[Part] = [part for part in parts if not isinstance(part, ToolCallPart | ReasoningPart)]
    return calls if place.key == "tool_calls" else others or calls


def unread_calls(request: ModelRequest, *, everything: bool) -> list[ToolCallPart]:
    """Calls whose arguments the server may fail to read, if it does not say which: doubtful ones and those of the
    newest message with calls, because earlier requests with the rest were accepted; or all."""
    known = [[call for call in message.tool_calls if call.arguments != "{}"] for message in request.messages]
    newest = next((group for group in reversed(known) if group), list[ToolCallPart]())
    calls = [call for group in known for call in group]
    return [call for call in calls if everything or call in newest or _DOUBTFUL.search(call.arguments)]


def replacement(part: Part) -> Part | None:
    """Replacement of a part, so that calls keep their results and the model knows that something is missing."""
    match part:
        case TextPart() | ImagePart() | DocumentPart():
            return TextPart(f"[{name_of(part).capitalize()} was left out because the server rejected it.]")
        case ToolResultPart():
            text = "[The result was left out because the server rejected it.]"
            return structs.replace(part, text=text, images=(), documents=())
        case ToolCallPart():
            name = _NOT_IN_NAMES.sub("_", part.name)[:64] or "unknown"
            return structs.replace(part, name=name, arguments="{}", opaque=None)
        case ReasoningPart() | OpaquePart():
            return None


def without_thoughts(part: Part) -> Part | None:
    match part:
        case ReasoningPart():
            return structs.replace(part, opaque=None)
        case TextPart() | ToolCallPart():
            return structs.replace(part, opaque=None)
        case OpaquePart():
            return None
        case _:
            return part


def has_thoughts(message: Message) -> bool:
    return any(
        isinstance(part, OpaquePart)
        or (isinstance(part, TextPart | ReasoningPart | ToolCallPart) and part.opaque is not None)
        for part in message.parts
    )


def name_of(part: Part) -> str:
    match part:
        case ImagePart():
            return "an image"
        case DocumentPart():
            return "a PDF file"
        case ToolResultPart():
            return "a tool's result"
        case ToolCallPart():
            return "the arguments of a call"
        case _:
            return "a text"
