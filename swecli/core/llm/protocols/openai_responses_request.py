"""OpenAI Responses: the request. Stateless: nothing is stored at the provider, so reasoning goes back encrypted."""

from __future__ import annotations

from swecli.core.llm.json_values import JsonObject, as_list, as_object, as_text
from swecli.core.llm.protocols.arguments import arguments_text, rewrite_id
from swecli.core.llm.protocols.base import Target, WireRequest, plain
from swecli.core.llm.types import ModelRequest
from swecli.core.protocol.messages import (
    ImagePart,
    Message,
    OpaquePart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)


def build_request(request: ModelRequest, target: Target) -> WireRequest:
    """The request body."""
    dialect = target.dialect
    body: JsonObject = {"model": target.model}
    instructions = "\n\n".join(block.text for block in request.system if block.text)
    if instructions:
        body["instructions"] = instructions
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": plain(tool.parameters),
                "strict": False,
            }
            for tool in request.tools
        ]
    body["store"] = False
    body["stream"] = True
    body["include"] = ["reasoning.encrypted_content"]
    optional = ["store", "include"]
    reasoning: JsonObject = {}
    if request.effort is not None and dialect.effort == "reasoning":
        reasoning["effort"] = dialect.efforts.get(request.effort, request.effort)
    if dialect.thoughts:
        reasoning["summary"] = "auto"
        optional.append("reasoning.summary")
    if reasoning:
        body["reasoning"] = reasoning
        optional.append("reasoning")
    if request.max_output_tokens is not None:
        body["max_output_tokens"] = request.max_output_tokens
        optional.append("max_output_tokens")
    if dialect.prompt_cache_key and request.session:
        body["prompt_cache_key"] = request.session
        optional.append("prompt_cache_key")
    body["input"] = _input(request, target)
    return WireRequest("/responses", body, optional=tuple(optional))


def _input(request: ModelRequest, target: Target) -> list[JsonObject]:
    out: list[JsonObject] = []
    for message in request.messages:
        if message.role == "assistant":
            out.extend(_assistant(message, target))
        elif message.role == "tool":
            out.extend(_result(result, target) for result in message.tool_results)
        elif content := _content(message):
            out.append({"role": "user", "content": content})
    if request.tail:
        last = out[-1] if out else {}
        if last.get("role") == "user":
            last["content"] = [*as_list(last["content"]), _text(request.tail)]
        else:
            out.append({"role": "user", "content": [_text(request.tail)]})
    return out


def _text(text: str) -> JsonObject:
    return {"type": "input_text", "text": text}


def _image(image: ImagePart) -> JsonObject:
    return {"type": "input_image", "image_url": f"data:{image.media_type};base64,{image.data}"}


def _content(message: Message) -> list[JsonObject]:
    out: list[JsonObject] = []
    for part in message.parts:
        if isinstance(part, TextPart) and part.text:
            out.append(_text(part.text))
        elif isinstance(part, ImagePart):
            out.append(_image(part))
    return out


def _assistant(message: Message, target: Target) -> list[JsonObject]:
    """Items in their order. Reasoning is held until the item that it belongs to follows: alone it is refused. An item
    whose reasoning can't go back goes without its id: by that the server would know that the reasoning is missing."""
    out: list[JsonObject] = []
    held: list[JsonObject] = []
    bereft = False
    for part in message.parts:
        if isinstance(part, ReasoningPart):
            item = as_object((target.echo(part.opaque) or {}).get("item"))
            bereft = not (item.get("encrypted_content") or item.get("content"))
            if not bereft:
                held.append(item)
            continue
        item = _item(part, target)
        if item is not None:
            if bereft:
                item = {key: value for key, value in item.items() if key != "id"}
            out.extend((*held, item))
            held.clear()
    return out


def _item(part: object, target: Target) -> JsonObject | None:
    if isinstance(part, TextPart):
        if not part.text:
            return None
        envelope = as_object((target.echo(part.opaque) or {}).get("message"))
        return {
            "type": "message",
            "role": "assistant",
            **envelope,
            "content": [{"type": "output_text", "text": part.text, "annotations": []}],
        }
    if isinstance(part, ToolCallPart):
        envelope = as_object((target.echo(part.opaque) or {}).get("call"))
        return {
            "type": "function_call",
            **envelope,
            "call_id": rewrite_id(part.call_id, target.dialect.tool_ids),
            "name": part.name,
            "arguments": arguments_text(part.arguments, target.dialect.parse_arguments),
        }
    if isinstance(part, OpaquePart):
        item = as_object((target.echo(part.opaque) or {}).get("item"))
        return item if as_text(item.get("type")) else None
    return None


def _result(result: ToolResultPart, target: Target) -> JsonObject:
    output: object = result.text
    if result.images:
        output = [*([_text(result.text)] if result.text else []), *(_image(image) for image in result.images)]
    return {
        "type": "function_call_output",
        "call_id": rewrite_id(result.call_id, target.dialect.tool_ids),
        "output": output,
    }
