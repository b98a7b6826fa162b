"""Arguments of earlier calls as they go back: servers that read them refuse a conversation with one that they can't."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.core.llm.histories import assistant, build, call, request, result, target, user

_ARGUMENTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "openai-chat": lambda body: body["messages"][1]["tool_calls"][0]["function"]["arguments"],
    "openai-responses": lambda body: body["input"][1]["arguments"],
    "anthropic-messages": lambda body: body["messages"][1]["content"][0]["input"],
    "gemini-generate": lambda body: body["contents"][1]["parts"][0]["functionCall"]["args"],
    "ollama-chat": lambda body: body["messages"][1]["tool_calls"][0]["function"]["arguments"],
}


@pytest.mark.parametrize(
    ("raw", "sent"),
    [
        ("{'n': 1}", {"invalid_json": "{'n': 1}"}),
        ('{"a": "x', {"invalid_json": '{"a": "x'}),
        ("[1]", {"invalid_json": "[1]"}),
        ("42", {"invalid_json": "42"}),
        ('{"a": NaN}', {"invalid_json": '{"a": NaN}'}),
        ("x" * 5000, {"invalid_json": "x" * 200 + "…"}),
        ("[" * 50_000, {"invalid_json": "[" * 200 + "…"}),
        ("null", {}),
        ("", {}),
        (" \n", {}),
        ('{"a": "one\ntwo"}', {"a": "one\ntwo"}),
        ('"{\\"a\\": 1}"', {"a": 1}),
    ],
)
@pytest.mark.parametrize("protocol", sorted(_ARGUMENTS))
def test_arguments_that_are_no_json_object_never_go_back_as_such(
    protocol: str, raw: str, sent: dict[str, object]
) -> None:
    history = (user("x"), assistant(call("c", raw)), result("c"))
    found = _ARGUMENTS[protocol](build(request(*history), target(protocol)))
    assert found == _ARGUMENTS[protocol](build(request(*history, user("more")), target(protocol)))
    assert (json.loads(found) if isinstance(found, str) else found) == sent


@pytest.mark.parametrize("protocol", sorted(_ARGUMENTS))
def test_of_a_call_that_was_cut_nothing_goes_back(protocol: str) -> None:
    cut = assistant(call("c", '{"path": "a", "content": "half'), complete=False)
    body = build(request(user("x"), cut, result("c")), target(protocol))
    assert _ARGUMENTS[protocol](body) in ({}, "{}")
