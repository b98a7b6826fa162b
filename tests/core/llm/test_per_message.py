"""A request costs only its new messages: the others are neither searched nor translated again."""

from __future__ import annotations

import importlib
from typing import Any
from unittest.mock import PropertyMock, patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swecli.core.llm import quarantine, sent_images
from swecli.core.llm.json_values import compact, encoded
from swecli.core.llm.per_message import PerMessage, Translations
from swecli.core.llm.protocols.base import Target
from swecli.core.llm.protocols.registry import PROTOCOLS, request_builder
from swecli.core.llm.scripted import parse_script
from swecli.core.protocol.messages import (
    DocumentPart,
    Message,
    Opaque,
    OpaquePart,
    Origin,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from tests.core.llm.histories import (
    IMAGE,
    TOOL,
    assistant,
    call,
    note,
    plain_target,
    request,
    result,
    target,
    user,
)
from tests.core.llm.talks import Talk, steps
from tests.support.loopback import LoopbackServer

PDF = DocumentPart("UERG", "soup.pdf", "--- page 1 ---\nSalt", 1)
MODULES = {
    "openai-chat": "openai_chat",
    "anthropic-messages": "anthropic",
    "openai-responses": "openai_responses",
    "gemini-generate": "gemini",
    "ollama-chat": "ollama",
}


def test_a_value_is_made_once_for_each_message() -> None:
    made: list[str] = []

    def value(message: Message) -> str:
        made.append(message.text)
        return message.text.upper()

    values, said = PerMessage(value), [user(name) for name in "abcd"]
    assert list(values.of(tuple(said[:2]))) == ["A", "B"]
    assert list(values.of(tuple(said))) == ["A", "B", "C", "D"]
    assert made == ["a", "b", "c", "d"]
    said[1] = user("x")
    assert list(values.of(tuple(said))) == ["A", "X", "C", "D"]
    assert list(values.of((said[0], *said[2:]))) == ["A", "C", "D"]
    assert list(values.of(())) == []
    assert made == ["a", "b", "c", "d", "x"]


def history(length: int) -> list[Message]:
    said: list[Message] = []
    for number in range(length):
        said += [assistant(f"Step {number}.", call(f"c{number}", '{"path": "a"}')), result(f"c{number}")]
    return [user("Go."), *said]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_protocol_translates_only_new_messages(protocol: str) -> None:
    module = importlib.import_module(f"swecli.core.llm.protocols.{MODULES[protocol]}")
    to, known, build = target(protocol), Translations(), request_builder(protocol)
    said = history(50)
    with patch.object(module, "_alone", wraps=module._alone) as translate:
        build(request(*said[:-2]), to, known)
        first = translate.call_count
        build(request(*said), to, known)
        assert (first, translate.call_count) == (len(said) - 2, len(said))
        build(request(*said), plain_target(protocol), known)
        assert translate.call_count == 2 * len(said)


async def test_a_client_looks_at_each_message_once() -> None:
    count = 12
    with (
        LoopbackServer(parse_script(steps(count))) as server,
        patch.object(Message, "attached", PropertyMock(return_value=())) as attached,
        patch.object(quarantine, "images_of", wraps=sent_images.images_of) as refused,
    ):
        talk = Talk(server, "openai/m")
        for _ in range(count):
            await talk.go_on()
        await talk.client.close()
    sent = len(talk.messages) - 1
    assert attached.call_count <= 3 * sent  # for the requests, and for what a server refused or answered of them
    assert refused.call_count == 0


FOUND = {"type": "web_search_tool_result", "content": []}
THOUGHT = {"type": "reasoning", "encrypted_content": "e", "summary": []}


def of(protocol: str, data: dict[str, Any]) -> Opaque:
    """What the target of these tests returned with a part."""
    return Opaque(Origin(protocol, "h", "m"), data)


PARTS = st.sampled_from(
    (
        "Text.",
        "",
        "é\n“quoted”",
        call("c1", '{"path": "a", "n": 1.5e30}'),
        call("c2", "not json"),
        call("id/with:odd#characters"),
        ReasoningPart("Hm.", "raw", of("anthropic-messages", {"type": "thinking", "signature": "s"})),
        OpaquePart(of("anthropic-messages", {"block": {"type": "server_tool_use", "id": "s1"}, "whole": True})),
        OpaquePart(of("anthropic-messages", {"block": {**FOUND, "tool_use_id": "s1"}, "whole": True})),
        ReasoningPart("Hm.", "raw", of("openai-responses", {"item": {**THOUGHT, "id": "rs_1"}})),
        TextPart("Said.", of("openai-responses", {"message": {"id": "msg_1", "status": "completed"}})),
        ToolCallPart("c3", "read", "{}", of("gemini-generate", {"id": "g3", "thoughtSignature": "t"})),
        ReasoningPart("Hm.", "raw", of("openai-chat", {"field": "reasoning_content"})),
    )
)
RESULTS = (ToolResultPart("c1", "read", "r", documents=(PDF,)), ToolResultPart("c2", "read", "s"))
MESSAGES = st.one_of(
    st.builds(user, st.sampled_from(("Hello.", "", "\ud83d\ude00"))),
    st.builds(user, st.just("Look."), st.just(IMAGE), st.just(PDF)),
    st.builds(note, st.sampled_from(("Plan mode.", "Todo.")), st.sampled_from(("stays", "this turn", "quoted"))),
    st.lists(PARTS, max_size=3).map(lambda parts: assistant(*parts)),
    st.builds(result, st.sampled_from(("c1", "c2", "c3")), st.sampled_from(("ok", ""))),
    st.builds(result, st.just("c1"), st.just("seen"), st.just(IMAGE)),
    st.builds(Message, st.just("tool"), st.just(RESULTS)),
)
QUIRKS = (
    {},
    {"cache_control": True, "cache_results": True},
    {"cache_control": True, "assistant_after_tool": True},
    {"merge_roles": True},
    {"system_role": "user"},
    {"tool_result_name": True, "tool_ids": "alnum9", "echo_reasoning": "must"},
)


def bytes_of(protocol: str, said: list[Message], marks: tuple[int, ...], to: Target, known: Translations | None) -> Any:
    return request_builder(protocol)(request(*said, tools=(TOOL,), breakpoints=marks), to, known)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(
    st.sampled_from(QUIRKS),
    st.lists(MESSAGES, min_size=1, max_size=12),
    st.lists(st.integers(0, 11), max_size=3),
    st.integers(0, 11),
)
def test_requests_are_the_same_as_made_anew(
    protocol: str, quirks: dict[str, Any], said: list[Message], marks: list[int], edited: int
) -> None:
    to, known = plain_target(protocol, **quirks), Translations()
    sent: list[tuple[Any, str]] = []
    views = [said[:length] for length in range(1, len(said) + 1)]
    if edited < len(said):
        views.append([*said[:edited], user("Edited."), *said[edited + 1 :]])
    for view in views:
        spots = tuple(mark for mark in sorted(set(marks)) if mark < len(view))
        wire = bytes_of(protocol, view, spots, to, known)
        text = compact(wire.body)
        assert text == compact(bytes_of(protocol, view, spots, to, None).body)
        sent.append((wire, text))
    assert [compact(wire.body) for wire, _ in sent] == [text for _, text in sent]  # what was made is never changed


def test_bodies_are_valid_unicode() -> None:
    body = {"text": "a\u2028é\n", "joined": "\ud83d\ude00", "number": 1.5, "large": 2**70}
    assert encoded(body) == compact(body).encode("utf-8", "surrogatepass").replace(
        b"\xed\xa0\xbd\xed\xb8\x80", "😀".encode()
    )
    assert encoded({"lone": "\ud83d"}) == '{"lone":"\ufffd"}'.encode()
    assert encoded({"plain": ["x", None, True, {}]}) == b'{"plain":["x",null,true,{}]}'
