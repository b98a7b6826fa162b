"""Anthropic Messages: the request. API version 2023-06-01 and no sampling parameters, which every server of
this protocol accepts."""

from __future__ import annotations

from swecli.core.llm.json_values import JsonObject, as_list, as_object
from swecli.core.llm.protocols.arguments import arguments_object, rewrite_id
from swecli.core.llm.protocols.base import Target, WireRequest, plain
from swecli.core.llm.types import ModelRequest, ServerClearing
from swecli.core.protocol.messages import (
    ImagePart,
    Message,
    OpaquePart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

API_VERSION = "2023-06-01"
CLEARING_BETA = "context-management-2025-06-27"
MAX_BREAKPOINTS = 4
DEFAULT_MAX_TOKENS = 8192
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 32768}
"""Thinking budgets in tokens for models that take a number instead of a word."""
_UNMARKABLE = ("thinking", "redacted_thinking")


def build_request(request: ModelRequest, target: Target) -> WireRequest:
    """The request body. At most four cache breakpoints: those of the system prompt first, then the newest."""
    dialect = target.dialect
    limit = request.max_output_tokens or target.max_output or dialect.default_max_tokens or DEFAULT_MAX_TOKENS
    system = [_text(block.text) for block in request.system if block.text]
    messages, ends = _messages(request, target)
    body: JsonObject = {"model": target.model, "max_tokens": limit, "stream": True}
    optional: list[str] = []
    for extras in (_effort(request.effort, limit, target), dialect.body):
        body.update(extras)
        optional.extend(extras)
    headers = {"anthropic-version": API_VERSION}
    if request.server_clearing is not None and request.tools:
        body["context_management"] = {"edits": [_clearing(request.server_clearing)]}
        headers["anthropic-beta"] = CLEARING_BETA
        optional.append("context_management")
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": plain(tool.parameters)}
            for tool in request.tools
        ]
    if dialect.cache_control:
        marks = [block.breakpoint for block in request.system if block.text]
        wanted = [block for block, marked in zip(system, marks, strict=True) if marked][-2:]
        newest = [ends[index] for index in sorted(set(request.breakpoints)) if index in ends]
        room = MAX_BREAKPOINTS - len(wanted)
        for block in (*wanted, *newest[-room:]):
            block["cache_control"] = {"type": "ephemeral"}
    if system:
        body["system"] = system
    body["messages"] = messages
    if request.tail:
        _append_tail(messages, request)
    return WireRequest("/v1/messages", body, headers, tuple(optional))


def _clearing(wish: ServerClearing) -> JsonObject:
    edit: JsonObject = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": wish.trigger_tokens},
        "keep": {"type": "tool_uses", "value": wish.keep_tool_uses},
    }
    return {**edit, "exclude_tools": list(wish.exclude_tools)} if wish.exclude_tools else edit


def _effort(effort: str | None, limit: int, target: Target) -> JsonObject:
    style = target.dialect.effort
    if effort is None or style == "none":
        return {}
    word = target.dialect.efforts.get(effort, effort)
    if style == "output_config":
        return {"output_config": {"effort": word}, "thinking": {"type": "adaptive"}}
    budget = min(_BUDGETS.get(word, 0), limit - 1024)
    return {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget >= 1024 else {}


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _messages(request: ModelRequest, target: Target) -> tuple[list[JsonObject], dict[int, JsonObject]]:
    """Messages with neighbours of one role merged, and for each message of the request the last block that a
    breakpoint can stand on."""
    out: list[JsonObject] = []
    ends: dict[int, JsonObject] = {}
    for index, message in enumerate(request.messages):
        blocks = _blocks(message, target)
        if not blocks:
            continue
        role = "assistant" if message.role == "assistant" else "user"
        if out and out[-1]["role"] == role:
            out[-1]["content"] = [*as_list(out[-1]["content"]), *blocks]
        else:
            out.append({"role": role, "content": list[object](blocks)})
        if markable := [block for block in blocks if block.get("type") not in _UNMARKABLE]:
            ends[index] = markable[-1]
    return out, ends


def _blocks(message: Message, target: Target) -> list[JsonObject]:
    """A message that broke off has no signatures yet, so its thinking is not sent."""
    whole = message.response is None or message.response.complete
    unsigned = whole and target.dialect.unsigned_thinking
    return [block for part in message.parts if (block := _block(part, target, unsigned)) is not None]


def _block(part: object, target: Target, unsigned: bool) -> JsonObject | None:
    """None for what must not or can't be sent: empty text, reasoning of another model or without signature."""
    if isinstance(part, TextPart):
        citations = (target.echo(part.opaque) or {}).get("citations")
        if not part.text.strip():
            return None
        return {**_text(part.text), "citations": citations} if citations else _text(part.text)
    if isinstance(part, ReasoningPart):
        return _thinking(part, target, unsigned)
    if isinstance(part, ToolCallPart):
        return {
            "type": "tool_use",
            "id": rewrite_id(part.call_id, target.dialect.tool_ids),
            "name": part.name,
            "input": arguments_object(part.arguments),
        }
    if isinstance(part, ToolResultPart):
        return _tool_result(part, target)
    if isinstance(part, ImagePart):
        return _image(part)
    if isinstance(part, OpaquePart):
        data = target.echo(part.opaque) or {}
        return dict(as_object(data.get("block"))) if data.get("whole") else None
    return None


def _thinking(part: ReasoningPart, target: Target, unsigned: bool) -> JsonObject | None:
    data = target.echo(part.opaque)
    if data is None:
        return None
    if data.get("type") == "redacted_thinking":
        return dict(data)
    if not data.get("signature") and not unsigned:
        return None
    return {"type": "thinking", "thinking": part.text, **{key: data[key] for key in ("signature",) if key in data}}


def _tool_result(part: ToolResultPart, target: Target) -> JsonObject:
    content = [*([_text(part.text)] if part.text.strip() else []), *(_image(image) for image in part.images)]
    out: JsonObject = {
        "type": "tool_result",
        "tool_use_id": rewrite_id(part.call_id, target.dialect.tool_ids),
    }
    if content:
        out["content"] = content if part.images else part.text
    if part.is_error:
        out["is_error"] = True
    return out


def _image(image: ImagePart) -> JsonObject:
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}


def _append_tail(messages: list[JsonObject], request: ModelRequest) -> None:
    """A last text block without breakpoint. A paused turn is resent as it is, so nothing may follow it."""
    if messages and messages[-1]["role"] == "user":
        messages[-1]["content"] = [*as_list(messages[-1]["content"]), _text(request.tail)]
        return
    newest = request.messages[-1] if request.messages else None
    if newest is None or newest.response is None or newest.response.stop.kind != "pause":
        messages.append({"role": "user", "content": [_text(request.tail)]})
