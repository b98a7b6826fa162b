"""Model servers that run on this machine, found on their usual ports. No key is sent, and no other host is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from swecli.core.llm.endpoint_replies import EndpointModel, read_models
from swecli.core.llm.fetch import SECONDS, Fetcher
from swecli.core.llm.json_values import as_object, as_text, is_list

HOST = "127.0.0.1"
USUAL_PORTS: tuple[tuple[str, int], ...] = (
    ("ollama", 11434),
    ("lmstudio", 1234),
    ("llamacpp", 8080),
    ("vllm", 8000),
    ("sglang", 30000),
)
_BY_OWNER = {"llamacpp": "llamacpp", "vllm": "vllm", "sglang": "sglang", "organization_owner": "lmstudio"}


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server that answered. ``base_url`` is what the provider's settings take; ``models`` may be empty: it runs,
    but has none."""

    provider: str
    base_url: str
    models: tuple[EndpointModel, ...]


async def find_local_servers(
    ports: Sequence[tuple[str, int]] = USUAL_PORTS, seconds: float = SECONDS
) -> tuple[LocalServer, ...]:
    """The servers that answer on ``ports`` (provider, port), in that order. All are asked at once, so this takes
    ``seconds`` at most; where nothing listens it takes no time. Raises nothing but cancellation."""
    found = await asyncio.gather(*(_probe(provider, port, seconds) for provider, port in ports))
    return tuple(server for server in found if server is not None)


async def _probe(provider: str, port: int, seconds: float) -> LocalServer | None:
    root = f"http://{HOST}:{port}"
    fetcher = Fetcher(root, seconds=seconds)
    try:
        paths = ("/api/tags",) if provider == "ollama" else ("/v1/models",)
        if provider == "lmstudio":
            paths = ("/api/v0/models", *paths)
        for path, reply in zip(paths, await asyncio.gather(*map(fetcher.get, paths)), strict=True):
            if _is_listing(reply.value, provider):
                models = read_models(reply.value, path)
                name = next((_BY_OWNER[item.server] for item in models if item.server in _BY_OWNER), provider)
                return LocalServer(name, root if name == "ollama" else f"{root}/v1", models)
        return None
    finally:
        await fetcher.close()


def _is_listing(value: object, provider: str) -> bool:
    """Whether this is a list of models and not what some other program says at the same port."""
    listing = as_object(value)
    if provider == "ollama":
        items = listing.get("models")
        return is_list(items) and all(as_text(as_object(item).get("name")) for item in items)
    items = listing.get("data")
    if not is_list(items) or not (items or as_text(listing.get("object")) == "list"):
        return False
    return all(as_text(as_object(item).get("id")) and as_text(as_object(item).get("object")) for item in items)
