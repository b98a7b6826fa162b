"""Servers whose chat template has no place for a message as swecli usually sends it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.dialects import Dialect
from swecli.core.llm.errors import read_body
from swecli.core.llm.json_values import JsonObject
from swecli.core.llm.providers import ProviderConfig, resolve
from swecli.core.llm.role_complaints import suitable_dialect
from swecli.core.llm.types import Finished, ModelRequest, StreamNotice, SystemBlock
from swecli.core.protocol.messages import ImagePart, Message, TextPart
from tests.core.llm.histories import IMAGE, TOOL, assistant, build, call, request, result, target, user
from tests.core.llm.raw_server import Answer, head, say, serve

SYSTEM = [SystemBlock("Rules.")]
USUAL = Dialect()
STRICT = replace(USUAL, merge_roles=True, assistant_after_tool=True)
HISTORY = (user("look"), assistant("I look.", call("c1", "{}")), result("c1", "text"), user("and"), user("more"))


def refused(message: str, status: int = 400, **more: Any) -> bytes:
    return json.dumps({"error": {"message": message, **more}}).encode()


@pytest.mark.parametrize(
    ("body", "status", "wanted"),
    [
        (b'{"object":"error","message":"System role not supported","code":400}', 400, {"system_role": "user"}),
        (refused("Developer instruction is not enabled for models/gemma-3-27b-it"), 400, {"system_role": "user"}),
        (
            refused("Unsupported value: 'messages[0].role' does not support 'system' with this model."),
            400,
            {"system_role": "user"},
        ),
        (
            refused("After the optional system message, conversation roles must alternate user and assistant roles"),
            500,
            {"merge_roles": True, "assistant_after_tool": True},
        ),
        (
            refused("Cannot have 2 or more assistant messages at the end of the list."),
            400,
            {"merge_roles": True, "assistant_after_tool": True},
        ),
        (refused("Unexpected role 'user' after role 'tool'"), 400, {"assistant_after_tool": True}),
        (
            refused(
                "Provider returned error",
                metadata={
                    "raw": "{\"message\":\"Unexpected role 'user' after role 'tool'\"}",
                    "provider_name": "Mistral",
                },
            ),
            400,
            {"assistant_after_tool": True},
        ),
        (refused("Invalid value: 'x'"), 400, None),
        (refused("The system is not available"), 400, None),
    ],
)
def test_what_a_complaint_asks_for(body: bytes, status: int, wanted: JsonObject | None) -> None:
    error = read_body(status, {}, body)
    dialect = suitable_dialect(error, USUAL)
    assert dialect == (None if wanted is None else replace(USUAL, **wanted))
    if dialect is not None and "alternate" not in error.words and "2 or more" not in error.words:
        assert suitable_dialect(error, dialect) is None, "the same complaint again has no other remedy"


def test_roles_that_still_do_not_alternate_leave_no_place_for_results() -> None:
    error = read_body(400, {}, refused("Conversation roles must alternate user/assistant/user/assistant/..."))
    assert suitable_dialect(error, STRICT) == replace(STRICT, tool_calls="text")
    assert suitable_dialect(error, replace(STRICT, tool_calls="text")) is None


def roles(body: JsonObject) -> list[tuple[str, object]]:
    return [(item["role"], item["content"]) for item in body["messages"]]  # type: ignore[attr-defined, index]


def test_adjacent_messages_of_one_role_become_one() -> None:
    body = build(request(*HISTORY, system=SYSTEM, tools=(TOOL,)), target("openai-chat", merge_roles=True))
    assert roles(body) == [
        ("system", "Rules."),
        ("user", "look"),
        ("assistant", "I look."),
        ("tool", "text"),
        ("user", "and\n\nmore"),
    ]


def test_a_cut_answer_and_its_continuation_become_one() -> None:
    history = (user("look"), assistant("I"), assistant("look.", call("c1", "{}")), result("c1", "text"))
    body = build(request(*history, tools=(TOOL,)), target("openai-chat", merge_roles=True))
    assert roles(body) == [("user", "look"), ("assistant", "I\n\nlook."), ("tool", "text")]
    assert body["messages"][1]["tool_calls"][0]["id"] == "c1"  # type: ignore[index]


def test_text_and_images_of_two_messages_become_one_list() -> None:
    picture = Message("user", (TextPart("see"), IMAGE))
    content = roles(build(request(user("look"), picture), target("openai-chat", merge_roles=True)))[0][1]
    assert isinstance(IMAGE, ImagePart)
    assert [part["type"] for part in content] == ["text", "text", "image_url"]  # type: ignore[attr-defined, index]


@pytest.mark.parametrize("protocol", ["openai-chat", "gemini-generate"])
def test_a_model_without_a_system_message_reads_it_first(protocol: str) -> None:
    body = build(request(*HISTORY, system=SYSTEM, tools=(TOOL,)), target(protocol, system_role="user"))
    if protocol == "openai-chat":
        assert roles(body)[0] == ("user", "Rules.\n\nlook")
        return
    assert "systemInstruction" not in body
    assert body["contents"][0] == {"role": "user", "parts": [{"text": "Rules."}, {"text": "look"}]}  # type: ignore[index]


def complaint(message: str, status: int = 400) -> Answer:
    return say(head(status, "application/json"), refused(message))


async def test_a_template_without_system_and_tool_roles_still_answers() -> None:
    """Gemma's template in vLLM: each complaint is met in turn, and later requests begin with what was learned."""
    done = json.dumps({"choices": [{"delta": {"content": "Yes."}, "finish_reason": "stop"}]})
    answer = say(head(), f"data: {done}\n\ndata: [DONE]\n\n".encode())
    alternate = "Conversation roles must alternate user/assistant/user/assistant/..."
    async with serve(
        complaint("System role not supported"), complaint(alternate), complaint(alternate), answer
    ) as server:
        mine = ProviderConfig("mine", "openai-chat", server.url, local=True)
        client = HttpModelClient(resolve("mine/m", {}, [mine]))
        wanted = ModelRequest(tuple(SYSTEM), (TOOL,), HISTORY)
        events = [event async for event in client.stream(wanted)]
        await client.close()
    assert isinstance(events[-1], Finished)
    assert sum(isinstance(event, StreamNotice) for event in events) == 3
    last = server.requests[-1].body
    assert "tools" not in last
    assert [item["role"] for item in last["messages"]] == ["user", "assistant", "user"]
    assert last["messages"][0]["content"].startswith("Rules.\n\n")
    assert client.wire_request(wanted).body == last


async def test_a_remedy_that_changes_nothing_is_not_tried() -> None:
    """After the first call no role repeats and no user follows a result, so that only the results can be meant."""
    done = json.dumps({"choices": [{"delta": {"content": "Yes."}, "finish_reason": "stop"}]})
    answer = say(head(), f"data: {done}\n\ndata: [DONE]\n\n".encode())
    alternate = "Conversation roles must alternate user/assistant/user/assistant/..."
    async with serve(complaint(alternate), answer) as server:
        mine = ProviderConfig("mine", "openai-chat", server.url, local=True)
        client = HttpModelClient(resolve("mine/m", {}, [mine]))
        events = [event async for event in client.stream(ModelRequest(tuple(SYSTEM), (TOOL,), HISTORY[:3]))]
        await client.close()
    assert isinstance(events[-1], Finished)
    told = [event.text for event in events if isinstance(event, StreamNotice)]
    assert told == [f"The server has no role for results; the prompt now describes the tools instead: {alternate}"]
    assert [item["role"] for item in server.requests[-1].body["messages"]] == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize("begun", [b"", b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'])
async def test_a_complaint_in_a_stream_is_met_as_well(begun: bytes) -> None:
    """LM Studio reports with status 200 that its template rejects the conversation."""
    failed = [
        b"event: error\ndata: " + json.dumps({"error": error}).encode() + b"\n\n"
        for error in (
            {"message": "Error rendering prompt with jinja template: roles must alternate user/assistant"},
            {"message": "Unknown parameter: 'stream_options'.", "type": "invalid_request_error"},
        )
    ]
    done = json.dumps({"choices": [{"delta": {"content": "Yes."}, "finish_reason": "stop"}]})
    answer = say(head(), f"data: {done}\n\ndata: [DONE]\n\n".encode())
    async with serve(*(say(head(), begun, one) for one in failed), answer) as server:
        mine = ProviderConfig("mine", "openai-chat", server.url, local=True)
        client = HttpModelClient(resolve("mine/m", {}, [mine]))
        events = [event async for event in client.stream(ModelRequest(tuple(SYSTEM), (TOOL,), HISTORY))]
        await client.close()
    assert isinstance(events[-1], Finished)
    last = server.requests[-1].body
    assert [item["role"] for item in last["messages"][-2:]] == ["assistant", "user"]
    assert "stream_options" in server.requests[0].body
    assert "stream_options" not in last
