"""Asking a server for its models and their context windows. Bounded, and never a reason to fail."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from swecli.core.llm.base_url import host_of, is_local
from swecli.core.llm.client import ClientConfig
from swecli.core.llm.endpoint_replies import (
    EndpointModel,
    merge,
    pick,
    read_model,
    read_models,
    read_ollama,
    read_props,
)
from swecli.core.llm.fetch import SECONDS, Fetcher
from swecli.core.llm.types import ASSUMED_WINDOW

_TELL_NO_WINDOW = ("api.openai.com", "api.deepseek.com", "api.cerebras.ai", "api.x.ai")
"""Hosts whose lists of models have names only: asking for a window is a wasted request."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to ask. ``base_url`` is that of the client, without a slash at its end; ``headers`` carry the key."""

    protocol: str
    base_url: str
    headers: Mapping[str, str] = field(default_factory=lambda: {}, repr=False)

    @property
    def root(self) -> str:
        """The server's address without the version that OpenAI's paths are under."""
        return self.base_url.removesuffix("/v1")


@dataclass(frozen=True, slots=True)
class ModelList:
    """The models that a server offers; ``problem`` says in a few words why there are none."""

    models: tuple[EndpointModel, ...] = ()
    problem: str = ""


def endpoint_of(config: ClientConfig) -> Endpoint:
    """The endpoint that a client talks to."""
    return Endpoint(config.target.origin.protocol, config.base_url, config.headers)


async def list_models(endpoint: Endpoint, seconds: float = SECONDS) -> ModelList:
    """The models of a server, in its own order. Raises nothing but cancellation."""
    path = _list_path(endpoint.protocol)
    fetcher = Fetcher(endpoint.base_url, _headers(endpoint), seconds)
    try:
        reply = await fetcher.get(path)
    finally:
        await fetcher.close()
    models = read_models(reply.value, path.partition("?")[0])
    return ModelList(models, reply.problem or ("" if models else "the server lists no models"))


async def ask_model(endpoint: Endpoint, model: str, seconds: float = SECONDS) -> EndpointModel | None:
    """What the server says of one model; None where it says nothing. Raises nothing but cancellation."""
    if host_of(endpoint.base_url) in _TELL_NO_WINDOW:
        return None
    fetcher = Fetcher(endpoint.base_url, _headers(endpoint), seconds)
    try:
        if endpoint.protocol == "ollama-chat":
            return await _ask_ollama(fetcher, model, ASSUMED_WINDOW)
        if is_local(endpoint.base_url):
            return await _ask_local(endpoint, model, seconds)
        if endpoint.protocol == "anthropic-messages":
            return await _ask_by_name(fetcher, f"/v1/models/{quote(model, safe='')}")
        if endpoint.protocol == "gemini-generate":
            return await _ask_by_name(fetcher, f"/models/{quote(model.removeprefix('models/'), safe='')}")
        return await _ask_list(fetcher, "/models", model)
    finally:
        await fetcher.close()


def _list_path(protocol: str) -> str:
    paths = {
        "ollama-chat": "/api/tags",
        "anthropic-messages": "/v1/models?limit=1000",
        "gemini-generate": "/models?pageSize=1000",
    }
    return paths.get(protocol, "/models")


def _headers(endpoint: Endpoint) -> dict[str, str]:
    extra = {"anthropic-version": "2023-06-01"} if endpoint.protocol == "anthropic-messages" else {}
    return {**endpoint.headers, **extra}


async def _ask_by_name(fetcher: Fetcher, path: str) -> EndpointModel | None:
    return read_model((await fetcher.get(path)).value, path)


async def _ask_list(fetcher: Fetcher, path: str, model: str, only_one: bool = False) -> EndpointModel | None:
    return pick(read_models((await fetcher.get(path)).value, path), model, only_one)


async def _ask_ollama(fetcher: Fetcher, model: str, settable: int = 0) -> EndpointModel | None:
    shown, running = await asyncio.gather(fetcher.post("/api/show", {"model": model}), fetcher.get("/api/ps"))
    return read_ollama(shown.value, running.value, model, settable)


async def _ask_local(endpoint: Endpoint, model: str, seconds: float) -> EndpointModel | None:
    """A server nearby may be any of several programs, each with a way of its own to tell the window that the model
    is really loaded with. All are asked at once, and the most telling answer counts."""
    fetcher = Fetcher(endpoint.root, endpoint.headers, seconds)
    try:
        props, *others = await asyncio.gather(
            _ask_props(fetcher),
            _ask_list(fetcher, "/api/v1/models", model),
            _ask_list(fetcher, "/api/v0/models", model),
            _ask_ollama(fetcher, model),
            _ask_list(fetcher, "/v1/models", model, only_one=True),
        )
        return merge((props, *others))
    finally:
        await fetcher.close()


async def _ask_props(fetcher: Fetcher) -> EndpointModel | None:
    return read_props((await fetcher.get("/props")).value, "/props")
