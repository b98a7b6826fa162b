"""Filling the cache of OpenAI ahead of a message: what is sent, and that nothing is ever answered in its place."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from swecli.core.llm.client import NO_PREWARM, HttpModelClient
from swecli.core.llm.json_values import JsonObject, as_object
from swecli.core.llm.providers import Overrides, resolve
from swecli.core.llm.types import Failed, Finished, StreamEvent
from swecli.core.protocol.messages import Usage
from tests.core.llm.raw_server import Answer, head, say, serve
from tests.core.llm.test_client import REQUEST

WRITTEN = {"cached_tokens": 0, "cache_write_tokens": 4_992}
USAGE = {"input_tokens": 5_000, "output_tokens": 0, "input_tokens_details": WRITTEN}
DONE = {"id": "resp_1", "model": "gpt-5.6", "status": "completed", "output": [], "usage": USAGE}
FILLED = say(head(), f"data: {json.dumps({'type': 'response.completed', 'response': DONE})}\n\n".encode())
"""An answer without output, as ``generate: false`` gives it."""


def client_at(url: str) -> HttpModelClient:
    overrides = Overrides(protocol="openai-responses", prewarm=True, capabilities={"prompt_cache_options": True})
    environment = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": url}
    client = HttpModelClient(resolve("openai/gpt-5.6", environment, overrides=overrides))
    assert client.info.prewarms
    return client


async def exchanged(answer: Answer) -> tuple[list[JsonObject], list[StreamEvent]]:
    """The bodies of all requests for one filled cache, and the events."""
    async with serve(answer) as server:
        client = client_at(server.url)
        events = [event async for event in client.stream(replace(REQUEST, prewarm=True))]
        await client.close()
    return [as_object(request.body) for request in server.requests], events


async def test_the_cache_is_filled_without_an_answer() -> None:
    [body], events = await exchanged(FILLED)
    assert body["prompt_cache_options"] == {"prewarm": True}
    assert isinstance(events[-1], Finished)
    assert events[-1].message.parts == ()
    response = events[-1].message.response
    assert response is not None
    assert response.usage == Usage(5_000, 0, 4_992, 0)


@pytest.mark.parametrize(
    "message",
    [
        "Unknown parameter: 'prompt_cache_options.prewarm'.",
        "Unknown parameter: 'prompt_cache_options'.",
        "Unsupported parameter: 'max_output_tokens' is not supported with this model.",
    ],
)
async def test_a_refusal_never_becomes_a_request_that_is_answered(message: str) -> None:
    refusal = json.dumps({"error": {"message": message, "type": "invalid_request_error"}}).encode()
    bodies, events = await exchanged(say(head(400, "application/json"), refusal))
    assert all(as_object(body["prompt_cache_options"])["prewarm"] is True for body in bodies)
    assert isinstance(events[-1], Failed)


async def test_a_model_without_the_option_is_sent_nothing() -> None:
    async with serve(FILLED) as server:
        environment = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.url}
        client = HttpModelClient(resolve("openai/gpt-4o", environment, overrides=Overrides(prewarm=True)))
        events = [event async for event in client.stream(replace(REQUEST, prewarm=True))]
        await client.close()
    assert server.requests == []
    assert not client.info.prewarms
    assert isinstance(events[-1], Failed)
    assert events[-1].error.message == NO_PREWARM
