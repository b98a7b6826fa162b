"""What the server refuses of a conversation is left out, and nothing else is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.client_config import ClientConfig
from swecli.core.llm.errors import read_body
from swecli.core.llm.protocols.registry import request_builder
from swecli.core.llm.quarantine import Quarantine
from swecli.core.llm.types import Failed, Finished, ModelInfo, ModelRequest, StreamNotice, SystemBlock
from swecli.core.protocol.messages import (
    ImagePart,
    Message,
    Opaque,
    OpaquePart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
)
from tests.core.llm.histories import IMAGE, assistant, call, request, result, target, user
from tests.core.llm.raw_server import head, say, serve

PROTOCOLS = ("openai-chat", "anthropic-messages", "openai-responses", "gemini-generate", "ollama-chat")
SYSTEM = (SystemBlock("be good"),)
HISTORY = (
    user("first", IMAGE),
    assistant("looking", call("c1"), call("c2", '{"bad', "re ad")),
    result("c1", "one"),
    result("c2", "two"),
    assistant("done"),
    user("next"),
)


def refuse(
    protocol: str, message: str, history: tuple[Message, ...] = HISTORY, status: int = 400
) -> tuple[tuple[Message, ...], str]:
    """The messages after the server said this, and what the user is told."""
    build, to = request_builder(protocol), target(protocol)
    body = json.dumps({"error": {"message": message}}).encode()
    asked = request(*history, system=SYSTEM)
    quarantine = Quarantine()
    told = quarantine.take(read_body(status, {}, body), asked, lambda part: build(part, to).body)
    return quarantine.apply(asked).messages, told


def changed(messages: tuple[Message, ...], history: tuple[Message, ...] = HISTORY) -> list[int]:
    return [at for at, (now, before) in enumerate(zip(messages, history, strict=True)) if now != before]


@pytest.mark.parametrize(
    ("protocol", "message", "index", "told"),
    [
        ("anthropic-messages", "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum", 0, "an image"),
        ("anthropic-messages", "messages.2.content.1: text content blocks must be non-empty", 3, "a tool's result"),
        ("anthropic-messages", "messages.3: all messages must have non-empty content", 4, "a text"),
        ("openai-chat", "Invalid 'messages[4].content': string too long.", 3, "a tool's result"),
        ("openai-chat", "Invalid 'messages[2].tool_calls[1].function.name': pattern", 1, "the arguments of a call"),
        ("openai-responses", "Invalid 'input[0].content[1].image_url'. Expected a valid URL", 0, "an image"),
        ("openai-responses", "Invalid 'input[4].output': string too long", 2, "a tool's result"),
        ("openai-responses", "Invalid 'input[3].name': string does not match pattern", 1, "the arguments of a call"),
        ("gemini-generate", "* GenerateContentRequest.contents[2].parts[1]: bad data", 3, "a tool's result"),
        ("ollama-chat", "body -> messages -> 6 -> content: none is not allowed", 5, "a text"),
        ("openai-chat", "[{'loc': ('body', 'messages', 1, 'content', 1), 'msg': 'no'}]", 0, "an image"),
    ],
)
def test_the_part_that_is_named_is_left_out(protocol: str, message: str, index: int, told: str) -> None:
    messages, text = refuse(protocol, message)
    assert changed(messages) == [index]
    assert f"rejected {told} of this conversation" in text
    assert message[:60] in text


def test_calls_keep_their_results_and_the_model_knows_that_something_is_missing() -> None:
    messages, _ = refuse("openai-chat", "Invalid 'messages[2].tool_calls[1].function.name'")
    assert messages[1].parts == (TextPart("looking"), call("c1"), call("c2", "{}", "re_ad"))
    messages, _ = refuse("anthropic-messages", "messages.2.content.1: bad")
    assert "left out" in messages[3].tool_results[0].text
    assert messages[3].tool_results[0].call_id == "c2"
    messages, _ = refuse("anthropic-messages", "messages.0.content.1.image: could not process image")
    assert messages[0].parts[0] == TextPart("first")
    assert messages[0].text.startswith("first[The image (image/png) was left out: the server rejected it.]")


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("messages.99.content.0: bad", 400),
        ("messages[0].content: the system prompt is bad", 400),
        ("too many messages: 5", 400),
        ("something else", 400),
        ("messages.1.content.0: bad", 500),
        ("prompt is too long: messages[1] 3333404 tokens > 200000 maximum", 400),
    ],
)
def test_other_complaints_change_nothing(message: str, status: int) -> None:
    messages, told = refuse("openai-chat", message, status=status)
    assert told == ""
    assert messages == HISTORY


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "message",
    [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "Corrupted thought signature.",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        "The encrypted content for item rs_1 could not be verified.",
    ],
)
def test_reasoning_that_is_refused_goes_without_its_signatures(protocol: str, message: str) -> None:
    opaque = Opaque(target(protocol).origin, {"signature": "SECRET"})
    signed = Message(
        "assistant",
        (ReasoningPart("plan", opaque=opaque), OpaquePart(opaque), TextPart("A", opaque), ToolCallPart("c", "r", "{}")),
        id="m1",
    )
    messages, told = refuse(protocol, message, (user("x"), signed, result("c")))
    assert "reasoning" in told
    assert "SECRET" not in repr(messages)
    assert messages[1].parts == (ReasoningPart("plan"), TextPart("A"), ToolCallPart("c", "r", "{}"))


@pytest.mark.parametrize(
    "message",
    [
        "Failed to load image or audio file",
        "Invalid base64 image_url.",
        "Invalid image (base64) data.",
        "invalid image input",
        "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png'].",
        "Could not process image",
        "Unable to process input image. Please retry or report in the guide.",
        "The image data you provided does not represent a valid image.",
        "cannot identify image file <_io.BytesIO object at 0x7f>",
    ],
)
def test_an_image_that_a_server_cannot_read_is_left_out_newest_first(message: str) -> None:
    build, to = request_builder("openai-chat"), target("openai-chat")
    error = read_body(400, {}, json.dumps({"error": {"message": message}}).encode())
    other = ImagePart("image/png", "b3RoZXI=")
    asked = request(user("first", IMAGE), assistant(call("a")), result("a", "a picture", other), user("next"))
    quarantine = Quarantine()
    assert "rejected an image" in quarantine.take(error, quarantine.apply(asked), lambda r: build(r, to).body)
    left = quarantine.apply(asked).messages
    assert changed(left, asked.messages) == [2]
    said = left[2].tool_results[0]
    assert (said.text.split("\n")[0], said.images) == ("a picture", ())
    assert "left out" in said.text
    assert quarantine.take(error, quarantine.apply(asked), lambda r: build(r, to).body)
    assert quarantine.apply(asked).messages[0].text.startswith("first[The image (image/png) was left out")
    assert quarantine.take(error, quarantine.apply(asked), lambda r: build(r, to).body) == ""


UNREADABLE = {
    "llama.cpp": (
        500,
        "Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error at line 1, column 2",
    ),
    "vllm": (400, "Expecting ',' delimiter: line 1 column 54 (char 53)"),
    "vllm, an open string": (400, "Unterminated string starting at: line 1 column 14 (char 13)"),
    "vllm, a wrong escape": (400, "Invalid \\escape: line 1 column 2271 (char 2270)"),
    "a chat template": (500, "Can only get item pairs from a mapping."),
}


@pytest.mark.parametrize("server", UNREADABLE)
def test_arguments_that_a_server_can_t_read_are_left_out_newest_first(server: str) -> None:
    status, message = UNREADABLE[server]
    build, to = request_builder("openai-chat"), target("openai-chat")
    error = read_body(status, {}, json.dumps({"error": {"message": message}}).encode())
    history = (
        user("x"),
        assistant(call("a", '{"n": 1}'), call("b", '{"text": "\\ud83d"}')),
        assistant(call("c", '{"m": 1}')),
        user("y"),
    )
    quarantine, asked = Quarantine(), request(*history)
    for left in (['{"n": 1}', "{}", "{}"], ["{}"] * 3):
        told = quarantine.take(error, quarantine.apply(asked), lambda r: build(r, to).body)
        assert "cannot read the arguments" in told
        calls = [one for message in quarantine.apply(asked).messages for one in message.tool_calls]
        assert [one.arguments for one in calls] == left
    assert quarantine.take(error, quarantine.apply(asked), lambda r: build(r, to).body) == ""


HELLO = b'data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


async def test_one_bad_message_does_not_end_a_session() -> None:
    def no(text: str) -> Any:
        return say(head(400, "application/json"), json.dumps({"error": {"message": text}}).encode())

    picture = ImagePart("image/png", "aGk=", "x.png")
    answers = (
        no("Invalid 'messages[1].content[1].image_url.url'"),
        no("Invalid 'messages[1].content': string too long"),
        say(head(), HELLO),
    )
    async with serve(*answers) as server:
        info = ModelInfo("vllm", "m")
        client = HttpModelClient(ClientConfig(info, target("openai-chat"), server.url))
        asked: ModelRequest = request(user("first", picture), assistant("ok"), user("next"), system=SYSTEM)
        events = [event async for event in client.stream(asked)]
        assert isinstance(events[-1], Finished)
        assert ["rejected" in event.text for event in events if isinstance(event, StreamNotice)] == [True, True]
        assert "aGk=" not in json.dumps(server.requests[2].body)
        again = [event async for event in client.stream(asked)]
        assert not any(isinstance(event, StreamNotice | Failed) for event in again)
        assert server.requests[3].body == server.requests[2].body
        await client.close()
        finished = events[-1].message
        later = HttpModelClient(ClientConfig(info, target("openai-chat"), server.url))
        resumed = request(*asked.messages, finished, user("more"), system=SYSTEM)
        assert isinstance([event async for event in later.stream(resumed)][-1], Finished)
        before, now = (server.requests[at].body["messages"] for at in (3, 4))
        assert now[: len(before)] == before
        await later.close()


def test_gemini_gets_a_stand_in_for_a_signature_that_it_rejected() -> None:
    """Without any, it would reject the same call for that."""
    to = target("gemini-generate", model="gemini-3-flash")
    data = Opaque(to.origin, {"thoughtSignature": "bad"})
    signed = ToolCallPart("c1", "read", "{}", data)
    asked = request(user("look"), assistant(signed, origin=to.origin), result("c1"))
    quarantine, build = Quarantine(), request_builder("gemini-generate")
    body = json.dumps({"error": {"message": "Corrupted thought signature.", "status": "INVALID_ARGUMENT"}}).encode()
    assert quarantine.take(read_body(400, {}, body), asked, lambda part: build(part, to).body)
    part = build(quarantine.apply(asked), to).body["contents"][1]["parts"][0]  # type: ignore[index]
    assert part["thoughtSignature"] == "skip_thought_signature_validator"
