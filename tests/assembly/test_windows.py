"""Windows of models in use: asked from the server, learned from an error, kept for the next session."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from swecli.assembly.models import ModelSupply
from swecli.core.config.key_store import KeyStore
from swecli.core.config.settings import Settings
from swecli.core.engine.session import Session
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.llm.types import ProviderError
from swecli.core.protocol.commands import Submit
from swecli.core.protocol.events import ContextMeasured, Event, ModelChanged, Notice, TurnEnded
from swecli.core.validation import validated
from swecli.launch import LaunchOptions
from tests.core.engine.support import MemoryLog, make_services, until
from tests.core.llm.test_client import REQUEST
from tests.support.json_server import JsonServer, Reply, serve_json

MODELS = {"object": "list", "data": [{"id": "qwen", "object": "model", "max_model_len": 4096}]}


def supply(data: Path, server: JsonServer | None = None, **settings: Any) -> ModelSupply:
    environment = {"VLLM_BASE_URL": server.url} if server is not None else {}
    chosen = validated(Settings, {"model": {"name": "vllm/qwen"}, **settings})
    return ModelSupply(
        LaunchOptions(Path("/proj")), chosen, {"OPENAI_API_KEY": "k", **environment}, data, KeyStore(data)
    )


def window(client: Any) -> tuple[int | None, str]:
    return client.info.window, client.info.window_source


async def test_the_server_knows_best(tmp_path: Path) -> None:
    async with serve_json({"/v1/models": MODELS}) as server:
        models = supply(tmp_path, server)
        client = models.make("vllm/qwen")
        assert window(client) == (32_000, "assumed")
        assert await models.windows.ask(client)
        assert window(client) == (4096, "endpoint")
        assert isinstance(client, HttpModelClient)
        assert client.config.target.window == 4096
        asked = len(server.asked)
        assert not await models.windows.ask(client)
        assert len(server.asked) == asked


async def test_a_server_that_was_away_is_asked_again(tmp_path: Path) -> None:
    """It may have been started with another window."""
    async with serve_json({"/v1/models": MODELS}) as server:
        models = supply(tmp_path, server)
        client = models.make("vllm/qwen")
        await models.windows.ask(client)
        await models.windows.learn(client, ProviderError("context_overflow", "too long", window=2048))
        models.windows.doubt(client)
        assert models.windows.may_tell(client)
        server.routes["/v1/models"] = {"object": "list", "data": [{"id": "qwen", "max_model_len": 64_000}]}
        assert await models.windows.ask(client)
        assert window(client) == (64_000, "endpoint")
        assert not models.windows.may_tell(client)


async def test_a_server_elsewhere_is_not_doubted(tmp_path: Path) -> None:
    models = supply(tmp_path)
    client = models.make("openai/gpt-6-sol")
    models.windows._known[client].settled = True
    models.windows.doubt(client)
    assert not models.windows.may_tell(client)


async def test_a_window_of_the_settings_stays_whatever_a_server_nearby_says(tmp_path: Path) -> None:
    """It is asked all the same: whether it has tools, no setting knows."""
    listed = {"object": "list", "data": [{**MODELS["data"][0], "supports_tools": False}]}
    async with serve_json({"/v1/models": listed}) as server:
        models = supply(tmp_path, server, models={"window": {"vllm/qwen": 9_000}})
        client = models.make("vllm/qwen")
        assert client.info.tools
        assert await models.windows.ask(client)
        assert window(client) == (9_000, "user")
        assert not client.info.tools


async def test_a_path_that_a_server_does_not_have_is_not_asked_again(tmp_path: Path) -> None:
    listed = {"object": "list", "data": [{"id": "qwen", "object": "model", "owned_by": "somebody"}]}
    async with serve_json({"/v1/models": listed}) as server:
        await (models := supply(tmp_path, server)).windows.ask(models.make("vllm/qwen"))
        first = len(server.asked)
        await (again := supply(tmp_path, server)).windows.ask(again.make("vllm/qwen"))
        assert first == 3
        assert server.paths[first:] == ["/v1/models"]
        assert not again.windows.refused(f"127.0.0.1:{server.port}")


async def test_what_lists_no_models_gets_one_question_a_start(tmp_path: Path) -> None:
    async with serve_json({}) as server:
        for _ in range(2):
            assert not await (models := supply(tmp_path, server)).windows.ask(models.make("vllm/qwen"))
        assert server.paths == ["/v1/models", "/v1/models"]


async def test_a_server_that_does_not_run_yet_is_asked_again(tmp_path: Path) -> None:
    async with serve_json({}) as server:
        models = supply(tmp_path, server)
        client = models.make("vllm/qwen")
        assert not await models.windows.ask(client)
        server.routes["/v1/models"] = MODELS
        assert await models.windows.ask(client)
        assert window(client) == (4096, "endpoint")


async def test_what_an_error_states_counts_at_once_and_in_the_next_session(tmp_path: Path) -> None:
    async with serve_json({}) as server:
        models = supply(tmp_path, server)
        client = models.make("vllm/qwen")
        said = await models.windows.learn(client, ProviderError("context_overflow", "too long", window=8192))
        assert "8,192" in said
        assert window(client) == (8192, "learned")
        assert await models.windows.learn(client, ProviderError("context_overflow", "too long", window=8192)) == ""
        assert window(supply(tmp_path, server).make("vllm/qwen")) == (8192, "learned")
        assert window(supply(tmp_path, server).make("vllm/other")) == (32_000, "assumed")
        set_by_user = supply(tmp_path, server, providers={"vllm": {"window": 16_000}}).make("vllm/qwen")
        assert window(set_by_user) == (16_000, "user")


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ({"models": {"window": {"vllm/qwen": 16_000}}}, "models.window"),
        ({"providers": {"vllm": {"window": 16_000}}}, "providers.vllm.window"),
    ],
)
async def test_a_setting_that_the_server_refuted_does_not_count_again(
    tmp_path: Path, setting: dict[str, Any], name: str
) -> None:
    async with serve_json({}) as server:
        models = supply(tmp_path, server, **setting)
        client = models.make("vllm/qwen")
        text = await models.windows.learn(client, ProviderError("context_overflow", "too long", window=8192))
        assert "8,192" in text
        assert f"16,000 of {name}" in text
        later = supply(tmp_path, server, **setting)
        client = later.make("vllm/qwen")
        assert window(client) == (8192, "learned")
        await later.windows.ask(client)  # the server may have been started anew
        server.routes["/v1/models"] = {"object": "list", "data": [{"id": "qwen", "max_model_len": 12_000}]}
        await later.windows.ask(client)
        assert window(client) == (12_000, "endpoint")
        server.routes["/v1/models"] = {"object": "list", "data": [{"id": "qwen", "max_model_len": 64_000}]}
        fresh = supply(tmp_path, server, **setting)
        client = fresh.make("vllm/qwen")
        await fresh.windows.ask(client)
        assert window(client) == (16_000, "user")
        changed = supply(tmp_path, server, models={"window": {"vllm/qwen": 12_000}}).make("vllm/qwen")
        assert window(changed) == (12_000, "user")


async def test_an_error_is_right_even_against_the_server_and_the_user(tmp_path: Path) -> None:
    async with serve_json({"/v1/models": MODELS}) as server:
        models = supply(tmp_path, server)
        client = models.make("vllm/qwen")
        await models.windows.ask(client)
        await models.windows.learn(client, ProviderError("context_overflow", "too long", window=2048))
        assert window(client) == (2048, "learned")


async def test_an_error_without_a_number_teaches_nothing(tmp_path: Path) -> None:
    models = supply(tmp_path)
    client = models.make("openai/gpt-6-sol")
    before = client.info
    assert await models.windows.learn(client, ProviderError("context_overflow", "too long")) == ""
    assert client.info == before
    assert not (tmp_path / "windows.json").exists()


async def test_an_earlier_answer_of_the_same_host_precedes_the_catalogue(tmp_path: Path) -> None:
    async with serve_json({}) as server:
        models = ModelSupply(
            LaunchOptions(Path("/proj")),
            validated(Settings, {"model": {"name": "openai/gpt-5"}}),
            {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{server.url}/v1"},
            tmp_path,
            KeyStore(tmp_path),
        )
        client = models.make("openai/gpt-5")
        assert isinstance(client, HttpModelClient)
        listed = window(client)
        assert listed[1] == "catalogue"
        origin = client.config.target.origin
        models.windows.recall(client, 9_000, replace(origin, host="api.example.com"))
        assert window(client) == listed
        models.windows.recall(client, 9_000, origin)
        assert window(client) == (9_000, "endpoint")


async def test_ollama_is_told_the_window_in_each_request(tmp_path: Path) -> None:
    shown = {
        "model_info": {"general.architecture": "qwen", "qwen.context_length": 40_960},
        "parameters": "num_ctx 8192",
    }
    async with serve_json({"/api/show": shown, "/api/ps": {"models": []}}) as server:
        chosen = validated(Settings, {})
        environment = {"OLLAMA_HOST": server.url}
        models = ModelSupply(LaunchOptions(Path("/proj")), chosen, environment, tmp_path, KeyStore(tmp_path))
        client = models.make("ollama/qwen3")
        assert await models.windows.ask(client)
        assert window(client) == (8192, "endpoint")
        assert isinstance(client, HttpModelClient)
        body = client.wire_request(REQUEST).body
        assert (body["options"], body["truncate"]) == ({"num_ctx": 8192, "num_predict": 10}, False)


@asynccontextmanager
async def session_with(models: ModelSupply, cwd: Path) -> AsyncIterator[tuple[Session, list[Event]]]:
    services = make_services(ScriptedModel(parse_script('[[step]]\ntext = "x"')), (), cwd)
    session = Session("s", replace(services, access=models.access()), lambda publish: MemoryLog([], publish))
    events: list[Event] = []

    async def follow() -> None:
        async for event in session.subscribe():
            events.append(event)

    follower = asyncio.create_task(follow())
    session.start("vllm/qwen", "")
    try:
        yield session, events
    finally:
        await session.close()
        await follower


async def test_a_session_announces_the_window_and_gates_on_it(tmp_path: Path) -> None:
    routes = {"/v1/models": MODELS, "/v1/chat/completions": Reply(b"{}", 500)}
    async with serve_json(routes) as server, session_with(supply(tmp_path, server), tmp_path) as (session, events):
        await until(lambda: any(isinstance(event.body, ModelChanged) for event in events))
        changed = next(event.body for event in events if isinstance(event.body, ModelChanged))
        assert (changed.window, changed.switched) == (4096, False)
        measured = [event.body.budget for event in events if isinstance(event.body, ContextMeasured)]
        assert (measured[0].window, measured[-1].window, measured[-1].window_source) == (32_000, 4096, "endpoint")
        session.send(Submit("word " * 6_000))
        await until(lambda: any(isinstance(event.body, TurnEnded) for event in events))
        ended = next(event.body for event in events if isinstance(event.body, TurnEnded))
        assert ended.outcome == "blocked"
        assert "/v1/chat/completions" not in server.paths


OVERFLOW = (
    b'{"error": {"message": "This model\'s maximum context length is 9000 tokens. However, you requested 9500."}}'
)


async def test_a_session_learns_from_an_overflow(tmp_path: Path) -> None:
    async with serve_json({"/v1/chat/completions": Reply(OVERFLOW, 400)}) as server:
        async with session_with(supply(tmp_path, server), tmp_path) as (session, events):
            session.send(Submit("hi"))
            await until(lambda: any(isinstance(event.body, TurnEnded) for event in events))
            assert session.view.model is not None
            assert session.view.model.window == 9000
            assert any("9,000" in event.body.text for event in events if isinstance(event.body, Notice))
        assert window(supply(tmp_path, server).make("vllm/qwen")) == (9000, "learned")


ANSWER = Reply(
    b'data: {"id": "1", "choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": "stop"}]}\n\n'
    b"data: [DONE]\n\n",
    content_type="text/event-stream",
)


@pytest.mark.parametrize("setting", [{}, {"models": {"window": {"vllm/qwen": 32_768}}}])
async def test_a_turn_goes_on_with_the_window_that_a_refusal_names(tmp_path: Path, setting: dict[str, Any]) -> None:
    routes = {"/v1/chat/completions": (Reply(OVERFLOW, 400), ANSWER)}
    async with serve_json(routes) as server, session_with(supply(tmp_path, server, **setting), tmp_path) as opened:
        session, events = opened
        session.send(Submit("hi"))
        await until(lambda: any(isinstance(event.body, TurnEnded) for event in events))
        ended = next(event.body for event in events if isinstance(event.body, TurnEnded))
        assert (ended.outcome, ended.error_kind) == ("done", "")
        refused, accepted = [json.loads(request.body) for request in server.asked if "completions" in request.path]
        assert len(json.dumps(accepted)) < len(json.dumps(refused))  # short prompt and few tools
        assert session.view.messages[-1].text == "Hello."


async def test_a_second_refusal_ends_the_turn(tmp_path: Path) -> None:
    routes = {"/v1/chat/completions": Reply(OVERFLOW, 400)}
    async with serve_json(routes) as server, session_with(supply(tmp_path, server), tmp_path) as (session, events):
        session.send(Submit("hi"))
        await until(lambda: any(isinstance(event.body, TurnEnded) for event in events))
        ended = next(event.body for event in events if isinstance(event.body, TurnEnded))
        assert (ended.outcome, ended.error_kind) == ("blocked", "context_overflow")
        assert server.paths.count("/v1/chat/completions") == 2
