"""A server whose model takes no tools, and one whose model writes its calls as text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.errors import read_body
from swecli.core.llm.providers import Overrides, ProviderConfig, resolve
from swecli.core.llm.text_tools import refuses_tools
from swecli.core.llm.types import (
    CallText,
    Finished,
    ModelInfo,
    ModelRequest,
    StreamEvent,
    StreamNotice,
    SystemBlock,
    TextDelta,
    ToolSchema,
)
from swecli.core.protocol.messages import Message, ReasoningPart, TextPart, ToolCallPart
from tests.core.llm.raw_server import Answer, RawServer, head, say, serve

TOOL = ToolSchema("read_file", "Reads.", {"type": "object"})
REQUEST = ModelRequest((), (TOOL,), (Message("user", (TextPart("look"),), "u"),))
CALL = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>'


def chat(text: str) -> Answer:
    chunks: list[dict[str, Any]] = [{"choices": [{"delta": {"content": piece}}]} for piece in text.split("|")]
    chunks.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    return say(head(), *(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks), b"data: [DONE]\n\n")


def ollama(text: str) -> Answer:
    lines = [{"message": {"content": text}}, {"done": True, "done_reason": "stop"}]
    return say(head(content_type="application/x-ndjson"), *(f"{json.dumps(line)}\n".encode() for line in lines))


def refusal(message: str, status: int = 400) -> Answer:
    return say(head(status, "application/json"), json.dumps({"error": {"message": message}}).encode())


async def ask(client: HttpModelClient, request: ModelRequest = REQUEST) -> list[StreamEvent]:
    return [event async for event in client.stream(request)]


def client_of(server: RawServer, model: str = "mine/m", **changes: Any) -> HttpModelClient:
    mine = ProviderConfig("mine", "openai-chat", server.url, local=True, **changes)
    return HttpModelClient(resolve(model, {"OLLAMA_HOST": server.url}, [mine]))


def calls(events: list[StreamEvent]) -> list[tuple[str, str]]:
    last = events[-1]
    assert isinstance(last, Finished)
    return [(call.name, call.arguments) for call in last.message.tool_calls]


async def test_calls_in_the_text_of_a_local_model_are_calls() -> None:
    async with serve(chat("I |look.\n<tool|" + CALL[5:])) as server:
        client = client_of(server)
        events = await ask(client)
        assert calls(events) == [("read_file", '{"path":"a"}')]
        assert "".join(event.text for event in events if isinstance(event, TextDelta)).strip() == "I look."
        assert server.requests[0].body["tools"][0]["function"]["name"] == "read_file"
        await client.close()


@pytest.mark.parametrize(
    ("text", "told", "shown"),
    [
        (
            'I look.\n<to|ol_call>\n{|"name": "rea|d_file"|, ' + CALL[34:],
            ("", "", "read_file", "read_file"),
            "I look.\n",
        ),
        ('{"name": "read_file"|, "arguments": {"path": "a"}}', ("read_file", "read_file"), ""),
        ('```json\n|{"name": "read_file", |"arguments": {}}\n```', ("read_file", "read_file"), ""),
        ("<function=read_file>|\n<parameter=path>a</parameter></function>", ("read_file", "read_file"), ""),
        ("plain |words <b>|and code", (), "plain words <b>and code"),
        ("```python\n|x = {}|\n```", (), "```python\nx = {}\n```"),
    ],
)
async def test_a_call_is_told_while_it_is_written(text: str, told: tuple[str, ...], shown: str) -> None:
    """Its text is not shown, but what it becomes is known: each piece once, and the tool from where it is named."""
    async with serve(chat(text)) as server:
        client = client_of(server)
        events = await ask(client)
        written = [event for event in events if isinstance(event, CallText)]
        before = events[: events.index(written[-1]) if written else len(events)]
        assert tuple(event.name for event in written) == told
        assert "".join(event.text for event in before if isinstance(event, TextDelta)) == shown
        assert shown + "".join(event.text for event in written) == text.replace("|", "")
        await client.close()


async def test_what_turns_out_to_be_no_call_is_text_again() -> None:
    text = '<tool_call>|{"name": "no_such|_tool", "arguments": 7}</tool_call>| is how one calls.'
    async with serve(chat(text)) as server:
        client = client_of(server)
        events = await ask(client)
        assert [event.name for event in events if isinstance(event, CallText)] == ["", ""]
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == text.replace("|", "")
        await client.close()


@pytest.mark.parametrize("flag", ["native", "auto", "text"])
async def test_the_user_decides_how_calls_are_read(flag: str) -> None:
    async with serve(chat(CALL)) as server:
        client = client_of(server, quirks={"tool_calls": flag})
        assert bool(calls(await ask(client))) == (flag != "native")
        assert ("tools" in server.requests[0].body) == (flag != "text")
        await client.close()


@pytest.mark.parametrize(
    "message",
    [
        "registry.ollama.ai/library/gemma:2b does not support tools",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "tools param requires --jinja flag",
        "Cannot use tools with stream",
        "`tool calling` is not supported with this model",
        "Function calling is not enabled for models/gemma-3-27b-it",
        "This model doesn't support function calling",
    ],
)
async def test_a_model_that_refuses_tools_gets_them_as_text_from_then_on(message: str) -> None:
    async with serve(refusal(message), chat(CALL), chat("done")) as server:
        client = client_of(server)
        events = await ask(client)
        assert any(isinstance(event, StreamNotice) and "does not support tools" in event.text for event in events)
        assert calls(events) == [("read_file", '{"path":"a"}')]
        first, second = (request.body for request in server.requests)
        assert "tools" in first
        assert "tools" not in second
        assert '"name":"read_file"' in json.dumps(second["messages"][0]["content"]).replace('\\"', '"')
        assert calls(await ask(client)) == []
        assert "tools" not in server.requests[2].body
        await client.close()


async def test_a_server_that_fails_over_tools_gets_them_as_text() -> None:
    async with serve(refusal("tools param requires --jinja flag", 500), chat(CALL)) as server:
        client = client_of(server)
        assert calls(await ask(client)) == [("read_file", '{"path":"a"}')]
        await client.close()


PROMPT = "Look before you edit, and say what you did. " * 60
TOOLS = tuple(
    ToolSchema(f"tool_{number}", "Reads a file of the project and returns its numbered lines. " * 6, {"type": "object"})
    for number in range(8)
)


def counted(prompt: int, text: str = "I can't.") -> Answer:
    chunks: list[dict[str, Any]] = [
        {"choices": [{"delta": {"content": text}}]},
        {"choices": [{"delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": 3}},
    ]
    return say(head(), *(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks), b"data: [DONE]\n\n")


@pytest.mark.parametrize(
    ("tokens", "dropped"),
    [
        (650, True),  # the prompt alone, which has 2,700 characters
        (1700, False),  # with the tools
        (30, False),  # a server that counts nothing of its cache
    ],
)
async def test_a_server_that_drops_the_tools_is_seen_in_its_count(tokens: int, dropped: bool) -> None:
    request = ModelRequest((SystemBlock(PROMPT),), TOOLS, REQUEST.messages)
    learned: list[str] = []
    async with serve(counted(tokens), counted(tokens), counted(650)) as server:
        mine = resolve("mine/m", {}, [ProviderConfig("mine", "openai-chat", server.url, local=True)])
        client = HttpModelClient(mine, learn=lambda name: learned.append(name) or "")
        events = await ask(client, request)
        told = [event.text for event in events if isinstance(event, StreamNotice)]
        assert [("left the tools out" in text) for text in told] == [True] * dropped
        [usage] = [event.message.response.usage for event in events if isinstance(event, Finished)]
        assert usage.input_total == (None if dropped else tokens), "a prompt without the tools measures nothing"
        assert learned == ["tools:m"] * dropped
        assert client.info.tools is not dropped
        client.compatibility.know(ModelInfo("mine", "m", 4096))
        assert client.info.tools is not dropped
        for _ in range(2):  # only the first answer counts
            assert [event for event in await ask(client, request) if isinstance(event, StreamNotice)] == []
        assert ["tools" in request.body for request in server.requests] == [True, not dropped, not dropped]
        await client.close()
    again = resolve(
        "mine/m", {}, [ProviderConfig("mine", "openai-chat", server.url, local=True)], overrides=_refusing(learned)
    )
    assert again.info.tools is not dropped


def _refusing(names: list[str]) -> Overrides:
    return Overrides(refused=lambda place: tuple(names))


async def test_a_model_known_to_take_no_tools_is_not_tried_with_them() -> None:
    async with serve(ollama(CALL)) as server:
        client = client_of(server, "ollama/gemma")
        client.compatibility.know(ModelInfo("ollama", "gemma", 4096, tools=False))
        history = (
            *REQUEST.messages,
            Message("assistant", (ToolCallPart("c", "read_file", '{"path":"a"}'),), "m"),
        )
        assert calls(await ask(client, ModelRequest((), (TOOL,), history))) == [("read_file", '{"path":"a"}')]
        body = server.requests[0].body
        assert "tools" not in body
        assert body["options"]["num_ctx"] == 4096
        assert body["messages"][-1]["content"].startswith("<tool_call>")
        await client.close()


async def test_thoughts_of_a_local_model_are_no_answer() -> None:
    async with serve(chat("<thou|ght>plan</thought>ans|wer")) as server:
        client = client_of(server)
        last = (await ask(client))[-1]
        assert isinstance(last, Finished)
        assert last.message.text == "answer"
        await client.close()


async def test_channels_of_gpt_oss_are_reasoning_text_and_calls() -> None:
    thought = "<~channel~>analysis<~message~>plan<~end~>"
    said = "<~start~>assistant<~channel~>commentary<~message~>I look.<~end~>"
    call = '<~start~>assistant<~channel~>commentary to=functions.read_file json<~message~>{"path": "a"}<~call~>'
    pieces = [{"choices": [{"delta": {"content": char}}]} for char in (thought + said + call).replace("~", "|")]
    pieces.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    async with serve(say(head(), *(f"data: {json.dumps(piece)}\n\n".encode() for piece in pieces))) as server:
        client = client_of(server)
        events = await ask(client)
        assert calls(events) == [("read_file", '{"path":"a"}')]
        last = events[-1]
        assert isinstance(last, Finished)
        assert last.message.text == "I look."
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "I look."
        assert [part.text for part in last.message.parts if isinstance(part, ReasoningPart)] == ["plan"]
        await client.close()


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "Function calling is not enabled for models/gemma-3-12b-it"}},
        {"error": {"message": "Tool use with function calling is unsupported"}},
        {"error": {"message": "Functions are not supported for this API version or this model version."}},
        {"error": {"message": "Unsupported param: tools", "code": 500}},
        {
            "error": {
                "message": "Provider returned error",
                "metadata": {"raw": '{"message":"m does not support tools"}'},
            }
        },
        {
            "error": {
                "message": "Provider returned error",
                "metadata": {"raw": '{"reason":"INVALID","message":"model features function calling not support"}'},
            }
        },
    ],
)
def test_a_refusal_of_tools_in_many_words(body: dict[str, Any]) -> None:
    status = body["error"].get("code", 400)
    assert refuses_tools(read_body(status, {}, json.dumps(body).encode()))


@pytest.mark.parametrize(
    "message",
    ["Unknown parameter: tools.0.function.strict", "tools.0.name: invalid", "Function calling limits were exceeded"],
)
def test_a_complaint_about_one_tool_is_no_refusal_of_tools(message: str) -> None:
    assert not refuses_tools(read_body(400, {}, json.dumps({"error": {"message": message}}).encode()))
