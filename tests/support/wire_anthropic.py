"""Anthropic Messages as a server sends it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from swecli.core.llm.scripted import STATUS, Fault, Piece, RequestFacts, sentence_of
from swecli.core.protocol.messages import StopKind
from tests.support.wire import Answering, Body, Refusal, compact, texts, without_cache_marks

_STOP: Mapping[StopKind, str] = {
    "end": "end_turn",
    "length": "max_tokens",
    "pause": "pause_turn",
    "context_full": "model_context_window_exceeded",
}
_ERRORS: Mapping[str, str] = {
    "overflow": "invalid_request_error",
    "bad_request": "invalid_request_error",
    "quota": "billing_error",
    "rate_limit": "rate_limit_error",
    "overloaded": "overloaded_error",
    "auth": "authentication_error",
    "not_found": "not_found_error",
    "too_large": "request_too_large",
}
_SIGNATURE = "c2lnbmF0dXJl"


class AnthropicMessages:
    """Streaming Messages."""

    path = "/v1/messages"
    id_prefix = "toolu_"
    content_type = "text/event-stream; charset=utf-8"

    def __init__(self) -> None:
        self._open: tuple[int, str] | None = None

    def key(self, headers: Mapping[str, str]) -> str:
        return headers.get("x-api-key", "") or headers.get("authorization", "").removeprefix("Bearer ")

    def streams(self, body: Body) -> bool:
        return body.get("stream") is True

    def facts(self, body: Body) -> RequestFacts:
        messages: list[dict[str, Any]] = body.get("messages", [])
        newest = next((at for at in range(len(messages), 0, -1) if messages[at - 1].get("role") == "assistant"), 0)
        results = [block for message in messages[newest:] for block in _blocks(message, "tool_result")]
        spoken = [_spoken(message) for message in messages[newest:]]
        older = [_spoken(message) for message in messages if message.get("role") == "user"]
        return RequestFacts(
            results=tuple(texts(block.get("content", "")) for block in results),
            failed=any(block.get("is_error") for block in results) if results else None,
            last_user="\n".join(filter(None, spoken)) or next(filter(None, reversed(older)), ""),
            text=json.dumps(body, ensure_ascii=False),
            tools=bool(body.get("tools")),
            calls=sum(len(_blocks(message, "tool_use")) for message in messages),
        )

    def prefix(self, body: Body) -> Sequence[object]:
        return without_cache_marks([body.get("tools", []), body.get("system", ""), *body.get("messages", [])])

    def objection(self, body: Body) -> str:
        messages: list[dict[str, Any]] = body.get("messages", [])
        if not messages:
            return "messages: at least one message is required"
        if messages[0].get("role") != "user":
            return 'messages: first message must use the "user" role'
        if not body.get("max_tokens"):
            return "max_tokens: Field required"
        if json.dumps(body).count('"cache_control"') > 4:
            return "A maximum of 4 blocks with cache_control may be provided."
        seen: set[str] = set()
        for at, message in enumerate(messages):
            calls = [block["id"] for block in _blocks(message, "tool_use")]
            if seen & {*calls} or len({*calls}) < len(calls):
                return "messages: `tool_use` ids must be unique"
            seen.update(calls)
            follower = messages[at + 1] if at + 1 < len(messages) else {}
            results = [block["tool_use_id"] for block in _blocks(follower, "tool_result")]
            missing = [call for call in calls if call not in results]
            if missing:
                return (
                    f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                    f"{', '.join(missing)}."
                )
            if any(result not in calls for result in results):
                return f"messages.{at + 1}: unexpected `tool_use_id` found in `tool_result` blocks"
            if at == 0 and _blocks(message, "tool_result"):
                return "messages.0: unexpected `tool_use_id` found in `tool_result` blocks"
            if (wrong := _wrong_content(message)) and (message.get("role") == "user" or at + 1 < len(messages)):
                return f"messages.{at}: {wrong}"
        return ""

    def opening(self, answering: Answering) -> list[bytes]:
        self._open = None
        message = {
            "id": f"msg_{answering.number}",
            "type": "message",
            "role": "assistant",
            "model": answering.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**self._input(answering), "output_tokens": 1},
        }
        return [_event({"type": "message_start", "message": message}), _event({"type": "ping"})]

    def piece(self, piece: Piece, answering: Answering) -> list[bytes]:
        if piece.kind == "done":
            return self._close()
        events: list[bytes] = []
        if self._open is None or self._open[0] != piece.part:
            events = [*self._close(), self._start(piece)]
        delta = {
            "text": {"type": "text_delta", "text": piece.text},
            "reasoning": {"type": "thinking_delta", "thinking": piece.text},
            "start": {"type": "input_json_delta", "partial_json": ""},
            "arguments": {"type": "input_json_delta", "partial_json": piece.text},
        }[piece.kind]
        return [*events, _event({"type": "content_block_delta", "index": piece.part, "delta": delta})]

    def closing(self, stop: StopKind, answering: Answering) -> list[bytes]:
        output = answering.usage.output_total if answering.usage else 0
        delta = {"stop_reason": _STOP.get(stop, stop), "stop_sequence": None}
        usage = {**self._input(answering), "output_tokens": output}
        return [
            *self._close(),
            _event({"type": "message_delta", "delta": delta, "usage": usage}),
            _event({"type": "message_stop"}),
        ]

    def refusal(self, fault: Fault) -> Refusal:
        headers = {"content-type": "application/json"}
        if fault.retry_after is not None:
            headers["retry-after"] = f"{fault.retry_after:g}"
        return Refusal(STATUS.get(fault.kind, 500), compact(_error(fault)).encode(), headers)

    def error_event(self, fault: Fault) -> bytes:
        return _event(_error(fault))

    def keep_alive(self) -> bytes:
        return _event({"type": "ping"})

    def _input(self, answering: Answering) -> dict[str, Any]:
        """The usage of the prompt."""
        usage = answering.usage
        if usage is None:
            return {}
        cached = (usage.cache_read or 0) if '"cache_control"' in json.dumps(answering.body) else 0
        written = usage.cache_write or 0
        return {
            "input_tokens": max(0, (usage.input_total or 0) - cached - written),
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": written,
        }

    def _start(self, piece: Piece) -> bytes:
        block: dict[str, Any] = {
            "text": {"type": "text", "text": ""},
            "reasoning": {"type": "thinking", "thinking": "", "signature": ""},
        }.get(piece.kind, {"type": "tool_use", "id": piece.call_id, "name": piece.name, "input": {}})
        self._open = (piece.part, piece.kind)
        return _event({"type": "content_block_start", "index": piece.part, "content_block": block})

    def _close(self) -> list[bytes]:
        if self._open is None:
            return []
        (index, kind), self._open = self._open, None
        signature = {"type": "signature_delta", "signature": _SIGNATURE}
        signed = [_event({"type": "content_block_delta", "index": index, "delta": signature})]
        return [*(signed if kind == "reasoning" else []), _event({"type": "content_block_stop", "index": index})]


def _event(data: Mapping[str, Any]) -> bytes:
    return f"event: {data['type']}\ndata: {compact(data)}\n\n".encode()


def _error(fault: Fault) -> dict[str, Any]:
    return {"type": "error", "error": {"type": _ERRORS.get(fault.kind, "api_error"), "message": sentence_of(fault)}}


def _blocks(message: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    content = message.get("content")
    return [block for block in content if block.get("type") == kind] if isinstance(content, list) else []


def _spoken(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in _blocks(message, "text"))


def _wrong_content(message: Mapping[str, Any]) -> str:
    if not message.get("content"):
        return "all messages must have non-empty content"
    if any(not block["text"].strip() for block in _blocks(message, "text")):
        return "text content blocks must contain non-whitespace text"
    if any(not isinstance(block.get("input"), dict) for block in _blocks(message, "tool_use")):
        return "tool_use.input: Input should be a valid dictionary"
    if any(not block.get("signature") for block in _blocks(message, "thinking")):
        return "thinking.signature: Field required"
    return ""
