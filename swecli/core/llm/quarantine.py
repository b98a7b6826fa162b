"""Parts of the conversation that the server refuses are left out from then on: one of them must not end a session,
as it would come back with each request."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from swecli.core.llm.errors import WireError
from swecli.core.llm.json_values import JsonObject, as_list, as_object
from swecli.core.llm.types import ModelRequest
from swecli.core.protocol.messages import (
    ImagePart,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

_STEP = r"(?:\.\[?|\[|\s*->\s*|['\"],\s*)"
_NEXT = r"(?:\.\[?|\[|\s*->\s*|['\"]?,\s*)"
_PLACE = re.compile(
    rf"\b(?:messages|input|contents){_STEP}(\d+)\b\]?"
    rf"(?:{_NEXT}['\"]?(content|parts|output|tool_calls)\b(?:{_NEXT}(\d+)\b)?)?"
)
"""``messages.5.content.0``, ``input[5]``, ``contents[5].parts[0]``, ``'messages', 5, 'content', 0`` and the like."""
_THOUGHTS = re.compile(
    r"signature|encrypted[_ ]content|without its required|`?(?:redacted_)?thinking`? blocks?|Item 'rs_",
    re.IGNORECASE,
)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LISTS = ("messages", "input", "contents")

Build = Callable[[ModelRequest], JsonObject]
"""The body of a request."""


@dataclass(frozen=True, slots=True)
class _Place:
    """An item of the conversation in the body, and which one of its ``key`` (None: no certain one)."""

    item: int
    key: str = ""
    index: int | None = None


class Quarantine:
    """What one server refuses of one conversation."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._thoughtless: set[str] = set()

    def take(self, error: WireError, request: ModelRequest, build: Build) -> str:
        """Take in what the server complains about. ``request`` is as it was sent. Returns a sentence for the user;
        empty where the error is about nothing that could be left out."""
        if error.kind != "bad_request" or error.status not in (400, 422):
            return ""
        text = f"{error.parameter} {error.message}"
        thinking = {item.id for item in request.messages if _has_thoughts(item)} - self._thoughtless
        if thinking and _THOUGHTS.search(text):
            self._thoughtless |= thinking
            return "The server refused what it had sent of the model's earlier reasoning; that is left out from now on."
        place = _place(text)
        refused = _parts_at(place, request, build) if place is not None else []
        if not refused:
            return ""
        self._parts += refused
        what = " and ".join(dict.fromkeys(_name(part) for part in refused))
        return f"The server refused {what} of this conversation, which is left out from now on: {error.message[:200]}"

    def apply(self, request: ModelRequest) -> ModelRequest:
        """The request without what was refused."""
        if not self._parts and not self._thoughtless:
            return request
        return replace(request, messages=tuple(self._cleared(message) for message in request.messages))

    def _cleared(self, message: Message) -> Message:
        parts: Sequence[Part] = message.parts
        if message.id in self._thoughtless:
            parts = [bare for part in parts if (bare := _without_thoughts(part)) is not None]
        kept = [made for part in parts if (made := _substitute(part) if part in self._parts else part) is not None]
        return replace(message, parts=tuple(kept)) if tuple(kept) != message.parts else message


def _place(text: str) -> _Place | None:
    match = _PLACE.search(text)
    if match is None:
        return None
    return _Place(int(match[1]), match[2] or "", int(match[3]) if match[3] is not None else None)


def _parts_at(place: _Place, request: ModelRequest, build: Build) -> list[Part]:
    """The parts that the place in the body was made from: those without which there would be no such place."""
    spots = [(at, end) for at, message in enumerate(request.messages) for end in range(1, len(message.parts) + 1)]

    def first(item: int, key: str = "", index: int | None = None) -> int:
        def there(number: int) -> bool:
            at, end = spots[number]
            last = replace(request.messages[at], parts=request.messages[at].parts[:end])
            body = build(replace(request, messages=(*request.messages[:at], last), tail="", breakpoints=()))
            items = next((as_list(body[name]) for name in _LISTS if name in body), ())
            return len(items) > item and (index is None or len(as_list(as_object(items[item]).get(key))) > index)

        return bisect_left(range(len(spots)), True, key=there)

    empty = build(replace(request, messages=(), tail="", breakpoints=()))
    if any(len(as_list(empty.get(name))) > place.item for name in _LISTS):
        return []  # the system prompt
    begin = first(place.item, place.key, place.index)
    end = begin + 1 if place.index is not None else first(place.item + 1)
    parts = [request.messages[at].parts[number - 1] for at, number in spots[begin:end]]
    calls: list[Part] = [part for part in parts if isinstance(part, ToolCallPart)]
    others: list[Part] = [part for part in parts if not isinstance(part, ToolCallPart | ReasoningPart)]
    return calls if place.key == "tool_calls" else others or calls


def _substitute(part: Part) -> Part | None:
    """What stands in for a part, so that calls keep their results and the model knows that something is missing."""
    match part:
        case TextPart() | ImagePart():
            return TextPart(f"[{_name(part).capitalize()} was left out, because the server refused it.]")
        case ToolResultPart():
            return replace(part, text="[The result was left out, because the server refused it.]", images=())
        case ToolCallPart():
            name = _NOT_IN_NAMES.sub("_", part.name)[:64] or "unknown"
            return replace(part, name=name, arguments="{}", opaque=None)
        case ReasoningPart() | OpaquePart():
            return None


def _without_thoughts(part: Part) -> Part | None:
    match part:
        case ReasoningPart():
            return replace(part, opaque=None)
        case TextPart() | ToolCallPart():
            return replace(part, opaque=None)
        case OpaquePart():
            return None
        case _:
            return part


def _has_thoughts(message: Message) -> bool:
    return any(
        isinstance(part, OpaquePart)
        or (isinstance(part, TextPart | ReasoningPart | ToolCallPart) and part.opaque is not None)
        for part in message.parts
    )


def _name(part: Part) -> str:
    match part:
        case ImagePart():
            return "an image"
        case ToolResultPart():
            return "a tool's result"
        case ToolCallPart():
            return "the arguments of a call"
        case _:
            return "a text"
