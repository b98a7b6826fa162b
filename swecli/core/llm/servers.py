"""Asking model servers what they offer: the models of a list, one model's window and abilities, local servers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from functools import cache
from urllib.parse import quote, urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.llm.addresses import host_of, is_local, without_password
from swecli.core.llm.client_config import ClientConfig
from swecli.core.llm.json_values import as_object, as_text, is_list
from swecli.core.llm.model_listings import (
    LENGTH,
    LIST,
    LOADED,
    PROGRAMS,
    PROPS,
    RUNNING,
    SHOW,
    TAGS,
    EndpointModel,
    merge,
    owner_of,
    pick,
    read_length,
    read_model,
    read_models,
    read_ollama,
    read_props,
    ways_of_unknown,
)
from swecli.core.llm.providers import known_providers
from swecli.core.llm.transport import NOT_READY, SECONDS, Fetcher
from swecli.core.llm.types import ASSUMED_WINDOW

PATIENT_SECONDS = 10.0
"""Time limit for a local server's answer about one model: it may be busy, or load the model first."""

_NO_WINDOW_IN_LISTS = ("api.openai.com", "api.deepseek.com", "api.cerebras.ai", "api.x.ai")
"""Hosts whose model lists have only names: asking for a window is a wasted request."""


class Endpoint(Struct, frozen=True):
    """Server to ask. ``base_url`` is the client's, without a trailing slash; ``headers`` carry the key."""

    protocol: str
    base_url: str
    headers: Mapping[str, str] = field(default_factory=lambda: {})

    def __repr__(self) -> str:
        return f"Endpoint({self.protocol!r}, {without_password(self.base_url)!r})"

    @property
    def root(self) -> str:
        """The server's address without the version prefix of OpenAI's paths."""
        return self.base_url.removesuffix("/v1")


class ModelList(Struct, frozen=True):
    """The models that a server offers; ``problem`` says briefly why the server could not be asked, ``status`` is the
    status of its answer (0: no answer)."""

    models: tuple[EndpointModel, ...] = ()
    problem: str = ""
    status: int = 0


def endpoint_of(config: ClientConfig) -> Endpoint:
    return Endpoint(config.target.origin.protocol, config.base_url, config.headers)


async def list_models(endpoint: Endpoint, seconds: float = SECONDS) -> ModelList:
    """The models of a server, in its own order. Raises only cancellation."""
    path = _list_path(endpoint.protocol)
    async with aclosing(Fetcher(endpoint.base_url, _headers(endpoint), seconds)) as fetcher:
        reply = await fetcher.get(path)
    models = read_models(reply.value, path.partition("?")[0])
    return ModelList(models, reply.problem, reply.status)


async def ask_model(
    endpoint: Endpoint,
    model: str,
    absent: set[str] | None = None,
    *,
    listing: Sequence[EndpointModel] | None = None,
    seconds: float | None = None,
) -> EndpointModel | None:
    """A server's description of one model; None if there is none. ``absent`` are paths that a local server is known not
    to have: they are not asked, and those that turn out to be missing are added. ``listing`` is what its list of models
    has just said, if it was asked. ``seconds`` limits the wait; None = longer for a local server. Raises only
    cancellation."""
    if seconds is None:
        seconds = PATIENT_SECONDS if is_local(endpoint.base_url) else SECONDS
    if host_of(endpoint.base_url) in _NO_WINDOW_IN_LISTS:
        return None
    async with aclosing(Fetcher(endpoint.base_url, _headers(endpoint), seconds)) as fetcher:
        if endpoint.protocol == "ollama-chat":
            shown, running = await asyncio.gather(fetcher.post(SHOW, {"model": model}), fetcher.get(RUNNING))
            return read_ollama(shown.value, running.value, model, ASSUMED_WINDOW)
        if is_local(endpoint.base_url):
            return await _ask_local(endpoint, model, seconds, set[str]() if absent is None else absent, listing)
        if endpoint.protocol == "anthropic-messages":
            return await _ask_by_name(fetcher, f"/v1/models/{quote(model, safe='')}")
        if endpoint.protocol == "gemini-generate":
            return await _ask_by_name(fetcher, f"/models/{quote(model.removeprefix('models/'), safe='')}")
        return pick(read_models((await fetcher.get("/models")).value, "/models"), model)


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


OTHERS_SECONDS = 1.0
"""Time limit for the other requests to such a server if its list has told the window."""
_MISSING = (400, 404, 405, 501)
"""Statuses of a path that a server does not have."""
_LATER = (429, NOT_READY)
MOST_REQUESTS = 3
"""Requests that learn about one model of a local server, the list of its models included."""


async def _ask_local(
    endpoint: Endpoint, model: str, seconds: float, absent: set[str], listing: Sequence[EndpointModel] | None
) -> EndpointModel | None:
    """Ask a local server for its list, which names most programs, and then in the ways of that program until one
    describes the model. An unknown program is asked in the ways that its list suggests."""
    asked = 1
    if listing is None:
        async with aclosing(Fetcher(endpoint.root, endpoint.headers, seconds)) as fetcher:
            reply = await fetcher.get(LIST)
        listing = read_models(reply.value, LIST)
        if reply.status in _LATER or not listing:
            return None  # its model is loading, or this is no model server
    elif (name := owner_of(listing)) and PROGRAMS[name].more:
        asked += 1
    listed = pick(listing, model, only_one=True)  # a server with a single model ignores the name
    owner = owner_of(listing)
    is_sized = listed is not None and listed.window is not None
    ways = PROGRAMS[owner].ways if owner else () if is_sized else ways_of_unknown(listing)
    most = min(seconds, OTHERS_SECONDS) if is_sized else seconds
    described: EndpointModel | None = None
    async with aclosing(Fetcher(endpoint.root, endpoint.headers, most)) as fetcher:
        for way in [way for way in ways if way not in absent][: MOST_REQUESTS - asked]:
            described = described or await _ask_in_way(fetcher, way, model, absent)
    answering = listed.id if listed is not None and pick((listed,), model) is None else ""
    described = merge((described, listed))
    return replace(described, server=owner, answering=answering) if described is not None else None


async def _ask_in_way(fetcher: Fetcher, way: str, model: str, absent: set[str]) -> EndpointModel | None:
    if way == SHOW:
        reply = await fetcher.post(way, {"model": model})
        running = await fetcher.get(RUNNING) if reply.status == 200 else None
        described = read_ollama(reply.value, running.value if running is not None else None, model)
    else:
        reply = await fetcher.get(way)
        if way == PROPS:
            described = read_props(reply.value, way)
        elif way == LENGTH:
            described = read_length(reply.value, model, way)
        elif way == LOADED:
            loaded = read_model(reply.value, way)
            described = pick((loaded,), model) if loaded is not None else None
        else:
            described = pick(read_models(reply.value, way), model)
    if reply.status in _MISSING and way != LOADED:  # TabbyAPI without a loaded model refuses as well
        absent.add(way)
    return described


HOST = "127.0.0.1"


@cache
def usual_ports() -> tuple[tuple[str, int], ...]:
    """The providers on this machine, and the ports at which they usually answer."""
    local = [provider for provider in known_providers().values() if provider.local]
    return tuple((provider.name, port) for provider in local if (port := urlsplit(provider.base_url).port) is not None)


_LOADING = "Loading model"
"""What llama.cpp says until it is ready."""


class LocalServer(Struct, frozen=True):
    """A server that answered. ``provider`` is the one with this address in the settings, whatever program answers
    there; ``models`` may be empty: it runs, but has none, or is still ``loading`` it."""

    provider: str
    base_url: str
    models: tuple[EndpointModel, ...]
    loading: bool = False


async def find_local_servers(
    ports: Sequence[tuple[str, int]] | None = None, seconds: float = SECONDS
) -> tuple[LocalServer, ...]:
    """The servers that answer on ``ports`` (provider, port), in that order; None = the usual ones. All are asked at
    once, so this takes at most ``seconds``; a closed port takes no time. Raises only cancellation."""
    asked = usual_ports() if ports is None else ports
    servers = await asyncio.gather(*(_probe(provider, port, seconds) for provider, port in asked))
    return tuple(server for server in servers if server is not None)


async def listening() -> tuple[str, ...]:
    """Addresses (host and port) at the usual ports that accept a connection; sends nothing. Raises only
    cancellation."""
    asked = usual_ports()
    accepted = await asyncio.gather(*(_accepts(port) for _, port in asked))
    return tuple(f"{HOST}:{port}" for (_, port), accepts in zip(asked, accepted, strict=True) if accepts)


async def _accepts(port: int) -> bool:
    try:
        async with asyncio.timeout(SECONDS):
            _, writer = await asyncio.open_connection(HOST, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def _probe(provider: str, port: int, seconds: float) -> LocalServer | None:
    """Ask for the list of models, and once more only a program that is known to tell more elsewhere."""
    base_url = f"http://{HOST}:{port}{urlsplit(known_providers()[provider].base_url).path}"
    async with aclosing(Fetcher(base_url.removesuffix("/v1"), seconds=seconds)) as fetcher:
        path = TAGS if provider == "ollama" else LIST
        reply = await fetcher.get(path)
        if not _is_listing(reply.value, provider):
            error = as_object(as_object(reply.value).get("error"))
            if reply.status == NOT_READY and as_text(error.get("message")) == _LOADING:
                return LocalServer(provider, base_url, (), loading=True)
            return None
        models = read_models(reply.value, path)
        way = PROGRAMS[owner].more if (owner := owner_of(models)) else ""
        if way == PROPS and len(models) == 1:
            described = [read_props((await fetcher.get(way)).value, way)]
            described = [replace(model, id=models[0].id) for model in described if model is not None]
        else:
            described = read_models((await fetcher.get(way)).value, way) if way and way != PROPS else ()
        known = [merge((pick(described, model.id), model)) for model in models]
        both = [replace(model, server=owner) if owner else model for model in known if model is not None]
        return LocalServer(provider, base_url, tuple(sorted(both, key=lambda item: item.window is None)))


def _is_listing(value: object, provider: str) -> bool:
    """Whether this is a list of models, not the answer of another program on the same port."""
    listing = as_object(value)
    if provider == "ollama":
        items = listing.get("models")
        return is_list(items) and all(as_text(as_object(item).get("name")) for item in items)
    items = listing.get("data")
    if not is_list(items) or not (items or as_text(listing.get("object")) == "list"):
        return False
    return all(as_text(as_object(item).get("id")) and as_text(as_object(item).get("object")) for item in items)
