from __future__ import annotations

import base64
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.llm.debug_decode import decode_batch
from swecli.core.llm.protocols.registry import PROTOCOLS
from tests.core.llm.wire_cases import all_cases, find_case
from tests.support.thorough import examples

KEYS = {"id", "outcome", "text", "reasoning", "tool_calls", "stop", "usage", "error"}


def record(protocol: str, *chunks: bytes, **more: Any) -> dict[str, Any]:
    return {
        "id": "1",
        "protocol": protocol,
        "host": "h",
        "model": "m",
        "status": 200,
        "headers": {"Content-Type": "text/event-stream"},
        "chunks": [base64.b64encode(chunk).decode() for chunk in chunks],
        **more,
    }


def run(*lines: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in decode_batch(lines)]


def test_all_cases_in_one_batch() -> None:
    cases = all_cases()
    lines = [
        json.dumps(record(case.protocol, case.body, id=str(case), status=case.status, headers=case.headers))
        for case in cases
    ]
    assert run(*lines) == [{"id": str(case), **case.wanted} for case in cases]


def test_one_result_for_each_line() -> None:
    good = json.dumps(record("openai-chat", find_case("openai-chat", "text").body))
    bad = [
        "{",
        "[]",
        "null",
        '{"id": 7}',
        json.dumps(record("smoke-signals")),
        json.dumps({**record("openai-chat"), "chunks": ["*"]}),
    ]
    results = run(good, *bad, "  ", good)
    assert [result["outcome"] for result in results] == ["completed", *["invalid"] * len(bad), "completed"]
    assert all(set(result) == KEYS for result in results)
    assert results[4]["id"] == 7
    assert "openai-chat" in results[5]["error"]["message"]


def test_a_web_page() -> None:
    result = run(json.dumps(record("openai-chat", b"<html>nope</html>")))[0]
    assert (result["outcome"], result["error"]["kind"]) == ("error", "protocol")


def test_an_empty_answer_is_truncated() -> None:
    for protocol in PROTOCOLS:
        assert run(json.dumps(record(protocol)))[0]["outcome"] == "truncated"


def test_output_is_ascii_whatever_comes() -> None:
    line = json.dumps(record("openai-chat", b'data: {"choices":[{"delta":{"tool_calls":[{"id":"\\ud800"}]}}]}\n\n'))
    (text,) = decode_batch([line])
    assert text.isascii()


WORDS = """
data: #event: error#{"choices":#[{"delta":#{"content":#"x"#}#]#null#[DONE]#{"type":"message_start"#,"message":#:#<#é
{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{"}}#{"candidates":[{"content":
{"parts":[{"functionCall":1}]}#"usage":{"prompt_tokens":"many"}#{"error":[]}#{"type":"response.completed"}#{"message":7
{"type":"response.output_item.done","item":{"type":"function_call","arguments":5}}#{"done":true}#{"error":{"code":{}}}
"tool_calls":[null,{"index":"a","function":[]}]#{"type":"response.output_text.delta","delta":1}
"""
words = st.sampled_from([word for line in WORDS.splitlines() for word in line.split("#")] + ["\n\n", "\r", "\x00"])
FIELDS = """
id type index delta content text tool_calls function name arguments choices finish_reason usage error message status
content_block partial_json item output_index output response candidates parts functionCall args thought done thinking
reasoning_details summary signature prompt_tokens code
"""


@given(st.sampled_from(PROTOCOLS), st.lists(st.lists(words, max_size=12), max_size=4), st.integers(100, 599))
@settings(max_examples=examples(80, 400), deadline=None)
def test_garbage_never_raises(protocol: str, chunks: list[list[str]], status: int) -> None:
    line = json.dumps(record(protocol, *("".join(chunk).encode() for chunk in chunks), status=status))
    (result,) = run(line)
    assert set(result) == KEYS
    assert result["outcome"] in ("completed", "truncated", "error")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS.split()),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(
    st.sampled_from(PROTOCOLS),
    st.lists(values, max_size=4),
    st.lists(
        st.sampled_from(
            [
                "content_block_start",
                "content_block_delta",
                "content_block_stop",
                "message_delta",
                "message_stop",
                "response.output_item.added",
                "response.output_item.done",
                "response.completed",
                "response.failed",
                "response.function_call_arguments.delta",
                "error",
            ]
        ),
        max_size=4,
    ),
)
@settings(max_examples=examples(60, 300), deadline=None)
def test_wrong_shapes_never_raise(protocol: str, items: list[object], kinds: list[str]) -> None:
    events = []
    for number, item in enumerate(items):
        value = {**item, "type": kinds[number]} if isinstance(item, dict) and number < len(kinds) else item
        events.append(f"data: {json.dumps(value)}\n\n")
    (result,) = run(json.dumps(record(protocol, "".join(events).encode())))
    assert set(result) == KEYS
