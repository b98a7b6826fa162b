"""Servers on this machine, found on their usual ports."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

from swecli.core.llm.providers import resolve
from swecli.core.llm.servers import HOST, find_local_servers, usual_ports
from swecli.core.llm.windows import LOCAL_PROVIDERS
from tests.support.json_server import Reply, serve_json
from tests.support.waiting import PATIENCE


def listing(owner: str, *names: str) -> dict[str, Any]:
    data = [{"id": name, "object": "model", "owned_by": owner} for name in names]
    return {"/v1/models": {"object": "list", "data": data}}


DOCKER = ("docker", "/engines/v1", 1)


async def found(provider: str, routes: dict[str, Any], seconds: float = PATIENCE) -> list[tuple[str, str, list[str]]]:
    async with serve_json(routes) as server:
        servers = await find_local_servers([(provider, server.port)], seconds=seconds)
        url = server.url
        assert not any("authorization" in request.headers for request in server.asked)
    return [(one.provider, one.base_url.replace(url, ""), [model.id for model in one.models]) for one in servers]


@pytest.mark.parametrize(
    ("port_of", "routes", "expected"),
    [
        ("ollama", {"/api/tags": {"models": [{"name": "qwen3:8b"}, {"name": "x:latest"}]}}, ("ollama", "", 2)),
        ("ollama", {"/api/tags": {"models": []}}, ("ollama", "", 0)),
        ("lmstudio", listing("organization_owner", "a", "b"), ("lmstudio", "/v1", 2)),
        ("lmstudio", listing("llamacpp", "a.gguf"), ("lmstudio", "/v1", 1)),
        ("llamacpp", listing("llamacpp", "a.gguf"), ("llamacpp", "/v1", 1)),
        ("llamacpp", {"/v1/models": {"object": "list", "data": []}}, ("llamacpp", "/v1", 0)),
        ("llamacpp", listing("vllm", "m"), ("llamacpp", "/v1", 1)),
        ("vllm", listing("vllm", "m"), ("vllm", "/v1", 1)),
        ("vllm", listing("llamacpp", "m"), ("vllm", "/v1", 1)),
        ("sglang", listing("sglang", "m"), ("sglang", "/v1", 1)),
        ("sglang", listing("somebody", "m"), ("sglang", "/v1", 1)),
        ("koboldcpp", listing("koboldcpp", "m"), ("koboldcpp", "/v1", 1)),
        ("tabbyapi", listing("user", "m"), ("tabbyapi", "/v1", 1)),
        ("jan", listing("user", "m"), ("jan", "/v1", 1)),
        ("docker", {f"/engines{path}": value for path, value in listing("docker", "ai/m:latest").items()}, DOCKER),
        ("lemonade", listing("lemonade", "m"), ("lemonade", "/v1", 1)),
    ],
)
async def test_each_is_recognised(port_of: str, routes: dict[str, Any], expected: tuple[str, str, int]) -> None:
    [(provider, path, models)] = await found(port_of, routes)
    assert (provider, path, len(models)) == expected


@pytest.mark.parametrize("provider", LOCAL_PROVIDERS)
@pytest.mark.parametrize(
    "reply",
    [
        Reply(b"<html>my project</html>", content_type="text/html"),
        Reply(b'{"data": []}'),
        Reply(b'{"data": [{"id": 7}]}'),
        Reply(b'{"data": [{"id": "a"}], "object": "page"}'),
        Reply(b'{"models": [{"title": "Ford"}]}'),
        Reply(b"[]"),
        Reply(b"", 404),
        Reply(drop=True),
        Reply(stall=True),
        Reply(b"{}", length=100),
    ],
)
async def test_other_programs_at_the_same_port_are_not_taken_for_one(provider: str, reply: Reply) -> None:
    seconds = 0.3 if reply.stall else PATIENCE
    paths = ("/v1/models", "/engines/v1/models", "/api/tags", "/api/v0/models")
    async with serve_json(dict.fromkeys(paths, reply)) as server:
        assert await find_local_servers([(provider, server.port)], seconds=seconds) == ()
    assert len(server.paths) == 1


async def test_a_server_that_still_loads_its_model_is_found() -> None:
    loading = Reply(b'{"error":{"message":"Loading model","type":"unavailable_error","code":503}}', 503)
    async with serve_json({"/v1/models": loading}) as server:
        [found] = await find_local_servers([("llamacpp", server.port)], seconds=PATIENCE)
    assert (found.provider, found.models, found.loading) == ("llamacpp", (), True)


@pytest.mark.parametrize(
    "body", [b"Loading model", b"", b'{"error": "Loading model"}', b'{"error": {"message": "busy"}}']
)
async def test_another_program_that_is_not_ready_is_not_taken_for_one(body: bytes) -> None:
    async with serve_json({"/v1/models": Reply(body, 503)}) as server:
        assert await find_local_servers([("llamacpp", server.port)], seconds=PATIENCE) == ()


async def test_what_is_loaded_comes_first() -> None:
    """LM Studio would have to load another one before it answers."""
    listed = [
        {"id": "a", "object": "model", "state": "not-loaded", "max_context_length": 32_768},
        {"id": "b", "object": "model", "state": "loaded", "loaded_context_length": 4_096},
    ]
    routes = {**listing("organization_owner", "a", "b"), "/api/v0/models": {"object": "list", "data": listed}}
    [(_, _, models)] = await found("lmstudio", routes)
    assert models == ["b", "a"]


async def test_several_are_found_in_the_order_of_the_ports() -> None:
    async with serve_json(listing("vllm", "m")) as one, serve_json({"/api/tags": {"models": []}}) as two:
        ports = [("ollama", two.port), ("llamacpp", 1), ("vllm", one.port)]
        servers = await find_local_servers(ports, seconds=PATIENCE)
    assert [server.provider for server in servers] == ["ollama", "vllm"]


async def test_a_proxy_is_not_asked_about_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve_json(listing("somebody-else", "m")) as proxy, serve_json(listing("vllm", "m")) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        servers = await find_local_servers([("vllm", server.port)], seconds=PATIENCE)
    assert [one.provider for one in servers] == ["vllm"]
    assert proxy.asked == []


def test_only_this_machine_is_asked_and_only_for_providers_that_are_known() -> None:
    assert ipaddress.ip_address(HOST).is_loopback
    assert tuple(name for name, _ in usual_ports()) == LOCAL_PROVIDERS
    assert len({port for _, port in usual_ports()}) == len(LOCAL_PROVIDERS)


@pytest.mark.parametrize(("provider", "port"), usual_ports())
def test_a_found_model_is_asked_where_it_was_found(provider: str, port: int) -> None:
    """Its name leads to this port, whatever program answers there."""
    base_url = resolve(f"{provider}/m", {}).base_url
    assert base_url.startswith(f"http://{HOST}:{port}")
