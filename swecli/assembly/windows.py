"""What is known of models' windows, and the clients that it is known for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.llm.addresses import is_local
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.client_config import ClientConfig
from swecli.core.llm.exchange_dump import ExchangeDump
from swecli.core.llm.model_listings import EndpointModel
from swecli.core.llm.refused_fields import PATH_ABSENCE, RefusedFields, refusal_place
from swecli.core.llm.servers import LocalServer, ask_model, endpoint_of
from swecli.core.llm.types import ModelClient, ProviderError
from swecli.core.llm.windows import LearnedWindow, LearnedWindows, host_key
from swecli.core.protocol.messages import Origin

FILE_NAME = "windows.json"
REFUSED_NAME = "refused_fields.json"
Resolve = Callable[[EndpointModel | None, LearnedWindow | None], ClientConfig]
"""Builds a client's configuration from answers and learned facts."""


class _Known(Struct):
    """``stated`` is the window from an error of this session: the best source."""

    resolve: Resolve
    asked: EndpointModel | None = None
    learned: LearnedWindow | None = None
    stated: int | None = None
    settled: bool = False
    """Asking (again) would bring nothing new."""
    setting: str = ""
    """Name of the setting for this model's window, if it is set."""


class Windows:
    """Implements the engine's ``WindowKnowledge`` for clients that it made."""

    def __init__(self, data: Path, *, dump: ExchangeDump | None = None) -> None:
        self._dump = dump
        self._store = LearnedWindows(data / FILE_NAME)
        self._refusals = RefusedFields(data / REFUSED_NAME)
        self._known: WeakKeyDictionary[ModelClient, _Known] = WeakKeyDictionary()
        self._listings: dict[str, tuple[EndpointModel, ...]] = {}
        """Models of servers that were just found, by host and port: the next question needs no list."""

    def found(self, servers: Iterable[LocalServer]) -> None:
        self._listings = {host_key(server.base_url): server.models for server in servers if server.models}

    def client(self, resolve: Resolve, setting: str = "") -> HttpModelClient:
        """``setting`` is the name of the setting for the model's window, if it is set."""
        plain = resolve(None, None)
        learned = self._store.find(host_key(plain.base_url), plain.target.origin.model)
        config = resolve(None, learned) if learned is not None else plain
        place = refusal_place(config.base_url, config.target.origin.model)
        client = HttpModelClient(config, self._dump, lambda name: self._refusals.learn(place, name, date.today()))
        # A window set by the user needs no query, unless the server has refused it or has more to say than its window.
        settled = config.info.window_source == "user" and not is_local(config.base_url)
        self._known[client] = _Known(resolve, learned=learned, settled=settled, setting=setting)
        return client

    def refused(self, place: str) -> tuple[str, ...]:
        """Fields that the server at this ``refusal_place`` has refused."""
        names = self._refusals.find(place, date.today())
        return tuple(name for name in names if not name.startswith(PATH_ABSENCE))

    def may_tell(self, client: ModelClient) -> bool:
        known = self._known.get(client)
        return known is not None and not known.settled

    def doubt(self, client: ModelClient) -> None:
        known = self._known.get(client)
        if known is not None and isinstance(client, HttpModelClient) and is_local(client.config.base_url):
            known.settled, known.stated = False, None

    async def ask(self, client: ModelClient) -> bool:
        known = self._known.get(client)
        if known is None or known.settled or not isinstance(client, HttpModelClient):
            return False
        asked = await self._asked(client.config)
        # A server nearby may not run yet, or may load its model with the first request.
        known.settled = asked is not None or not is_local(client.config.base_url)
        if asked is None:
            return False
        known.asked = asked
        return self._update(client, known)

    async def _asked(self, config: ClientConfig) -> EndpointModel | None:
        """Ask the server, but not at paths that it did not have lately."""
        place, today = refusal_place(config.base_url, config.target.origin.model), date.today()
        names = self._refusals.find(place, today) if is_local(config.base_url) else ()
        known = {name.removeprefix(PATH_ABSENCE) for name in names if name.startswith(PATH_ABSENCE)}
        absent = set(known)
        listing = self._listings.pop(host_key(config.base_url), None)
        asked = await ask_model(endpoint_of(config), config.target.origin.model, absent, listing=listing)
        for path in sorted(absent - known):
            self._refusals.learn(place, PATH_ABSENCE + path, today)
        return asked

    def recall(self, client: ModelClient, window: int, origin: Origin) -> None:
        """Adopt the window reported by the server of ``origin`` in an earlier run, in place of an assumed one or, at
        the same host, of the catalogue's: another host may serve the model with another window."""
        if not isinstance(client, HttpModelClient):
            return
        source = client.info.window_source
        if source == "assumed" or (source == "catalogue" and client.config.target.origin == origin):
            client.compatibility.know(replace(client.info, window=window, window_source="endpoint"))

    async def learn(self, client: ModelClient, error: ProviderError) -> str:
        """Store the window stated in an error. Returns a sentence for the user, or nothing if it is not new."""
        known = self._known.get(client)
        stated, before = error.window, client.info.window
        if known is None or stated is None or stated == before or not isinstance(client, HttpModelClient):
            return ""
        server, model = host_key(client.config.base_url), client.config.target.origin.model
        set_by_user = before if client.info.window_source == "user" else known.learned and known.learned.refuted
        refuted = set_by_user if set_by_user is not None and set_by_user > stated else None
        known.stated, known.learned = stated, LearnedWindow(stated, date.today().isoformat(), refuted)
        trouble = await asyncio.to_thread(self._store.learn, server, model, known.learned)
        if not self._update(client, known):
            return trouble
        instead = f", so the {refuted:,} of {known.setting} no longer count" if refuted and known.setting else ""
        return f"{server} reports a context window of {stated:,} tokens for {model}{instead}. {trouble}".strip()

    def _update(self, client: HttpModelClient, known: _Known) -> bool:
        before = client.info
        info = known.resolve(known.asked, known.learned).info
        if known.stated is not None:
            info = replace(info, window=known.stated, window_source="learned")
        client.compatibility.know(info)
        return info != before
