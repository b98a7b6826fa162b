"""Asking servers for models and windows: each in its own words, and broken ones too."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.llm import servers
from swecli.core.llm.addresses import normalise
from swecli.core.llm.model_listings import EndpointModel, merge, pick, read_model, read_models, read_ollama, read_props
from swecli.core.llm.providers import Overrides, resolve
from swecli.core.llm.servers import (
    Endpoint,
    ask_model,
    endpoint_of,
    list_models,
)
from swecli.core.llm.transport import MAX_BYTES
from swecli.core.llm.windows import lookup_with
from tests.support.json_server import JsonServer, Reply, serve_json
from tests.support.thorough import examples
from tests.support.waiting import PATIENCE

LLAMA_CPP = {
    "/v1/models": {
        "models": [{"name": "qwen.gguf", "model": "qwen.gguf", "capabilities": ["completion"]}],
        "object": "list",
        "data": [
            {
                "id": "qwen.gguf",
                "object": "model",
                "owned_by": "llamacpp",
                "meta": {"n_ctx_train": 262144, "n_ctx": 16384},
            }
        ],
    },
    "/props": {
        "default_generation_settings": {"n_ctx": 8192, "params": {"n_predict": -1}},
        "total_slots": 2,
        "model_path": "/models/qwen.gguf",
        "modalities": {"vision": False, "audio": False},
    },
}
OLLAMA_SHOW = {
    "parameters": "stop    <|im_end|>\ntemperature    0.7",
    "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 262144, "qwen3.block_count": 48},
    "capabilities": ["completion", "tools", "thinking"],
}
OLLAMA_PS = {"models": [{"name": "qwen3:latest", "model": "qwen3:latest", "context_length": 65536}]}
OLLAMA = {"/api/show": OLLAMA_SHOW, "/api/ps": OLLAMA_PS, "/api/tags": {"models": [{"name": "qwen3:latest"}]}}
LM_STUDIO_0 = {
    "/v1/models": {"object": "list", "data": [{"id": "qwen3-vl", "object": "model", "owned_by": "organization_owner"}]},
    "/api/v0/models": {
        "object": "list",
        "data": [
            {
                "id": "qwen3-vl",
                "object": "model",
                "type": "vlm",
                "state": "loaded",
                "max_context_length": 262144,
                "loaded_context_length": 12288,
                "capabilities": ["tool_use"],
            },
            {"id": "other", "object": "model", "type": "llm", "state": "not-loaded", "max_context_length": 131072},
        ],
    },
}
LM_STUDIO_1 = {
    "/api/v1/models": {
        "models": [
            {
                "type": "llm",
                "key": "openai/gpt-oss-20b",
                "max_context_length": 131072,
                "loaded_instances": [{"id": "x", "config": {"context_length": 24576}}],
                "capabilities": {"vision": False, "trained_for_tool_use": True},
            }
        ]
    }
}


def vllm(owner: str, size: int) -> dict[str, Any]:
    card = {"id": "org/Model-1", "object": "model", "owned_by": owner, "root": "org/Model-1", "max_model_len": size}
    return {"/v1/models": {"object": "list", "data": [card]}}


def chat(server: JsonServer, **headers: str) -> Endpoint:
    return Endpoint("openai-chat", f"{server.url}/v1", headers)


# --- local servers -------------------------------------------------------------------------------------------------


async def test_llama_cpp_tells_the_window_of_one_slot() -> None:
    async with serve_json(LLAMA_CPP) as server:
        found = await ask_model(chat(server), "any-name")
    assert found is not None
    assert (found.window, found.maximum, found.images, found.where) == (8192, 262144, False, "/props")


async def test_llama_cpp_without_props_tells_it_in_its_list() -> None:
    async with serve_json({"/v1/models": LLAMA_CPP["/v1/models"]}) as server:
        found = await ask_model(chat(server), "any-name")
    assert found is not None
    assert (found.window, found.maximum, found.where) == (16384, 262144, "/v1/models")


@pytest.mark.parametrize("owner", ["vllm", "sglang"])
async def test_vllm_and_sglang_tell_it_in_their_list(owner: str) -> None:
    async with serve_json(vllm(owner, 40960)) as server:
        by_name = await ask_model(chat(server), "org/model-1")
        by_end = await ask_model(Endpoint("anthropic-messages", server.url), "Model-1")
    assert by_name is not None
    assert by_end is not None
    assert (by_name.window, by_end.window, by_name.server) == (40960, 40960, owner)


@pytest.mark.parametrize(
    ("routes", "paths"),
    [
        (LLAMA_CPP, {"/v1/models", "/props"}),
        (vllm("vllm", 40960), {"/v1/models"}),
        (vllm("sglang", 40960), {"/v1/models"}),
        (LM_STUDIO_0, {"/v1/models", "/api/v0/models"}),
        (
            {**OLLAMA, "/v1/models": {"object": "list", "data": [{"id": "qwen3:latest", "owned_by": "library"}]}},
            {"/v1/models", "/api/show", "/api/ps"},
        ),
    ],
)
async def test_a_known_program_is_asked_only_at_paths_that_it_has(routes: dict[str, Any], paths: set[str]) -> None:
    async with serve_json(routes) as server:
        name = routes["/v1/models"]["data"][0]["id"]
        asked = await ask_model(chat(server), name, seconds=PATIENCE)
    assert asked is not None
    assert asked.window is not None
    assert sorted(server.paths) == sorted(paths)


async def test_a_server_that_loads_its_model_is_asked_once_and_later_again() -> None:
    loading = Reply(b'{"error": {"code": 503, "message": "Loading model"}}', status=503)
    async with serve_json({"/v1/models": (loading, LLAMA_CPP["/v1/models"]), "/props": LLAMA_CPP["/props"]}) as server:
        first = await ask_model(chat(server), "m", seconds=PATIENCE)
        asked = list(server.paths)
        second = await ask_model(chat(server), "m", seconds=PATIENCE)
    assert (first, asked) == (None, ["/v1/models"])
    assert second is not None
    assert second.window == 8192


@pytest.mark.parametrize("has_place", [True, False])
async def test_llama_cpp_says_whether_its_template_has_a_place_for_tools(has_place: bool) -> None:
    caps = {"supports_tools": has_place, "supports_system_role": True, "supports_tool_calls": has_place}
    props = {**LLAMA_CPP["/props"], "chat_template_caps": caps}
    async with serve_json({**LLAMA_CPP, "/props": props}) as server:
        asked = await ask_model(chat(server), "m", seconds=PATIENCE)
    assert asked is not None
    assert asked.tools is has_place


async def test_the_only_model_of_a_server_is_named_if_it_answers_to_another_name() -> None:
    listing = {"data": [{**LLAMA_CPP["/v1/models"]["data"][0], "id": "/models/qwen.gguf"}]}
    async with serve_json({**LLAMA_CPP, "/v1/models": listing}) as server:
        names = ("/models/qwen.gguf", "qwen.gguf", "other.gguf")
        found = [await ask_model(chat(server), name, seconds=PATIENCE) for name in names]
    answering = [lookup_with(one)("llamacpp", "m").answering for one in found]
    assert answering == ["", "", "/models/qwen.gguf"]


async def test_litellm_tells_it_apart_from_its_list() -> None:
    listed = [{"id": name, "object": "model", "created": 1677610602, "owned_by": "openai"} for name in ("a", "b")]
    paths = {
        "/v1/models": {"object": "list", "data": listed},
        "/v1/model/info": {
            "data": [
                {
                    "model_name": "b",
                    "litellm_params": {"model": "anthropic/claude"},
                    "model_info": {
                        "id": "6452bb1f",
                        "max_input_tokens": 200000,
                        "max_output_tokens": 64000,
                        "supports_function_calling": True,
                        "supports_vision": True,
                    },
                }
            ]
        },
    }
    async with serve_json(paths) as server:
        found = await ask_model(Endpoint("openai-chat", server.url + "/v1"), "b", seconds=PATIENCE)
    assert found is not None
    assert (found.id, found.window, found.max_output, found.tools, found.images) == ("b", 200000, 64000, True, True)


async def test_lm_studio_tells_the_window_that_the_model_was_loaded_with() -> None:
    async with serve_json(LM_STUDIO_0) as server:
        loaded = await ask_model(chat(server), "qwen3-vl")
        waiting = await ask_model(chat(server), "other")
    assert loaded is not None
    assert (loaded.window, loaded.maximum, loaded.images, loaded.tools) == (12288, 262144, True, True)
    assert waiting is not None
    assert (waiting.window, waiting.maximum) == (None, 131072)


async def test_lm_studio_without_its_first_list() -> None:
    listed = {"object": "list", "data": [{"id": "openai/gpt-oss-20b", "owned_by": "organization_owner"}]}
    async with serve_json({**LM_STUDIO_1, "/v1/models": listed}) as server:
        found = await ask_model(chat(server), "gpt-oss-20b")
    assert found is not None
    assert (found.window, found.maximum, found.images, found.tools) == (24576, 131072, False, True)


async def test_ollama_behind_openai_paths_has_the_window_it_was_loaded_with() -> None:
    async with serve_json({**OLLAMA, "/v1/models": {"object": "list", "data": [{"id": "qwen3:latest"}]}}) as server:
        found = await ask_model(chat(server), "qwen3")
    assert found is not None
    assert (found.window, found.maximum, found.where, found.tools) == (65536, 262144, "/api/ps", True)


async def test_ollama_is_asked_for_the_model_by_name() -> None:
    async with serve_json(OLLAMA) as server:
        found = await ask_model(Endpoint("ollama-chat", server.url), "qwen3")
    assert found is not None
    assert (found.window, found.maximum, found.reasoning, found.images) == (65536, 262144, True, False)
    shown = next(request for request in server.asked if request.path == "/api/show")
    assert (shown.method, json.loads(shown.body)) == ("POST", {"model": "qwen3"})


@pytest.mark.parametrize(
    ("running", "parameters", "maximum", "settable", "window"),
    [
        (4096, "", 262144, 32000, None),
        (65536, "", 262144, 32000, 65536),
        (4096, "", 4096, 32000, 4096),
        (4096, "num_ctx 8192", 262144, 32000, 8192),
        (65536, "num_ctx    8192", 262144, 32000, 8192),
        (None, "num_ctx 999999", 262144, 32000, 262144),
        (None, "num_ctx x", 262144, 32000, None),
        (4096, "", 262144, 0, 4096),
        (4096, "num_ctx 8192", 262144, 0, 4096),
    ],
)
def test_the_servers_default_window_does_not_bind_where_requests_name_theirs(
    running: int | None, parameters: str, maximum: int, settable: int, window: int | None
) -> None:
    shown = {"parameters": parameters, "model_info": {"general.architecture": "a", "a.context_length": maximum}}
    loaded = {"models": [{"name": "m:latest", "context_length": running}]} if running else {"models": []}
    found = read_ollama(shown, loaded, "m", settable)
    assert found is not None
    assert (found.window, found.maximum) == (window, maximum)


# --- hosts ---------------------------------------------------------------------------------------------------------

OPENROUTER = {
    "id": "anthropic/claude-sonnet-4.5",
    "context_length": 1000000,
    "architecture": {"input_modalities": ["text", "image"]},
    "top_provider": {"context_length": 200000, "max_completion_tokens": 64000},
    "supported_parameters": ["tools", "reasoning", "max_tokens"],
}
HOSTS = [
    (OPENROUTER, (200000, 64000, True, True, True)),
    ({"id": "g", "context_window": 131072, "max_completion_tokens": 65536}, (131072, 65536, None, None, None)),
    (
        {"id": "m", "max_context_length": 262144, "capabilities": {"vision": True, "function_calling": True}},
        (262144, None, True, True, None),
    ),
    ({"id": "t", "context_length": 262144, "pricing": {"input": 1}}, (262144, None, None, None, None)),
    (
        {"id": "f", "context_length": 262144, "supports_tools": True, "supports_image_input": False},
        (262144, None, False, True, None),
    ),
    (
        {"id": "b", "context_length": 131072, "max_completion_tokens": 4096, "supported_features": ["tools"]},
        (131072, 4096, None, True, False),
    ),
    (
        {
            "type": "model",
            "id": "claude-x",
            "max_input_tokens": 1000000,
            "max_tokens": 128000,
            "capabilities": {"image_input": {"supported": True}, "thinking": {"supported": True}},
        },
        (1000000, 128000, True, None, True),
    ),
    (
        {"name": "models/gemini-x", "inputTokenLimit": 1048576, "outputTokenLimit": 65536, "thinking": True},
        (1048576, 65536, None, None, True),
    ),
    ({"id": "gpt-x", "object": "model", "owned_by": "openai"}, (None, None, None, None, None)),
    (
        {
            "id": "gpt-5",
            "capabilities": {
                "type": "chat",
                "limits": {
                    "max_context_window_tokens": 264000,
                    "max_prompt_tokens": 128000,
                    "max_output_tokens": 64000,
                },
                "supports": {"tool_calls": True, "vision": True, "streaming": True},
            },
        },
        (128000, 64000, True, True, None),
    ),
    (
        {
            "id": "openai/gpt-4.1",
            "capabilities": ["streaming", "tool-calling"],
            "supported_input_modalities": ["text", "image"],
            "limits": {"max_input_tokens": 1048576, "max_output_tokens": 32768},
        },
        (1048576, 32768, True, True, False),
    ),
    (
        {
            "id": "venice-uncensored",
            "type": "text",
            "model_spec": {
                "availableContextTokens": 32768,
                "capabilities": {
                    "supportsFunctionCalling": False,
                    "supportsReasoning": False,
                    "supportsVision": False,
                },
            },
        },
        (32768, None, False, False, False),
    ),
    (
        {
            "id": "zai-org/GLM-5",
            "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]},
            "providers": [
                {"provider": "a", "status": "live", "context_length": 202752, "supports_tools": True},
                {"provider": "b", "status": "live", "context_length": 131072, "supports_tools": False},
                {"provider": "c", "status": "staging", "context_length": 8192},
            ],
        },
        (131072, None, False, True, None),
    ),
    ({"id": "n", "context_size": 163840, "max_output_tokens": 65536}, (163840, 65536, None, None, None)),
    (
        {"id": "d", "metadata": {"context_length": 131072, "max_tokens": 16384, "tags": ["vision"]}},
        (131072, None, None, None, None),
    ),
    (
        {
            "id": "p",
            "context_window": {"context_length": 400000, "max_output_tokens": 128000},
            "architecture": {"input_modalities": ["text", "image"]},
        },
        (400000, 128000, True, None, None),
    ),
    ({"id": "tabby", "parameters": {"max_seq_len": 32768}}, (32768, None, None, None, None)),
]


@pytest.mark.parametrize(("item", "expected"), HOSTS)
def test_every_host_has_its_own_words(item: dict[str, Any], expected: tuple[Any, ...]) -> None:
    found = read_model(item, "/models")
    assert found is not None
    assert (found.window, found.max_output, found.images, found.tools, found.reasoning) == expected


async def test_a_list_may_be_bare_or_wrapped() -> None:
    for body in ([OPENROUTER], {"data": [OPENROUTER]}, {"models": [OPENROUTER], "object": "list"}):
        async with serve_json({"/v1/models": body}) as server:
            listed = await list_models(chat(server))
        assert [model.id for model in listed.models] == ["anthropic/claude-sonnet-4.5"]
        assert listed.problem == ""


@pytest.mark.parametrize(
    ("protocol", "base", "path", "item"),
    [
        ("anthropic-messages", "", "/v1/models", {"id": "claude-x", "max_input_tokens": 200000}),
        ("gemini-generate", "/v1beta", "/v1beta/models", {"name": "models/gemini-x", "inputTokenLimit": 1048576}),
        ("ollama-chat", "", "/api/tags", {"name": "qwen3:latest"}),
        ("openai-responses", "/v1", "/v1/models", {"id": "gpt-x"}),
    ],
)
async def test_each_protocol_lists_its_models(protocol: str, base: str, path: str, item: dict[str, Any]) -> None:
    key = "data" if "id" in item else "models"
    async with serve_json({path: {key: [item]}}) as server:
        listed = await list_models(Endpoint(protocol, server.url + base, {"x-api-key": "k"}))
    assert [model.id for model in listed.models] == [(item.get("id") or item["name"]).removeprefix("models/")]
    assert server.asked[0].headers["x-api-key"] == "k"
    assert ("anthropic-version" in server.asked[0].headers) is (protocol == "anthropic-messages")


async def test_a_host_is_asked_for_one_model_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swecli.core.llm.servers.is_local", lambda url: False)
    routes = {
        "/v1/models/claude-x": {"id": "claude-x", "max_input_tokens": 200000, "max_tokens": 64000},
        "/v1beta/models/gemini-x": {"name": "models/gemini-x", "inputTokenLimit": 1048576},
        "/v1/models": {"data": [OPENROUTER]},
    }
    async with serve_json(routes) as server:
        claude = await ask_model(Endpoint("anthropic-messages", server.url), "claude-x")
        gemini = await ask_model(Endpoint("gemini-generate", f"{server.url}/v1beta"), "models/gemini-x")
        routed = await ask_model(chat(server), "anthropic/claude-sonnet-4.5")
        nobody = await ask_model(chat(server), "anthropic/claude")
    assert claude is not None
    assert gemini is not None
    assert routed is not None
    assert (claude.window, gemini.window, routed.window, nobody) == (200000, 1048576, 200000, None)
    assert server.paths == [*routes, "/v1/models"]


async def test_hosts_that_tell_no_window_are_not_asked() -> None:
    assert await ask_model(Endpoint("openai-responses", "https://api.openai.com/v1"), "gpt-x", seconds=0.001) is None


# --- broken servers ------------------------------------------------------------------------------------------------

BROKEN = {
    "html": (Reply(b"<html>hello</html>", content_type="text/html"), "not JSON"),
    "cut": (Reply(b'{"data": [{"id": "m"', length=5000), "closed the connection"),
    "half": (Reply(b'{"data": [{"id": "m"'), "not JSON"),
    "empty": (Reply(b""), "not JSON"),
    "bytes": (Reply(b"\xff\xfe\x00"), "not JSON"),
    "deep": (Reply(b"[" * 100_000), "not JSON"),
    "refused": (Reply(b'{"error":"no"}', 401), "status 401"),
    "elsewhere": (
        Reply(b"", 302, headers={"location": "http://127.0.0.1:1/v1/models"}),
        "redirects to http://127.0.0.1:1/v1/m",
    ),
    "huge": (Reply(b" " * (MAX_BYTES + 1)), "more than 8 MB"),
    "dropped": (Reply(drop=True), "broke"),
    "silent": (Reply(stall=True), "no answer to /models within 0.2 s"),
    "nothing": (Reply(b'{"data": []}'), ""),
    "other": (Reply(b'{"data": [1, null, {"id": 5}, {"id": ""}]}'), ""),
    "number": (Reply(b"17"), ""),
}


@pytest.mark.parametrize("kind", BROKEN)
async def test_a_broken_server_is_no_reason_to_fail(kind: str) -> None:
    reply, problem = BROKEN[kind]
    paths = ("/v1/models", "/props", "/api/v0/models", "/api/v1/models", "/api/show", "/api/ps")
    async with serve_json(dict.fromkeys(paths, reply)) as server:
        listed = await list_models(chat(server), seconds=0.2 if reply.stall else PATIENCE)
        assert listed.models == ()
        assert problem in listed.problem
        assert bool(problem) == bool(listed.problem)  # a list of nothing is an answer
        assert await ask_model(chat(server), "m", seconds=0.2) is None
        assert await ask_model(Endpoint("ollama-chat", server.url), "m", seconds=0.2) is None


def test_what_no_model_is_called_is_left_out() -> None:
    ids = ["a\x1b[31mred", "two\nlines", "x" * 300, "", None, 5, "日本語モデル", "v/m-1:latest"]
    found = read_models({"data": [{"id": one} for one in ids]}, "/models")
    assert [model.id for model in found] == ["日本語モデル", "v/m-1:latest"]


async def test_nobody_there_and_no_address() -> None:
    async with serve_json({}) as server:
        gone = server.url
    listed = await list_models(Endpoint("openai-chat", f"{gone}/v1"))
    assert "no connection" in listed.problem
    assert listed.problem.endswith(": connection refused")
    assert await ask_model(Endpoint("openai-chat", f"{gone}/v1"), "m") is None
    assert (await list_models(Endpoint("openai-chat", "http://127.0.0.1:99999"))).problem
    assert (await list_models(Endpoint("openai-chat", "http://127.0.0.1:1", {"x": "ü\n"}))).problem


async def test_it_can_be_cancelled() -> None:
    async with serve_json({"/v1/models": Reply(stall=True)}) as server:
        task = asyncio.create_task(list_models(chat(server), seconds=60))
        await asyncio.wait_for(server.reached.wait(), PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["id", "name", "data", "models", "meta", "n_ctx", "top_provider", "context_length", "capabilities"]
            )
            | st.text(max_size=5),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(JSON, JSON)
@settings(deadline=None, max_examples=examples(60, 300))
def test_any_document_can_be_read(one: Any, other: Any) -> None:
    models = read_models(one, "/x")
    assert all(model.id and (model.window is None or 256 <= model.window <= 100_000_000) for model in models)
    assert all(model.maximum is None or model.window is None or model.maximum >= model.window for model in models)
    assert pick(models, "m", only_one=True) in (*models, None)
    assert merge(models) is None or models
    found = read_ollama(one, other, "m", 32000)
    assert found is None or found.id == "m"
    props = read_props(one, "/props")
    assert props is None or props.window is not None


@pytest.mark.parametrize(
    ("stated", "chats"),
    [
        ({"architecture": {"output_modalities": ["audio", "text"]}}, True),
        ({"architecture": {"output_modalities": ["image"]}}, False),
        ({"input_modalities": ["audio"], "output_modalities": ["transcription"]}, False),
        ({"supported_output_modalities": ["text"]}, True),
        ({"capabilities": {"completion_chat": False}}, False),
        ({"supportedGenerationMethods": ["embedContent"]}, False),
        ({"supportedGenerationMethods": ["generateContent"]}, None),
        ({"details": {"family": "nomic-bert"}}, False),
        ({"type": "llm"}, True),
        ({"type": "embeddings"}, False),
        ({"type": "text"}, True),
        ({"type": "model", "capabilities": {"type": "embeddings"}}, False),
        ({"object": "model", "capabilities": {"type": "chat"}}, True),
        ({"type": "model"}, None),
        ({}, None),
    ],
)
def test_servers_tell_what_does_not_chat(stated: dict[str, Any], chats: bool | None) -> None:
    (model,) = read_models({"data": [{"id": "m", **stated}]}, "/models")
    assert model.chats is chats


def test_several_answers_about_a_model_make_one() -> None:
    listed = EndpointModel("m", None, 9000, where="/list", tools=True)
    props = EndpointModel("m", 4000, where="/props")
    assert merge([listed, None, props]) == EndpointModel("m", 4000, 9000, where="/props", tools=True)
    assert merge([listed]) == listed
    assert merge([None]) is None


# --- from provider to window ---------------------------------------------------------------------------------------


async def test_the_window_of_a_server_reaches_the_client() -> None:
    env = {"OPENAI_API_KEY": "sk-x"}
    async with serve_json(vllm("vllm", 40960)) as server:
        overrides = Overrides(base_url=server.url)
        config = resolve("openai/org/Model-1", env, overrides=overrides)
        assert config.info.window_source == "assumed"
        asked = await ask_model(endpoint_of(config), config.info.name)
    config = resolve("openai/org/Model-1", env, overrides=overrides, look_up=lookup_with(asked))
    assert (config.info.window, config.info.window_source, config.target.window) == (40960, "endpoint", 40960)
    assert {request.headers.get("authorization") for request in server.asked} == {"Bearer sk-x"}
    assert "sk-x" not in repr(endpoint_of(config))
    mine = resolve(
        "openai/org/Model-1", env, overrides=Overrides(base_url=server.url, window=2000), look_up=lookup_with(asked)
    )
    assert (mine.info.window, mine.info.window_source) == (2000, "user")


def test_an_address_with_an_impossible_port_is_refused_before_anybody_is_asked() -> None:
    with pytest.raises(ValueError, match="invalid port"):
        normalise("http://127.0.0.1:99999/v1", "openai-chat")


async def test_one_way_that_stays_silent_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server nearby is given much time to answer, but not by all of the ways to ask it."""
    monkeypatch.setattr(servers, "OTHERS_SECONDS", 0.0)
    models = {"object": "list", "data": [{"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx": 9_000}}]}
    async with serve_json({"/props": Reply(stall=True), "/v1/models": models}) as server:
        asked = await asyncio.wait_for(
            ask_model(Endpoint("openai-chat", server.url + "/v1"), "m", seconds=3_600.0), PATIENCE
        )
    assert asked is not None
    assert asked.window == 9_000


async def test_only_a_known_program_gets_requests_ahead() -> None:
    """A gateway on this machine may answer with its list at any path, and forwards each request to a paid model."""
    listing = {"object": "list", "data": [{"id": "m", "object": "model", "max_model_len": 9_000}]}
    paths = ("/v1/models", "/api/v0/models", "/api/v1/models", "/v1/model/info")
    async with serve_json(dict.fromkeys(paths, listing)) as server:
        gateway = await ask_model(chat(server), "m", seconds=PATIENCE)
        address = f"{server.url}/v1"
    async with serve_json(LLAMA_CPP) as server:
        llama = await ask_model(chat(server), "m", seconds=PATIENCE)
    env = {"OPENAI_API_KEY": "sk-x", "LLAMACPP_BASE_URL": address, "OPENAI_BASE_URL": address}
    names = ("llamacpp/m", "openai/m")
    warms = [
        [resolve(name, env, look_up=lookup_with(asked)).info.warms for name in names] for asked in (gateway, llama)
    ]
    assert warms == [[False, False], [True, False]]
