"""Local servers by the answers that each program documents: found, named, asked at few paths, its window read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from swecli.core.llm.model_listings import is_known_program
from swecli.core.llm.servers import Endpoint, ask_model, find_local_servers
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
    named: str
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
        *("qwen3:8b", "ollama", 8_192, True, ("/v1/models", "/api/show", "/api/ps")),
    ),
    Case(
        *("lmstudio", "lmstudio"),
        {"/v1/models": cards(card("organization_owner", "qwen3")), "/api/v0/models": cards(LM_STUDIO)},
        *("qwen3", "lmstudio", 8_192, True, ("/v1/models", "/api/v0/models")),
    ),
    Case(
        *("lmstudio with 200 for every path", "llamacpp"),
        {
            "/v1/models": cards(card("organization_owner", "qwen3")),
            **dict.fromkeys(("/props", "/api/v0/models", "/api/show"), UNKNOWN_PATH),
        },
        *("qwen3", "lmstudio", None, None, ("/v1/models", "/api/v0/models")),
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
        *("a", "llamacpp", 8_192, None, ("/v1/models", "/props")),
    ),
    Case(
        *("llamafile", "llamacpp"),
        {
            "/v1/models": cards(card("llamacpp", "Llama.gguf", meta={"n_ctx_train": 131_072})),
            "/props": {"default_generation_settings": {"n_ctx": 4_096}, "total_slots": 1},
        },
        *("LLaMA_CPP", "llamacpp", 4_096, None, ("/v1/models", "/props")),
    ),
    Case(
        *("koboldcpp", "llamacpp"),
        {"/v1/models": cards(KOBOLD), "/api/extra/true_max_context_length": {"value": 16_384}},
        *("koboldcpp/Qwen3", "llamacpp", 16_384, None, ("/v1/models", "/api/extra/true_max_context_length"), False),
    ),
    Case(
        *("koboldcpp without the path", "llamacpp"),
        {"/v1/models": cards(KOBOLD)},
        *("koboldcpp/Qwen3", "llamacpp", None, None, ("/v1/models",), False),
    ),
    Case(
        *("tabbyapi", "vllm"),
        {
            "/v1/models": cards(TABBY, {**TABBY, "id": "Other"}),
            "/v1/model": {**TABBY, "parameters": {"max_seq_len": 16_384, "cache_size": 32_768}},
        },
        *("Qwen-exl3", "vllm", 16_384, None, ("/v1/models", "/v1/model"), False),
    ),
    Case(
        *("tabbyapi with another model loaded", "vllm"),
        {
            "/v1/models": cards(TABBY, {**TABBY, "id": "Other"}),
            "/v1/model": {**TABBY, "parameters": {"max_seq_len": 16_384}},
        },
        *("Other", "vllm", None, None, ("/v1/models", "/v1/model"), False),
    ),
    Case(
        *("tabbyapi without a loaded model", "vllm"),
        {"/v1/models": cards(TABBY), "/v1/model": Reply(b'{"detail": "No models are currently loaded."}', 400)},
        *("Qwen-exl3", "vllm", None, None, ("/v1/models", "/v1/model"), False),
    ),
    Case(
        *("vllm", "vllm"),
        {"/v1/models": cards(card("vllm", root="m", parent=None, max_model_len=32_768, permission=[{}]))},
        *("m", "vllm", 32_768),
    ),
    Case(
        *("vllm with an adapter", "vllm"),
        {
            "/v1/models": cards(
                card("vllm", "base", parent=None, max_model_len=16_384),
                card("vllm", "lora", parent="base", max_model_len=None),
            )
        },
        *("lora", "vllm", 16_384),
    ),
    Case(
        "sglang", "sglang", {"/v1/models": cards(card("sglang", root="m", max_model_len=32_768))}, "m", "sglang", 32_768
    ),
    Case(
        *("mlx", "llamacpp"),
        {"/v1/models": {"object": "list", "data": [{"id": "mlx-community/Qwen3-4B", "object": "model"}]}},
        *("mlx-community/Qwen3-4B", "llamacpp", None, None, ("/v1/models",), False),
    ),
    Case(
        *("jan", "llamacpp"),
        {"/v1/models": cards(card("user", "qwen3-8b"))},
        *("qwen3-8b", "llamacpp", None, None, ("/v1/models",), False),
    ),
    Case(
        *("llama-cpp-python", "vllm"),
        {"/v1/models": cards(card("me", "/models/q.gguf", permissions=[]))},
        *("gpt-4o", "vllm", None, None, ("/v1/models",), False),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_it_is_found_and_named(case: Case) -> None:
    async with serve_json(case.routes) as server:
        [found] = await find_local_servers([(case.port_of, server.port)], seconds=PATIENCE)
    assert found.provider == case.named
    assert found.models


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_its_window_is_read_and_later_starts_ask_only_paths_that_it_has(case: Case) -> None:
    absent: set[str] = set()
    async with serve_json(case.routes) as server:
        endpoint = Endpoint("openai-chat", f"{server.url}/v1")
        asked = await ask_model(endpoint, case.model, absent, seconds=PATIENCE)
        server.asked.clear()
        again = await ask_model(endpoint, case.model, absent, seconds=PATIENCE)
    assert again == asked
    assert asked is not None
    assert (asked.window, asked.tools) == (case.window, case.tools)
    assert is_known_program(asked) is case.warmed
    assert sorted(server.paths) == sorted(case.paths)
    assert len(server.paths) <= 3
