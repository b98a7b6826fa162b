"""Lines of other programs that are not quite messages."""

from __future__ import annotations

import json
from typing import Any

import mcp_types
import pytest
from mcp_types import methods
from mcp_types.version import LATEST_HANDSHAKE_VERSION

from swecli.core.mcp.messages import BadMessage, parts_of, read_answer, read_message


def result_of(line: bytes) -> dict[str, Any]:
    message = read_answer(line)
    assert isinstance(message, mcp_types.JSONRPCResponse)
    return message.result


def test_a_message_is_read_as_it_is() -> None:
    line = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"h\\u00e9 \\ud83d\\ude00"}]}}'
    assert result_of(line) == {"content": [{"type": "text", "text": "hé 😀"}]}


@pytest.mark.parametrize(
    ("text", "read"),
    [(b"cut \\ud83d", "cut \ufffd"), (b"latin \xe9", "latin \ufffd"), (b"\\ud83d\\ude00 \\ude00", "😀 \ufffd")],
)
def test_characters_that_are_cut_or_in_another_encoding_become_stand_ins(text: bytes, read: str) -> None:
    line = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"%s"}]}}' % text
    assert result_of(line)["content"][0]["text"] == read


ONE = b'{"jsonrpc":"2.0","id":1,"result":{"a":"}{"}}'


@pytest.mark.parametrize(
    ("line", "messages", "around"),
    [
        (ONE + b" done", 1, "done"),
        (b"\xef\xbb\xbf" + ONE, 1, "\ufeff"),
        (b"loading {x}... " + ONE + b"{" + ONE, 2, "loading {x}... {"),
        (b'{"level": "info"}' + ONE, 1, '{"level": "info"}'),
        (b"{" * 200_000, 0, "{" * 200_000),
        (b'{"a":' * 200_000, 0, '{"a":' * 200_000),
        (b"no message", 0, "no message"),
    ],
)
def test_messages_within_a_line_are_found_and_the_rest_is_kept(line: bytes, messages: int, around: str) -> None:
    assert parts_of(line) == ((ONE,) * messages, around)


def test_a_result_has_what_the_sdk_requires() -> None:
    only = result_of(b'{"jsonrpc":"2.0","id":1,"result":{"structuredContent":{"a":1}}}')
    assert only == {"structuredContent": {"a": 1}, "content": []}
    new = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"video","x":1},{"type":"text","text":"t"}]}}'
    assert [one["text"] for one in result_of(new)["content"]] == ["[Content of type video can't be shown.]", "t"]
    mcp_types.CallToolResult.model_validate(only)


@pytest.mark.parametrize("result", ["{}", '{"_meta":{"a":1}}', '{"content":null}', '{"content":null,"isError":false}'])
def test_the_result_of_a_call_without_content_is_empty(result: str) -> None:
    read = result_of(f'{{"jsonrpc":"2.0","id":1,"result":{result}}}'.encode())
    assert read["content"] == []
    methods.validate_server_result("tools/call", LATEST_HANDSHAKE_VERSION, read)
    methods.validate_server_result("ping", LATEST_HANDSHAKE_VERSION, read)


def test_a_tool_that_can_be_called_only_as_a_task_is_left_out() -> None:
    ways = ("required", "optional", "forbidden")
    tools = listed(*({"name": way, "execution": {"taskSupport": way}} for way in ways), {"name": "x", "execution": 1})
    assert [tool["name"] for tool in tools] == ["optional", "forbidden", "x"]


def listed(*tools: object) -> list[dict[str, Any]]:
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "good"}, *tools]}}).encode()
    result = result_of(line)
    methods.validate_server_result("tools/list", LATEST_HANDSHAKE_VERSION, result)
    good, *others = result["tools"]
    assert good == {"name": "good", "inputSchema": {"type": "object"}}
    return others


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ({}, {"type": "object"}),
        (None, {"type": "object"}),
        ("x", {"type": "object"}),
        ({"type": "array", "items": {}}, {"type": "object"}),
        ({"properties": {"a": True}}, {"type": "object", "properties": {"a": True}}),
        (
            {"type": "object", "required": "a", "properties": {"a": {}}, "additionalProperties": False},
            {"type": "object", "properties": {"a": {}}, "additionalProperties": False},
        ),
        ({"properties": ["a"]}, {"type": "object"}),
    ],
)
def test_one_tool_with_a_wrong_schema_does_not_cost_the_others(given: object, used: object) -> None:
    (tool,) = listed({"name": "b", "description": "d", "inputSchema": given})
    assert tool == {"name": "b", "description": "d", "inputSchema": used}


def test_wrong_parts_of_a_tool_are_left_out_and_tools_without_a_name() -> None:
    wrong = {"name": "b", "description": ["d"], "icons": 5, "outputSchema": {}, "annotations": {"readOnlyHint": "x"}}
    assert listed(wrong, {"description": "nameless"}, 5, None) == [{"name": "b", "inputSchema": {"type": "object"}}]


def test_one_wrong_content_does_not_cost_the_others() -> None:
    contents: list[object] = [{"type": "text"}, {"type": "text", "text": "t"}, {"type": "image", "data": 5}, 7]
    result = result_of(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": contents}}).encode())
    assert [one["text"] for one in result["content"]] == [
        "[Content of type text can't be shown: it does not follow the protocol.]",
        "t",
        "[Content of type image can't be shown: it does not follow the protocol.]",
        "[Content can't be shown.]",
    ]
    assert result_of(b'{"jsonrpc":"2.0","id":1,"result":{"content":"t"}}')["content"][0]["text"] == "t"
    assert result_of(b'{"jsonrpc":"2.0","id":1,"result":{"isError":true}}')["content"] == []


@pytest.mark.parametrize("rest", ['"result":null', '"error":"no"', '"result":[1]', '"x":1'])
def test_an_answer_that_is_none_fails_its_request(rest: str) -> None:
    message = read_answer(f'{{"jsonrpc":"2.0","id":7,{rest}}}'.encode())
    assert isinstance(message, mcp_types.JSONRPCError)
    assert message.id == 7
    assert "does not follow the protocol (neither result nor error is an object)" in message.error.message


def test_what_is_nested_too_deep_fails_its_request() -> None:
    deep = "[" * 400 + "]" * 400
    message = read_answer(f'{{"jsonrpc":"2.0","id":7,"result":{{"x":{deep}}}}}'.encode())
    assert isinstance(message, mcp_types.JSONRPCError)


@pytest.mark.parametrize(
    ("line", "id"),
    [
        (b"Server is running", None),
        (b"[1]", None),
        (b"\xff\xfe", None),
        (b"[" * 100_000, None),
        (b'{"jsonrpc":"2.0","id":true,"result":1}', None),
        (b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":[1]}', 5),
    ],
)
def test_what_is_no_message_names_its_request_if_there_is_one(line: bytes, id: int | None) -> None:
    for read in (read_message, read_answer):
        with pytest.raises(BadMessage) as caught:
            read(line)
        assert caught.value.id == id


def test_the_first_problem_has_no_dump_of_the_input() -> None:
    with pytest.raises(BadMessage) as caught:
        read_message(json.dumps({"jsonrpc": "2.0", "id": 1, "method": 5}).encode())
    assert "\n" not in str(caught.value)
    assert "http" not in str(caught.value)
