"""The request as sent: by section with its tokens, breakpoints, and differences from the previous one. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.llm.json_values import as_object, is_list
from swecli.core.llm.types import ModelRequest
from swecli.core.protocol.messages import TextPart, ToolCallPart, ToolResultPart
from swecli.figures import cut

LISTS: Final = ("system", "tools", "messages", "input", "contents")
"""Fields of a request with members that are sections of their own."""
BREAKPOINT: Final = "cache_control"

Change = Literal["same", "new", "changed", "gone"]


class WireSection(Struct, frozen=True):
    """One piece of a request. ``name`` is its path in the body ("messages[3]"), ``about`` a few words on it, ``text``
    its JSON as sent; ``breakpoint``: a cache breakpoint follows it. ``change`` is the difference from the previous
    request."""

    name: str
    about: str
    text: str
    tokens: int
    breakpoint: bool = False
    change: Change = "new"


class WireRequest(Struct, frozen=True):
    """``body`` is the JSON text of the whole request, ``exact`` whether it is sent byte for byte; a model without a
    network connection has swecli's own form. ``compared``: this run has sent a request before it."""

    url: str
    body: str
    sections: tuple[WireSection, ...]
    exact: bool
    tokens: int
    compared: bool


def compact_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def sections_of(
    body: Mapping[str, Any], count: Callable[[str], int], before: Mapping[str, Any] | None = None
) -> tuple[WireSection, ...]:
    """The sections of a body in order, compared with those of the previous one."""
    old = dict(_pieces(before)) if before is not None else {}
    sections: list[WireSection] = []
    for name, value in _pieces(body):
        text = compact_json(value)
        was = old.pop(name, None)
        change: Change = "new" if was is None else "same" if compact_json(was) == text else "changed"
        sections.append(WireSection(name, _about(value), text, count(text), f'"{BREAKPOINT}"' in text, change))
    removed = (WireSection(name, _about(value), compact_json(value), 0, False, "gone") for name, value in old.items())
    return (*sections, *removed)


def adding_up(sections: Sequence[WireSection], tokens: int) -> tuple[WireSection, ...]:
    """The sections with sizes scaled to the measure of the request: a provider's frame around the texts costs other
    tokens than its JSON suggests."""
    total = sum(section.tokens for section in sections)
    made: list[WireSection] = []
    come = given = 0
    for section in sections:
        come += section.tokens
        upto = round(come * tokens / max(1, total))
        made.append(replace(section, tokens=upto - given))
        given = upto
    return tuple(made)


def _pieces(body: Mapping[str, Any]) -> Sequence[tuple[str, Any]]:
    """Pieces of a body: each member of its lists, and every other field."""
    pieces: list[tuple[str, Any]] = []
    for field, value in body.items():
        if field in LISTS and is_list(value):
            pieces += [(f"{field}[{number}]", member) for number, member in enumerate(value)]
        else:
            pieces.append((field, value))
    return pieces


def _about(value: Any) -> str:
    """Role or name, and the beginning of the text."""
    fields = as_object(value)
    if not fields:
        return cut(compact_json(value), 80)
    named = as_object(fields.get("function")) or fields
    described = named.get("description")
    if isinstance(described, str) and "name" in named:
        return cut(f"{named['name']}: {' '.join(described.split())}", 120)
    kind = str(fields.get("role") or named.get("name") or fields.get("type") or "")
    return cut(f"{kind} {_words(fields)}".strip(), 120)


def _words(value: Any) -> str:
    """The first text in a value."""
    if isinstance(value, str):
        return cut(" ".join(value.split()), 100)
    if is_list(value):
        return next((words for member in value if (words := _words(member))), "")
    fields = as_object(value)
    if fields:
        for name in ("content", "text", "thinking", "parts", "output", "tool_calls", "function", "arguments", "input"):
            if name in fields and (words := _words(fields[name])):
                return words
        return str(fields.get("name", ""))
    return ""


def neutral_body(request: ModelRequest) -> dict[str, Any]:
    """The request in swecli's own form, for a model without a wire protocol."""
    marks = set(request.breakpoints)
    messages: list[dict[str, Any]] = []
    for number, message in enumerate(request.messages):
        content = [_part(part) for part in message.parts]
        shown: dict[str, Any] = {"role": "note" if message.note else message.role, "content": content}
        if number in marks:
            shown[BREAKPOINT] = True
        messages.append(shown)
    system = [{"text": block.text, **({BREAKPOINT: True} if block.breakpoint else {})} for block in request.system]
    tools = [
        {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
        for tool in request.tools
    ]
    return {"system": system, "tools": tools, "messages": messages, "max_output_tokens": request.max_output_tokens}


def _part(part: object) -> dict[str, Any]:
    match part:
        case TextPart(text=text):
            return {"type": "text", "text": text}
        case ToolCallPart(call_id=call, name=name, arguments=arguments):
            return {"type": "call", "id": call, "name": name, "arguments": arguments}
        case ToolResultPart(call_id=call, name=name, text=text):
            return {"type": "result", "id": call, "name": name, "text": text}
        case _:
            return {"type": type(part).__name__}
