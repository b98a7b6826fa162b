"""Tools that a search has found: where the provider knows it, they join at its result."""

from __future__ import annotations

import json
from typing import Any

from swecli.core.llm.framing import BodyParser
from swecli.core.llm.protocols.base import found_tools
from swecli.core.llm.protocols.registry import decoder_for
from swecli.core.llm.types import Finished
from swecli.core.protocol.messages import Message, ToolResultPart
from tests.core.llm.histories import TOOL, build, request, target, user
from tests.core.llm.test_anthropic_request import CLOSE, FOUND, ISSUE, SEARCH, USED, searched

GPT = target("openai-responses", "api.openai.com", "gpt-5.6-sol")


def test_each_is_found_where_it_is_named_first() -> None:
    again = Message("tool", (ToolResultPart("toolu_2", "tool_search", FOUND),), "s")
    history = request(*searched(), again, tools=(TOOL, SEARCH, ISSUE, CLOSE))
    assert found_tools(history) == {"toolu_1": ("mcp__hub__issue", "mcp__hub__close")}
    assert found_tools(request(*searched("[cleared]"), tools=(TOOL, SEARCH, ISSUE))) == {}
    assert found_tools(request(*searched("read: x\ntool_search: y"), tools=(TOOL, SEARCH))) == {}


def test_responses_take_them_at_the_result_of_the_search() -> None:
    before = build(request(user("x"), tools=(TOOL, USED, SEARCH)), GPT)
    after = build(request(*searched(), tools=(TOOL, USED, SEARCH, ISSUE, CLOSE)), GPT)
    assert after["tools"] == before["tools"]
    assert after["tools"][2] == {
        "type": "tool_search",
        "execution": "client",
        "description": "Finds tools.",
        "parameters": {"type": "object"},
    }
    assert after["input"][0] == before["input"][0]
    call_id = after["input"][1]["call_id"]
    assert after["input"][1:] == [
        {
            "type": "tool_search_call",
            "status": "completed",
            "execution": "client",
            "call_id": call_id,
            "arguments": {},
        },
        {
            "type": "tool_search_output",
            "execution": "client",
            "call_id": call_id,
            "status": "completed",
            "tools": [
                {
                    "type": "function",
                    "name": name,
                    "description": about,
                    "parameters": {"type": "object"},
                    "strict": False,
                    "defer_loading": True,
                }
                for name, about in (("mcp__hub__issue", "Opens an issue."), ("mcp__hub__close", "Closes an issue."))
            ],
        },
    ]


def test_models_and_hosts_that_are_not_known_get_functions() -> None:
    history = request(*searched(), tools=(TOOL, SEARCH, ISSUE, CLOSE))
    for place in (
        target("openai-responses", "api.openai.com", "gpt-5.2"),
        target("openai-responses", "proxy.example", "gpt-5.6-sol"),
    ):
        body = build(history, place)
        assert [tool["type"] for tool in body["tools"]] == ["function"] * 4
        assert body["input"][2]["output"] == FOUND


def answered(item: dict[str, Any]) -> Message:
    done = {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": [item]}
    events = [
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]
    raw = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
    decoder, body = decoder_for("openai-responses", GPT.origin), BodyParser("text/event-stream")
    found = [event for wire in body.feed(raw) + body.end() for event in decoder.feed(wire)]
    last = [*found, *decoder.end_of_body(body)][-1]
    assert isinstance(last, Finished)
    return last.message


def test_a_search_of_the_model_is_a_call() -> None:
    item = {
        "type": "tool_search_call",
        "id": "tsc_1",
        "call_id": "call_7",
        "execution": "client",
        "status": "completed",
        "arguments": {"query": "open an issue"},
    }
    message = answered(item)
    (call,) = message.tool_calls
    assert (call.name, json.loads(call.arguments)) == ("tool_search", {"query": "open an issue"})
    sent = build(request(user("x"), message, tools=(TOOL, SEARCH)), GPT)["input"][1]
    assert sent == item
    assert not answered({**item, "execution": "server", "call_id": None}).tool_calls
