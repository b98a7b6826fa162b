"""The strict servers enforce what they say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.prompt_caches import AnthropicCache, BlockCache, NewestPrefix
from tests.support.strict_anthropic import BINDING, CLEAR_AT, MODEL, PREFIX, AnthropicRules
from tests.support.strict_gemini import OF_OTHERS, GeminiRules
from tests.support.strict_llama import LlamaRules
from tests.support.strict_responses import ResponsesRules
from tests.support.strict_server import Lost, StrictServer
from tests.support.waiting import PATIENCE

STEPS = parse_script(
    """
[[step]]
reasoning = "I look first."
text = "Looking."
call = [{ tool = "look", arguments = '{"at": "x"}' }]

[[step]]
reasoning = "Now I know."
text = "Seen."

[[step]]
text = "Again."

[[step]]
text = "And again."
"""
)
USER = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
TOOL = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}
BODY: dict[str, Any] = {
    "model": "claude-opus-5-5",
    "max_tokens": 1000,
    "stream": True,
    "system": [{"type": "text", "text": "Be brief."}],
    "tools": [TOOL],
}
DROP = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}


class Caller:
    """A client that sends back whatever it got."""

    def __init__(self, server: StrictServer[AnthropicRules]) -> None:
        self.url = f"{server.url}/v1/messages"
        self.client = httpx.Client(trust_env=False, timeout=PATIENCE)

    def ask(self, messages: list[Any], beta: str = "", **changes: Any) -> tuple[int, dict[str, Any]]:
        body = {**BODY, "messages": messages, **changes}
        answer = self.client.post(self.url, json=body, headers={"anthropic-beta": beta} if beta else {})
        if answer.status_code != 200:
            return answer.status_code, answer.json()
        events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
        message = events[0]["message"]
        for event in events:
            if event["type"] == "content_block_start":
                message["content"].append(event["content_block"])
            elif event["type"] == "content_block_delta":
                _add(message["content"][event["index"]], event["delta"])
        return 200, message


def _add(block: dict[str, Any], delta: dict[str, Any]) -> None:
    match delta["type"]:
        case "text_delta":
            block["text"] += delta["text"]
        case "thinking_delta":
            block["thinking"] += delta["thinking"]
        case "signature_delta":
            block["signature"] = delta["signature"]
        case _:
            block["raw"] = block.get("raw", "") + delta["partial_json"]
            block["input"] = json.loads(block["raw"] or "{}") if block["raw"].endswith("}") else {}


def turn(message: dict[str, Any]) -> dict[str, Any]:
    content = [{key: value for key, value in block.items() if key != "raw"} for block in message["content"]]
    return {"role": "assistant", "content": content}


def result(message: dict[str, Any]) -> dict[str, Any]:
    call = next(block["id"] for block in message["content"] if block["type"] == "tool_use")
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": "x"}]}


@contextmanager
def asked(rules: AnthropicRules) -> Iterator[tuple[StrictServer[AnthropicRules], Caller, list[Any]]]:
    """A conversation up to the result of the first call."""
    with StrictServer(STEPS, rules) as server:
        caller = Caller(server)
        status, first = caller.ask([USER])
        assert status == 200
        yield server, caller, [USER, turn(first), result(first)]


def test_what_came_back_as_it_was_is_accepted() -> None:
    with asked(AnthropicRules()) as (server, caller, messages):
        status, second = caller.ask(messages)
        assert status == 200
        marked = [{**USER, "content": [{**USER["content"][0], "cache_control": {"type": "ephemeral"}}]}]
        assert caller.ask([*marked, *messages[1:], turn(second), USER])[0] == 200
        assert server.refused == []
        assert server.rules.lost == []
        assert server.rules.thoughts == 3


def test_a_changed_prefix_is_refused_and_named() -> None:
    with asked(AnthropicRules()) as (server, caller, messages):
        changed = {"role": "user", "content": [{"type": "text", "text": "hello"}]}
        status, error = caller.ask([changed, *messages[1:]])
        assert status == 400
        assert error["error"]["type"] == "invalid_request_error"
        assert error["error"]["message"].startswith("messages.1.content.0: Invalid `signature` in `thinking` block.")
        assert len(server.refused) == 1


@pytest.mark.parametrize("change", [{"system": []}, {"tools": [TOOL, {**TOOL, "name": "hear"}]}])
def test_system_and_tools_belong_to_the_prefix(change: dict[str, Any]) -> None:
    with asked(AnthropicRules()) as (_, caller, messages):
        assert caller.ask(messages, **change)[0] == 400


def test_a_deferred_tool_does_not() -> None:
    with asked(AnthropicRules()) as (_, caller, messages):
        assert caller.ask(messages, tools=[TOOL, {**TOOL, "name": "hear", "defer_loading": True}])[0] == 200


def test_dropping_needs_its_header_and_tells_what_was_dropped() -> None:
    with asked(AnthropicRules()) as (server, caller, messages):
        assert caller.ask(messages, thinking=DROP)[0] == 400
        status, message = caller.ask(messages, BINDING, thinking=DROP, system=[])
        assert status == 200
        entry = {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": PREFIX}
        assert message["input_transformations"] == [entry]
        assert server.rules.lost == [Lost(3, PREFIX, "messages.1.content.0")]


def test_an_older_account_is_checked_only_if_it_asks() -> None:
    with asked(AnthropicRules(enforced=False)) as (server, caller, messages):
        assert caller.ask(messages, system=[])[0] == 200
        assert server.rules.lost == []
        assert caller.ask(messages, BINDING, thinking=DROP, system=[])[0] == 200
        assert [lost.reason for lost in server.rules.lost] == [PREFIX]


def test_thoughts_of_another_model_are_dropped_without_an_error() -> None:
    with asked(AnthropicRules()) as (server, caller, messages):
        assert caller.ask(messages, model="claude-haiku-5-5")[0] == 200
        assert [lost.reason for lost in server.rules.lost] == [MODEL]


def test_a_thought_that_the_client_leaves_out_is_counted() -> None:
    with asked(AnthropicRules()) as (server, caller, messages):
        bare = {**messages[1], "content": messages[1]["content"][1:]}
        assert caller.ask([messages[0], bare, messages[2]])[0] == 200
        assert [lost.reason for lost in server.rules.lost] == ["left out"]


def test_thoughts_arrive_without_text_unless_asked_for() -> None:
    with StrictServer(STEPS, AnthropicRules()) as server:
        caller = Caller(server)
        assert caller.ask([USER])[1]["content"][0]["thinking"] == ""
    with StrictServer(STEPS, AnthropicRules()) as server:
        shown = {"type": "adaptive", "display": "summarized"}
        assert Caller(server).ask([USER], thinking=shown)[1]["content"][0]["thinking"] == "I look first."


def test_redacted_thoughts_and_empty_texts_have_to_come_back() -> None:
    rules = AnthropicRules(redacted=(1,), empty_text=(1,))
    with asked(rules) as (server, caller, messages):
        kinds = [block["type"] for block in messages[1]["content"]]
        assert kinds == ["redacted_thinking", "text", "text", "tool_use"]
        _, second = caller.ask(messages)
        without = {**messages[1], "content": [messages[1]["content"][0], *messages[1]["content"][2:]]}
        assert caller.ask([USER, without, messages[2], turn(second), USER])[0] == 400
        assert caller.ask([*messages, turn(second), USER])[0] == 200
        assert server.rules.lost == []


def test_unknown_fields_are_refused_by_name() -> None:
    with StrictServer(STEPS, AnthropicRules(fields=())) as server:
        caller = Caller(server)
        _, error = caller.ask([USER], thinking={"type": "adaptive", "display": "summarized"})
        assert error["error"]["message"] == "thinking.adaptive.display: Extra inputs are not permitted"
        assert caller.ask([USER], diagnostics={"previous_message_id": None})[0] == 400
        assert caller.ask([USER, {"role": "system", "content": "x"}])[0] == 400
        assert caller.ask([USER])[0] == 200


def test_system_messages_have_their_places() -> None:
    note = {"role": "system", "content": [{"type": "text", "text": "Mind the gap."}]}
    with asked(AnthropicRules()) as (_, caller, messages):
        assert caller.ask([messages[0], note, *messages[1:]])[0] == 400  # the first thought came without it
        assert caller.ask([*messages, note])[0] == 200
        assert caller.ask([*messages[:2], note, messages[2]])[0] == 400
        assert caller.ask([*messages, {**note, "clear_at": "next_user_message"}])[0] == 400
        assert caller.ask([*messages, {**note, "clear_at": "next_user_message"}], CLEAR_AT)[0] == 200


def test_the_diagnosis_names_what_changed() -> None:
    def reason(message: dict[str, Any]) -> object:
        found = message["diagnostics"]["cache_miss_reason"]
        return found and found["type"]

    with StrictServer(STEPS, AnthropicRules()) as server:
        caller = Caller(server)
        _, first = caller.ask([USER], diagnostics={"previous_message_id": None})
        assert reason(first) is None
        again = {"previous_message_id": first["id"]}
        messages = [USER, turn(first), result(first)]
        _, second = caller.ask(messages, diagnostics=again)
        assert reason(second) is None
        more = [*messages, turn(second), USER]
        assert reason(caller.ask(more, diagnostics={"previous_message_id": "msg_x"})[1]) == "previous_message_not_found"
        _, third = caller.ask(more, BINDING, thinking=DROP, system=[], diagnostics=again)
        assert reason(third) == "system_changed"


def test_anthropics_cache_keeps_for_the_lifetime_of_the_breakpoint() -> None:
    now = 0.0
    cache = AnthropicCache(lambda: now, minimum=1)
    text = {"type": "text", "text": "x" * 4000}

    def body(ttl: str) -> dict[str, Any]:
        return {
            "messages": [{"role": "user", "content": [{**text, "cache_control": {"type": "ephemeral", "ttl": ttl}}]}]
        }

    assert cache.charge(body("5m")).written > 1000
    now = 299.0
    assert cache.charge(body("5m")).read > 1000
    now = 700.0
    assert cache.charge(body("1h")).hour > 1000
    now = 4000.0
    assert cache.charge(body("1h")).read > 1000


def test_openais_cache_has_whole_blocks_and_llamas_any_prefix() -> None:
    blocks, newest = BlockCache(), NewestPrefix()
    prefix = ["a" * 6000, "b" * 100]
    assert blocks.charge({}, prefix).read == 0
    assert blocks.charge({}, [*prefix, "c"]).read == 1024
    newest.charge(prefix)
    assert newest.charge([*prefix, "c"]).plain < 5
    assert newest.charge(["a" * 6000, "c"]).plain < 10
    assert newest.charge(["z", *prefix]).read == 0


def test_openai_withholds_what_does_not_fit() -> None:
    def ask(server: StrictServer[ResponsesRules], items: list[Any], **changes: Any) -> dict[str, Any]:
        body = {"model": "gpt-6-sol", "stream": True, "store": False, "include": ["reasoning.encrypted_content"]}
        sent = {**body, "input": items, **changes}
        answer = httpx.post(f"{server.url}/v1/responses", json=sent, trust_env=False, timeout=PATIENCE)
        assert answer.status_code == 200, answer.text
        last = [line for line in answer.text.splitlines() if line.startswith("data: ")][-1]
        return json.loads(last[6:])["response"]

    user = {"role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    with StrictServer(STEPS, ResponsesRules()) as server:
        first = ask(server, [user])
        call = next(item for item in first["output"] if item["type"] == "function_call")
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "x"}
        items = [user, *first["output"], output]
        options = {"comparison_response_id": first["id"], "ttl": "12h"}
        second = ask(server, items, prompt_cache_options=options)
        assert "input_transformations" not in second
        assert second["prompt_cache_diagnostics"] == {"type": "cache_hit"}
        note = {"role": "developer", "content": "now"}
        third = ask(server, [note, *items, *second["output"], user], prompt_cache_options=options)
        assert {entry["reason"] for entry in third["input_transformations"]} == {"prefix_mismatch"}
        assert third["prompt_cache_diagnostics"]["reason"] == "input_changed"
        assert len(server.rules.lost) == 2


def test_gemini_wants_each_signature_on_its_own_call() -> None:
    def ask(server: StrictServer[GeminiRules], contents: list[Any]) -> httpx.Response:
        url = f"{server.url}/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
        return httpx.post(url, json={"contents": contents}, trust_env=False, timeout=PATIENCE)

    user = {"role": "user", "parts": [{"text": "hi"}]}
    with StrictServer(STEPS, GeminiRules()) as server:
        lines = [line for line in ask(server, [user]).text.splitlines() if line.startswith("data: ")]
        parts = [part for line in lines for part in json.loads(line[6:])["candidates"][0]["content"]["parts"]]
        call = next(part for part in parts if "functionCall" in part)
        made = call["functionCall"]
        answer = {"name": "look", "response": {"output": "x"}, **({"id": made["id"]} if "id" in made else {})}
        seen = {"role": "user", "parts": [{"functionResponse": answer}]}

        def status(part: dict[str, Any]) -> int:
            return ask(server, [user, {"role": "model", "parts": [part]}, seen]).status_code

        assert status({"functionCall": made}) == 400
        assert status({**call, "functionCall": {**made, "args": {"at": "y"}}}) == 400
        assert status({**call, "thoughtSignature": OF_OTHERS}) == 400
        assert status(call) == 200
        other = {"functionCall": {**made, "args": {"at": "z"}}, "thoughtSignature": OF_OTHERS}
        assert status(other) == 200


def test_llamas_timings_count_the_evaluated_tokens() -> None:
    with StrictServer(STEPS, LlamaRules()) as server:
        body = {"model": "m", "stream": True, "stream_options": {"include_usage": True}}
        said = {"role": "user", "content": "x" * 4000}
        url = f"{server.url}/v1/chat/completions"
        first, answer = (
            httpx.post(url, json={**body, "messages": [said]}, trust_env=False, timeout=PATIENCE) for _ in range(2)
        )
        assert '"cache_n":0' in first.text
        usage = json.loads(next(line for line in answer.text.splitlines() if '"timings"' in line)[6:])
        assert usage["timings"]["cache_n"] > 900
        assert usage["timings"]["prompt_n"] < 5
