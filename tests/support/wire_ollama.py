"""Ollama's own protocol as a server sends it: one JSON object a line, calls whole."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from swecli.core.llm.scripted import STATUS, Fault, Piece, RequestFacts, sentence_of
from swecli.core.protocol.messages import StopKind
from tests.support.wire import Answering, Body, Refusal, compact


class OllamaChat:
    """``/api/chat``. The client must name the window, and forbid that its prompt is cut."""

    path = "/api/chat"
    id_prefix = "call_"
    content_type = "application/x-ndjson"

    def __init__(self) -> None:
        self._arguments = ""

    def key(self, headers: Mapping[str, str]) -> str:
        return headers.get("authorization", "").removeprefix("Bearer ")

    def streams(self, body: Body) -> bool:
        return body.get("stream", True) is True

    def facts(self, body: Body) -> RequestFacts:
        messages: list[dict[str, Any]] = body.get("messages", [])
        newest = next((at for at in range(len(messages), 0, -1) if messages[at - 1].get("role") == "assistant"), 0)
        users = [message.get("content", "") for message in messages[newest:] if message.get("role") == "user"]
        older = [message.get("content", "") for message in messages if message.get("role") == "user"]
        return RequestFacts(
            results=tuple(message.get("content", "") for message in messages[newest:] if message.get("role") == "tool"),
            last_user="\n".join(users or older[-1:]),
            text=json.dumps(body, ensure_ascii=False),
            tools=bool(body.get("tools")),
            calls=sum(len(message.get("tool_calls") or ()) for message in messages),
        )

    def prefix(self, body: Body) -> Sequence[object]:
        return [body.get("tools", []), *body.get("messages", [])]

    def objection(self, body: Body) -> str:
        messages: list[dict[str, Any]] = body.get("messages", [])
        if not messages:
            return "messages: must not be empty"
        if not body.get("options", {}).get("num_ctx"):
            return "without num_ctx the server's small default would cut the prompt"
        if body.get("truncate") is not False:
            return "without truncate: false the prompt would be cut silently"
        waiting: list[str] = []
        for at, message in enumerate(messages):
            calls = [call["function"] for call in message.get("tool_calls") or ()]
            if any(not isinstance(call.get("arguments"), dict) for call in calls):
                return f"messages[{at}]: arguments must be an object"
            if message["role"] == "tool":
                if not waiting or message.get("tool_name") != waiting.pop(0):
                    return f"messages[{at}]: a result without its call"
                continue
            if waiting:
                return f"messages[{at}]: no result of {waiting[0]}"
            waiting = [call["name"] for call in calls]
        return f"no result of {waiting[0]}" if waiting else ""

    def opening(self, answering: Answering) -> list[bytes]:
        return []

    def piece(self, piece: Piece, answering: Answering) -> list[bytes]:
        match piece.kind:
            case "text":
                return [self._line(answering, {"content": piece.text})]
            case "reasoning":
                return [self._line(answering, {"content": "", "thinking": piece.text})]
            case "start":
                self._arguments = ""
            case "arguments":
                self._arguments += piece.text
            case "done":
                function = {"name": piece.name, "arguments": json.loads(self._arguments or "{}")}
                return [self._line(answering, {"content": "", "tool_calls": [{"function": function}]})]
        return []

    def closing(self, stop: StopKind, answering: Answering) -> list[bytes]:
        usage = answering.usage
        counts = {"prompt_eval_count": usage.input_total, "eval_count": usage.output_total} if usage is not None else {}
        last = {"content": ""}
        return [self._line(answering, last, done=True, done_reason="length" if stop == "length" else "stop", **counts)]

    def refusal(self, fault: Fault) -> Refusal:
        return Refusal(STATUS.get(fault.kind, 500), compact({"error": _sentence(fault)}).encode())

    def error_event(self, fault: Fault) -> bytes:
        return f"{compact({'error': _sentence(fault)})}\n".encode()

    def keep_alive(self) -> bytes:
        return b"\n"

    def _line(self, answering: Answering, message: Mapping[str, Any], *, done: bool = False, **more: Any) -> bytes:
        line = {"model": answering.model, "message": {"role": "assistant", **message}, "done": done, **more}
        return f"{compact(line)}\n".encode()


def _sentence(fault: Fault) -> str:
    if fault.kind == "overflow" and not fault.message:
        return "the input length exceeds the context length"
    return sentence_of(fault)
