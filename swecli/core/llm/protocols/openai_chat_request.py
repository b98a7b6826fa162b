"""OpenAI Chat Completions: the request."""

from __future__ import annotations

from collections.abc import Sequence

from swecli.core.llm.json_values import JsonObject, as_object, as_text, is_list
from swecli.core.llm.protocols.arguments import arguments_text, rewrite_id
from swecli.core.llm.protocols.base import Target, WireRequest, plain, tool_messages_end
from swecli.core.llm.types import ModelRequest
from swecli.core.protocol.messages import ImagePart, Message, ReasoningPart, TextPart, ToolCallPart, ToolResultPart


def build_request(request: ModelRequest, target: Target) -> WireRequest:
    """The request body. Keys are in a fixed order with the messages last, so that a longer history gives bytes
    that begin with those of the shorter one."""
    dialect = target.dialect
    body: JsonObject = {"model": target.model, "stream": True}
    optional: list[str] = []
    if dialect.include_usage:
        body["stream_options"] = {"include_usage": True}
        optional.append("stream_options")
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": plain(tool.parameters),
                },
            }
            for tool in request.tools
        ]
    limit = request.max_output_tokens or dialect.default_max_tokens
    if limit is not None:
        body[dialect.max_tokens_field] = limit
        optional.append(dialect.max_tokens_field)
    for extras in (_effort(request.effort, target), dialect.body):
        body.update(extras)
        optional.extend(extras)
    if dialect.prompt_cache_key and request.session:
        body["prompt_cache_key"] = request.session
        optional.append("prompt_cache_key")
    body["messages"] = _messages(request, target)
    headers = {dialect.session_header: request.session} if dialect.session_header and request.session else {}
    return WireRequest("/chat/completions", body, headers, tuple(optional))


def _effort(effort: str | None, target: Target) -> JsonObject:
    if effort is None:
        return {}
    dialect = target.dialect
    word = dialect.efforts.get(effort, effort)
    if dialect.effort == "reasoning_effort":
        return {"reasoning_effort": word}
    if dialect.effort == "reasoning":
        return {"reasoning": {"effort": word}}
    if dialect.effort == "thinking":
        return {"thinking": {"type": "disabled" if word == "none" else "enabled"}}
    if dialect.effort == "enable_thinking":
        return {"enable_thinking": word != "none"}
    return {}


def _messages(request: ModelRequest, target: Target) -> list[JsonObject]:
    out = _system(request, target)
    messages = request.messages
    index = 0
    while index < len(messages):
        message = messages[index]
        if message.role == "tool":
            end = tool_messages_end(messages, index)
            out.extend(_tool_results(messages[index:end], target))
            index = end
            if index < len(messages) and messages[index].role == "user" and target.dialect.assistant_after_tool:
                out.append({"role": "assistant", "content": "Continuing."})
            continue
        marked = target.dialect.cache_control and index in request.breakpoints
        if message.role == "user":
            out.append({"role": "user", "content": _user_content(message, marked)})
        elif (assistant := _assistant(message, target)) is not None:
            out.append(assistant)
        index += 1
    if request.tail:
        _append_tail(out, request.tail)
    return out


def _system(request: ModelRequest, target: Target) -> list[JsonObject]:
    blocks = [block for block in request.system if block.text]
    if not blocks:
        return []
    role = target.dialect.system_role
    if not target.dialect.cache_control:
        return [{"role": role, "content": "\n\n".join(block.text for block in blocks)}]
    content = [_text_part(block.text, block.breakpoint) for block in blocks]
    return [{"role": role, "content": content}]


def _text_part(text: str, marked: bool = False) -> JsonObject:
    part: JsonObject = {"type": "text", "text": text}
    return {**part, "cache_control": {"type": "ephemeral"}} if marked else part


def _image_part(image: ImagePart) -> JsonObject:
    return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{image.data}"}}


def _user_content(message: Message, marked: bool) -> str | list[JsonObject]:
    """Text as a string, as every host takes it; a list only where there are images or a breakpoint."""
    images = [part for part in message.parts if isinstance(part, ImagePart)]
    if not images and not marked:
        return message.text
    content = [
        _text_part(part.text) if isinstance(part, TextPart) else _image_part(part)
        for part in message.parts
        if isinstance(part, ImagePart) or (isinstance(part, TextPart) and part.text)
    ]
    if marked and content:
        content[-1] = {**content[-1], "cache_control": {"type": "ephemeral"}}
    return content


def _tool_results(messages: Sequence[Message], target: Target) -> list[JsonObject]:
    """One message for each result. Images can't stand in a tool message: they follow in one of the user."""
    out: list[JsonObject] = []
    pictures: list[JsonObject] = []
    for result in (result for message in messages for result in message.tool_results):
        out.append(_tool_result(result, target))
        if result.images:
            pictures.append(_text_part(f"Images returned by {result.name} ({_id(result.call_id, target)}):"))
            pictures.extend(_image_part(image) for image in result.images)
    if pictures:
        if target.dialect.assistant_after_tool:
            out.append({"role": "assistant", "content": "Continuing."})
        out.append({"role": "user", "content": pictures})
    return out


def _tool_result(result: ToolResultPart, target: Target) -> JsonObject:
    message: JsonObject = {"role": "tool", "tool_call_id": _id(result.call_id, target)}
    if target.dialect.tool_result_name:
        message["name"] = result.name
    message["content"] = result.text
    return message


def _id(call_id: str, target: Target) -> str:
    return rewrite_id(call_id, target.dialect.tool_ids)


def _assistant(message: Message, target: Target) -> JsonObject | None:
    """None for a message without anything that may be sent."""
    text, calls = message.text, [_call(call, target) for call in message.tool_calls]
    if not text and not calls:
        return None
    out: JsonObject = {"role": "assistant", "content": text or None}
    _echo_reasoning(message, target, out)
    texts = (part for part in message.parts if isinstance(part, TextPart))
    extras = [as_object((target.echo(part.opaque) or {}).get("extra_content")) for part in texts]
    if signed := [extra for extra in extras if extra]:
        out["extra_content"] = signed[-1]
    if calls:
        out["tool_calls"] = calls
    return out


def _call(call: ToolCallPart, target: Target) -> JsonObject:
    out: JsonObject = {
        "id": _id(call.call_id, target),
        "type": "function",
        "function": {
            "name": call.name,
            "arguments": arguments_text(call.arguments, target.dialect.parse_arguments),
        },
    }
    if extra := as_object((target.echo(call.opaque) or {}).get("extra_content")):
        out["extra_content"] = extra
    return out


def _echo_reasoning(message: Message, target: Target, out: JsonObject) -> None:
    """Put reasoning back where it came from: details unmodified and in order, else the field by its name."""
    dialect = target.dialect
    if dialect.echo_reasoning == "never":
        return
    details: list[JsonObject] = []
    texts: dict[str, list[str]] = {}
    for part in message.parts:
        if not isinstance(part, ReasoningPart):
            continue
        data = target.echo(part.opaque)
        if data is None:
            continue
        if detail := as_object(data.get("reasoning_details")):
            details.append(_detail(detail, part.text))
        else:
            texts.setdefault(as_text(data.get("field")) or dialect.reasoning_field, []).append(part.text)
    if details:
        out["reasoning_details"] = details
        return
    for name, pieces in texts.items():
        if name == "thinking":
            thinking: JsonObject = {"type": "thinking", "thinking": [_text_part("".join(pieces))]}
            out["content"] = [thinking, *([_text_part(message.text)] if message.text else [])]
        else:
            out[name] = "".join(pieces)
    if not texts and dialect.echo_reasoning == "must" and message.tool_calls:
        out[dialect.reasoning_field] = ""


def _detail(detail: JsonObject, text: str) -> JsonObject:
    """The detail as it came, its text (which came in pieces) in the place where it stood."""
    key = {"reasoning.text": "text", "reasoning.summary": "summary"}.get(as_text(detail.get("type")))
    if key is None or (not text and key not in detail):
        return detail
    return {**detail, key: text}


def _append_tail(out: list[JsonObject], tail: str) -> None:
    """The tail goes to the end of the newest message of user or tool, so that everything before it keeps its
    bytes and roles still alternate."""
    last = out[-1] if out else {}
    content = last.get("content")
    if last.get("role") in ("user", "tool") and is_list(content):
        last["content"] = [*content, _text_part(tail)]
    elif last.get("role") in ("user", "tool") and isinstance(content, str):
        last["content"] = f"{content}\n\n{tail}" if content else tail
    else:
        out.append({"role": "user", "content": tail})
