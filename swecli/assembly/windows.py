"""What is known of the context windows of the models in use: asked from their servers, learned from errors, kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from swecli.core.llm.base_url import is_local
from swecli.core.llm.client import ClientConfig, HttpModelClient
from swecli.core.llm.discovery import Endpoint, ask_model, endpoint_of
from swecli.core.llm.endpoint_replies import EndpointModel
from swecli.core.llm.exchange_dump import ExchangeDump
from swecli.core.llm.learned_windows import LearnedWindow, LearnedWindows
from swecli.core.llm.types import ModelClient, ModelInfo, ProviderError

FILE_NAME = "windows.json"

Resolve = Callable[[EndpointModel | None, LearnedWindow | None], ClientConfig]
"""A client's configuration from what was asked and what was learned."""
Ask = Callable[[Endpoint, str], Awaitable[EndpointModel | None]]


@dataclass(slots=True)
class _Known:
    """``stated`` is the window that an error of this session stated: no source is better."""

    resolve: Resolve
    asked: EndpointModel | None = None
    learned: LearnedWindow | None = None
    stated: int | None = None
    settled: bool = False
    """Asking (again) brings nothing new."""


class Windows:
    """Implements the engine's ``WindowKnowledge`` for clients that it made."""

    def __init__(
        self,
        data: Path,
        *,
        dump: ExchangeDump | None = None,
        ask: Ask = ask_model,
        today: Callable[[], date] = date.today,
    ) -> None:
        self._dump = dump
        self._store = LearnedWindows(data / FILE_NAME)
        self._ask = ask
        self._today = today
        self._known: WeakKeyDictionary[ModelClient, _Known] = WeakKeyDictionary()

    def client(self, resolve: Resolve) -> HttpModelClient:
        """A client that knows what has been learned of its model."""
        plain = resolve(None, None)
        learned = self._store.find(_server(plain), plain.target.model)
        client = HttpModelClient(resolve(None, learned) if learned is not None else plain, self._dump)
        # A window that the user set needs no asking.
        self._known[client] = _Known(resolve, learned=learned, settled=plain.info.window_source == "user")
        return client

    async def ask(self, client: ModelClient) -> bool:
        """Ask the server about the model, unless that is of no use. True when more is known than before."""
        known = self._known.get(client)
        if known is None or known.settled or not isinstance(client, HttpModelClient):
            return False
        asked = await self._ask(endpoint_of(client.config), client.config.target.model)
        # A server nearby may not run yet, or may load its model with the first request.
        known.settled = asked is not None or not is_local(client.config.base_url)
        if asked is None:
            return False
        known.asked = asked
        return self._update(client, known)

    async def learn(self, client: ModelClient, error: ProviderError) -> str:
        """Keep the window that an error states. Returns a sentence for the user, or nothing where it is not news."""
        known = self._known.get(client)
        stated, before = error.window, client.info.window
        if known is None or stated is None or stated == before or not isinstance(client, HttpModelClient):
            return ""
        today = self._today()
        server, model = _server(client.config), client.config.target.model
        trouble = await asyncio.to_thread(self._store.learn, server, model, stated, today)
        known.stated, known.learned = stated, LearnedWindow(stated, today.isoformat())
        if not self._update(client, known):
            return trouble
        return f"{server} says that the context window of {model} is {stated:,} tokens. {trouble}".strip()

    def _update(self, client: HttpModelClient, known: _Known) -> bool:
        before = client.info
        info = known.resolve(known.asked, known.learned).info
        if known.stated is not None:
            info = replace(info, window=known.stated, window_source="learned")
        client.know(info)
        return info != before


def describe(info: ModelInfo) -> str:
    """Where a window is known from, in words."""
    return _WORDS.get(info.window_source, info.window_source)


_WORDS = {
    "user": "your settings",
    "endpoint": "the server says so",
    "learned": "an error of the server said so",
    "catalogue": "the catalogue",
    "assumed": "assumed: nothing is known",
}


def _server(config: ClientConfig) -> str:
    """Host and port."""
    return urlsplit(config.base_url).netloc.rpartition("@")[2]
