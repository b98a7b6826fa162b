"""OpenAI Chat Completions as a server sends it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from swecli.core.llm.scripted import STATUS, Fault, Piece, RequestFacts, sentence_of
from swecli.core.protocol.messages import StopKind
from tests.support.wire import Answering, Body, Refusal, compact, texts

_FINISH: Mapping[StopKind, str] = {"end": "stop", "tool_use": "tool_calls", "length": "length"}
_ERRORS: Mapping[str, tuple[int, str, str | None]] = {
    "overflow": (400, "invalid_request_error", "context_length_exceeded"),
    "quota": (429, "insufficient_quota", "insufficient_quota"),
    "rate_limit": (429, "requests", "rate_limit_exceeded"),
    "overloaded": (503, "server_error", "overloaded"),
    "auth": (401, "invalid_request_error", "invalid_api_key"),
    "not_found": (404, "invalid_request_error", "model_not_found"),
    "too_large": (413, "invalid_request_error", None),
    "bad_request": (400, "invalid_request_error", None),
    "server": (500, "server_error", None),
}
_OVERFLOW = (
    "This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens. "
    "Please reduce the length of the messages."
)


class OpenAIChat:
    """Streaming Chat Completions."""

    path = "/v1/chat/completions"
    id_prefix = "call_"
    content_type = "text/event-stream; charset=utf-8"

    def key(self, headers: Mapping[str, str]) -> str:
        return headers.get("authorization", "").removeprefix("Bearer ")

    def streams(self, body: Body) -> bool:
        return body.get("stream") is True

    def facts(self, body: Body) -> RequestFacts:
        messages: list[dict[str, Any]] = body.get("messages", [])
        newest = next((at for at in range(len(messages), 0, -1) if messages[at - 1].get("role") == "assistant"), 0)
        users = [texts(m.get("content")) for m in messages[newest:] if m.get("role") == "user"]
        older = [texts(m.get("content")) for m in messages if m.get("role") == "user"]
        return RequestFacts(
            results=tuple(texts(m.get("content")) for m in messages[newest:] if m.get("role") == "tool"),
            last_user="\n".join(users or older[-1:]),
            text=json.dumps(body, ensure_ascii=False),
            tools=bool(body.get("tools")),
            calls=sum(len(m.get("tool_calls") or ()) for m in messages),
        )

    def prefix(self, body: Body) -> Sequence[object]:
        return [body.get("tools", []), *body.get("messages", [])]

    def objection(self, body: Body) -> str:
        messages: list[dict[str, Any]] = body.get("messages", [])
        if not messages:
            return "Invalid 'messages': empty array."
        open_calls: list[str] = []
        for at, message in enumerate(messages):
            role = message.get("role")
            if role == "tool":
                if message.get("tool_call_id") not in open_calls:
                    return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
                open_calls.remove(message["tool_call_id"])
                continue
            if open_calls:
                return (
                    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                    f"'tool_call_id'. The following tool_call_ids did not have response messages: {open_calls}"
                )
            calls = message.get("tool_calls") or []
            if role == "assistant" and not calls and not texts(message.get("content")):
                return f"Invalid value for 'messages.[{at}].content': expected a string, got null."
            open_calls = [call["id"] for call in calls]
            if any(not call.get("function", {}).get("name") for call in calls):
                return f"Invalid 'messages[{at}].tool_calls': empty function name."
            if len({*open_calls}) < len(open_calls):
                return f"Invalid 'messages[{at}].tool_calls': ids must be unique."
            if any(not _is_object(call["function"].get("arguments")) for call in calls):
                return f"Invalid 'messages[{at}].tool_calls': arguments must be a JSON object."
            if role == "user" and not message.get("content"):
                return f"Invalid 'messages[{at}].content': empty."
        return f"tool_call_ids without response messages: {open_calls}" if open_calls else ""

    def opening(self, answering: Answering) -> list[bytes]:
        return [self._delta(answering, {"role": "assistant", "content": ""})]

    def piece(self, piece: Piece, answering: Answering) -> list[bytes]:
        match piece.kind:
            case "text":
                delta: dict[str, Any] = {"content": piece.text}
            case "reasoning":
                delta = {"reasoning_content": piece.text}
            case "start":
                function = {"name": piece.name, "arguments": ""}
                delta = {
                    "tool_calls": [{"index": piece.part, "id": piece.call_id, "type": "function", "function": function}]
                }
            case "arguments":
                delta = {"tool_calls": [{"index": piece.part, "function": {"arguments": piece.text}}]}
            case "done":
                return []
        return [self._delta(answering, delta)]

    def closing(self, stop: StopKind, answering: Answering) -> list[bytes]:
        events = [self._delta(answering, {}, finish=_FINISH.get(stop, stop))]
        asked = (answering.body.get("stream_options") or {}).get("include_usage")
        usage = answering.usage
        if asked and usage is not None:
            counts = {
                "prompt_tokens": usage.input_total,
                "completion_tokens": usage.output_total,
                "total_tokens": (usage.input_total or 0) + (usage.output_total or 0),
                "prompt_tokens_details": {"cached_tokens": usage.cache_read or 0},
                "completion_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
            }
            events.append(self._event({**self._envelope(answering), "choices": [], "usage": counts}))
        return [*events, b"data: [DONE]\n\n"]

    def refusal(self, fault: Fault) -> Refusal:
        status = _ERRORS.get(fault.kind, (STATUS.get(fault.kind, 500), "", None))[0]
        headers = {"content-type": "application/json"}
        if fault.retry_after is not None:
            headers["retry-after"] = f"{fault.retry_after:g}"
        return Refusal(status, compact(self._error(fault)).encode(), headers)

    def error_event(self, fault: Fault) -> bytes:
        return self._event(self._error(fault))

    def keep_alive(self) -> bytes:
        return b": keep-alive\n\n"

    def _error(self, fault: Fault) -> dict[str, Any]:
        _, kind, code = _ERRORS.get(fault.kind, (500, "server_error", None))
        message = sentence_of(fault)
        if fault.kind == "overflow" and not fault.message:
            message = _OVERFLOW.format(window=fault.window, tokens=fault.tokens)
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}

    def _envelope(self, answering: Answering) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{answering.number}",
            "object": "chat.completion.chunk",
            "created": 1700000000,
            "model": answering.model,
        }

    def _delta(self, answering: Answering, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return self._event({**self._envelope(answering), "choices": [choice]})

    def _event(self, data: object) -> bytes:
        return f"data: {compact(data)}\n\n".encode()


def _is_object(arguments: object) -> bool:
    try:
        return isinstance(arguments, str) and isinstance(json.loads(arguments), dict)
    except ValueError:
        return False
