"""Local servers by the answers that each program documents: found, named, asked at few paths, its window read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from swecli.assembly.windows import Windows
from swecli.core.llm.client_config import ClientConfig
from swecli.core.llm.model_listings import EndpointModel, is_known_program
from swecli.core.llm.providers import Overrides, known_providers, resolve
from swecli.core.llm.servers import Endpoint, ask_model, find_local_servers
from swecli.core.llm.types import ASSUMED_WINDOW
from swecli.core.llm.windows import LearnedWindow, lookup_with
from tests.support.json_server import Reply, serve_json
from tests.support.waiting import PATIENCE

UNKNOWN_PATH = Reply(json.dumps({"error": "Unexpected endpoint or method. (GET /props)"}).encode())
"""LM Studio's answer at every path that it does not have, with status 200."""
KOBOLD = {"id": "koboldcpp/Qwen3", "object": "model", "owned_by": "koboldcpp", "permission": [], "root": "koboldcpp"}
TABBY = {"id": "Qwen-exl3", "object": "model", "owned_by": "tabbyAPI", "logging": None, "parameters": None}
LM_STUDIO = {
    "id": "qwen3",
    "object": "model",
    "type": "llm",
    "arch": "qwen3",
    "state": "loaded",
    "max_context_length": 40_960,
    "loaded_context_length": 8_192,
    "capabilities": ["tool_use"],
}
SHOWN = {
    "parameters": "num_ctx                        8192",
    "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40_960},
    "capabilities": ["completion", "tools", "thinking"],
}


def cards(*models: dict[str, Any]) -> dict[str, Any]:
    return {"object": "list", "data": [{"object": "model", "created": 1, **model} for model in models]}


def card(owner: str, name: str = "m", **more: Any) -> dict[str, Any]:
    return {"id": name, "owned_by": owner, **more}


@dataclass(frozen=True)
class Case:
    """``port_of`` is the provider at whose port it answers, ``paths`` those asked about one model at later starts."""

    program: str
    port_of: str
    routes: dict[str, Any]
    model: str
    window: int | None
    tools: bool | None = None
    paths: tuple[str, ...] = ("/v1/models",)
    warmed: bool = True

    def __str__(self) -> str:
        return self.program


CASES = (
    Case(
        *("ollama", "ollama"),
        {
            "/api/tags": {"models": [{"name": "qwen3:8b", "model": "qwen3:8b", "details": {"family": "qwen3"}}]},
            "/v1/models": cards(card("library", "qwen3:8b")),
            "/api/show": SHOWN,
            "/api/ps": {"models": []},
        },
        *("qwen3:8b", 8_192, True, ("/v1/models", "/api/show", "/api/ps")),
    ),
    Case(
        *("lmstudio", "lmstudio"),
        {"/v1/models": cards(card("organization_owner", "qwen3")), "/api/v0/models": cards(LM_STUDIO)},
        *("qwen3", 8_192, True, ("/v1/models", "/api/v0/models")),
    ),
    Case(
        *("lmstudio with 200 for every path", "llamacpp"),
        {
            "/v1/models": cards(card("organization_owner", "qwen3")),
            **dict.fromkeys(("/props", "/api/v0/models", "/api/show"), UNKNOWN_PATH),
        },
        *("qwen3", None, None, ("/v1/models", "/api/v0/models")),
    ),
    Case(
        *("llama.cpp, several models", "llamacpp"),
        {
            "/v1/models": cards(
                card("llamacpp", "a", status={"value": "loaded"}, meta={"n_ctx": 8_192, "n_ctx_train": 32_768}),
                card("llamacpp", "b", status={"value": "unloaded"}),
            ),
            "/props": {"role": "router", "default_generation_settings": {"n_ctx": 0, "params": {}}},
        },
        *("a", 8_192, None, ("/v1/models", "/props")),
    ),
    Case(
        *("llamafile", "llamacpp"),
        {
            "/v1/models": cards(card("llamacpp", "Llama.gguf", meta={"n_ctx_train": 131_072})),
            "/props": {"default_generation_settings": {"n_ctx": 4_096}, "total_slots": 1},
        },
        *("LLaMA_CPP", 4_096, None, ("/v1/models", "/props")),
    ),
    Case(
        *("koboldcpp", "koboldcpp"),
        {"/v1/models": cards(KOBOLD), "/api/extra/true_max_context_length": {"value": 16_384}},
        *("koboldcpp/Qwen3", 16_384, None, ("/v1/models", "/api/extra/true_max_context_length"), False),
    ),
    Case(
        *("koboldcpp without the path", "koboldcpp"),
        {"/v1/models": cards(KOBOLD)},
        *("koboldcpp/Qwen3", None, None, ("/v1/models",), False),
    ),
    Case(
        *("tabbyapi", "tabbyapi"),
        {
            "/v1/models": cards(TABBY, {**TABBY, "id": "Other"}),
            "/v1/model": {**TABBY, "parameters": {"max_seq_len": 16_384, "cache_size": 32_768}},
        },
        *("Qwen-exl3", 16_384, None, ("/v1/models", "/v1/model"), False),
    ),
    Case(
        *("tabbyapi with another model loaded", "tabbyapi"),
        {
            "/v1/models": cards(TABBY, {**TABBY, "id": "Other"}),
            "/v1/model": {**TABBY, "parameters": {"max_seq_len": 16_384}},
        },
        *("Other", None, None, ("/v1/models", "/v1/model"), False),
    ),
    Case(
        *("tabbyapi without a loaded model", "tabbyapi"),
        {"/v1/models": cards(TABBY), "/v1/model": Reply(b'{"detail": "No models are currently loaded."}', 400)},
        *("Qwen-exl3", None, None, ("/v1/models", "/v1/model"), False),
    ),
    Case(
        *("vllm", "vllm"),
        {"/v1/models": cards(card("vllm", root="m", parent=None, max_model_len=32_768, permission=[{}]))},
        *("m", 32_768),
    ),
    Case(
        *("vllm with an adapter", "vllm"),
        {
            "/v1/models": cards(
                card("vllm", "base", parent=None, max_model_len=16_384),
                card("vllm", "lora", parent="base", max_model_len=None),
            )
        },
        *("lora", 16_384),
    ),
    Case("sglang", "sglang", {"/v1/models": cards(card("sglang", root="m", max_model_len=32_768))}, "m", 32_768),
    Case(
        *("mlx", "llamacpp"),
        {"/v1/models": {"object": "list", "data": [{"id": "mlx-community/Qwen3-4B", "object": "model"}]}},
        *("mlx-community/Qwen3-4B", None, None, ("/v1/models",), False),
    ),
    Case(
        *("jan", "jan"),
        {"/v1/models": cards(card("user", "qwen3-8b"))},
        *("qwen3-8b", None, None, ("/v1/models",), False),
    ),
    Case(
        *("text-generation-webui", "tabbyapi"),
        {"/v1/models": cards(card("user", "Qwen3-8B"))},
        *("Qwen3-8B", None, None, ("/v1/models",), False),
    ),
    Case(
        *("localai", "llamacpp"),
        {
            "/v1/models": {"object": "list", "data": [{"id": "qwen3-4b", "object": "model"}]},
            "/v1/models/capabilities": {
                "object": "list",
                "data": [{"id": "qwen3-4b", "object": "model", "capabilities": ["chat", "tools"]}],
            },
        },
        *("qwen3-4b", None, True, ("/v1/models", "/v1/models/capabilities"), False),
    ),
    Case(
        *("lemonade", "lemonade"),
        {
            "/v1/models": cards(
                card("lemonade", "Q", labels=["tool-calling"], max_context_window=40_960, context_length=8_192),
                card("lemonade", "SD", labels=["image"]),
            )
        },
        *("Q", 8_192, True, ("/v1/models",), False),
    ),
    Case(
        *("docker model runner", "docker"),
        {"/engines/v1/models": cards(card("docker", "ai/qwen3:latest", dmr={"context_window": 16_384}))},
        *("ai/qwen3:latest", 16_384, None, ("/engines/v1/models",), False),
    ),
    Case(
        *("ollama with models of somebody's own only", "vllm"),
        {"/v1/models": cards(card("me", "me/qwen3:8b")), "/api/show": SHOWN, "/api/ps": {"models": []}},
        *("me/qwen3:8b", 8_192, True, ("/v1/models", "/api/show", "/api/ps")),
    ),
    Case(
        *("litellm", "vllm"),
        {
            "/v1/models": cards(card("openai", "b")),
            "/v1/model/info": {"data": [{"model_name": "b", "model_info": {"max_input_tokens": 200_000}}]},
        },
        *("b", 200_000, None, ("/v1/models", "/v1/model/info"), False),
    ),
    Case(
        *("unknown, with a window in its list", "vllm"),
        {"/v1/models": cards(card("someone", context_length=12_288))},
        *("m", 12_288, None, ("/v1/models",), False),
    ),
    Case(
        *("llama-cpp-python", "vllm"),
        {"/v1/models": cards(card("me", "/models/q.gguf", permissions=[]))},
        *("gpt-4o", None, None, ("/v1/models",), False),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_it_is_found_and_named(case: Case) -> None:
    async with serve_json(case.routes) as server:
        [found] = await find_local_servers([(case.port_of, server.port)], seconds=PATIENCE)
    assert found.provider == case.port_of
    assert found.models


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_its_window_is_read_and_later_starts_ask_only_paths_that_it_has(case: Case) -> None:
    absent: set[str] = set()
    async with serve_json(case.routes) as server:
        path = urlsplit(known_providers()[case.port_of].base_url).path or "/v1"
        endpoint = Endpoint("openai-chat", server.url + path)
        asked = await ask_model(endpoint, case.model, absent, seconds=PATIENCE)
        first = list(server.paths)
        server.asked.clear()
        again = await ask_model(endpoint, case.model, absent, seconds=PATIENCE)
    assert again == asked
    assert asked is not None
    assert (asked.window, asked.tools) == (case.window, case.tools)
    assert is_known_program(asked) is case.warmed
    assert server.paths == list(case.paths)
    assert len(first) <= 3


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_start_that_finds_it_first_asks_no_more(tmp_path: Path, case: Case) -> None:
    """What the list for the choice of a model has said is not asked again for the chosen one."""
    windows = Windows(tmp_path)
    async with serve_json(case.routes) as server:
        found = await find_local_servers([(case.port_of, server.port)], seconds=PATIENCE)
        windows.found(found)
        base_url = found[0].base_url
        client = windows.client(lambda asked, learned: resolve_at(base_url, case, asked, learned))
        await windows.ask(client)
        first = list(server.paths)
        await client.close()
    assert len(first) <= 3, first
    assert client.info.window == (case.window or ASSUMED_WINDOW)


def resolve_at(base_url: str, case: Case, asked: EndpointModel | None, learned: LearnedWindow | None) -> ClientConfig:
    return resolve(
        f"{case.port_of}/{case.model}",
        {},
        overrides=Overrides(base_url=base_url),
        look_up=lookup_with(asked, learned, local=True),
    )


@pytest.mark.parametrize("status", [200, 401, 403, 404, 500])
async def test_what_is_no_model_server_is_asked_once(status: int) -> None:
    async with serve_json(dict.fromkeys(("/v1/models", "/api/tags"), Reply(b"<html>", status))) as server:
        assert await ask_model(Endpoint("openai-chat", f"{server.url}/v1"), "m", seconds=PATIENCE) is None
    assert server.paths == ["/v1/models"]
