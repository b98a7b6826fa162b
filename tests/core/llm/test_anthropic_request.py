from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import structs
from msgspec.structs import replace

from swecli.core.llm.capabilities import Capabilities, find_capabilities
from swecli.core.llm.framing import WireEvent
from swecli.core.llm.protocols.anthropic import AnthropicDecoder
from swecli.core.llm.protocols.registry import request_builder
from swecli.core.llm.types import Announcement, ServerClearing, SystemBlock, ToolSchema
from swecli.core.protocol.messages import Message, ReasoningPart, ToolResultPart, Usage
from tests.core.llm.histories import IMAGE, TOOL, assistant, build, call, decoded, note, request, result, target, user

MESSAGES = "anthropic-messages"
CLAUDE = target(MESSAGES, "api.anthropic.com", "claude-sonnet-5-5")
MARK = {"cache_control": {"type": "ephemeral"}}


def messages(*history: Message, **more: Any) -> list[dict[str, Any]]:
    return build(request(*history, **more), more.pop("to", CLAUDE))["messages"]


def test_a_whole_conversation() -> None:
    history = request(
        user("fix it"),
        assistant("I look.", call("toolu_1", '{"path": "a"}')),
        result("toolu_1", "text"),
        system=[SystemBlock("one", True), SystemBlock("two")],
        tools=(TOOL,),
        max_output_tokens=100,
    )
    wire = request_builder(MESSAGES)(history, CLAUDE)
    assert wire.path == "/v1/messages"
    assert wire.headers == {"anthropic-version": "2023-06-01"}
    assert list(wire.body)[-1] == "messages"
    assert build(history, CLAUDE) == {
        "model": "claude-sonnet-5-5",
        "max_tokens": 100,
        "stream": True,
        "tools": [{"name": "read", "description": "Reads.", "input_schema": dict(TOOL.parameters)}],
        "system": [{"type": "text", "text": "one", **MARK}, {"type": "text", "text": "two"}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "fix it"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "text"}],
            },
        ],
    }


def test_no_sampling_parameters_and_always_a_limit() -> None:
    body = build(request(user("x")), CLAUDE)
    assert not {"temperature", "top_p", "top_k"} & set(body)
    assert body["max_tokens"] == 16000


def test_neighbours_of_one_role_are_merged_with_results_first() -> None:
    sent = messages(assistant(call("a"), call("b")), result("a"), result("b"), user("and"))
    assert [item["role"] for item in sent] == ["assistant", "user"]
    assert [block["type"] for block in sent[1]["content"]] == ["tool_result", "tool_result", "text"]


def test_results() -> None:
    sent = messages(assistant(call("a")), result("a", "boom", IMAGE, error=True))
    assert sent[1]["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "a",
            "content": [
                {"type": "text", "text": "boom"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
            ],
        }
    ]  # not marked as an error: then the API accepts only text
    (failed,) = messages(assistant(call("a")), result("a", "boom", error=True))[1]["content"]
    assert failed == {"type": "tool_result", "tool_use_id": "a", "content": "boom", "is_error": True}
    empty = Message("tool", (ToolResultPart("a", "read", ""),))
    assert messages(assistant(call("a")), empty)[1]["content"] == [{"type": "tool_result", "tool_use_id": "a"}]


def test_arguments_that_are_no_object_are_carried_along() -> None:
    sent = messages(assistant(call("a", "{'n': 1}"), call("b", ""), call("c", "[1]")))
    assert [block["input"] for block in sent[0]["content"]] == [
        {"invalid_json": "{'n': 1}"},
        {},
        {"invalid_json": "[1]"},
    ]


def test_ids_of_other_hosts_fit_the_alphabet_and_still_agree() -> None:
    sent = messages(assistant(call("functions.f:0")), result("functions.f:0"))
    rewritten = sent[0]["content"][0]["id"]
    assert rewritten.replace("_", "").isalnum()
    assert sent[1]["content"][0]["tool_use_id"] == rewritten


def test_empty_text_is_not_sent() -> None:
    assert messages(user("", "x"), assistant("\n\n", call("a")))[1]["content"][0]["type"] == "tool_use"


class TestBreakpoints:
    def marked(self, body: dict[str, Any]) -> list[str]:
        blocks = [*body.get("system", []), *(block for item in body["messages"] for block in item["content"])]
        return [block.get("text", block["type"]) for block in blocks if "cache_control" in block]

    def test_at_most_four_and_the_newest_messages(self) -> None:
        history = request(
            *(user(str(index)) for index in range(9)),
            system=[SystemBlock("a", True), SystemBlock("b", True), SystemBlock("c", True)],
            breakpoints=(0, 2, 5, 8),
        )
        assert self.marked(build(history, CLAUDE)) == ["b", "c", "5", "8"]

    def test_after_merged_messages_and_before_a_note(self) -> None:
        history = request(assistant(call("a")), result("a"), user("u"), note("now"), breakpoints=(1,))
        body = build(history, CLAUDE)
        assert self.marked(body) == ["tool_result"]
        assert body["messages"][-1]["content"][-1] == {"type": "text", "text": "now"}

    def test_never_on_thinking(self) -> None:
        message = decoded(CLAUDE, "thinking-text-tool")
        only_thinking = Message("assistant", message.parts[:1], response=message.response)
        body = build(request(user("x"), only_thinking, breakpoints=(1,)), CLAUDE)
        assert self.marked(body) == []


class TestEcho:
    def test_thinking_goes_back_in_place_and_byte_for_byte(self) -> None:
        sent = messages(user("x"), decoded(CLAUDE, "interleaved-thinking"))
        assert sent[1]["content"] == [
            {"type": "thinking", "thinking": "plan", "signature": "SIG-ANTHROPIC"},
            {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
            {"type": "thinking", "thinking": "more", "signature": "SIG-SECOND-1"},
            {"type": "tool_use", "id": "t2", "name": "g", "input": {"a": 1}},
        ]

    def test_hidden_thinking(self) -> None:
        sent = messages(decoded(CLAUDE, "redacted-thinking"), decoded(CLAUDE, "thinking-omitted"))
        assert sent[0]["content"][0] == {"type": "redacted_thinking", "data": "REDACTED-DATA-1"}
        assert sent[0]["content"][2] == {"type": "thinking", "thinking": "", "signature": "SIG-ONLY-000"}

    def test_server_tools_and_compaction(self) -> None:
        sent = messages(decoded(CLAUDE, "pause-turn"), decoded(CLAUDE, "compaction"))
        assert sent[0]["content"] == [
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
            {"type": "compaction", "content": "summary"},
        ]

    def test_messages_stay_as_they_are(self) -> None:
        for case in ("pause-turn", "redacted-thinking", "thinking-text-tool"):
            message, fresh = decoded(CLAUDE, case), decoded(CLAUDE, case)
            build(request(user("x"), message, note("now"), breakpoints=(1,)), CLAUDE)
            assert message == fresh

    def test_blocks_that_were_not_understood_are_not_sent(self) -> None:
        assert [b["type"] for b in messages(decoded(CLAUDE, "unknown-event-block-delta"))[0]["content"]] == ["text"]

    def test_nothing_goes_to_another_model_or_host(self) -> None:
        for to in (target(MESSAGES, "api.anthropic.com", "claude-opus-5-5"), target(MESSAGES, "other.example")):
            for case in ("interleaved-thinking", "redacted-thinking", "pause-turn"):
                sent = build(request(user("x"), decoded(CLAUDE, case)), to)["messages"]
                assert "SIG" not in str(sent)
                assert "REDACTED" not in str(sent)
                assert "srvtoolu" not in str(sent)

    def test_thinking_without_signature_is_not_sent(self) -> None:
        assert len(messages(user("x"), assistant(ReasoningPart("half"), "text"))[1]["content"]) == 1


class TestNotes:
    """Where a model reads system messages in mid-conversation, they follow a message of the user, and precede one of
    the assistant or end the list."""

    to = structs.replace(CLAUDE, capabilities=Capabilities(system_messages=True, clear_at=True))
    cleared = {"role": "system", "content": [{"type": "text", "text": "again"}], "clear_at": "next_user_message"}

    def roles(self, *history: Message) -> list[str]:
        return [message["role"] for message in build(request(*history), self.to)["messages"]]

    def test_a_note_is_a_system_message(self) -> None:
        sent = build(request(user("u"), note("now")), self.to)["messages"]
        assert sent[1:] == [{"role": "system", "content": [{"type": "text", "text": "now"}]}]

    def test_it_waits_for_its_place(self) -> None:
        history = (user("u"), note("now"), user("v"), assistant(call("a")), note("late"), result("a"), note("later"))
        assert self.roles(*history) == ["user", "system", "assistant", "user", "system"]
        assert self.roles(note("first"), user("u"), assistant("done"), note("idle"), user("v")) == [
            *("user", "system", "assistant", "user", "system")
        ]

    def test_one_for_this_turn_is_cleared_by_the_provider(self) -> None:
        wire = request_builder(MESSAGES)(request(user("u"), note("again", "this turn")), self.to)
        assert wire.body["messages"][-1] == self.cleared
        assert wire.headers["anthropic-beta"] == "mid-conversation-system-clear-at-2026-08-21"
        both = build(request(user("u"), note("again", "this turn"), note("now")), self.to)["messages"][-1]
        assert "clear_at" not in both
        assert len(both["content"]) == 2

    def test_text_of_others_never_gets_the_rank_of_a_system_message(self) -> None:
        assert self.roles(user("u"), note("job `rm x` ended", "quoted")) == ["user"]

    def test_a_note_withdraws_tools_and_defines_them_anew(self) -> None:
        said = structs.replace(note("Tools changed."), id="n1")
        changed = structs.replace(TOOL, description="Other.")
        change = Announcement("n1", removed=("gone", TOOL.name), defined=(changed,))
        asked = request(user("u"), said, tools=(TOOL,), announced=(change,))
        to = structs.replace(self.to, capabilities=Capabilities(system_messages=True, tool_changes=True))
        body = build(asked, to)
        blocks = body["messages"][-1]["content"]
        removed = [{"type": "tool_reference", "name": name} for name in ("gone", TOOL.name)]
        assert [block["tool"] for block in blocks[:2]] == removed
        assert {block["type"] for block in blocks[:2]} == {"tool_removal"}
        assert blocks[2]["tool"]["definition"]["description"] == "Other."
        assert [tool["description"] for tool in body["tools"]] == [TOOL.description]

    def test_a_breakpoint_behind_text_that_overtakes_a_note_is_on_the_note(self) -> None:
        body = build(request(user("u"), note("now"), note("words of others", "quoted"), breakpoints=(2,)), self.to)
        texts = [{"type": "text", "text": text} for text in ("u", "words of others", "now")]
        assert [message["content"] for message in body["messages"]] == [texts[:2], [{**texts[2], **MARK}]]

    def test_a_breakpoint_is_on_a_note_unless_it_is_cleared(self) -> None:
        body = build(request(user("u"), note("now"), breakpoints=(1,)), self.to)
        assert body["messages"][1]["content"] == [{"type": "text", "text": "now", **MARK}]
        body = build(request(user("u"), note("again", "this turn"), breakpoints=(1,)), self.to)
        assert body["messages"][0]["content"] == [{"type": "text", "text": "u", **MARK}]
        assert body["messages"][1] == self.cleared


class TestEffort:
    def extras(self, model: str, effort: str) -> dict[str, Any]:
        body = build(request(user("x"), effort=effort), target(MESSAGES, "api.anthropic.com", model))
        return {key: body[key] for key in ("thinking", "output_config") if key in body}

    def test_by_word_or_by_budget(self) -> None:
        word = {"output_config": {"effort": "low"}, "thinking": {"type": "adaptive"}}
        assert self.extras("claude-sonnet-5-5", "low") == word
        assert self.extras("claude-opus-4-8", "low") == word
        for model in ("claude-haiku-4-5-20251001", "claude-sonnet-4-5", "claude-opus-4-1-20250805"):
            assert self.extras(model, "low") == {"thinking": {"type": "enabled", "budget_tokens": 2048}}
        assert self.extras("claude-3-5-haiku-latest", "low") == {}

    @pytest.mark.parametrize("model", ["claude-opus-4-6", "claude-sonnet-4-6", "claude-opus-4-8", "claude-opus-5-5"])
    def test_without_an_effort_models_with_adaptive_thinking_are_asked_for_it(self, model: str) -> None:
        able = find_capabilities(MESSAGES, "api.anthropic.com", model)
        to = replace(target(MESSAGES, "api.anthropic.com", model), capabilities=able, shows_thoughts=True)
        wire = build(request(user("x")), to)
        assert wire["thinking"]["type"] == "adaptive"
        hidden = build(request(user("x")), replace(to, shows_thoughts=False))
        assert hidden["thinking"] == {"type": "adaptive"}
        asked = replace(to.capabilities, adaptive_thinking=False)
        assert "thinking" not in build(request(user("x")), replace(to, capabilities=asked))


def test_clearing_by_the_server_is_asked_for_only_when_it_is_wished_for() -> None:
    wish = ServerClearing(50_000, 4, ("memory",))
    asked = replace(request(user("x"), tools=(TOOL,)), server_clearing=wish)
    wire = request_builder(MESSAGES)(asked, CLAUDE)
    assert wire.body["context_management"] == {
        "edits": [
            {
                "type": "clear_tool_uses_20250919",
                "trigger": {"type": "input_tokens", "value": 50_000},
                "keep": {"type": "tool_uses", "value": 4},
                "exclude_tools": ["memory"],
            }
        ]
    }
    assert wire.headers["anthropic-beta"] == "context-management-2025-06-27"
    assert "context_management" in wire.optional
    plain = request_builder(MESSAGES)(request(user("x"), tools=(TOOL,)), CLAUDE)
    assert "context_management" not in plain.body
    assert "anthropic-beta" not in plain.headers
    for protocol in ("openai-chat", "openai-responses", "gemini-generate", "ollama-chat"):
        other = target(protocol, "host", "m")
        assert build(asked, other) == build(replace(asked, server_clearing=None), other)


def test_what_the_server_cleared_is_part_of_the_usage() -> None:
    decoder = AnthropicDecoder(CLAUDE.origin)
    edits = [
        {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 8, "cleared_input_tokens": 50_000},
        {"type": "other", "cleared_input_tokens": 1_000},
        {"type": "strange", "cleared_input_tokens": "many"},
        7,
    ]
    for event in (
        {"type": "message_start", "message": {"id": "m", "model": "claude", "usage": {"input_tokens": 9}}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 3},
            "context_management": {"applied_edits": edits},
        },
        {"type": "message_stop"},
    ):
        decoder.feed(WireEvent(json.dumps(event), str(event["type"])))
    assert decoder.answer.usage == Usage(input_total=9, output_total=3, cleared=51_000)


SEARCH = ToolSchema("tool_search", "Finds tools.", {"type": "object"}, "tool search")
ISSUE = ToolSchema("mcp__hub__issue", "Opens an issue.", {"type": "object"}, "hub")
CLOSE = ToolSchema("mcp__hub__close", "Closes an issue.", {"type": "object"}, "hub")
USED = ToolSchema("mcp__hub__list", "Lists issues.", {"type": "object"}, "hub")
FOUND = """2 tools found; call them by name from now on.

mcp__hub__issue: Opens an issue.
Parameters: {"type": "object"}

mcp__hub__close: Closes an issue.
Parameters: {"type": "object"}"""


def searched(text: str = FOUND, **more: Any) -> tuple[Message, ...]:
    part = ToolResultPart("toolu_1", "tool_search", text, **more)
    return user("x"), assistant("", call("toolu_1", "{}", "tool_search")), Message("tool", (part,), "r")


def test_tools_that_a_search_found_are_references_and_change_no_prefix() -> None:
    before = build(request(user("x"), tools=(TOOL, USED, SEARCH)), CLAUDE)
    after = build(request(*searched(), tools=(TOOL, USED, SEARCH, ISSUE, CLOSE)), CLAUDE)
    assert [tool for tool in after["tools"] if "defer_loading" not in tool] == before["tools"]
    assert after["tools"][3] == {
        "name": "mcp__hub__issue",
        "description": "Opens an issue.",
        "input_schema": {"type": "object"},
        "defer_loading": True,
    }
    references = [{"type": "tool_reference", "tool_name": name} for name in ("mcp__hub__issue", "mcp__hub__close")]
    assert after["messages"][-1]["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": references}
    ]


def test_references_are_sent_only_where_they_are_known_and_name_something() -> None:
    history = request(*searched(), tools=(TOOL, SEARCH, ISSUE, CLOSE))
    for place in (
        target(MESSAGES, "proxy.example", "claude-sonnet-5-5"),
        target(MESSAGES, "api.anthropic.com", "claude-3-7-sonnet-20250219"),
    ):
        body = build(history, place)
        assert not any("defer_loading" in tool for tool in body["tools"])
        assert body["messages"][-1]["content"][0]["content"] == FOUND
    gone = build(request(*searched("[cleared]"), tools=(TOOL, SEARCH, ISSUE)), CLAUDE)
    assert not any("defer_loading" in tool for tool in gone["tools"])
    failed = build(request(*searched(is_error=True), tools=(TOOL, SEARCH, ISSUE)), CLAUDE)
    assert failed["messages"][-1]["content"][0]["content"] == FOUND
