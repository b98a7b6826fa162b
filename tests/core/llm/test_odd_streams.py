"""Forms that servers use in place of the usual ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from swecli.core.llm.debug_decode import decode
from swecli.core.llm.framing import WireEvent
from swecli.core.llm.protocols.registry import decoder_for
from swecli.core.llm.types import Failed
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


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize(
    ("protocol", "body"),
    [
        (
            "openai-chat",
            'data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],'
            '"usage":{"prompt_tokens":3,"completion_tokens":?,"cost":?}}\n\ndata: [DONE]\n\n',
        ),
        (
            "gemini-generate",
            'data: {"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}],'
            '"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":?}}\n\n',
        ),
        (
            "ollama-chat",
            '{"message":{"content":"a"},"done":true,"done_reason":"stop","prompt_eval_count":3,"eval_count":?}\n',
        ),
    ],
)
def test_a_number_that_is_none_is_no_news(protocol: str, body: str, word: str) -> None:
    got = outcome(protocol, body.replace("?", word))
    assert (got["outcome"], got["text"]) == ("completed", "a")
    assert (got["usage"]["input_total"], got["usage"]["output_total"]) == (3, None)


def test_a_broken_event_after_good_ones_is_a_cut_answer() -> None:
    good, broken = chunk({"content": "a"}) + "\n", 'data: {"choices":[{"delta":{"content":"b}\n\n'
    cut = outcome("openai-chat", good + broken + chunk({"content": "c"}, "stop") + "\n")
    assert (cut["outcome"], cut["text"]) == ("truncated", "a")
    assert outcome("openai-chat", broken)["error"]["kind"] == "protocol"


def test_what_broke_off_at_a_broken_event_may_be_asked_for_again() -> None:
    decoder = decoder_for("openai-chat", Origin("openai-chat", "host", "model"))
    decoder.feed(WireEvent('{"choices":[{"delta":{"content":"a"}}]}'))
    failed = decoder.feed(WireEvent('{"choices":'))[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.kind, failed.error.retryable) == ("truncated", True)
    assert failed.error.hint == "The partial answer is kept."
    assert failed.message is not None
    assert failed.message.text == "a"


def test_a_call_that_broke_off_is_told_to_be_not_run() -> None:
    decoder = decoder_for("openai-chat", Origin("openai-chat", "host", "model"))
    call = '{"index":0,"id":"c1","function":{"name":"read_file","arguments":"{"}}'
    decoder.feed(WireEvent(f'{{"choices":[{{"delta":{{"tool_calls":[{call}]}}}}]}}'))
    failed = decoder.end()[-1]
    assert isinstance(failed, Failed)
    assert failed.error.hint == "The partial answer is kept; its tool calls were not run."


MESSAGE = {"role": "assistant", "content": "whole", "tool_calls": [CALL]}


@pytest.mark.parametrize("delta", [{}, None, {"role": "assistant", "content": ""}, {"content": None, "tool_calls": []}])
@pytest.mark.parametrize("reason", ["tool_calls", None])
def test_a_json_body_has_its_message_beside_an_empty_delta(delta: Any, reason: str | None) -> None:
    choice = {"index": 0, "delta": delta, "message": MESSAGE, "finish_reason": reason}
    got = outcome("openai-chat", json.dumps({"object": "chat.completion", "choices": [choice]}))
    assert (got["outcome"], got["text"]) == ("completed", "whole")
    assert [call["name"] for call in got["tool_calls"]] == ["f"]


def test_a_json_body_of_gemini_without_a_finish_reason_is_whole() -> None:
    piece = {"candidates": [{"content": {"parts": [{"text": "a"}]}}]}
    assert outcome("gemini-generate", json.dumps(piece))["outcome"] == "completed"
    assert outcome("gemini-generate", json.dumps([piece]))["outcome"] == "truncated"
    assert outcome("gemini-generate", f"data: {json.dumps(piece)}\n\n")["outcome"] == "truncated"


def test_a_delta_counts_more_than_the_message_that_repeats_it() -> None:
    pieces = [("a", "a"), ("", "a"), ("b", "ab")]
    body = "".join(
        f"data: {json.dumps({'choices': [{'delta': {'content': new}, 'message': {'content': old}}]})}\n\n"
        for new, old in pieces
    )
    assert outcome("openai-chat", body + "data: [DONE]\n\n")["text"] == "ab"


def responses(*events: dict[str, Any]) -> dict[str, Any]:
    end = {"type": "response.completed", "response": {"status": "completed"}}
    return outcome("openai-responses", "".join(f"data: {json.dumps(event)}\n\n" for event in (*events, end)))


def told(text: str, place: int = 0) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "output_index": 0, "content_index": place, "delta": text}


ADDED = {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}}


@pytest.mark.parametrize("streamed", ["Helo", "Hello, world!", "Hell", ""])
def test_the_finished_text_of_a_response_counts(streamed: str) -> None:
    done = {"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "Hello"}
    item = {"type": "message", "content": [{"type": "output_text", "text": "Hello"}]}
    item_done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    assert responses(ADDED, told(streamed), done)["text"] == "Hello"
    assert responses(ADDED, told(streamed), item_done)["text"] == "Hello"
    assert responses(ADDED, told(streamed), done, item_done)["text"] == "Hello"


def test_the_finished_text_of_one_part_leaves_the_others() -> None:
    done = {"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "One. "}
    assert responses(ADDED, told("Oen. "), done, told("Tow.", 1))["text"] == "One. Tow."
    assert responses(ADDED, told("Oen. "), told("Two.", 1), done)["text"] == "One. Two."
    empty = {"type": "response.output_item.done", "output_index": 0, "item": {"type": "message", "content": []}}
    assert responses(ADDED, told("kept"), empty)["text"] == "kept"


def test_the_finished_reasoning_of_a_response_counts() -> None:
    added = {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning"}}
    delta = {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "Tihnk"}
    item = {"type": "reasoning", "summary": [{"text": "Think"}, {"text": "more"}]}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    assert responses(added, delta, done)["reasoning"] == "Think\n\nmore"


def test_usage_in_odd_places() -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "reasoning_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 4, "cache_creation_input_tokens": 6},
    }
    body = (
        f"data: {json.dumps({'choices': [{'delta': {'content': 'a'}, 'finish_reason': 'stop'}], 'usage': usage})}\n\n"
    )
    got = outcome("openai-chat", body)["usage"]
    assert (got["reasoning"], got["cache_write"], got["cache_read"], got["output_total"]) == (3, 6, 4, 5)
    body = body.replace('"prompt_tokens": 10', '"total_tokens": 18, "prompt_tokens": 10')
    assert outcome("openai-chat", body)["usage"]["output_total"] == 8
