"""Forms that servers use in place of the usual ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from swecli.core.llm.debug_decode import decode
from swecli.core.llm.protocols.registry import decoder_for
from swecli.core.protocol.messages import Origin


def outcome(protocol: str, body: str) -> dict[str, Any]:
    decoder = decoder_for(protocol, Origin(protocol, "host", "model"))
    return dict(decode(decoder, 200, {"content-type": "text/event-stream"}, [body.encode()]))


def chunk(delta: Any, reason: str | None = None) -> str:
    return f"data: {json.dumps({'choices': [{'index': 0, 'delta': delta, 'finish_reason': reason}]})}\n"


CALL: dict[str, Any] = {"index": 0, "id": "x", "function": {"name": "f", "arguments": "{}"}}


def test_events_without_blank_lines_between_them() -> None:
    got = outcome("openai-chat", chunk({"content": "a"}) + chunk({"content": "b"}, "stop") + "data: [DONE]\n")
    assert (got["outcome"], got["text"]) == ("completed", "ab")


@pytest.mark.parametrize("calls", [CALL, [CALL]])
def test_a_call_that_stands_alone(calls: Any) -> None:
    got = outcome("openai-chat", chunk({"tool_calls": calls}, "tool_calls") + "\n")
    assert [call["name"] for call in got["tool_calls"]] == ["f"]
    said = {"message": {"tool_calls": {"function": {"name": "f", "arguments": {"a": 1}}}}, "done": True}
    assert outcome("ollama-chat", json.dumps(said))["tool_calls"][0]["arguments"] == {"a": 1}


def test_a_part_that_stands_alone() -> None:
    assert outcome("openai-chat", chunk({"content": {"type": "text", "text": "a"}}, "stop") + "\n")["text"] == "a"


@pytest.mark.parametrize("status", ["completed", None])
def test_a_response_that_is_done(status: str | None) -> None:
    item = {"type": "message", "content": [{"type": "output_text", "text": "a"}]}
    done = {"type": "response.done", "response": {"status": status, "output": [item]}}
    got = outcome("openai-responses", f"data: {json.dumps(done)}\n\n")
    assert (got["outcome"], got["text"], got["stop"]["kind"]) == ("completed", "a", "end")


def test_items_that_all_come_at_the_first_place() -> None:
    items = [
        {"type": "function_call", "id": f"fc_{name}", "call_id": name, "name": name, "arguments": "{}"}
        for name in ("f", "g")
    ]
    events = [{"type": "response.output_item.done", "output_index": 0, "item": item} for item in items]
    events.append({"type": "response.completed", "response": {"status": "completed", "output": items}})
    got = outcome("openai-responses", "".join(f"data: {json.dumps(event)}\n\n" for event in events))
    assert [call["name"] for call in got["tool_calls"]] == ["f", "g"]
