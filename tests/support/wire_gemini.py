"""Gemini generateContent as a server sends it: no end marker, calls with and without ids, signatures to return."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from swecli.core.llm.scripted import STATUS, Fault, Piece, RequestFacts, sentence_of
from swecli.core.protocol.messages import StopKind
from tests.support.wire import Answering, Body, Refusal, compact

_STATES: Mapping[str, str] = {
    "auth": "UNAUTHENTICATED",
    "not_found": "NOT_FOUND",
    "rate_limit": "RESOURCE_EXHAUSTED",
    "overloaded": "UNAVAILABLE",
    "server": "INTERNAL",
}
_OF_OTHERS = "skip_thought_signature_validator"
"""What stands for the signature of a call that another model made."""
_OVERFLOW = "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window})."


class GeminiGenerate:
    """``streamGenerateContent`` with server-sent events."""

    path = "*:streamGenerateContent"
    id_prefix = "gem"
    content_type = "text/event-stream"

    def __init__(self) -> None:
        self._arguments = ""
        self._called = False

    def key(self, headers: Mapping[str, str]) -> str:
        return headers.get("x-goog-api-key", "")

    def streams(self, body: Body) -> bool:
        return True

    def facts(self, body: Body) -> RequestFacts:
        contents: list[dict[str, Any]] = body.get("contents", [])
        newest = next((at for at in range(len(contents), 0, -1) if contents[at - 1].get("role") == "model"), 0)
        answers = [
            part["functionResponse"] for content in contents[newest:] for part in _having(content, "functionResponse")
        ]
        users = [_spoken(content) for content in contents[newest:]]
        older = [_spoken(content) for content in contents if content.get("role") == "user"]
        return RequestFacts(
            results=tuple(str(next(iter(answer["response"].values()), "")) for answer in answers),
            failed=any("error" in answer["response"] for answer in answers) if answers else None,
            last_user="\n".join(filter(None, users)) or next(filter(None, reversed(older)), ""),
            text=json.dumps(body, ensure_ascii=False),
            tools=bool(body.get("tools")),
            calls=sum(len(_having(content, "functionCall")) for content in contents),
        )

    def prefix(self, body: Body) -> Sequence[object]:
        return [body.get("tools", []), body.get("systemInstruction", {}), *body.get("contents", [])]

    def objection(self, body: Body) -> str:
        contents: list[dict[str, Any]] = body.get("contents", [])
        if not contents or contents[0].get("role") != "user":
            return "contents must begin with the user"
        for at, content in enumerate(contents):
            if not content.get("parts"):
                return f"contents[{at}].parts: must not be empty"
            if at and content["role"] == contents[at - 1]["role"]:
                return f"contents[{at}]: roles must alternate"
            calls = _having(content, "functionCall")
            if calls and not str(calls[0].get("thoughtSignature", "")).startswith(("signature-", _OF_OTHERS)):
                return f"Function call is missing a thought_signature in functionCall parts. contents[{at}]"
            following = contents[at + 1] if at + 1 < len(contents) else {}
            answers = [part["functionResponse"] for part in _having(following, "functionResponse")]
            wanted = [(part["functionCall"]["name"], part["functionCall"].get("id")) for part in calls]
            if wanted != [(answer["name"], answer.get("id")) for answer in answers]:
                return "Please ensure that function response turn comes immediately after a function call turn."
        return ""

    def opening(self, answering: Answering) -> list[bytes]:
        return []

    def piece(self, piece: Piece, answering: Answering) -> list[bytes]:
        match piece.kind:
            case "text":
                return [self._event(answering, [{"text": piece.text}])]
            case "reasoning":
                return [self._event(answering, [{"text": piece.text, "thought": True}])]
            case "start":
                self._arguments = ""
            case "arguments":
                self._arguments += piece.text
            case "done":
                return [self._event(answering, [self._call(piece, answering)])]
        return []

    def closing(self, stop: StopKind, answering: Answering) -> list[bytes]:
        signed = [] if self._called else [{"text": "", "thoughtSignature": f"signature-{answering.number}"}]
        usage = answering.usage
        counts: dict[str, Any] = {}
        if usage is not None:
            thoughts = usage.reasoning or 0
            counts = {
                "promptTokenCount": usage.input_total,
                "cachedContentTokenCount": usage.cache_read or 0,
                "candidatesTokenCount": (usage.output_total or 0) - thoughts,
                "thoughtsTokenCount": thoughts,
            }
        finish = "MAX_TOKENS" if stop == "length" else "STOP"
        return [self._event(answering, signed, finish, counts)]

    def refusal(self, fault: Fault) -> Refusal:
        return Refusal(STATUS.get(fault.kind, 500), compact(_error(fault)).encode())

    def error_event(self, fault: Fault) -> bytes:
        return f"data: {compact(_error(fault))}\r\n\r\n".encode()

    def keep_alive(self) -> bytes:
        return b": keep-alive\r\n\r\n"

    def _call(self, piece: Piece, answering: Answering) -> dict[str, Any]:
        """Every other answer has ids; the first call of each has the signature."""
        call: dict[str, Any] = {"name": piece.name, "args": json.loads(self._arguments or "{}")}
        if answering.number % 2:
            call["id"] = piece.call_id
        signed = {} if self._called else {"thoughtSignature": f"signature-{answering.number}"}
        self._called = True
        return {"functionCall": call, **signed}

    def _event(
        self, answering: Answering, parts: list[Any], finish: str = "", usage: Mapping[str, Any] | None = None
    ) -> bytes:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
        if finish:
            candidate["finishReason"] = finish
        data = {
            "candidates": [candidate],
            "modelVersion": "scripted",
            "responseId": f"g{answering.number}",
            **({"usageMetadata": usage} if usage else {}),
        }
        return f"data: {compact(data)}\r\n\r\n".encode()


def _error(fault: Fault) -> dict[str, Any]:
    message = sentence_of(fault)
    if fault.kind == "overflow" and not fault.message:
        message = _OVERFLOW.format(tokens=fault.tokens, window=fault.window)
    details: list[Any] = []
    if fault.retry_after is not None:
        retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{fault.retry_after:g}s"}
        details.append(retry)
    status = _STATES.get(fault.kind, "INVALID_ARGUMENT")
    return {"error": {"code": STATUS.get(fault.kind, 500), "message": message, "status": status, "details": details}}


def _having(content: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    return [part for part in content.get("parts", []) if key in part]


def _spoken(content: Mapping[str, Any]) -> str:
    return "\n".join(part["text"] for part in content.get("parts", []) if "text" in part and not part.get("thought"))
