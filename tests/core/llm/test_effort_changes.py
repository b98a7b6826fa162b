"""A change of the effort within a conversation is appended, where the model reads that."""

from __future__ import annotations

import pytest

from swecli.core.llm.providers import Overrides
from swecli.core.llm.scripted import parse_script
from swecli.core.protocol.messages import Message, TextPart
from tests.core.llm.talks import Talk
from tests.support.strict_anthropic import AnthropicRules
from tests.support.strict_responses import ResponsesRules
from tests.support.strict_server import StrictServer

SCRIPT = parse_script(
    "\n".join(f'[[step]]\nreasoning = "Thought {number}."\ntext = "Answer {number}."' for number in range(1, 7))
)


async def efforts_of(model: str, *efforts: str | None) -> tuple[list[object], StrictServer[AnthropicRules]]:
    with StrictServer(SCRIPT, AnthropicRules()) as server:
        talk = Talk(server, model)
        for effort in efforts:
            await talk.go_on(effort=effort)
        await talk.client.close()
    shapes: list[object] = []
    for request in server.requests:
        top = (request.body.get("output_config") or {}).get("effort")
        changes = [
            (at, message["output_config"]["effort"])
            for at, message in enumerate(request.body["messages"])
            if message["role"] == "system"
        ]
        shapes.append((top, *changes))
    return shapes, server


async def test_the_beginning_stays_and_no_thought_is_lost() -> None:
    shapes, server = await efforts_of("anthropic/claude-opus-5-5", "low", "high", "high", "low")
    assert shapes == [
        ("low",),
        ("low", (2, "high")),
        ("low", (2, "high")),
        ("low", (2, "high"), (7, "low")),
    ]
    assert server.refused == []
    assert server.rules.lost == []


async def test_an_effort_after_the_default_is_appended_too() -> None:
    shapes, server = await efforts_of("anthropic/claude-opus-5-5", None, "high", "high")
    assert shapes == [(None,), (None, (2, "high")), (None, (2, "high"))]
    assert server.rules.lost == []


async def test_a_return_to_the_default_begins_anew() -> None:
    shapes, _ = await efforts_of("anthropic/claude-opus-5-5", "low", None, "high")
    assert shapes == [("low",), (None,), (None, (4, "high"))]


async def test_a_model_without_the_form_gets_the_newest_effort() -> None:
    shapes, _ = await efforts_of("anthropic/claude-fable-5", "low", "high")
    assert shapes == [("low",), ("high",)]


async def test_a_change_in_the_middle_of_a_turn_waits_for_the_next_message() -> None:
    script = parse_script(
        """
[[step]]
reasoning = "One."
call = [{ tool = "look" }]
[[step]]
reasoning = "Two."
text = "Done."
[[step]]
reasoning = "Three."
text = "Done again."
"""
    )
    with StrictServer(script, AnthropicRules()) as server:
        talk = Talk(server, "anthropic/claude-opus-5-5")
        for effort in ("low", "high", "high"):
            await talk.go_on(effort=effort)
        await talk.client.close()
        roles = [[message["role"] for message in request.body["messages"]] for request in server.requests]
        assert roles[1] == ["user", "assistant", "user"]
        assert roles[2] == ["user", "assistant", "user", "assistant", "system", "user"]
        assert server.refused == []
        assert server.rules.lost == []


async def test_notes_keep_their_place_behind_the_message() -> None:
    with StrictServer(SCRIPT, AnthropicRules()) as server:
        talk = Talk(server, "anthropic/claude-opus-5-5")
        for number, effort in enumerate(("low", "high", "high")):
            talk.messages.append(Message("user", (TextPart(f"Note {number}."),), f"n{number}", note="stays"))
            await talk.go_on(effort=effort)
        await talk.client.close()
        assert server.refused == []
        assert server.rules.lost == []
        roles = [message["role"] for message in server.requests[1].body["messages"]]
        assert roles == ["user", "system", "assistant", "system", "user", "system"]


async def test_a_server_without_the_form_is_asked_once() -> None:
    learned: list[str] = []
    rules = AnthropicRules(fields=("display", "diagnostics", "system"))
    with StrictServer(SCRIPT, rules) as server:
        talk = Talk(server, "anthropic/claude-opus-5-5", learned=learned)
        for effort in ("low", "high", "high"):
            await talk.go_on(effort=effort)
        await talk.client.close()
        assert learned == ["output_config"]
        assert len(server.refused) == 1
        assert server.requests[-1].body["output_config"] == {"effort": "high"}


@pytest.mark.parametrize("known", [True, False])
async def test_openai_gets_a_configuration_update(known: bool) -> None:
    learned: list[str] = []
    rules = ResponsesRules() if known else ResponsesRules(fields=("prompt_cache_options", "comparison_response_id"))
    with StrictServer(SCRIPT, rules) as server:
        talk = Talk(server, "openai/gpt-6-sol", Overrides(protocol="openai-responses"), learned)
        for effort in ("low", "high", "high"):
            await talk.go_on(effort=effort)
        await talk.client.close()
        last = server.requests[-1].body
        updates = [item for item in last["input"] if item.get("type") == "configuration_update"]
        assert last["reasoning"]["effort"] == ("low" if known else "high")
        assert updates == ([{"type": "configuration_update", "reasoning": {"effort": "high"}}] if known else [])
        assert learned == ([] if known else ["configuration_update"])
        assert server.rules.lost == []
