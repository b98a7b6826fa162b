from __future__ import annotations

import pytest

from swecli.core.llm.client import Adjustment, adjust, find_adjustment
from swecli.core.llm.errors import read_body
from swecli.core.llm.json_values import JsonObject, as_list, as_object
from swecli.core.llm.protocols.base import WireRequest

REQUEST = WireRequest(
    "/x",
    {"model": "m", "max_tokens": 5, "stream_options": {}, "prompt_cache_key": "s", "messages": []},
    optional=("max_tokens", "stream_options", "prompt_cache_key"),
)


def find(message: str, status: int = 400) -> Adjustment | None:
    body = b'{"error": {"message": "%s"}}' % message.encode()
    return find_adjustment(read_body(status, {}, body), REQUEST)


@pytest.mark.parametrize(
    ("message", "parameter"),
    [
        ("Unknown parameter: 'prompt_cache_key'.", "prompt_cache_key"),
        ("Unrecognized request argument supplied: stream_options", "stream_options"),
        ("body.stream_options: Extra inputs are not permitted", "stream_options"),
        ("property 'prompt_cache_key' is unsupported", "prompt_cache_key"),
    ],
)
def test_optional_parameters_are_found(message: str, parameter: str) -> None:
    found = find(message)
    assert found == Adjustment(parameter)
    changed = adjust(REQUEST, [found])
    assert parameter not in changed.body
    assert list(changed.body) == [key for key in REQUEST.body if key != parameter]
    assert parameter not in changed.optional
    assert parameter in found.notice


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"reasoning_effort": "high"}, "Argument not supported on this model: reasoningEffort"),
        ({"think": True}, '\\"qwen2.5\\" does not support thinking'),
    ],
)
def test_a_parameter_in_the_server_s_own_words(body: JsonObject, message: str) -> None:
    (name,) = body
    error = read_body(400, {}, b'{"error": {"message": "%s"}}' % message.encode())
    assert find_adjustment(error, WireRequest("/x", body, optional=(name,))) == Adjustment(name)


def test_a_renamed_parameter_keeps_its_value_and_place() -> None:
    found = find("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'.")
    assert found == Adjustment("max_tokens", "max_completion_tokens")
    changed = adjust(REQUEST, [found])
    assert list(changed.body)[1] == "max_completion_tokens"
    assert changed.body["max_completion_tokens"] == 5
    assert "max_completion_tokens" in changed.optional


def test_a_parameter_within_another() -> None:
    wire = WireRequest(
        "/x", {"reasoning": {"effort": "low", "summary": "auto"}}, optional=("reasoning", "reasoning.summary")
    )
    body = b'{"error": {"message": "Your organization must be verified.", "param": "reasoning.summary"}}'
    found = find_adjustment(read_body(400, {}, body), wire)
    assert found == Adjustment("reasoning.summary")
    changed = adjust(wire, [found])
    assert changed.body == {"reasoning": {"effort": "low"}}
    assert changed.optional == ("reasoning",)
    assert wire.body["reasoning"] == {"effort": "low", "summary": "auto"}


ITEMS = WireRequest(
    "/x",
    {
        "model": "m",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "status", "cache_control": {"type": "ephemeral"}}]},
            {"role": "assistant", "content": "a", "reasoning_content": "plan"},
        ],
        "tools": [{"type": "function", "function": {"parameters": {"properties": {"cache_control": {}}}}}],
        "reasoning": {"effort": "low"},
    },
    optional=("reasoning",),
)


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("('messages.1' : property 'reasoning_content' is unsupported)", "reasoning_content"),
        ("Extra inputs are not permitted, field: 'messages[1].reasoning_content'", "reasoning_content"),
        ("messages.0.content.0.cache_control: Extra inputs are not permitted", "cache_control"),
    ],
)
def test_a_field_of_messages_that_the_server_does_not_know(message: str, field: str) -> None:
    error = read_body(400, {}, b'{"error": {"message": "%s"}}' % message.encode())
    expected = Adjustment(field, in_items=True)
    assert find_adjustment(error, ITEMS) == expected
    changed = adjust(ITEMS, [expected]).body
    assert field not in str(changed["messages"])
    assert changed["tools"] == ITEMS.body["tools"]
    assert [as_object(item)["role"] for item in as_list(changed["messages"])] == ["user", "assistant"]
    assert find_adjustment(error, adjust(ITEMS, [expected])) is None


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ("Unknown parameter: 'reasoning'", Adjustment("reasoning")),
        ("messages.0.content.0.text: text content blocks must be non-empty", None),
        ("Unknown value in messages[0].content[0].text: status", None),
    ],
)
def test_what_is_no_field_of_messages(message: str, found: Adjustment | None) -> None:
    assert find_adjustment(read_body(400, {}, b'{"error": {"message": "%s"}}' % message.encode()), ITEMS) == found


@pytest.mark.parametrize(
    "message",
    ["Unknown parameter: 'messages'", "model is not supported", "stream_options looks fine", "my_max_tokens_x unknown"],
)
def test_other_complaints_change_nothing(message: str) -> None:
    assert find(message) is None


def test_only_bad_requests_count() -> None:
    assert find("Unknown parameter: 'stream_options'", 500) is None
    assert adjust(REQUEST, []) is REQUEST
