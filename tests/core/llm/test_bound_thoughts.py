"""Thoughts that are bound to their conversation, against servers that check it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.json_values import compact
from swecli.core.llm.providers import Overrides, resolve
from swecli.core.llm.types import ModelRequest
from swecli.core.protocol.messages import DroppedThoughts, Message, ProviderReport, ReasoningPart, TextPart
from tests.core.llm.talks import Talk, server_script, thoughts
from tests.support.strict_anthropic import BINDING, AnthropicRules
from tests.support.strict_gemini import GeminiRules
from tests.support.strict_responses import ResponsesRules
from tests.support.strict_server import StrictServer

OPUS = "anthropic/claude-opus-5-5"


async def test_every_thought_stays_and_none_is_refused_while_nothing_changes() -> None:
    with StrictServer(server_script(5), AnthropicRules()) as server:
        talk = Talk(server, OPUS)
        for _ in range(5):
            await talk.go_on()
        await talk.client.close()
        assert server.refused == []
        assert server.rules.lost == []
        assert server.rules.thoughts == 1 + 2 + 3 + 4
        assert all(BINDING not in request.headers.get("anthropic-beta", "") for request in server.requests)


async def test_thoughts_are_readable_without_an_effort_unless_hidden() -> None:
    with StrictServer(server_script(2), AnthropicRules()) as server:
        talk = Talk(server, OPUS)
        assert thoughts(await talk.go_on()) == "Thought 1."
        assert thoughts(await talk.go_on(effort="low")) == "Thought 2."
        await talk.client.close()
        assert [request.body["thinking"] for request in server.requests] == [
            {"type": "adaptive", "display": "summarized"},
            {"type": "adaptive", "display": "summarized"},
        ]
    with StrictServer(server_script(1), AnthropicRules()) as server:
        talk = Talk(server, OPUS, Overrides(shows_thoughts=False))
        assert thoughts(await talk.go_on()) == ""
        await talk.client.close()
        assert server.requests[0].body["thinking"] == {"type": "adaptive"}


async def test_a_refused_conversation_loses_only_what_is_invalid() -> None:
    with StrictServer(server_script(5), AnthropicRules()) as server:
        talk = Talk(server, OPUS)
        for _ in range(3):
            await talk.go_on()
        talk.edit(4, "seen, and shortened")  # the result of the second call: the third thought came behind it
        answer = await talk.go_on()
        await talk.go_on()
        await talk.client.close()
        assert len(server.refused) == 1
        lost = [entry.path for entry in server.rules.lost]
        assert lost == ["messages.5.content.0", "messages.5.content.0"]  # in both requests since, and no other
        assert server.rules.dropping == [5, 6]
        report = answer.response.report if answer.response is not None else None
        assert report == ProviderReport(
            (DroppedThoughts("prefix", 1),), dropping=True, miss="messages_changed", missed=report and report.missed
        )
        assert talk.notices == [
            "Earlier messages changed, so the model can't use its reasoning behind them. swecli lets the provider drop "
            "only that reasoning."
        ]


async def test_a_later_run_of_that_conversation_is_not_refused_again() -> None:
    with StrictServer(server_script(4), AnthropicRules()) as server:
        talk = Talk(server, OPUS)
        await talk.go_on()
        talk.edit(0, "Look elsewhere.")
        await talk.go_on()
        await talk.client.close()
        again = Talk(server, OPUS)
        again.messages = talk.messages
        await again.go_on()
        await again.client.close()
        assert len(server.refused) == 1
        assert again.notices == []
        other = Talk(server, OPUS)
        await other.go_on()
        await other.client.close()
        assert server.rules.dropping == [3, 4]  # another conversation is none of it


async def test_an_account_older_than_the_rule_never_gets_the_control() -> None:
    with StrictServer(server_script(3), AnthropicRules(enforced=False)) as server:
        talk = Talk(server, OPUS)
        await talk.go_on()
        talk.edit(0, "Look elsewhere.")
        await talk.go_on()
        await talk.go_on()
        await talk.client.close()
        assert server.refused == []
        assert server.rules.lost == []
        assert server.rules.dropping == []


async def test_a_proxy_that_changes_messages_is_named_once() -> None:
    stamps = iter(range(100))

    def stamped(body: dict[str, Any]) -> dict[str, Any]:
        body["system"] = [*body.get("system", []), {"type": "text", "text": f"Request {next(stamps)}"}]
        return body

    with StrictServer(server_script(5), AnthropicRules(rewrite=stamped)) as server:
        talk = Talk(server, OPUS)
        for _ in range(5):
            await talk.go_on()
        await talk.client.close()
        assert len(server.refused) == 1
        assert len(talk.notices) == 1
        assert talk.notices[0].startswith("127.0.0.1 changes messages on their way")
        told = [message.response.report for message in talk.messages if message.response is not None]
        assert [report is not None and report.reduced for report in told][2:] == [
            "127.0.0.1 changes messages on their way"
        ] * 3


async def test_a_server_without_any_of_the_fields_refuses_each_once_and_for_all_sessions() -> None:
    learned: list[str] = []
    with StrictServer(server_script(6), AnthropicRules(fields=(), omits=False)) as server:
        for number in range(2):
            talk = Talk(server, OPUS, learned=learned)
            await talk.go_on()
            await talk.go_on()
            await talk.client.close()
            assert bool(talk.notices) is (number == 0)
        assert len(server.refused) == len({*server.refused})
        assert "thinking.adaptive.display: Extra inputs are not permitted" in server.refused
        assert sorted(learned) == ["diagnostics", "display"]


async def test_without_the_control_thoughts_go_from_the_invalid_one_to_the_end() -> None:
    rules = AnthropicRules(fields=("display", "diagnostics"))
    with StrictServer(server_script(7), rules) as server:
        talk = Talk(server, OPUS)
        for _ in range(4):
            await talk.go_on()
        talk.edit(4, "seen, and shortened")
        await talk.go_on()
        await talk.go_on()
        await talk.client.close()
        assert len(server.refused) == 3  # for the change, for the unknown control, and for the change once more
        left_out = [entry.request for entry in server.rules.lost]
        assert len(left_out) == 2 * 2
        first, second = [request for request in server.requests if request.status == 200][-2:]
        assert kinds(first.body).count("thinking") == 2
        assert kinds(second.body).count("thinking") == 3  # the new one stays
        assert "no longer sends that of the newest 2 of 4 answers" in talk.notices[-1]
        again = Talk(server, OPUS, learned=["block_binding"])  # as in a later run
        again.messages = talk.messages
        await again.go_on()
        await again.client.close()
        assert len(server.refused) == 3
        assert again.notices == []


def kinds(body: dict[str, Any]) -> list[str]:
    return [block["type"] for message in body["messages"] for block in message["content"]]


async def test_redacted_thoughts_and_empty_texts_go_back_as_they_came() -> None:
    rules = AnthropicRules(redacted=(1,), empty_text=(1, 2))
    with StrictServer(server_script(4), rules) as server:
        talk = Talk(server, OPUS)
        for _ in range(4):
            await talk.go_on()
        await talk.client.close()
        assert server.refused == []
        assert server.rules.lost == []
        sent = server.requests[-1].body["messages"][1]["content"]
        assert [block["type"] for block in sent] == ["redacted_thinking", "text", "text", "tool_use"]


async def test_each_model_gets_its_own_thoughts_when_models_change_back_and_forth() -> None:
    with StrictServer(server_script(6), AnthropicRules()) as server:
        talks = [Talk(server, OPUS), Talk(server, "anthropic/claude-haiku-5-5")]
        for number in range(6):
            talk = talks[number % 2]
            talk.messages = talks[0].messages
            await talk.go_on()
        for talk in talks:
            await talk.client.close()
        assert server.refused == []
        assert server.rules.lost == []
        assert server.rules.thoughts == 0 + 0 + 1 + 1 + 2 + 2


async def test_reasoning_that_openai_withholds_is_reported() -> None:
    with StrictServer(server_script(3), ResponsesRules()) as server:
        settings = Overrides(protocol="openai-responses")
        talk = Talk(server, "openai/gpt-6-sol", settings)
        await talk.go_on()
        await talk.go_on()
        assert server.rules.lost == []
        talk.edit(0, "Look elsewhere.")
        answer = await talk.go_on()
        await talk.client.close()
        assert answer.response is not None
        report = answer.response.report
        assert report is not None
        assert report.dropped == (DroppedThoughts("prefix", 2),)
        assert report.miss == "input_changed"


async def test_openai_is_asked_for_the_lifetime_and_the_diagnosis_of_its_cache() -> None:
    with StrictServer(server_script(2), ResponsesRules()) as server:
        settings = Overrides(protocol="openai-responses", cache_ttl=lambda _: "12h")
        talk = Talk(server, "openai/gpt-6-sol", settings)
        await talk.go_on()
        await talk.go_on()
        await talk.client.close()
        first, second = (request.body["prompt_cache_options"] for request in server.requests)
        assert first == {"ttl": "12h"}
        assert second == {"ttl": "12h", "comparison_response_id": "resp_1"}


async def test_a_server_that_speaks_responses_without_cache_options_is_asked_once() -> None:
    learned: list[str] = []
    with StrictServer(server_script(4), ResponsesRules(fields=())) as server:
        settings = Overrides(protocol="openai-responses", cache_ttl=lambda _: "12h")
        for _ in range(2):
            talk = Talk(server, "openai/gpt-6-sol", settings, learned)
            await talk.go_on()
            await talk.client.close()
        assert server.refused == ["Unknown parameter: 'prompt_cache_options'."]
        assert learned == ["prompt_cache_options"]


async def test_gemini_gets_each_signature_on_its_own_part_in_every_turn() -> None:
    with StrictServer(server_script(4), GeminiRules()) as server:
        talk = Talk(server, "gemini/gemini-3.8-flash")
        for _ in range(4):
            await talk.go_on()
        await talk.client.close()
        assert server.refused == []
        assert server.rules.lost == []


async def test_gemini_models_change_back_and_forth() -> None:
    with StrictServer(server_script(6), GeminiRules()) as server:
        talks = [Talk(server, "gemini/gemini-3.8-flash"), Talk(server, "gemini/gemini-4-argon")]
        for number in range(6):
            talk = talks[number % 2]
            talk.messages = talks[0].messages
            await talk.go_on()
        for talk in talks:
            await talk.client.close()
        assert server.refused == []
        assert server.rules.lost == []


@pytest.mark.parametrize("ttl", ["1h", "5m", ""])
async def test_every_breakpoint_has_the_lifetime(ttl: str) -> None:
    with StrictServer(server_script(2), AnthropicRules()) as server:
        talk = Talk(server, OPUS, Overrides(cache_ttl=lambda _: ttl))
        answer = await talk.go_on(breakpoints=(0,))
        await talk.client.close()
        body = server.requests[0].body
        marks = [body["system"][0]["cache_control"], body["messages"][0]["content"][0]["cache_control"]]
        wanted = {"type": "ephemeral", "ttl": "1h"} if ttl == "1h" else {"type": "ephemeral"}
        assert marks == [wanted, wanted]
        usage = answer.response.usage if answer.response is not None else None
        assert usage is not None
        assert usage.cache_write_1h == (usage.cache_write if ttl == "1h" and usage.cache_write else None)


async def test_the_diagnosis_of_a_miss_is_asked_for_and_read() -> None:
    with StrictServer(server_script(3), AnthropicRules()) as server:
        talk = Talk(server, OPUS)
        await talk.go_on()
        talk.system = "Be long."
        answer = await talk.go_on()
        await talk.client.close()
        asked = [request.body["diagnostics"]["previous_message_id"] for request in server.requests]
        assert asked[0] is None
        assert asked[-1] == "msg_1"
        report = answer.response.report if answer.response is not None else None
        assert report is not None
        assert report.miss == "system_changed"
        assert report.missed


async def test_texts_of_another_model_without_content_are_not_sent() -> None:
    with StrictServer(server_script(2), AnthropicRules()) as server:
        talk = Talk(server, OPUS)
        await talk.go_on()
        blank = TextPart("\n\n")
        own = talk.messages[1]
        other = structs.replace(own, parts=(blank, *(p for p in own.parts if not isinstance(p, ReasoningPart))))
        assert other.response is not None
        origin = structs.replace(other.response.origin, model="claude-opus-4-5")
        talk.messages[1] = structs.replace(other, response=structs.replace(other.response, origin=origin))
        await talk.go_on()
        await talk.client.close()
        assert kinds(server.requests[-1].body) == ["text", "text", "tool_use", "tool_result"]


@pytest.mark.parametrize("shown", [True, False])
async def test_hidden_reasoning_is_asked_for_in_no_protocol(shown: bool) -> None:
    keys = {"OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
    bodies: dict[str, str] = {}
    for model in ("openai/gpt-6-sol", "gemini/gemini-3.8-flash", OPUS):
        client = HttpModelClient(resolve(model, keys, overrides=Overrides(shows_thoughts=shown)))
        asked = ModelRequest((), (), (Message("user", (TextPart("hi"),)),), effort="high")
        bodies[model] = compact(client.wire_request(asked).body)
        await client.close()
    assert ('"summary"' in bodies["openai/gpt-6-sol"]) is shown
    assert ('"includeThoughts"' in bodies["gemini/gemini-3.8-flash"]) is shown
    assert ('"display"' in bodies[OPUS]) is shown
