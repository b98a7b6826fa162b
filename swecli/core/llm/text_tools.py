"""Tools for a model that knows none: described in the prompt, called and answered in text. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from swecli.core.llm.json_values import JsonObject, compact, parse_object
from swecli.core.llm.text_calls import CLOSE, OPEN
from swecli.core.llm.types import ModelRequest, SystemBlock
from swecli.core.protocol.messages import Message, Part, TextPart, ToolCallPart

_INTRODUCTION = f"""\
# Tools

You can call the tools below. To call one, write a block like this, with nothing after it, and stop:

{OPEN}
{{"name": "tool_name", "arguments": {{"parameter": "value"}}}}
{CLOSE}

The block holds one JSON object: strings are quoted, line breaks in them written as \\n. Several blocks in a row are
several calls. Each result comes in the next message, between <tool_response> and </tool_response>. Never write a result
yourself. The tools, one JSON object a line:
"""


def as_text(request: ModelRequest) -> ModelRequest:
    """The same request without native tools: they are in the system prompt, calls and results are text."""
    lines = [
        compact({"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)})
        for tool in request.tools
    ]
    system = (*request.system, SystemBlock(_INTRODUCTION + "\n".join(lines))) if lines else request.system
    messages = [_message(message) for message in request.messages]
    merged = list(_merged(messages))
    # Breakpoints stay with the messages that they were set on.
    places = {message.id: index for index, message in enumerate(merged)}
    wanted = (request.messages[index].id for index in request.breakpoints if index < len(request.messages))
    breakpoints = tuple(sorted({places[name] for name in wanted if name in places}))
    return replace(request, system=system, tools=(), messages=tuple(merged), breakpoints=breakpoints)


def _message(message: Message) -> Message:
    if message.role == "assistant":
        return replace(message, parts=tuple(_call(part, at) for at, part in enumerate(message.parts)))
    if message.role != "tool":
        return message
    parts: list[Part] = []
    for at, result in enumerate(message.tool_results):
        gap = "\n" if at else ""
        said = " (error)" if result.is_error else ""
        parts.append(TextPart(f"{gap}<tool_response>\n{result.name}{said}:\n{result.text}\n</tool_response>"))
        parts.extend(result.images)
    return replace(message, role="user", parts=tuple(parts))


def _call(part: Part, at: int) -> Part:
    if not isinstance(part, ToolCallPart):
        return part
    arguments = parse_object(part.arguments)
    shown: JsonObject = {"name": part.name, "arguments": part.arguments if arguments is None else arguments}
    gap = "\n" if at else ""
    return TextPart(f"{gap}{OPEN}\n{compact(shown)}\n{CLOSE}")


def _merged(messages: list[Message]) -> Iterator[Message]:
    """Messages of the user that follow each other as one: many chat templates want the roles to alternate."""
    waiting: Message | None = None
    for message in messages:
        if waiting is not None and waiting.role == message.role == "user":
            waiting = replace(message, parts=(*waiting.parts, TextPart("\n\n"), *message.parts))
            continue
        if waiting is not None:
            yield waiting
        waiting = message
    if waiting is not None:
        yield waiting
