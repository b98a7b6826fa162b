"""What each protocol and dialect wants back is in the next request, byte for byte, and goes to nobody else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from swecli.core.llm.framing import BodyParser
from swecli.core.llm.protocols.base import Target
from swecli.core.llm.protocols.registry import PROTOCOLS, decoder_for
from swecli.core.llm.types import Failed, Finished
from swecli.core.protocol.messages import Message
from tests.core.llm.histories import build, request, result, target, user

Json = dict[str, Any]


STAND_IN = "skip_thought_signature_validator"


def chat_chunks(*deltas: Json, stop: str = "stop") -> list[Json]:
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    return [*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": stop}]}]


CALL: Json = {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "read", "arguments": "{}"}}]}


def blocks(*items: tuple[Json, list[Json]], stop: str = "end_turn") -> list[Json]:
    events: list[Json] = [{"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}}]
    for index, (block, deltas) in enumerate(items):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    return [*events, {"type": "message_delta", "delta": {"stop_reason": stop}}, {"type": "message_stop"}]


def outputs(*items: Json) -> list[Json]:
    events: list[Json] = [{"type": "response.created", "response": {"id": "r"}}]
    for index, item in enumerate(items):
        start = {key: value for key, value in item.items() if key not in ("content", "encrypted_content", "arguments")}
        events.append({"type": "response.output_item.added", "output_index": index, "item": start})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    return [*events, {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}]


def parts(*groups: list[Json]) -> list[Json]:
    chunks: list[Json] = [{"candidates": [{"content": {"role": "model", "parts": group}}]} for group in groups]
    chunks[-1]["candidates"][0]["finishReason"] = "STOP"
    return chunks


TEXT: tuple[Json, list[Json]] = ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "A"}])
TOOL: tuple[Json, list[Json]] = ({"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}, [])


def thinking(*signatures: str, text: str = "plan", start: Json | None = None) -> tuple[Json, list[Json]]:
    deltas: list[Json] = [{"type": "thinking_delta", "thinking": text}] if text else []
    deltas += [{"type": "signature_delta", "signature": piece} for piece in signatures]
    return (start or {"type": "thinking", "thinking": "", "signature": ""}, deltas)


def message_item(phase: str | None = None) -> Json:
    item = {"id": "msg_SECRET", "type": "message", "role": "assistant", "status": "completed"}
    more = {"phase": phase} if phase else {}
    return {**item, **more, "content": [{"type": "output_text", "text": "A", "annotations": []}]}


REASONING: Json = {"id": "rs_SECRET", "type": "reasoning", "summary": [], "encrypted_content": "SECRET=="}
FUNCTION: Json = {
    "id": "fc_SECRET",
    "type": "function_call",
    "status": "completed",
    "call_id": "c1",
    "name": "read",
    "arguments": "{}",
}
UNENCRYPTED: Json = {"id": "rs_SECRET", "type": "reasoning", "summary": []}


def without_id(item: Json) -> Json:
    """An item whose reasoning is missing: the server looks for it by the id."""
    return {key: value for key, value in item.items() if key != "id"}


DETAILS: list[Json] = [
    {"type": "reasoning.text", "text": "pl", "index": 0, "format": "f"},
    {"type": "reasoning.text", "text": "an", "index": 0},
    {"type": "reasoning.text", "text": "", "signature": "SECRET", "index": 0},
    {"type": "reasoning.encrypted", "data": "SECRET2", "id": "rs_1", "index": 1},
    {"type": "reasoning.summary", "summary": "short", "index": 2},
]


@dataclass(frozen=True)
class Rule:
    """A stream from ``to``, and how the answer must look in the next request to it (``key`` of the assistant's
    message; a list of all messages or items of the answer where ``key`` is empty)."""

    name: str
    to: Target
    stream: list[Json]
    key: str
    wanted: Any

    def __str__(self) -> str:
        return f"{self.to.origin.protocol}-{self.name}"


def chat(name: str, host: str, stream: list[Json], key: str, wanted: Any, model: str = "m") -> Rule:
    return Rule(name, target("openai-chat", host, model), stream, key, wanted)


def claude(name: str, stream: list[Json], wanted: Any, host: str = "api.anthropic.com") -> Rule:
    return Rule(name, target("anthropic-messages", host, "claude-sonnet-5-5"), stream, "content", wanted)


def responses(name: str, stream: list[Json], wanted: Any) -> Rule:
    return Rule(name, target("openai-responses", "api.openai.com", "gpt-6-sol"), stream, "", wanted)


def gemini(name: str, stream: list[Json], wanted: Any) -> Rule:
    host = "generativelanguage.googleapis.com"
    return Rule(name, target("gemini-generate", host, "gemini-3.8-flash"), stream, "parts", wanted)


NOTHING = "nothing"
SAID: Json = {"type": "text", "text": "A"}
USED: Json = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
ASKED: Json = {"functionCall": {"name": "read", "args": {}}}

RULES = (
    chat("deepseek", "api.deepseek.com", chat_chunks({"reasoning_content": "pl"}, {"reasoning_content": "an"}, CALL),
         "reasoning_content", "plan"),
    chat("deepseek-empty", "api.deepseek.com", chat_chunks(CALL), "reasoning_content", ""),
    chat("kimi-empty-anywhere", "gateway.example", chat_chunks(CALL), "reasoning_content", "", "kimi-k2.7"),
    chat("moonshot", "api.moonshot.ai", chat_chunks({"reasoning_content": "plan"}, {"content": "A"}),
         "reasoning_content", "plan"),
    chat("groq", "api.groq.com", chat_chunks({"reasoning": "plan"}, CALL), "reasoning", "plan"),
    chat("one-text-in-two-fields", "h", chat_chunks({"reasoning": "plan", "reasoning_content": "plan"}, CALL),
         "reasoning_content", "plan"),
    chat("nothing-to-echo", "api.groq.com", chat_chunks(CALL), "reasoning", NOTHING),
    chat("openai", "api.openai.com", chat_chunks({"reasoning_content": "plan"}, CALL), "reasoning_content", NOTHING),
    chat("details", "openrouter.ai",
         chat_chunks(*({"reasoning": "x", "reasoning_details": [d]} for d in DETAILS), CALL),
         "reasoning_details", [
             {"type": "reasoning.text", "text": "plan", "index": 0, "format": "f", "signature": "SECRET"},
             DETAILS[3], DETAILS[4]]),
    chat("details-once", "openrouter.ai", chat_chunks({"reasoning": "x", "reasoning_details": DETAILS[:1]}, CALL),
         "reasoning", NOTHING),
    chat("details-and-the-field-that-a-model-insists-on", "gateway.example",
         chat_chunks(*({"reasoning_content": "x", "reasoning_details": [d]} for d in DETAILS[:2]), CALL),
         "reasoning_content", "".join(d["text"] for d in DETAILS[:2]), "kimi-k2.5"),
    chat("only-encrypted", "openrouter.ai", chat_chunks({"reasoning_details": [DETAILS[3]]}, {"content": "A"}),
         "reasoning_details", [DETAILS[3]]),
    chat("litellm", "proxy.example",
         chat_chunks(*({"reasoning_content": text, "thinking_blocks": [{"type": "thinking", "thinking": text, **more}]}
                       for text, more in (("pl", {"signature": None}), ("an", {}), ("", {"signature": "SECRET1"}),
                                          ("more", {}), ("", {"signature": "SECRET2"}))),
                     {"thinking_blocks": [{"type": "redacted_thinking", "data": "SECRET3"}]}, CALL),
         "thinking_blocks", [{"type": "thinking", "signature": "SECRET1", "thinking": "plan"},
                             {"type": "thinking", "signature": "SECRET2", "thinking": "more"},
                             {"type": "redacted_thinking", "data": "SECRET3"}]),
    chat("mistral", "api.mistral.ai",
         chat_chunks({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "plan"}]}]},
                     {"content": [SAID]}),
         "content", [{"type": "thinking", "thinking": [{"type": "text", "text": "plan"}]}, SAID]),
    chat("google-text", "g",
         chat_chunks({"content": "A"}, {"content": "", "extra_content": {"google": {"s": "SECRET"}}}),
         "extra_content", {"google": {"s": "SECRET"}}),
    chat("google-call", "g",
         chat_chunks({"tool_calls": [{**CALL["tool_calls"][0], "extra_content": {"google": {"s": "SECRET"}}}]}),
         "tool_calls", [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"},
                         "extra_content": {"google": {"s": "SECRET"}}}]),
    claude("signature-in-pieces", blocks(thinking("SEC", "RET"), TEXT, TOOL, stop="tool_use"),
           [{"type": "thinking", "thinking": "plan", "signature": "SECRET"}, SAID, USED]),
    claude("thinking-not-shown", blocks(thinking("SECRET", text=""), TEXT),
           [{"type": "thinking", "thinking": "", "signature": "SECRET"}, SAID]),
    claude("thinking-between", blocks(thinking("SECRET1"), TEXT, thinking("SECRET2", text="more"), TOOL),
           [{"type": "thinking", "thinking": "plan", "signature": "SECRET1"}, SAID,
            {"type": "thinking", "thinking": "more", "signature": "SECRET2"}, USED]),
    claude("redacted", blocks(({"type": "redacted_thinking", "data": "SECRET"}, []), TEXT),
           [{"type": "redacted_thinking", "data": "SECRET"}, SAID]),
    claude("server-tool", blocks(({"type": "server_tool_use", "id": "s_SECRET", "name": "web", "input": {}},
                                  [{"type": "input_json_delta", "partial_json": '{"q":1}'}]), TEXT),
           [{"type": "server_tool_use", "id": "s_SECRET", "name": "web", "input": {"q": 1}}, SAID]),
    claude("citations", blocks((TEXT[0], [*TEXT[1], {"type": "citations_delta", "citation": {"url": "SECRET"}}])),
           [{**SAID, "citations": [{"url": "SECRET"}]}]),
    claude("unsigned", blocks(thinking(), TOOL), [USED]),
    claude("unsigned-elsewhere", blocks(thinking(), TOOL),
           [{"type": "thinking", "thinking": "plan", "signature": ""}, USED], "api.moonshot.ai"),
    claude("unsigned-without-the-field", blocks(thinking(start={"type": "thinking", "thinking": ""}), TOOL),
           [{"type": "thinking", "thinking": "plan"}, USED], "api.deepseek.com"),
    responses("encrypted", outputs(REASONING, FUNCTION), [REASONING, FUNCTION]),
    responses("phase-and-id", outputs(REASONING, message_item("commentary")), [REASONING, message_item("commentary")]),
    responses("several-in-order", outputs(REASONING, message_item(), {**REASONING, "id": "rs_SECRET2"}, FUNCTION),
              [REASONING, message_item(), {**REASONING, "id": "rs_SECRET2"}, FUNCTION]),
    responses("without-encryption", outputs(UNENCRYPTED, message_item("commentary"), FUNCTION),
              [without_id(message_item("commentary")), without_id(FUNCTION)]),
    responses("partly-encrypted", outputs(UNENCRYPTED, message_item(), REASONING, FUNCTION),
              [without_id(message_item()), REASONING, FUNCTION]),
    responses("raw-content", outputs({"id": "rs_SECRET", "type": "reasoning", "summary": [],
                                      "content": [{"type": "reasoning_text", "text": "SECRET"}]}, FUNCTION),
              [{"id": "rs_SECRET", "type": "reasoning", "summary": [],
                "content": [{"type": "reasoning_text", "text": "SECRET"}]}, FUNCTION]),
    responses("compaction",
              outputs({"id": "cmp_1", "type": "compaction", "encrypted_content": "SECRET"}, message_item()),
              [{"id": "cmp_1", "type": "compaction", "encrypted_content": "SECRET"}, message_item()]),
    gemini("text", parts([{"text": "A"}], [{"text": "", "thoughtSignature": "SECRET"}]),
           [{"text": "A"}, {"text": "", "thoughtSignature": "SECRET"}]),
    gemini("signed-text", parts([{"text": "A", "thoughtSignature": "SECRET"}]),
           [{"text": "A", "thoughtSignature": "SECRET"}]),
    gemini("first-of-parallel-calls", parts([{**ASKED, "thoughtSignature": "SECRET"}, ASKED]),
           [{**ASKED, "thoughtSignature": "SECRET"}, ASKED]),
    gemini("call-with-id", parts([{"functionCall": {**ASKED["functionCall"], "id": "call-77"}}]),
           [{"functionCall": {**ASKED["functionCall"], "id": "call-77"}, "thoughtSignature": STAND_IN}]),
    gemini("thoughts-stay", parts([{"text": "plan", "thought": True}], [{"text": "A"}]), [{"text": "A"}]),
    gemini("own-tools", parts([{"executableCode": {"code": "SECRET"}}], [{"text": "A"}]),
           [{"executableCode": {"code": "SECRET"}}, {"text": "A"}]),
    Rule("thinking", target("ollama-chat", "127.0.0.1", "qwen3"),
         [{"message": {"thinking": "plan"}}, {"message": {"content": "A"}}, {"done": True, "done_reason": "stop"}],
         "thinking", "plan"),
)  # fmt: skip


def answer(rule: Rule, stream: list[Json] | None = None) -> Message:
    """The message that the stream makes, however it is framed."""
    protocol = rule.to.origin.protocol
    if protocol == "ollama-chat":
        body, kind = "".join(json.dumps(line) + "\n" for line in stream or rule.stream), "application/x-ndjson"
    else:
        body, kind = "".join(f"data: {json.dumps(line)}\n\n" for line in stream or rule.stream), "text/event-stream"
    parser, decoder = BodyParser(kind), decoder_for(protocol, rule.to.origin)
    events = [event for wire in parser.feed(body.encode()) + parser.end() for event in decoder.feed(wire)]
    last = (events + decoder.end_of_body(parser))[-1]
    assert isinstance(last, Finished | Failed)
    assert last.message is not None
    return last.message


def sent(rule: Rule, message: Message, to: Target) -> list[Json]:
    """The assistant's part of the next request."""
    results = [result(call.call_id) for call in message.tool_calls]
    body = build(request(user("fix"), message, *results, user("next")), to)
    entries: list[Json] = body.get("messages") or body.get("contents") or body["input"]
    if to.origin.protocol == "openai-responses":
        return [item for item in entries if item.get("role") != "user" and item.get("type") != "function_call_output"]
    return [entry for entry in entries if entry["role"] in ("assistant", "model")]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_what_must_go_back_goes_back(rule: Rule) -> None:
    entries = sent(rule, answer(rule), rule.to)
    if not rule.key:
        assert entries == rule.wanted
    elif rule.wanted == NOTHING:
        assert rule.key not in entries[0]
    else:
        assert entries[0][rule.key] == rule.wanted


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_it_goes_to_no_other_model_host_or_protocol(rule: Rule) -> None:
    message, origin = answer(rule), rule.to.origin
    others = [target(protocol, "else.example", "other-model") for protocol in PROTOCOLS]
    others += [
        target(origin.protocol, "else.example", origin.model),
        target(origin.protocol, origin.host, "other-model"),
    ]
    for other in others:
        entries = json.dumps(sent(rule, message, other))
        assert "SECRET" not in entries
        assert "plan" not in entries


FAILURES: dict[str, Callable[[list[Json]], list[Json]]] = {
    "cut": lambda stream: stream[:-2],
    "failed": lambda stream: [*stream[:-2], {"type": "error", "error": {"message": "died"}}],
}


@pytest.mark.parametrize("failure", FAILURES)
def test_thinking_of_an_answer_that_broke_off_has_no_signature_to_show(failure: str) -> None:
    rule = claude("", blocks(thinking(), TEXT), None, "gateway.example")
    message = answer(rule, FAILURES[failure](rule.stream))
    assert message.response is not None
    assert not message.response.complete
    assert sent(rule, message, rule.to)[0]["content"] == [SAID]
