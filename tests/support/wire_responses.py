"""OpenAI Responses as a server sends it. Ids tell, when they come back, what belongs to what."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from swecli.core.llm.scripted import STATUS, Fault, Piece, RequestFacts, sentence_of
from swecli.core.protocol.messages import StopKind
from tests.support.wire import Answering, Body, Refusal, compact, texts

_ERRORS: Mapping[str, tuple[int, str]] = {
    "overflow": (400, "context_length_exceeded"),
    "quota": (429, "insufficient_quota"),
    "rate_limit": (429, "rate_limit_exceeded"),
    "overloaded": (503, "server_is_overloaded"),
    "auth": (401, "invalid_api_key"),
    "not_found": (404, "model_not_found"),
}


class OpenAIResponses:
    """Streaming Responses, stateless: reasoning comes back encrypted."""

    path = "/v1/responses"
    id_prefix = "call_"
    content_type = "text/event-stream; charset=utf-8"

    def __init__(self) -> None:
        self._number = -1
        self._sequence = 0
        self._item: dict[str, Any] = {}
        self._output: list[dict[str, Any]] = []
        self._reasoned = False

    def key(self, headers: Mapping[str, str]) -> str:
        return headers.get("authorization", "").removeprefix("Bearer ")

    def streams(self, body: Body) -> bool:
        return body.get("stream") is True

    def facts(self, body: Body) -> RequestFacts:
        items: list[dict[str, Any]] = body.get("input", [])
        made = ("function_call", "reasoning")
        ours = [at for at, item in enumerate(items) if item.get("role") == "assistant" or item.get("type") in made]
        newest = ours[-1] + 1 if ours else 0
        users = [texts(item.get("content")) for item in items[newest:] if item.get("role") == "user"]
        older = [texts(item.get("content")) for item in items if item.get("role") == "user"]
        outputs = [item for item in items[newest:] if item.get("type") == "function_call_output"]
        return RequestFacts(
            results=tuple(texts(item.get("output")) for item in outputs),
            last_user="\n".join(users or older[-1:]),
            text=json.dumps(body, ensure_ascii=False),
            tools=bool(body.get("tools")),
            calls=sum(item.get("type") == "function_call" for item in items),
        )

    def prefix(self, body: Body) -> Sequence[object]:
        return [body.get("tools", []), body.get("instructions", ""), *body.get("input", [])]

    def objection(self, body: Body) -> str:
        items: list[dict[str, Any]] = body.get("input", [])
        if not items:
            return "Missing required parameter: 'input'."
        if body.get("store") is not False or "reasoning.encrypted_content" not in body.get("include", []):
            return "a stateless client must not store, and must ask for encrypted reasoning"
        calls = {item["call_id"] for item in items if item.get("type") == "function_call"}
        outputs = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
        ids = [item["id"] for item in items if item.get("id")]
        if len({*ids}) < len(ids):
            return "Duplicate item found. Remove duplicate items from your input and try again."
        if len({*outputs}) < len(outputs):
            return "Duplicate output of one function call."
        if missing := calls - set(outputs):
            return f"No tool output found for function call {sorted(missing)[0]}."
        if extra := [name for name in outputs if name not in calls]:
            return f"No tool call found for function call output with call_id {extra[0]}."
        return next((wrong for at in range(len(items)) if (wrong := _wrong_item(items, at))), "")

    def opening(self, answering: Answering) -> list[bytes]:
        return [
            self._event("response.created", {"response": self._response(answering, "in_progress")}),
            self._event("response.in_progress", {"response": self._response(answering, "in_progress")}),
        ]

    def piece(self, piece: Piece, answering: Answering) -> list[bytes]:
        if piece.kind == "done":
            return self._close()
        events = [] if self._number == piece.part else [*self._close(), *self._start(piece, answering)]
        place = {"item_id": self._item["id"], "output_index": len(self._output)}
        match piece.kind:
            case "text":
                self._item["content"][0]["text"] += piece.text
                return [
                    *events,
                    self._event("response.output_text.delta", {**place, "content_index": 0, "delta": piece.text}),
                ]
            case "reasoning":
                self._item["summary"][0]["text"] += piece.text
                delta = {**place, "summary_index": 0, "delta": piece.text}
                return [*events, self._event("response.reasoning_summary_text.delta", delta)]
            case _:
                self._item["arguments"] += piece.text
                delta = {**place, "delta": piece.text}
                return [
                    *events,
                    *([self._event("response.function_call_arguments.delta", delta)] if piece.text else []),
                ]

    def closing(self, stop: StopKind, answering: Answering) -> list[bytes]:
        events = self._close()
        incomplete = stop == "length"
        response = self._response(answering, "incomplete" if incomplete else "completed")
        response["incomplete_details"] = {"reason": "max_output_tokens"} if incomplete else None
        usage = answering.usage
        if usage is not None:
            response["usage"] = {
                "input_tokens": usage.input_total,
                "input_tokens_details": {"cached_tokens": usage.cache_read or 0},
                "output_tokens": usage.output_total,
                "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
            }
        return [*events, self._event(f"response.{response['status']}", {"response": response})]

    def refusal(self, fault: Fault) -> Refusal:
        headers = {"content-type": "application/json"}
        if fault.retry_after is not None:
            headers["retry-after"] = f"{fault.retry_after:g}"
        status = _ERRORS.get(fault.kind, (STATUS.get(fault.kind, 500), ""))[0]
        return Refusal(status, compact({"error": _error(fault)}).encode(), headers)

    def error_event(self, fault: Fault) -> bytes:
        return self._event("error", _error(fault))

    def keep_alive(self) -> bytes:
        return b": keep-alive\n\n"

    def _start(self, piece: Piece, answering: Answering) -> list[bytes]:
        self._number, number = piece.part, answering.number
        if piece.kind == "reasoning":
            self._reasoned = True
            self._item = {
                "type": "reasoning",
                "id": f"rs_{number}",
                "summary": [{"type": "summary_text", "text": ""}],
                "encrypted_content": f"encrypted-{number}",
            }
        elif piece.kind == "text":
            content = [{"type": "output_text", "text": "", "annotations": []}]
            self._item = {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "phase": "commentary",
                "status": "in_progress",
                "content": content,
            }
        else:
            after = "r" if self._reasoned else "n"
            self._item = {
                "type": "function_call",
                "id": f"fc_{number}_{after}_{piece.part}",
                "call_id": piece.call_id,
                "name": piece.name,
                "arguments": "",
                "status": "in_progress",
            }
        started = {**self._item, **({"content": []} if piece.kind == "text" else {})}
        if piece.kind == "reasoning":
            started["encrypted_content"] = "not-yet-whole"
        return [self._event("response.output_item.added", {"output_index": len(self._output), "item": started})]

    def _close(self) -> list[bytes]:
        if not self._item:
            return []
        item = self._item if self._item["type"] == "reasoning" else {**self._item, "status": "completed"}
        event = self._event("response.output_item.done", {"output_index": len(self._output), "item": item})
        self._output.append(item)
        self._item, self._number = {}, -1
        return [event]

    def _response(self, answering: Answering, status: str) -> dict[str, Any]:
        output = self._output if status != "in_progress" else []
        return {
            "id": f"resp_{answering.number}",
            "object": "response",
            "model": answering.model,
            "status": status,
            "output": output,
            "error": None,
            "usage": None,
        }

    def _event(self, kind: str, data: Mapping[str, Any]) -> bytes:
        self._sequence += 1
        whole = {"type": kind, "sequence_number": self._sequence, **data}
        return f"event: {kind}\ndata: {compact(whole)}\n\n".encode()


def _error(fault: Fault) -> dict[str, Any]:
    code = _ERRORS.get(fault.kind, (0, fault.kind))[1]
    message = sentence_of(fault)
    if fault.kind == "overflow" and not fault.message:
        message = "Your input exceeds the context window of this model. Please adjust your input and try again."
    return {"message": message, "type": "invalid_request_error", "param": None, "code": code}


def _wrong_item(items: Sequence[Mapping[str, Any]], at: int) -> str:
    """Whether what this server once sent came back otherwise, or without what belongs to it."""
    item, name = items[at], str(items[at].get("id", ""))
    following = items[at + 1] if at + 1 < len(items) else {}
    if item.get("type") == "reasoning":
        if item.get("encrypted_content") != f"encrypted-{name.removeprefix('rs_')}":
            return f"Item '{name}': the encrypted content could not be verified."
        if following.get("role") != "assistant" and following.get("type") not in ("function_call", "reasoning"):
            return f"Item '{name}' of type 'reasoning' was provided without its required following item."
    if item.get("type") == "function_call" and "_r_" in name:
        wanted = f"rs_{name.split('_')[1]}"
        if not any(other.get("id") == wanted for other in items[:at]):
            return (
                f"Item '{name}' of type 'function_call' was provided without its required 'reasoning' item: '{wanted}'."
            )
    if name.startswith("msg_") and item.get("phase") != "commentary":
        return f"Item '{name}' came back without its phase."
    return ""
