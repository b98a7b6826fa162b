from __future__ import annotations

import json

import pytest

from swecli.core.llm.types import SystemBlock
from swecli.core.protocol.messages import TextPart
from tests.core.llm.histories import (
    IMAGE,
    TOOL,
    assistant,
    build,
    call,
    decoded,
    note,
    request,
    result,
    target,
    user,
)

CHAT = "openai-chat"
UNKNOWN = target(CHAT)


def messages(*history: object, to: object = UNKNOWN, **more: object) -> list[dict]:
    return build(request(*history, **more), to)["messages"]  # type: ignore[arg-type]


def test_a_whole_conversation() -> None:
    body = build(
        request(
            user("fix it"),
            assistant("I look.", call("c1", '{"path": "a" }')),
            result("c1", "text"),
            system=[SystemBlock("one", True), SystemBlock("two")],
            tools=(TOOL,),
            max_output_tokens=100,
        ),
        UNKNOWN,
    )
    assert list(body)[-1] == "messages"
    assert body == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {
                "type": "function",
                "function": {"name": "read", "description": "Reads.", "parameters": dict(TOOL.parameters)},
            }
        ],
        "max_tokens": 100,
        "messages": [
            {"role": "system", "content": "one\n\ntwo"},
            {"role": "user", "content": "fix it"},
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a" }'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "text"},
        ],
    }


@pytest.mark.parametrize("raw", ['{"a" :  1.0, "b":"\\u00e9"}', ' {"a": 1}\n', '{"a": 1, "a": 2}', "{}"])
def test_arguments_go_back_as_the_model_wrote_them(raw: str) -> None:
    sent = messages(user("x"), assistant(call("c", raw)), result("c"))
    assert sent[1]["tool_calls"][0]["function"]["arguments"] == raw


def test_a_note_joins_the_newest_message() -> None:
    assert messages(user("hi"), note("now")) == [{"role": "user", "content": "hi\n\nnow"}]
    sent = messages(user("hi"), assistant(call("c")), result("c", "text"), note("now"))
    assert sent[-1] == {"role": "tool", "tool_call_id": "c", "content": "text\n\nnow"}
    with_image = messages(user("see", IMAGE), note("now"))
    assert with_image[-1]["content"][-1] == {"type": "text", "text": "now"}
    assert messages(user("a"), assistant("b"), note("now"))[-1] == {"role": "user", "content": "now"}


def test_images_of_results_follow_the_results() -> None:
    sent = messages(assistant(call("a"), call("b")), result("a", "x", IMAGE), result("b", "y"), user("go on"))
    assert [item["role"] for item in sent] == ["assistant", "tool", "tool", "user", "user"]
    assert sent[3]["content"][1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


def test_empty_assistant_messages_are_left_out() -> None:
    assert [item["role"] for item in messages(user("a"), assistant(), user("b"))] == ["user", "user"]


class TestEcho:
    def test_reasoning_goes_back_by_the_name_it_came_with(self) -> None:
        for case, field in (("reasoning", "reasoning"), ("reasoning-content", "reasoning_content")):
            sent = messages(user("x"), decoded(UNKNOWN, case))
            assert sent[1] == {"role": "assistant", "content": "A", field: "think"}

    def test_details_go_back_whole_and_in_order(self) -> None:
        sent = messages(decoded(UNKNOWN, "reasoning-details"))
        assert sent[0]["reasoning_details"] == [
            {
                "type": "reasoning.text",
                "text": "think",
                "index": 0,
                "format": "anthropic-claude-v1",
                "signature": "SIGNATURE-ABC",
            }
        ]
        assert "reasoning" not in sent[0]
        sent = messages(decoded(UNKNOWN, "reasoning-details-encrypted"))
        assert sent[0]["reasoning_details"] == [
            {"type": "reasoning.summary", "summary": "sum", "index": 0},
            {"type": "reasoning.encrypted", "data": "ENCRYPTED-XYZ", "id": "rs_1", "index": 1},
        ]

    def test_signature_of_a_call(self) -> None:
        sent = messages(decoded(UNKNOWN, "gemini-compat-signature"))
        assert sent[0]["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "SIG-GEMINI-1"}}

    def test_thinking_in_a_content_list(self) -> None:
        sent = messages(decoded(UNKNOWN, "mistral-content-list"))
        assert sent[0]["content"] == [
            {"type": "thinking", "thinking": [{"type": "text", "text": "plan"}]},
            {"type": "text", "text": "Answer"},
        ]

    @pytest.mark.parametrize("case", ["reasoning", "reasoning-details-encrypted", "gemini-compat-signature"])
    def test_nothing_goes_to_another_model_or_host(self, case: str) -> None:
        message = decoded(UNKNOWN, case)
        for other in (target(CHAT, "other.example"), target(CHAT, model="m2")):
            sent = messages(message, to=other)
            assert not {"reasoning", "reasoning_content", "reasoning_details"} & set(sent[0])
            assert "extra_content" not in str(sent)

    def test_hosts_that_insist_get_an_empty_field(self) -> None:
        to = target(CHAT, "api.deepseek.com")
        sent = messages(user("x"), assistant("a"), assistant(call("c")), result("c"), to=to)
        assert "reasoning_content" not in sent[1]
        assert sent[2]["reasoning_content"] == ""

    def test_hosts_that_refuse_get_none(self) -> None:
        to = target(CHAT, "api.openai.com", echo_reasoning="never")
        assert messages(decoded(to, "reasoning-content"), to=to) == [{"role": "assistant", "content": "A"}]


class TestDialects:
    def test_openai(self) -> None:
        body = build(
            request(user("x"), session="s1", max_output_tokens=5, effort="low"), target(CHAT, "api.openai.com")
        )
        assert body["max_completion_tokens"] == 5
        assert body["prompt_cache_key"] == "s1"
        assert body["reasoning_effort"] == "low"

    def test_an_unknown_host_gets_nothing_special(self) -> None:
        body = build(request(user("x"), session="s1"), UNKNOWN)
        assert set(body) == {"model", "stream", "stream_options", "messages"}

    def test_an_unknown_host_gets_the_usual_word_for_effort(self) -> None:
        assert build(request(user("x"), effort="low"), UNKNOWN)["reasoning_effort"] == "low"

    def test_mistral(self) -> None:
        to = target(CHAT, "api.mistral.ai")
        sent = messages(assistant(call("call_00_abc")), result("call_00_abc"), user("next"), to=to)
        first = sent[0]["tool_calls"][0]["id"]
        assert len(first) == 9
        assert first.isalnum()
        assert sent[1] == {"role": "tool", "tool_call_id": first, "name": "read", "content": "ok"}
        assert [item["role"] for item in sent] == ["assistant", "tool", "assistant", "user"]
        assert messages(assistant(call("abcDEF123")), to=to)[0]["tool_calls"][0]["id"] == "abcDEF123"

    def test_cache_breakpoints_where_a_gateway_passes_them_on(self) -> None:
        to = target(CHAT, "openrouter.ai", "anthropic/claude-x")
        history = request(user("a"), user("b"), system=[SystemBlock("s", True)], breakpoints=(1,))
        sent = build(history, to)["messages"]
        assert sent[0]["content"][0]["cache_control"] == {"type": "ephemeral"}
        assert sent[1]["content"] == "a"
        assert sent[2]["content"][0]["cache_control"] == {"type": "ephemeral"}

    def test_cache_breakpoints_within_a_turn(self) -> None:
        """Without them, each request of a turn would pay for the whole conversation."""
        marked = {"type": "text", "cache_control": {"type": "ephemeral"}}
        turn = (
            user("a"),
            assistant("done"),
            user("b"),
            assistant("look", call("1"), call("2")),
            result("1"),
            result("2"),
        )
        history = request(*turn, assistant(call("3")), result("3", "found"), note("now"), breakpoints=(1, 5, 7))
        sent = build(history, target(CHAT, "openrouter.ai", "anthropic/claude-x"))["messages"]
        assert [item["content"] for item in sent] == [
            *("a", [{**marked, "text": "done"}], "b", "look", "ok", [{**marked, "text": "ok"}], None),
            [{**marked, "text": "found"}, {"type": "text", "text": "now"}],
        ]
        for host, model in (("openrouter.ai", "openai/gpt-x"), ("proxy.example", "anthropic/claude-x")):
            elsewhere = build(history, target(CHAT, host, model, cache_control=host != "openrouter.ai"))["messages"]
            assert "cache_control" not in json.dumps([item for item in elsewhere if item["role"] != "user"])

    def test_efforts(self) -> None:
        def extras(host: str) -> dict:
            body = build(request(user("x"), effort="high"), target(CHAT, host))
            return {key: body[key] for key in ("reasoning", "thinking", "enable_thinking") if key in body}

        assert extras("openrouter.ai") == {"reasoning": {"effort": "high"}}
        assert extras("api.z.ai") == {"thinking": {"type": "enabled"}}
        assert extras("dashscope-intl.aliyuncs.com") == {"enable_thinking": True}


def test_foreign_parts_do_not_break_the_message() -> None:
    sent = messages(user(TextPart(""), "hi"), assistant("a", TextPart("b")))
    assert sent == [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ab"}]
