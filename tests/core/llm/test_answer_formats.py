"""Answers by a JSON schema, in the form that each provider takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from swecli.core.llm.answer_formats import closed, is_strict
from swecli.core.llm.capabilities import Capabilities, find_capabilities
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.providers import ProviderConfig, resolve
from swecli.core.llm.types import AnswerFormat, Finished, StreamNotice
from tests.core.llm.histories import TOOL, build, request, target, user
from tests.core.llm.raw_server import serve
from tests.core.llm.test_text_tools_client import ask, chat, refusal

COUNT = {"type": "object", "properties": {"count": {"type": "integer", "minimum": 0}}, "required": ["count"]}
CLOSED = {
    "type": "object",
    "properties": {"count": {"type": "integer"}},
    "required": ["count"],
    "additionalProperties": False,
}
MODELS = {
    "openai-chat": "gpt-6",
    "anthropic-messages": "claude-opus-5-5",
    "openai-responses": "gpt-6",
    "gemini-generate": "gemini-3.8-flash",
    "ollama-chat": "qwen3",
}


def body(protocol: str, schema: Any = COUNT, *, tools: bool = True, last: bool = False, **more: Any) -> dict[str, Any]:
    to = target(protocol, model=more.pop("model", MODELS[protocol]))
    to = replace(to, capabilities=more.pop("capabilities", Capabilities(output_format=True)))
    return build(
        request(user("hi"), tools=(TOOL,) if tools else (), answer_format=AnswerFormat(schema, last), **more), to
    )


def test_each_protocol_has_its_own_field() -> None:
    anthropic = body("anthropic-messages", effort="high")
    assert anthropic["output_config"] == {"effort": "high", "format": {"type": "json_schema", "schema": CLOSED}}
    assert body("anthropic-messages")["output_config"] == {"format": {"type": "json_schema", "schema": CLOSED}}
    strict = {"name": "answer", "schema": CLOSED, "strict": True}
    assert body("openai-responses")["text"] == {"format": {"type": "json_schema", **strict}}
    assert body("openai-chat")["response_format"] == {"type": "json_schema", "json_schema": strict}
    gemini = body("gemini-generate")["generationConfig"]
    assert (gemini["responseMimeType"], gemini["responseJsonSchema"]) == ("application/json", COUNT)
    assert body("ollama-chat", tools=False)["format"] == COUNT


@pytest.mark.parametrize("protocol", MODELS)
def test_tools_stay_and_the_rest_of_the_body_is_the_same(protocol: str) -> None:
    with_format = body(protocol)
    without = body(protocol, capabilities=Capabilities())
    changed = {key for key in {*with_format, *without} if with_format.get(key) != without.get(key)}
    assert changed <= {"output_config", "text", "response_format", "generationConfig", "format"}
    assert with_format["tools"]


def test_where_a_schema_prevents_calls_it_waits_until_no_call_is_wanted() -> None:
    assert "format" not in body("ollama-chat")
    assert body("ollama-chat", last=True)["format"] == COUNT
    assert "responseMimeType" not in body("gemini-generate", model="gemini-2.5-pro")["generationConfig"]
    assert body("gemini-generate", model="gemini-2.5-pro", tools=False)["generationConfig"]["responseJsonSchema"]


@pytest.mark.parametrize(
    ("protocol", "host", "model", "has"),
    [
        ("anthropic-messages", "api.anthropic.com", "claude-opus-5-5", True),
        ("anthropic-messages", "other.example", "claude-opus-5-5", False),
        ("openai-chat", "api.openai.com", "gpt-6", True),
        ("openai-chat", "localhost", "qwen3", False),
        ("ollama-chat", "localhost", "any-model:latest", True),
    ],
)
def test_only_models_that_are_known_for_it_are_asked(protocol: str, host: str, model: str, has: bool) -> None:
    assert find_capabilities(protocol, host, model).output_format is has


OPEN: dict[str, Any] = {
    "free object": {"type": "object"},
    "values of a kind": {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "string"}},
    "an object within": {"type": "object", "properties": {"map": {"type": "object"}}, "required": ["map"]},
    "any value": {"type": "object", "properties": {"a": True}},
    "all of": {"allOf": [COUNT]},
    "pattern of names": {"type": "object", "patternProperties": {"^a": {"type": "string"}}},
    "elsewhere": {"$ref": "https://example.com/schema"},
    "recursive": {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {
                "type": "object",
                "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
            }
        },
    },
}


@pytest.mark.parametrize("kind", OPEN)
def test_what_closed_objects_cannot_express_is_left_to_swecli(kind: str) -> None:
    assert closed(OPEN[kind]) is None
    assert "output_config" not in body("anthropic-messages", OPEN[kind])
    assert "text" not in body("openai-responses", OPEN[kind])


def test_a_closed_schema_keeps_the_form_of_the_answer() -> None:
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "files": {"type": "array", "items": {"$ref": "#/definitions/file"}, "minItems": 3},
            "note": {"type": ["string", "null"], "maxLength": 10, "format": "regex"},
            "when": {"type": "string", "format": "date"},
            "kind": {"oneOf": [{"const": "a"}, {"enum": [1, 2]}]},
        },
        "required": ["files", "elsewhere"],
        "definitions": {"file": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}},
    }
    form = closed(schema)
    assert form == {
        "type": "object",
        "properties": {
            "files": {"type": "array", "items": {"$ref": "#/$defs/file"}},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "when": {"type": "string", "format": "date"},
            "kind": {"anyOf": [{"const": "a"}, {"enum": [1, 2]}]},
        },
        "required": ["files"],
        "additionalProperties": False,
        "$defs": {
            "file": {
                "type": "object",
                "properties": {"path": {"type": "string"}},
                "required": ["path"],
                "additionalProperties": False,
            }
        },
    }
    assert form is not None
    assert not is_strict(form)
    assert is_strict(CLOSED)


def test_openai_takes_only_objects() -> None:
    listed = {"type": "array", "items": {"type": "string"}}
    assert "response_format" not in body("openai-chat", listed)
    assert body("anthropic-messages", listed)["output_config"]["format"]["schema"] == listed


@pytest.mark.parametrize(
    "message",
    [
        "Unrecognized request argument supplied: response_format",
        "Invalid schema for response_format 'answer': In context=(), 'required' is required to be supplied",
        "'json_schema' is not supported by this model",
        "structured outputs are not available",
        "failed to parse grammar",
    ],
)
async def test_a_server_that_refuses_the_format_is_asked_without_from_then_on(message: str) -> None:
    async with serve(refusal(message), chat('{"count": 3}')) as server:
        mine = ProviderConfig("mine", "openai-chat", server.url, local=True)
        config = resolve("mine/m", {}, [mine])
        able = Capabilities(output_format=True)
        config = replace(
            config, info=replace(config.info, capabilities=able), target=replace(config.target, capabilities=able)
        )
        stored: list[str] = []
        client = HttpModelClient(config, learn=lambda field: stored.append(field) or "")
        asked = request(user("hi"), tools=(TOOL,), answer_format=AnswerFormat(COUNT))
        events = await ask(client, asked)
        assert isinstance(events[-1], Finished)
        notices = [event.text for event in events if isinstance(event, StreamNotice)]
        assert len(notices) == 1
        learned = message.startswith("Unrecognized")
        assert ("does not know answer_format" if learned else "swecli checks the answer itself") in notices[0]
        assert stored == (["answer_format"] if learned else [])
        assert not any(isinstance(event, StreamNotice) for event in await ask(client, asked))
        sent = ["response_format" in json.dumps(received.body) for received in server.requests]
        assert sent == [True, False, False]
        assert all(received.body["tools"] for received in server.requests)
        await client.close()
