"""Requests of Responses, Gemini and Ollama; and what holds for all protocols."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from swecli.core.llm.capabilities import Capabilities
from swecli.core.llm.json_values import compact
from swecli.core.llm.protocols.arguments import IdAlphabet, rewrite_id
from swecli.core.llm.protocols.base import Target
from swecli.core.llm.protocols.registry import PROTOCOLS, request_builder
from swecli.core.llm.text import clean
from swecli.core.llm.types import SystemBlock
from swecli.core.protocol.messages import Message, NoteForm, Opaque, ReasoningPart, TextPart, ToolCallPart
from tests.core.llm.histories import IMAGE, TOOL, assistant, build, call, decoded, note, request, result, target, user


class TestResponses:
    to = target("openai-responses", "api.openai.com", "gpt-5.6-sol")

    def input(self, *history: Message, **more: Any) -> list[dict[str, Any]]:
        return build(request(*history, **more), more.pop("to", self.to))["input"]

    def test_a_whole_conversation(self) -> None:
        body = build(
            request(
                user("fix", IMAGE),
                assistant("look", call("call_1", '{"path" :"a"}')),
                result("call_1", "text"),
                note("now"),
                system=[SystemBlock("one"), SystemBlock("two")],
                tools=(TOOL,),
                max_output_tokens=9,
                effort="low",
                session="s1",
            ),
            self.to,
        )
        assert list(body)[-1] == "input"
        assert body == {
            "model": "gpt-5.6-sol",
            "instructions": "one\n\ntwo",
            "tools": [
                {
                    "type": "function",
                    "name": "read",
                    "description": "Reads.",
                    "parameters": dict(TOOL.parameters),
                    "strict": False,
                }
            ],
            "store": False,
            "stream": True,
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"effort": "low", "summary": "auto"},
            "max_output_tokens": 9,
            "prompt_cache_key": "s1",
            "input": [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "fix"},
                        {"type": "input_image", "image_url": "data:image/png;base64,aGk="},
                    ],
                },
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "look", "annotations": []}],
                },
                {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"path" :"a"}'},
                {"type": "function_call_output", "call_id": "call_1", "output": "text\n\nnow"},
            ],
        }

    def test_reasoning_goes_back_with_the_item_that_follows(self) -> None:
        message = decoded(self.to, "reasoning-and-call")
        sent = self.input(message)
        assert sent[0] == {
            "id": "rs_1",
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}],
            "encrypted_content": "ENCRYPTED-FINAL",
        }
        assert (sent[1]["type"], sent[1]["id"]) == ("function_call", "fc_1")
        alone = Message("assistant", message.parts[:1], response=message.response)
        assert self.input(user("x"), alone) == self.input(user("x"))

    def test_unknown_items_go_back_as_they_came(self) -> None:
        assert self.input(decoded(self.to, "unknown-event-and-item"))[0] == {"id": "z", "type": "hologram_call"}

    def test_nothing_goes_to_another_model(self) -> None:
        other = target("openai-responses", "api.openai.com", "gpt-6-sol")
        for case in ("reasoning-and-call", "unknown-event-and-item", "raw-reasoning-text"):
            sent = build(request(decoded(self.to, case)), other)["input"]
            assert all("id" not in item for item in sent)
            assert "ENCRYPTED" not in str(sent)


def test_an_item_is_sent_with_its_id_once() -> None:
    """Some gateways number the items of each answer alike, and the API rejects an input that repeats an id."""
    to = target("openai-responses", "api.openai.com", "gpt-5.6")

    def answer(number: int) -> Message:
        thought = ReasoningPart("", "summary", Opaque(to.origin, {"item": {**THOUGHT, "encrypted_content": "e"}}))
        words = TextPart(f"word {number}", Opaque(to.origin, {"message": {"id": "msg_1"}}))
        made = ToolCallPart(f"c{number}", "read", "{}", Opaque(to.origin, {"call": {"id": "fc_1"}}))
        return assistant(thought, words, made, origin=to.origin)

    sent = build(request(user("x"), answer(1), result("c1"), answer(2), result("c2")), to)["input"]
    kinds = [(item.get("type"), item.get("id")) for item in sent[1:]]
    first = [("reasoning", "rs_1"), ("message", "msg_1"), ("function_call", "fc_1"), ("function_call_output", None)]
    assert kinds == [*first, ("message", None), ("function_call", None), ("function_call_output", None)]


THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": []}
STAND_IN = "skip_thought_signature_validator"


class TestGemini:
    to = target("gemini-generate", "generativelanguage.googleapis.com", "gemini-3.8-flash")

    def contents(self, *history: Message, **more: Any) -> list[dict[str, Any]]:
        return build(request(*history, **more), more.pop("to", self.to))["contents"]

    def test_a_whole_conversation(self) -> None:
        history = request(
            user("fix"),
            assistant("look", call("c1", '{"path":"a"}'), call("c2", "no json"), origin=self.to.origin),
            result("c1", "text", IMAGE),
            result("c2", "bad", error=True),
            note("now"),
            system=[SystemBlock("one")],
            tools=(TOOL,),
            max_output_tokens=9,
            effort="low",
        )
        wire = request_builder("gemini-generate")(history, self.to)
        assert wire.path == "/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
        assert build(history, self.to) == {
            "systemInstruction": {"parts": [{"text": "one"}]},
            "tools": [
                {
                    "functionDeclarations": [
                        {"name": "read", "description": "Reads.", "parametersJsonSchema": dict(TOOL.parameters)}
                    ]
                }
            ],
            "generationConfig": {
                "maxOutputTokens": 9,
                "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "LOW"},
            },
            "contents": [
                {"role": "user", "parts": [{"text": "fix"}]},
                {
                    "role": "model",
                    "parts": [
                        {"text": "look"},
                        {"functionCall": {"name": "read", "args": {"path": "a"}}, "thoughtSignature": STAND_IN},
                        {"functionCall": {"name": "read", "args": {"invalid_json": "no json"}}},
                    ],
                },
                {
                    "role": "user",
                    "parts": [
                        {"functionResponse": {"name": "read", "response": {"output": "text"}}},
                        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
                        {"functionResponse": {"name": "read", "response": {"error": "bad"}}},
                        {"text": "now"},
                    ],
                },
            ],
        }

    def test_signatures_stay_on_their_parts(self) -> None:
        sent = self.contents(decoded(self.to, "parallel-calls-first-signed"))
        assert [part.get("thoughtSignature") for part in sent[0]["parts"]] == ["SIG-GEM-CALL", None]
        sent = self.contents(decoded(self.to, "thoughts"))
        assert sent[0]["parts"] == [{"text": "A"}, {"text": "", "thoughtSignature": "SIG-GEM-TEXT"}]

    def test_ids_go_back_only_where_the_api_gave_one(self) -> None:
        message = decoded(self.to, "call-without-args-with-id")
        sent = self.contents(message, result(message.tool_calls[0].call_id))
        assert sent[0]["parts"][0]["functionCall"]["id"] == "abc123"
        assert sent[1]["parts"][0]["functionResponse"]["id"] == "abc123"
        message = decoded(self.to, "same-call-twice-no-ids")
        first, second = message.tool_calls
        assert first.call_id != second.call_id
        sent = self.contents(message, result(first.call_id))
        assert "id" not in sent[1]["parts"][0]["functionResponse"]

    def test_an_own_call_without_its_signature_gets_a_stand_in(self) -> None:
        own = replace(call("c1"), opaque=Opaque(self.to.origin, {"id": "call-7"}))
        contents = self.contents(user("a"), assistant(own, origin=self.to.origin), result("c1"))
        assert contents[1]["parts"][0]["thoughtSignature"] == STAND_IN
        assert contents[1]["parts"][0]["functionCall"]["id"] == "call-7"

    def test_calls_of_other_models_get_a_stand_in(self) -> None:
        foreign = decoded(target("gemini-generate", model="gemini-3-flash"), "parallel-calls-first-signed")
        parts = self.contents(user("x"), foreign)[1]["parts"]
        assert parts[0]["thoughtSignature"] == STAND_IN
        assert "thoughtSignature" not in parts[1]
        older = target("gemini-generate", model="gemini-2.5-pro")
        assert "thoughtSignature" not in str(build(request(user("x"), foreign), older))


class TestOllama:
    def test_a_whole_conversation(self) -> None:
        base = target("ollama-chat", "127.0.0.1", "qwen3")
        to = Target(base.origin, base.dialect, "ollama", window=16384)
        history = request(
            user("fix", IMAGE),
            assistant("look", call("c1", '{"path":"a"}')),
            result("c1", "text"),
            note("now"),
            system=[SystemBlock("one")],
            tools=(TOOL,),
            max_output_tokens=9,
            effort="high",
        )
        body = build(history, to)
        assert body.pop("tools")[0]["function"]["name"] == "read"
        assert body == {
            "model": "qwen3",
            "stream": True,
            "truncate": False,
            "think": True,
            "options": {"num_ctx": 16384, "num_predict": 9},
            "messages": [
                {"role": "system", "content": "one"},
                {"role": "user", "content": "fix", "images": ["aGk="]},
                {
                    "role": "assistant",
                    "content": "look",
                    "tool_calls": [{"id": "c1", "function": {"name": "read", "arguments": {"path": "a"}}}],
                },
                {"role": "tool", "content": "text\n\nnow", "tool_name": "read", "tool_call_id": "c1"},
            ],
        }

    def test_thinking_goes_back_to_the_same_model(self) -> None:
        to = target("ollama-chat", "127.0.0.1", "qwen3")
        message = decoded(to, "thinking-text")
        assert build(request(message), to)["messages"][0]["thinking"] == "plan"
        other = target("ollama-chat", "127.0.0.1", "other")
        assert "thinking" not in build(request(message), other)["messages"][0]


GROWING = (
    user("fix é 😀"),
    assistant("look", call("c1", '{"path" : "a"}'), call("c2", "{'broken")),
    result("c1", "one"),
    result("c2", "two", error=True),
    assistant("done"),
    user("more"),
    assistant(call("c3")),
    result("c3"),
)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_bytes_of_a_request_begin_the_next_one(protocol: str) -> None:
    to = target(protocol, model="m", cache_control=False)
    builder = request_builder(protocol)
    system = [SystemBlock("stable")]
    ends = [1, 4, 6, 8]
    bodies = [compact(builder(request(*GROWING[:end], system=system, tools=(TOOL,)), to).body) for end in ends]
    for shorter, longer in pairwise(bodies):
        assert longer.startswith(shorter.rstrip("]}"))
    again = compact(builder(request(*GROWING[:8], system=system, tools=(TOOL,)), to).body)
    assert again == bodies[-1]


@pytest.mark.parametrize("reads", [False, True], ids=["", "reads system messages"])
@pytest.mark.parametrize("form", ["stays", "this turn", "quoted"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_notes_change_nothing_before_them(protocol: str, form: NoteForm, reads: bool) -> None:
    """Each request, sent where the model is to answer, begins with the one before, notes included."""
    to = replace(
        target(protocol, model="m", cache_control=False),
        capabilities=Capabilities(system_messages=reads, clear_at=reads),
    )
    builder = request_builder(protocol)
    noted: list[Message] = []
    bodies: list[str] = []
    for message, following in zip(GROWING, (*GROWING[1:], None), strict=True):
        noted.append(message)
        if message.role != "assistant" and (following is None or following.role == "assistant"):
            noted += [note(f"one {len(noted)}", form), note(f"two {len(noted)}", form)]
            bodies.append(compact(builder(request(*noted), to).body))
    assert bodies[-1].count("two ") == 4
    for shorter, longer in pairwise(bodies):
        assert longer.startswith(shorter.rstrip(']}"'))


@given(st.text(), st.sampled_from(["alnum9", "token40", "token64"]))
@settings(max_examples=80, deadline=None)
def test_rewritten_ids_fit_and_are_stable(call_id: str, alphabet: IdAlphabet) -> None:
    rewritten = rewrite_id(call_id, alphabet)
    assert rewritten == rewrite_id(call_id, alphabet)
    assert rewrite_id(rewritten, alphabet) == rewritten
    assert rewritten.replace("_", "").replace("-", "").isascii()
    assert len(rewritten) <= {"alnum9": 9, "token40": 40, "token64": 64}.get(alphabet, 64)


def test_lone_surrogates_never_reach_the_wire() -> None:
    to = target("openai-chat")
    body = request_builder("openai-chat")(request(user("a\ud800b\ud83d\ude00")), to).body
    assert "a\ufffdb😀" in clean(compact(body)).encode().decode()
