"""Forms that servers use in place of the usual ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from swecli.core.llm.debug_decode import decode
from swecli.core.llm.framing import WireEvent
from swecli.core.llm.protocols.anthropic import read_usage as anthropic_usage
from swecli.core.llm.protocols.registry import decoder_for
from swecli.core.llm.types import Failed, Finished
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


def test_a_stream_of_another_protocol_is_no_empty_answer() -> None:
    events = ({"type": "start"}, {"type": "text-start", "id": "t"}, {"type": "text-delta", "id": "t", "delta": "Hi"})
    got = outcome("openai-chat", "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n")
    assert (got["outcome"], got["error"]["kind"]) == ("error", "protocol")
    assert outcome("openai-chat", "data: [DONE]\n\n")["outcome"] == "completed"


def test_events_within_events() -> None:
    body = "".join(f"data: {line}\n" for line in (chunk({"content": "a"}), chunk({}, "stop"), "data: [DONE]\n"))
    got = outcome("openai-chat", body)
    assert (got["outcome"], got["text"]) == ("completed", "a")


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


@pytest.mark.parametrize("word", ["num_cached_tokens", "cache_read_input_tokens"])
def test_words_for_the_cached_part_of_a_prompt(word: str) -> None:
    usage = {"prompt_tokens": 70, "completion_tokens": 5, word: 64}
    got = outcome("openai-chat", f"data: {json.dumps({'choices': [], 'usage': usage})}\n\ndata: [DONE]\n\n")["usage"]
    assert (got["input_total"], got["cache_read"]) == (70, 64)


def test_a_gateways_price_of_an_answer_of_anthropic() -> None:
    usage = {"input_tokens": 32, "output_tokens": 16, "cost": 0.000112, "cost_details": {}, "is_byok": False}
    read = anthropic_usage(usage)
    assert (read.input_total, str(read.cost)) == (32, "0.000112")


def test_usage_that_no_answer_can_have_is_not_reported() -> None:
    def usage(**figures: object) -> dict[str, Any]:
        return outcome("openai-chat", f"data: {json.dumps({'choices': [], 'usage': figures})}\n\ndata: [DONE]\n\n")[
            "usage"
        ]

    assert usage(prompt_tokens=10**25, completion_tokens=3) == {
        **dict.fromkeys(("input_total", "cache_read", "cache_write", "reasoning")),
        "output_total": 3,
    }
    assert usage(prompt_tokens=1e300, completion_tokens=-1)["output_total"] is None
    assert usage(prompt_tokens=1_000_000)["input_total"] == 1_000_000


EMPTY = {"name": "", "arguments": ""}


@pytest.mark.parametrize(
    "empty",
    [
        {"function_call": EMPTY},
        {"function_call": {"name": None, "arguments": None}},
        {"tool_calls": [{"index": 0, "id": "", "type": "", "function": EMPTY}]},
        {"tool_calls": [{"index": 0, "id": None, "type": "function", "function": None}]},
        {"tool_calls": [None]},
        {"tool_calls": {}},
    ],
)
def test_empty_fields_of_a_call_are_no_call(empty: dict[str, Any]) -> None:
    got = outcome("openai-chat", chunk({"content": "a", **empty}) + chunk({**empty}, "stop") + "\n")
    assert (got["text"], got["tool_calls"], got["stop"]["kind"]) == ("a", [], "end")


def piece(call_id: str, arguments: Any, name: str = "", **more: Any) -> dict[str, Any]:
    function = {"arguments": arguments, **({"name": name} if name else {})}
    return {**more, **({"id": call_id} if call_id else {}), "function": function}


@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        # One index for all calls, their pieces mixed.
        (
            [
                [piece("a", "", "f", index=0)],
                [piece("b", "", "g", index=0)],
                [piece("a", '{"x":1}', index=0)],
                [piece("b", '{"y":2}', index=0)],
            ],
            [("f", {"x": 1}), ("g", {"y": 2})],
        ),
        # The index as text.
        (
            [
                [piece("a", '{"x"', "f", index="0"), piece("b", '{"y"', "g", index="1")],
                [piece("", ":1}", index="0"), piece("", ":2}", index="1")],
            ],
            [("f", {"x": 1}), ("g", {"y": 2})],
        ),
        # One id for all calls.
        ([[piece("a", '{"x":1}', "f")], [piece("a", '{"y":2}', "f")]], [("f", {"x": 1}), ("f", {"y": 2})]),
        # The same call twice.
        ([[piece("a", '{"x":1}', "f")], [piece("a", '{"x":1}', "f")]], [("f", {"x": 1})]),
        ([[piece("a", '{"x"', "f", index=0)], [piece("a", ":1}", "f", index=0)]], [("f", {"x": 1})]),
        # An id for each piece.
        (
            [[piece("a", '{"x"', "f")], [piece("b", ":1}")], [piece("c", '{"y":2}', "g")]],
            [("f", {"x": 1}), ("g", {"y": 2})],
        ),
        # Neither index nor id, and no arguments.
        ([[piece("", "", "f"), piece("", "", "g")]], [("f", {}), ("g", {})]),
        # An empty object before the arguments.
        (
            [[piece("a", "{}", "f", index=0)], [piece("", '{"x":', index=0)], [piece("", "1}", index=0)]],
            [("f", {"x": 1})],
        ),
        ([[piece("a", {}, "f", index=0)], [piece("", '{"x":1}', index=0)]], [("f", {"x": 1})]),
    ],
)
def test_pieces_of_calls_that_are_told_apart_with_difficulty(
    events: list[list[dict[str, Any]]], wanted: list[tuple[str, object]]
) -> None:
    body = "\n".join(chunk({"tool_calls": calls}) for calls in events) + "\n" + chunk({}, "tool_calls") + "\n"
    got = outcome("openai-chat", body)
    assert [(call["name"], call["arguments"]) for call in got["tool_calls"]] == wanted


@pytest.mark.parametrize("reason", ["MAX_TOKENS", "max_output_tokens", "Length"])
def test_a_call_at_the_output_limit_is_incomplete_in_any_spelling(reason: str) -> None:
    decoder = decoder_for("openai-chat", Origin("openai-chat", "host", "model"))
    data = chunk({"tool_calls": [CALL]}, reason).removeprefix("data: ")
    decoder.feed(WireEvent(data))
    finished = decoder.feed(WireEvent("[DONE]"))[-1]
    assert isinstance(finished, Finished)
    assert finished.message.response is not None
    assert (finished.message.response.complete, finished.message.response.stop.kind) == (False, "length")


@pytest.mark.parametrize("reason", ["null", "None", ""])
def test_a_missing_reason_as_text_is_no_end(reason: str) -> None:
    decoder = decoder_for("openai-chat", Origin("openai-chat", "host", "model"))
    decoder.feed(WireEvent(chunk({"content": "a"}, reason).removeprefix("data: ")))
    assert not decoder.stopped
    assert isinstance(decoder.end()[-1], Failed)


@pytest.mark.parametrize("reason", ["abort", "insufficient_system_resource"])
def test_an_answer_that_the_server_gave_up_is_an_error(reason: str) -> None:
    got = outcome("openai-chat", chunk({"content": "a"}, reason) + "\ndata: [DONE]\n\n")
    assert (got["outcome"], got["text"]) == ("error", "a")
    assert reason in got["error"]["message"]


@pytest.mark.parametrize("name", ["reasoning_text", "thinking", "thinking_content", "thought"])
def test_reasoning_under_other_names(name: str) -> None:
    body = "\n".join([chunk({name: "deep"}), chunk({name: "er"}), chunk({"content": "a"}, "stop")]) + "\n"
    got = outcome("openai-chat", body)
    assert (got["reasoning"], got["text"]) == ("deeper", "a")


def test_a_refusal_in_a_list_is_one() -> None:
    got = outcome("openai-chat", chunk({"content": [{"type": "refusal", "refusal": "no"}]}, "stop") + "\n")
    assert (got["text"], got["stop"]["kind"]) == ("", "refusal")


@pytest.mark.parametrize("error", [{"code": 500, "message": "boom"}, {"detail": "boom"}])
def test_words_in_no_known_form_explain_an_answer_that_broke_off(error: dict[str, Any]) -> None:
    body = chunk({"content": "a"}) + f"\ndata: {json.dumps(error)}\n\n"
    got = outcome("openai-chat", body)
    assert (got["outcome"], got["text"], got["error"]["message"]) == ("error", "a", "boom")
    whole = outcome("openai-chat", f"{body}{chunk({'content': 'b'}, 'stop')}\n")
    assert (whole["outcome"], whole["text"]) == ("completed", "ab")


def test_fields_of_gemini_that_are_null_are_missing() -> None:
    parts = [
        {"text": "a", "functionCall": None, "thought": None, "inlineData": None},
        {"text": None, "inlineData": None},
        {"text": None, "functionCall": {"name": "f", "args": None}},
    ]
    body = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    got = outcome("gemini-generate", f"data: {json.dumps(body)}\n\n")
    assert (got["text"], [call["name"] for call in got["tool_calls"]]) == ("a", ["f"])


@pytest.mark.parametrize("mark", ["", "data: [DONE]\n\n"])
def test_an_answer_of_anthropic_without_message_stop_is_whole_after_its_stop_reason(mark: str) -> None:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "x", "name": "f"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"a":1}'}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
    ]
    bodies = ["".join(f"data: {json.dumps(event)}\n\n" for event in events[:count]) for count in (2, 3, 4)]
    got = [outcome("anthropic-messages", f"{body}{mark}") for body in bodies]
    assert [one["outcome"] for one in got] == ["truncated", "truncated", "completed"]
    assert [call["arguments"] for call in got[-1]["tool_calls"]] == [{"a": 1}]


@pytest.mark.parametrize(("given", "pieces"), [('{"a":1}', []), ({}, [{"a": 1}])])
def test_arguments_of_anthropic_in_another_form(given: object, pieces: list[object]) -> None:
    block = {"type": "tool_use", "id": "x", "name": "f", "input": given}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": one}}
            for one in pieces
        ),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]
    got = outcome("anthropic-messages", "".join(f"data: {json.dumps(event)}\n\n" for event in events))
    assert [call["arguments"] for call in got["tool_calls"]] == [{"a": 1}]


@pytest.mark.parametrize(
    "name", ["f<|channel|>commentary", "functions.f", "functions.f<|constrain|>json", "f <|x|>", "f"]
)
def test_a_name_is_read_without_tokens_of_the_template(name: str) -> None:
    call = {"index": 0, "id": "x", "function": {"name": name, "arguments": "{}"}}
    chunks = [{"choices": [{"delta": {"tool_calls": [call]}}]}, {"choices": [{"delta": {}, "finish_reason": "stop"}]}]
    got = outcome("openai-chat", "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks))
    assert [call["name"] for call in got["tool_calls"]] == ["f"]


@pytest.mark.parametrize("pieces", [['{"a":1}'], ['{"a"', ":1}"]])
@pytest.mark.parametrize("again", [{"index": 0}, {"index": 0, "id": "x"}, {}])
def test_arguments_that_are_sent_once_more_as_a_whole_count_once(pieces: list[str], again: dict[str, Any]) -> None:
    calls = [
        {"index": 0, "id": "x", "function": {"name": "f", "arguments": ""}},
        *({"index": 0, "function": {"arguments": piece}} for piece in pieces),
        {**again, "function": {"arguments": '{"a":1}'}},
    ]
    chunks: list[dict[str, Any]] = [{"choices": [{"delta": {"tool_calls": [call]}}]} for call in calls]
    chunks.append({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    got = outcome("openai-chat", "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks))
    assert [(call["name"], call["arguments"]) for call in got["tool_calls"]] == [("f", {"a": 1})]


def test_a_call_that_only_the_finished_response_has_counts_once() -> None:
    text = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "a"}]}
    calls = [
        {"type": "function_call", "id": f"i{name}", "call_id": name, "name": name, "arguments": "{}"} for name in "fg"
    ]
    events = [
        {"type": "response.output_item.done", "output_index": 0, "item": text},
        {"type": "response.output_item.done", "output_index": 1, "item": calls[0]},
        {"type": "response.completed", "response": {"status": "completed", "output": [text, *calls]}},
    ]

    def names() -> list[str]:
        got = outcome("openai-responses", "".join(f"data: {json.dumps(event)}\n\n" for event in events))
        assert got["text"] == "a"
        return [call["name"] for call in got["tool_calls"]]

    assert names() == ["f", "g"]
    events[1] = {**events[1], "item": {**calls[0], "call_id": "other"}}
    assert names() == ["f"]


@pytest.mark.parametrize(
    ("protocol", "event"),
    [
        (
            "gemini-generate",
            {"candidates": [{"content": {"parts": [{"text": "I read."}]}, "finishReason": "MALFORMED_FUNCTION_CALL"}]},
        ),
        (
            "gemini-generate",
            {"candidates": [{"content": {"parts": [{"text": "I read."}]}, "finishReason": "MALFORMED_RESPONSE"}]},
        ),
        (
            "openai-chat",
            {"choices": [{"delta": {"content": "I read."},
                          "finish_reason": "function_call_filter: MALFORMED_FUNCTION_CALL"}]},
        ),
    ],
)  # fmt: skip
def test_an_answer_whose_call_its_server_could_not_read_is_incomplete(protocol: str, event: dict[str, Any]) -> None:
    """It must not end the turn as if the model had nothing more to do."""
    decoder = decoder_for(protocol, Origin(protocol, "host", "model"))
    last = (decoder.feed(WireEvent(json.dumps(event))) + decoder.end())[-1]
    assert isinstance(last, Failed)
    assert last.error.retryable
    assert "could not read" in last.error.message
    assert last.message is not None
    assert (last.message.text, last.message.response and last.message.response.complete) == ("I read.", False)


@pytest.mark.parametrize("reason", ["OTHER", "TOO_MANY_TOOL_CALLS", "NO_IMAGE", "IMAGE_OTHER"])
def test_an_answer_that_gemini_ends_early_is_incomplete(reason: str) -> None:
    for parts in ([], [{"text": "I read."}]):
        decoder = decoder_for("gemini-generate", Origin("gemini-generate", "host", "model"))
        event = {"candidates": [{"content": {"parts": parts}, "finishReason": reason}]}
        last = (decoder.feed(WireEvent(json.dumps(event))) + decoder.end())[-1]
        assert isinstance(last, Failed)
        assert last.error.retryable
        assert last.error.message == f"the server ended the answer early ({reason})"
        assert (last.message is not None) == bool(parts)


def test_a_missing_signature_is_no_reason_to_ask_again() -> None:
    decoder = decoder_for("gemini-generate", Origin("gemini-generate", "host", "model"))
    event = {"candidates": [{"finishReason": "MISSING_THOUGHT_SIGNATURE", "finishMessage": "No signature at 3."}]}
    last = (decoder.feed(WireEvent(json.dumps(event))) + decoder.end())[-1]
    assert isinstance(last, Failed)
    assert (last.error.kind, last.error.retryable) == ("bad_request", False)
    assert last.error.message == "No signature at 3. (MISSING_THOUGHT_SIGNATURE)"


@pytest.mark.parametrize("reason", ["IMAGE_RECITATION", "IMAGE_PROHIBITED_CONTENT", "LANGUAGE"])
def test_content_that_gemini_filters_ends_the_answer(reason: str) -> None:
    event = {"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": reason}]}
    got = outcome("gemini-generate", f"data: {json.dumps(event)}\n\n")
    assert (got["outcome"], got["stop"]["kind"]) == ("completed", "content_filter")


def args(text: str, **more: Any) -> dict[str, Any]:
    name = {"name": more.pop("name")} if "name" in more else {}
    return {"tool_calls": [{"index": 0, "function": {"arguments": text, **name}, **more}]}


@pytest.mark.parametrize(
    "deltas",
    [
        [
            args("", id="a", name="f"),
            args('{"c'),
            args('{"command": '),
            args('{"command": "ls'),
            args('{"command": "ls"}'),
        ],
        [args(text, id="a", name="f") for text in ('{"command"', '{"command": "ls', '{"command": "ls"}')],
        [args("", id="a", name="f"), args('{"command'), args('": "ls"}'), args('{"command":"ls"}')],
        [args("", id="a", name="f"), args('{"command": "ls"'), args('}{"command": "ls"}{"command": "ls"}')],
        [args('{"command": "ls"}', name="f"), args('{"command": "ls"}', name="f")],
    ],
    ids=["cumulative", "cumulative with ids", "whole at the end", "glued", "all of it twice"],
)
def test_arguments_that_come_more_than_once(deltas: list[dict[str, Any]]) -> None:
    got = outcome("openai-chat", "\n".join(map(chunk, deltas)) + "\n" + chunk({}, "tool_calls") + "\n")
    assert [(call["name"], call["arguments"]) for call in got["tool_calls"]] == [("f", {"command": "ls"})]


@pytest.mark.parametrize(
    "deltas",
    [
        [args("", id="a", name="f"), args('{"a":1}'), args('{"a":2}')],
        [args("", id="a", name="f"), args('{"a":1}'), args('{"a":1')],
    ],
    ids=["two objects", "cut"],
)
def test_arguments_that_differ_are_not_guessed(deltas: list[dict[str, Any]]) -> None:
    got = outcome("openai-chat", "\n".join(map(chunk, deltas)) + "\n" + chunk({}, "tool_calls") + "\n")
    assert [call["arguments"] for call in got["tool_calls"]] == [None]


@pytest.mark.parametrize("reason", ["error_finish", "server_error", "ERROR"])
def test_a_reason_that_is_an_error(reason: str) -> None:
    got = outcome("openai-chat", chunk({"content": '{"message":"Too many tokens"}'}, reason) + "\n")
    assert (got["outcome"], got["stop"]["kind"]) == ("error", "error")


def anthropic(*events: dict[str, Any]) -> str:
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def begun(name: str) -> dict[str, Any]:
    return {"type": "message_start", "message": {"id": name, "role": "assistant", "model": "m", "usage": {}}}


RUN: list[dict[str, Any]] = [
    {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "f"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
]


def test_an_answer_that_a_gateway_begins_again_does_not_mix_with_the_first() -> None:
    done = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]
    again = outcome("anthropic-messages", anthropic(begun("m1"), *RUN, begun("m2"), *RUN, *done))
    assert (again["outcome"], again["error"]["kind"], len(again["tool_calls"])) == ("error", "server", 1)
    for first in ([begun("m1")], []):
        same = outcome("anthropic-messages", anthropic(*first, begun("m2"), *RUN, *done))
        assert (same["outcome"], len(same["tool_calls"])) == ("completed", 1), "nothing had arrived"
    created = [{"type": "response.created", "response": {"id": name}} for name in ("r1", "r2")]
    text = {"type": "response.output_text.delta", "output_index": 0, "delta": "half"}
    events = [created[0], text, created[1], text]
    got = outcome("openai-responses", "".join(f"data: {json.dumps(event)}\n\n" for event in events))
    assert (got["outcome"], got["error"]["kind"], got["text"]) == ("error", "server", "half")


ITEM = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": '{"a":1}', "status": "completed"}
SAID = {"type": "message", "id": "x", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}


@pytest.mark.parametrize("text", ["", "hi"])
@pytest.mark.parametrize("announced", [False, True])
def test_a_gateway_that_gives_two_items_one_place_runs_the_call_once(text: str, announced: bool) -> None:
    message = {**SAID, "content": [{"type": "output_text", "text": text}]}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "r"}}]
    if announced:
        events.append({"type": "response.output_item.added", "output_index": 0, "item": {**message, "content": []}})
        events.append({"type": "response.output_text.delta", "output_index": 0, "delta": text})
    events += [
        {"type": "response.output_item.added", "output_index": 0, "item": {**ITEM, "arguments": ""}},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"a":1}'},
        {"type": "response.output_text.done", "output_index": 0, "text": text},
        {"type": "response.output_item.done", "output_index": 0, "item": message},
        {"type": "response.output_item.done", "output_index": 0, "item": ITEM},
        {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [message, ITEM]}},
    ]
    got = outcome("openai-responses", "".join(f"data: {json.dumps(event)}\n\n" for event in events))
    assert [(call["id"], call["arguments"]) for call in got["tool_calls"]] == [("c", {"a": 1})]
    assert (got["outcome"], got["text"]) == ("completed", text)


def test_a_cancelled_response_is_no_answer() -> None:
    decoder = decoder_for("openai-responses", Origin("openai-responses", "h", "m"))
    event = {"type": "response.cancelled", "response": {"id": "r", "status": "cancelled"}}
    assert isinstance(decoder.feed(WireEvent(json.dumps(event)))[-1], Failed)


def test_a_stop_reason_before_all_content_says_nothing_of_the_end() -> None:
    """A gateway that writes one into each event without text, such as those of the upstream's reasoning."""
    decoder = decoder_for("gemini-generate", Origin("gemini-generate", "h", "m"))

    def feed(parts: list[dict[str, Any]], reason: str | None) -> bool:
        candidate = {"content": {"parts": parts}, **({"finishReason": reason} if reason else {})}
        decoder.feed(WireEvent(json.dumps({"candidates": [candidate]})))
        return decoder.stopped

    assert not feed([], "STOP")
    assert not feed([{"text": "a"}], None)
    assert not feed([], "STOP")
    assert isinstance(decoder.end()[-1], Finished)
