"""Asking model servers what they offer: the models of a list, one model's window and abilities, local servers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from urllib.parse import quote

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.llm.addresses import host_of, is_local, without_password
from swecli.core.llm.client import ClientConfig
from swecli.core.llm.json_values import as_object, as_text, is_list
from swecli.core.llm.model_listings import (
    LENGTH,
    LOADED,
    PROGRAMS,
    PROPS,
    RUNNING,
    SHOW,
    EndpointModel,
    merge,
    pick,
    read_length,
    read_model,
    read_models,
    read_ollama,
    read_props,
)
from swecli.core.llm.transport import NOT_READY, SECONDS, Fetched, Fetcher
from swecli.core.llm.types import ASSUMED_WINDOW

PATIENT_SECONDS = 10.0
"""Time limit for a local server's answer about one model: it may be busy, or load the model first."""
OTHERS_SECONDS = 1.0
"""Time limit for the other requests to such a server after one has reported the window."""

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
    fetcher = Fetcher(endpoint.base_url, _headers(endpoint), seconds)
    try:
        reply = await fetcher.get(path)
    finally:
        await fetcher.close()
    models = read_models(reply.value, path.partition("?")[0])
    return ModelList(models, reply.problem, reply.status)


async def ask_model(
    endpoint: Endpoint, model: str, absent: set[str] | None = None, *, seconds: float | None = None
) -> EndpointModel | None:
    """A server's description of one model; None if there is none. ``absent`` are paths that a local server is known not
    to have: they are not asked, and those that turn out to be missing are added. ``seconds`` limits the wait; None =
    longer for a local server. Raises only cancellation."""
    if seconds is None:
        seconds = PATIENT_SECONDS if is_local(endpoint.base_url) else SECONDS
    if host_of(endpoint.base_url) in _NO_WINDOW_IN_LISTS:
        return None
    fetcher = Fetcher(endpoint.base_url, _headers(endpoint), seconds)
    try:
        if endpoint.protocol == "ollama-chat":
            shown, running = await asyncio.gather(fetcher.post(SHOW, {"model": model}), fetcher.get(RUNNING))
            return read_ollama(shown.value, running.value, model, ASSUMED_WINDOW)
        if is_local(endpoint.base_url):
            return await _ask_local(endpoint, model, seconds, set[str]() if absent is None else absent)
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


async def _ask_list(fetcher: Fetcher, path: str, model: str) -> EndpointModel | None:
    return pick(read_models((await fetcher.get(path)).value, path), model)


WAYS = (PROPS, "/api/v1/models", "/api/v0/models", SHOW, "/v1/model/info")
"""Where llama.cpp, LM Studio (two versions), Ollama and LiteLLM describe a model beyond OpenAI's list."""
_MISSING = (400, 404, 405, 501)
"""Statuses of a path that a server does not have."""
_LATER = (429, NOT_READY)


async def _ask_local(endpoint: Endpoint, model: str, seconds: float, absent: set[str]) -> EndpointModel | None:
    """Ask a local server for its list, which names most programs, and then in the way of that program. An unknown one
    is asked in all ways at once, and the most informative answer counts."""
    fetcher = Fetcher(endpoint.root, endpoint.headers, seconds)
    listing = asyncio.create_task(fetcher.get("/v1/models"))
    try:
        await asyncio.wait({listing}, timeout=OTHERS_SECONDS)
        reply = listing.result() if listing.done() else None
        if reply is not None and reply.status in _LATER:
            return None  # its model is loading
        models = read_models(reply.value, "/v1/models") if reply is not None else ()
        owner = next((listed.server for listed in models if listed.server in PROGRAMS), "")
        ways = [way for way in (PROGRAMS[owner].ways if owner else WAYS) if way not in absent]
        asked = (_ask_in_way(fetcher, way, model, absent) for way in ways)
        found = merge(await _asked_at_once(*asked, _picked(listing, model)))
        return replace(found, server=owner) if found is not None and owner else found
    finally:
        listing.cancel()
        await fetcher.close()


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


async def _picked(listing: asyncio.Task[Fetched], model: str) -> EndpointModel | None:
    """The model of OpenAI's list. A single one answers to any name: such a server ignores it."""
    return pick(read_models((await listing).value, "/v1/models"), model, only_one=True)


async def _asked_at_once(*ways: Coroutine[object, object, EndpointModel | None]) -> list[EndpointModel | None]:
    """The answers in the order of the ways. Once one has reported a window, silent ones are not awaited."""
    tasks = [asyncio.create_task(way) for way in ways]
    try:
        pending = set(tasks)
        while pending:
            reported = any(task.done() and (found := task.result()) is not None and found.window for task in tasks)
            done, pending = await asyncio.wait(
                pending, timeout=OTHERS_SECONDS if reported else None, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                break
        return [task.result() if task.done() else None for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


HOST = "127.0.0.1"
USUAL_PORTS: tuple[tuple[str, int], ...] = (
    ("ollama", 11434),
    ("lmstudio", 1234),
    ("llamacpp", 8080),
    ("vllm", 8000),
    ("sglang", 30000),
)


_LOADING = "Loading model"
"""What llama.cpp says until it is ready."""


class LocalServer(Struct, frozen=True):
    """A server that answered. ``base_url`` suits the provider's settings; ``models`` may be empty: it runs, but has
    none, or is still ``loading`` it."""

    provider: str
    base_url: str
    models: tuple[EndpointModel, ...]
    loading: bool = False


async def find_local_servers(
    ports: Sequence[tuple[str, int]] = USUAL_PORTS, seconds: float = SECONDS
) -> tuple[LocalServer, ...]:
    """The servers that answer on ``ports`` (provider, port), in that order. All are asked at once, so this takes at
    most ``seconds``; a closed port takes no time. Raises only cancellation."""
    found = await asyncio.gather(*(_probe(provider, port, seconds) for provider, port in ports))
    return tuple(server for server in found if server is not None)


async def listening(ports: Sequence[tuple[str, int]] = USUAL_PORTS, seconds: float = SECONDS) -> tuple[str, ...]:
    """Addresses (host and port) at which something accepts a connection; nothing is sent. Raises only cancellation."""
    accepted = await asyncio.gather(*(_accepts(port, seconds) for _, port in ports))
    return tuple(f"{HOST}:{port}" for (_, port), accepts in zip(ports, accepted, strict=True) if accepts)


async def _accepts(port: int, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(HOST, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def _probe(provider: str, port: int, seconds: float) -> LocalServer | None:
    root = f"http://{HOST}:{port}"
    fetcher = Fetcher(root, seconds=seconds)
    try:
        paths = ("/api/tags",) if provider == "ollama" else ("/v1/models",)
        if provider == "lmstudio":
            paths = ("/api/v0/models", *paths)
        for path, reply in zip(paths, await asyncio.gather(*map(fetcher.get, paths)), strict=True):
            if _is_listing(reply.value, provider):
                loaded_first = sorted(read_models(reply.value, path), key=lambda item: item.window is None)
                models = tuple(loaded_first)
                named = (PROGRAMS[item.server].provider for item in models if item.server in PROGRAMS)
                name = next(filter(None, named), provider)
                if name == "llamacpp" and len(models) == 1:  # its list does not say what the model can do
                    loaded = read_props((await fetcher.get(PROPS)).value, PROPS)
                    models = tuple(replace(model, id=models[0].id) for model in (merge((loaded, *models)),) if model)
                return LocalServer(name, root if name == "ollama" else f"{root}/v1", models)
            error = as_object(as_object(reply.value).get("error"))
            if reply.status == NOT_READY and as_text(error.get("message")) == _LOADING:
                return LocalServer("llamacpp", f"{root}/v1", (), loading=True)
        return None
    finally:
        await fetcher.close()


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
