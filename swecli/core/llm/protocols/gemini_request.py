"""Gemini generateContent: the request."""

from __future__ import annotations

from urllib.parse import quote

from swecli.core.llm.json_values import JsonObject, as_list
from swecli.core.llm.protocols.arguments import arguments_object
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

_BUDGETS = {"none": 0, "minimal": 512, "low": 2048, "medium": 8192, "high": 24576}
"""Thinking budgets in tokens for models that take a number."""


def build_request(request: ModelRequest, target: Target) -> WireRequest:
    """The request body; neighbours of one role are one content, as the API wants it."""
    body: JsonObject = {}
    system = [{"text": block.text} for block in request.system if block.text]
    if system:
        body["systemInstruction"] = {"parts": system}
    if request.tools:
        body["tools"] = [
            {
                "functionDeclarations": [
                    {
                        "name": tool.name,
                        "description": tool.description,
                        "parametersJsonSchema": plain(tool.parameters),
                    }
                    for tool in request.tools
                ]
            }
        ]
    config: JsonObject = {}
    if request.max_output_tokens is not None:
        config["maxOutputTokens"] = request.max_output_tokens
    if thinking := _thinking(request.effort, target):
        config["thinkingConfig"] = thinking
    if config:
        body["generationConfig"] = config
    contents = _contents(request, target)
    if request.tail:
        if contents and contents[-1]["role"] == "user":
            contents[-1]["parts"] = [*as_list(contents[-1]["parts"]), {"text": request.tail}]
        else:
            contents.append({"role": "user", "parts": [{"text": request.tail}]})
    body["contents"] = contents
    model = quote(target.model.removeprefix("models/"), safe="")
    return WireRequest(f"/models/{model}:streamGenerateContent?alt=sse", body)


def _thinking(effort: str | None, target: Target) -> JsonObject:
    dialect = target.dialect
    out: JsonObject = {"includeThoughts": True} if dialect.thoughts else {}
    if effort is not None and dialect.effort == "level":
        out["thinkingLevel"] = dialect.efforts.get(effort, effort).upper()
    elif effort in _BUDGETS and dialect.effort == "budget":
        out["thinkingBudget"] = _BUDGETS[effort]
    return out


def _contents(request: ModelRequest, target: Target) -> list[JsonObject]:
    out: list[JsonObject] = []
    given: dict[str, str] = {}
    """Ids that the API itself gave to calls: only those may come back with a result."""
    for message in request.messages:
        role = "model" if message.role == "assistant" else "user"
        parts = _model_parts(message, target, given) if role == "model" else _user_parts(message, given)
        if not parts:
            continue
        if out and out[-1]["role"] == role:
            out[-1]["parts"] = [*as_list(out[-1]["parts"]), *parts]
        else:
            out.append({"role": role, "parts": list[object](parts)})
    return out


def _model_parts(message: Message, target: Target, given: dict[str, str]) -> list[JsonObject]:
    out: list[JsonObject] = []
    first_call = True
    for part in message.parts:
        if isinstance(part, TextPart | ReasoningPart):
            data = target.echo(part.opaque) or {}
            thought: JsonObject = {"thought": True} if isinstance(part, ReasoningPart) else {}
            if data or (part.text and not thought):
                out.append({"text": part.text, **thought, **data})
        elif isinstance(part, ToolCallPart):
            data = dict(target.echo(part.opaque) or {})
            call: JsonObject = {"name": part.name, "args": arguments_object(part.arguments)}
            if (call_id := data.pop("id", None)) is not None:
                given[part.call_id] = call["id"] = str(call_id)
            foreign = message.response is None or message.response.origin != target.origin
            if foreign and first_call and not data and target.dialect.signature_dummy:
                data["thoughtSignature"] = target.dialect.signature_dummy
            first_call = False
            out.append({"functionCall": call, **data})
        elif isinstance(part, OpaquePart) and (kept := target.echo(part.opaque)) is not None:
            out.append(kept)
    return out


def _user_parts(message: Message, given: dict[str, str]) -> list[JsonObject]:
    out: list[JsonObject] = []
    for part in message.parts:
        if isinstance(part, TextPart) and part.text:
            out.append({"text": part.text})
        elif isinstance(part, ImagePart):
            out.append(_image(part))
    for result in message.tool_results:
        out.append({"functionResponse": _result(result, given)})
        out.extend(_image(image) for image in result.images)
    return out


def _result(result: ToolResultPart, given: dict[str, str]) -> JsonObject:
    response: JsonObject = {
        "name": result.name,
        "response": {"error" if result.is_error else "output": result.text},
    }
    call_id = given.get(result.call_id)
    return {"id": call_id, **response} if call_id is not None else response


def _image(image: ImagePart) -> JsonObject:
    return {"inlineData": {"mimeType": image.media_type, "data": image.data}}
