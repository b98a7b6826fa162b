"""Ollama's own chat protocol: requests and stream decoder."""

from __future__ import annotations

from collections.abc import Sequence

from swecli.core.llm.answer_formats import plain_schema, wanted_schema
from swecli.core.llm.json_values import JsonObject, as_int, as_items, as_object, as_text
from swecli.core.llm.per_message import Translations
from swecli.core.llm.protocols.arguments import arguments_object
from swecli.core.llm.protocols.base import CallDraft, Decoder, Target, WireRequest, WireStop
from swecli.core.llm.types import ModelRequest
from swecli.core.protocol.messages import ImagePart, Message, ReasoningPart, Usage


def build_request(request: ModelRequest, target: Target, known: Translations | None = None) -> WireRequest:
    """The request body. It sets the window explicitly, because the server's default is small, and disables silent
    cutting of the prompt."""
    options: JsonObject = {}
    if target.window is not None:
        options["num_ctx"] = target.window
    if request.max_output_tokens is not None:
        options["num_predict"] = request.max_output_tokens
    body: JsonObject = {"model": target.origin.model, "stream": True, "truncate": False}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                },
            }
            for tool in request.tools
        ]
    optional = ["truncate"]
    if request.effort is not None and target.dialect.effort == "think":
        body["think"] = request.effort != "none"
        optional.append("think")
    if (wish := request.answer_format) and (schema := wanted_schema(wish, request, target)) is not None:
        body["format"] = plain_schema(schema)
    if options:
        body["options"] = options
    body["messages"] = _messages(request, (known or Translations()).of(request.messages, target, _alone))
    return WireRequest("/api/chat", body, optional=tuple(optional))


def _alone(message: Message, target: Target) -> list[JsonObject]:
    """The messages in place of one, whatever stands beside it."""
    if message.role == "tool":
        return _results(message)
    if message.role == "user":
        images = [part.data for part in message.parts if isinstance(part, ImagePart)]
        return [_with_images({"role": "user", "content": message.text}, images)]
    assistant = _assistant(message, target)
    return [assistant] if assistant else []


def _messages(request: ModelRequest, alone: Sequence[Sequence[JsonObject]]) -> list[JsonObject]:
    """All messages; ``alone`` are those of each message by itself."""
    out: list[JsonObject] = []
    system = "\n\n".join(block.text for block in request.system if block.text)
    if system:
        out.append({"role": "system", "content": system})
    for message, made in zip(request.messages, alone, strict=True):
        if message.note:
            _append_note(out, message.text)
        else:
            out.extend(made)
    return out


def _results(message: Message) -> list[JsonObject]:
    return [
        _with_images(
            {"role": "tool", "tool_name": result.name, "tool_call_id": result.call_id, "content": result.text},
            [image.data for image in result.images],
        )
        for result in message.tool_results
    ]


def _assistant(message: Message, target: Target) -> JsonObject | None:
    calls: list[object] = [
        {"id": call.call_id, "function": {"name": call.name, "arguments": arguments_object(call.arguments, message)}}
        for call in message.tool_calls
    ]
    if not message.text and not calls:
        return None
    out: JsonObject = {"role": "assistant", "content": message.text}
    origin = message.response.origin if message.response is not None else None
    if origin == target.origin:
        thinking = "".join(part.text for part in message.parts if isinstance(part, ReasoningPart))
        if thinking:
            out["thinking"] = thinking
    if calls:
        out["tool_calls"] = calls
    return out


def _with_images(out: JsonObject, images: list[str]) -> JsonObject:
    return {**out, "images": images} if images else out


def _append_note(out: list[JsonObject], text: str) -> None:
    """Append a note to the newest message of the user or a tool, so that roles still alternate."""
    last = out[-1] if out else {}
    content = last.get("content")
    if last.get("role") in ("user", "tool") and isinstance(content, str):
        out[-1] = {**last, "content": f"{content}\n\n{text}" if content else text}
    else:
        out.append({"role": "user", "content": text})


NAME = "ollama-chat"

_STOPS: dict[str, WireStop] = {"stop": "end", "length": "length"}


class OllamaDecoder(Decoder):
    """Decoder of ``/api/chat`` lines. Calls arrive whole, their arguments as objects."""

    def on_message(self, message: JsonObject, name: str) -> bool:
        known = "message" in message or "done" in message
        if known:
            self.answer.start(as_text(message.get("model")))
        answer = as_object(message.get("message"))
        if thinking := as_text(answer.get("thinking")):
            self.answer.reasoning(thinking)
        if content := as_text(answer.get("content")):
            self.answer.text(content)
        for item in as_items(answer.get("tool_calls")):
            self._call(as_object(item))
        if message.get("done") is True:
            self._finish(message)
        return known or "error" in message

    def _call(self, item: JsonObject) -> None:
        function = as_object(item.get("function"))
        draft = CallDraft(wire_id=as_text(item.get("id")) or None, name=as_text(function.get("name")))
        call = self.answer.add(draft)
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            self.answer.call_text(call, arguments)
        else:
            call.value = as_object(arguments)
        self.answer.close_call(call)

    def _finish(self, message: JsonObject) -> None:
        usage = Usage(
            input_total=as_int(message.get("prompt_eval_count")), output_total=as_int(message.get("eval_count"))
        )
        if usage != Usage():
            self.answer.report_usage(usage)
        reason = as_text(message.get("done_reason"))
        if reason:
            self.answer.stop(reason, _STOPS.get(reason, "unknown"))
        self.answer.complete()
