from __future__ import annotations

import json

import pytest

from swecli.core.llm.adjustments import Adjustment, adjust, find_adjustment
from swecli.core.llm.errors import read_body
from swecli.core.llm.json_values import JsonObject, as_list, as_object
from swecli.core.llm.protocols.base import WireRequest
from swecli.core.llm.protocols.registry import request_builder
from tests.core.llm.histories import request, target, user

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
        ("Unsupported model parameter: stream_options", "stream_options"),
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
        (
            {"output_config": {"effort": "xhigh"}},
            "This model does not support effort level 'xhigh'. Supported: high, low.",
        ),
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


def test_an_effort_that_a_model_lacks_leaves_the_summary_of_its_reasoning() -> None:
    text = "Unsupported value: 'minimal' is not supported with the 'o4-mini' model. Supported values are: 'low'."
    error = read_body(400, {}, json.dumps({"error": {"message": text, "param": "reasoning.effort"}}).encode())
    to = target("openai-responses", "api.openai.com", "o4-mini", thoughts=True)
    wire = request_builder("openai-responses")(request(user("x"), effort="minimal"), to)
    assert wire.body["reasoning"] == {"effort": "minimal", "summary": "auto"}
    found = find_adjustment(error, wire)
    assert found == Adjustment("reasoning.effort")
    assert adjust(wire, [found]).body["reasoning"] == {"summary": "auto"}
    alone = WireRequest("/x", {"model": "m", "reasoning": {"effort": "low"}}, optional=("reasoning.effort",))
    assert adjust(alone, [found]).body == {"model": "m"}


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


@pytest.mark.parametrize(
    ("name", "sent", "message", "limit"),
    [
        (
            "max_tokens",
            20000,
            "max_tokens: 20000 > 8192, which is the maximum allowed number of output tokens for claude-3-haiku-2024",
            8192,
        ),
        (
            "max_completion_tokens",
            100000,
            "max_tokens is too large: 100000. This model supports at most 16,384 completion tokens, whereas you "
            "provided 100000.",
            16384,
        ),
        ("max_tokens", 65536, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
        (
            "max_tokens",
            65536,
            "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]",
            8192,
        ),
        (
            "max_tokens",
            50000,
            "The parameter `max_tokens` specified in the request is not valid: integer above maximum value, expected a "
            "value <= 32768, but got 50000 instead.",
            32768,
        ),
        (
            "max_tokens",
            131072,
            "`max_tokens` must be less than or equal to `40960`, the maximum value for `max_tokens` is less than the "
            "`context_window` for this model",
            40960,
        ),
        (
            "max_tokens",
            8192,
            "The maximum tokens you requested exceed the model limit of 4096. Try again with a maximum tokens value "
            "lower than 4096.",
            4095,
        ),
        (
            "generationConfig.maxOutputTokens",
            100000,
            "Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from "
            "1 (inclusive) to 65537 (exclusive). Update the value and try again.",
            65536,
        ),
    ],
)
def test_an_answer_longer_than_the_model_can_give(name: str, sent: int, message: str, limit: int) -> None:
    outer, _, inner = name.partition(".")
    wire = WireRequest("/x", {"model": "m", outer: {inner: sent, "kept": 1} if inner else sent, "messages": []})
    error = read_body(400, {}, json.dumps({"error": {"message": message}}).encode())
    found = find_adjustment(error, wire)
    assert found == Adjustment(name, limit=limit)
    changed = adjust(wire, [found])
    assert changed.body[outer] == ({inner: limit, "kept": 1} if inner else limit)
    assert list(changed.body) == list(wire.body)
    assert f"{limit:,}" in found.notice
    smaller = WireRequest("/x", {outer: {inner: 300} if inner else 300})
    assert adjust(smaller, [found]).body == smaller.body
    assert find_adjustment(error, changed) is None, "the same complaint again has no other remedy"


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens must be greater than thinking.budget_tokens (8192)",
        "temperature must be at most 2 with 300 examples",
        "max_tokens must be at least 1",
    ],
)
def test_a_complaint_that_names_no_smaller_limit(message: str) -> None:
    wire = WireRequest("/x", {"max_tokens": 4096, "messages": []})
    assert find_adjustment(read_body(400, {}, json.dumps({"error": {"message": message}}).encode()), wire) is None
