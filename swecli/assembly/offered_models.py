"""The models that the user can choose from: those of accounts, of the user's own servers, and of others nearby."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from msgspec.structs import replace

from swecli.assembly.accounts import Accounts
from swecli.assembly.client_configs import ClientConfigs
from swecli.assembly.prices import Prices
from swecli.assembly.windows import Windows
from swecli.core.config.key_store import KeyStoreError
from swecli.core.config.settings import named_models
from swecli.core.engine.model_access import ModelCatalog
from swecli.core.llm.addresses import is_loopback, without_password
from swecli.core.llm.catalog import load_catalog, utc_now
from swecli.core.llm.model_listings import EndpointModel
from swecli.core.llm.model_names import chatting, likeliest_first
from swecli.core.llm.offers import Account, ModelOffer, listed_offers, offers
from swecli.core.llm.providers import ProviderSetupError, signs_in_by_address
from swecli.core.llm.remedies import ADDRESS_LOGIN
from swecli.core.llm.servers import (
    PATIENT_SECONDS,
    ModelList,
    endpoint_of,
    find_local_servers,
    list_models,
    listening,
)
from swecli.core.llm.transport import SECONDS as LIST_SECONDS
from swecli.core.llm.types import ModelInfo
from swecli.core.llm.windows import WindowTable, host_key, load_windows, model_info
from swecli.core.protocol.events import Price

LOADING = "The server at {} still loads its model; /model lists it when it has."


class OfferedModels:
    """``last`` is the result of the last query, ``unlisted`` and ``silent`` are its sentences about servers that listed
    no models, silent ones alone in the latter; ``omitted`` counts usable models that it left out, because they do not
    chat. ``candidates`` come first: models that match a name that is ambiguous."""

    def __init__(self, accounts: Accounts, configs: ClientConfigs, prices: Prices, windows: Windows) -> None:
        self._accounts = accounts
        self._configs = configs
        self._prices = prices
        self._windows = windows
        self.last: Sequence[ModelOffer] | None = None
        self.candidates: tuple[str, ...] = ()
        self.unlisted: tuple[str, ...] = ()
        self.silent: tuple[str, ...] = ()
        self.omitted = 0
        self._loads = False
        """Whether a server of the last query still loads its model."""

    @property
    def own_servers(self) -> list[Account]:
        """The user's own servers that need no key or have one."""
        return [account for account in self._accounts.all() if account.elsewhere and account.key != "missing"]

    def catalog(self, keep_price: Callable[[str, Price], str]) -> ModelCatalog:
        """What a session asks for; ``keep_price`` writes a price into the user's settings."""
        return ModelCatalog(self.query, lambda: self.unlisted, lambda: self.omitted, self._nearby, keep_price)

    async def _nearby(self) -> Sequence[str]:
        """Addresses that accept a connection; only servers that load a model are asked whether they have it now."""
        loading = await find_local_servers() if self._loads else ()
        return (*await listening(), *(server.base_url for server in loading if not server.loading))

    async def query(self, *, nearby: bool = True, seconds: float | None = None) -> Sequence[ModelOffer]:
        """Models to choose from, the likeliest first. Detects servers on this machine (``nearby``), and contacts those
        at the user's own addresses. ``seconds`` limits the wait for each; None = briefly for detected servers, and
        longer for others without a model, because then the list is what the user waits for."""
        accounts = await asyncio.to_thread(self._accounts.all)
        own = [account for account in accounts if account.elsewhere and account.key != "missing"]
        wait = seconds or (LIST_SECONDS if self._configs.main else PATIENT_SECONDS)
        servers, lists = await asyncio.gather(
            find_local_servers(seconds=seconds or LIST_SECONDS) if nearby else asyncio.sleep(0, ()),
            asyncio.gather(*(self.listed_by(account, wait) for account in own)),
        )
        self.silent = tuple(filter(None, (problem for _, problem in lists)))
        self._windows.found(servers)
        asked = {_port(account.address) for account in own if is_loopback(account.address)}
        servers = [server for server in servers if _port(server.base_url) not in asked]
        loading = [LOADING.format(host_key(server.base_url)) for server in servers if server.loading]
        self._loads = bool(loading)
        self.unlisted = tuple(filter(None, (*(account.problem for account in accounts), *self.silent, *loading)))
        listed = [offer for listing, _ in lists for offer in listing]
        named = named_models(self._configs.settings)
        available = await asyncio.to_thread(
            lambda: offers(load_catalog(), accounts, servers, utc_now(), named, listed),
        )
        self.last = await asyncio.to_thread(self._ordered, available)
        shown = chatting(self.last, (self._configs.main or "", *named))
        self.omitted = sum(offer.usable for offer in self.last) - sum(offer.usable for offer in shown)
        return shown

    def unasked(self) -> Sequence[ModelOffer]:
        """Models known without contacting any server."""
        return self._ordered(offers(load_catalog(), self._accounts.all(), (), utc_now()))

    def known(self) -> Sequence[ModelOffer]:
        """The models of the last query; without one, those known without contacting any server."""
        if self.last is None:
            self.last = self.unasked()
        return self.last

    def _ordered(self, available: Sequence[ModelOffer]) -> tuple[ModelOffer, ...]:
        """The offers with the user's settings, the likeliest first."""
        windows = self._configs.settings.models.window
        own = {ref: prices.at(utc_now()) for ref, prices in self._prices.own.items()}
        known = [
            replace(offer, rates=own.get(offer.ref, offer.rates), window=windows.get(offer.ref, offer.window))
            for offer in available
        ]
        return likeliest_first(known, (*self.candidates, *named_models(self._configs.settings)))

    async def listed_by(self, account: Account, seconds: float = LIST_SECONDS) -> tuple[tuple[ModelOffer, ...], str]:
        """The models of one server, or the reason for none as a sentence."""
        provider = account.provider.name
        try:
            config = await asyncio.to_thread(self._configs.resolve, f"{provider}/models")
        except (ProviderSetupError, KeyStoreError) as error:
            return (), str(error)
        answer = await list_models(endpoint_of(config), seconds)
        if not answer.models:
            return (), why_unlisted(account, answer)

        def known() -> tuple[ModelOffer, ...]:
            table = load_windows()
            return listed_offers(account, answer.models, lambda model: self._info(provider, model, table))

        return await asyncio.to_thread(known), ""

    def _info(self, provider: str, model: EndpointModel, table: WindowTable) -> ModelInfo:
        config = next((candidate for candidate in self._accounts.custom if candidate.name == provider), None)
        local = config is not None and config.local
        setting = config.window if config is not None else None
        return model_info(provider, model.id, local=local, asked=model, setting=setting, table=table)


def why_unlisted(account: Account, answer: ModelList) -> str:
    """Why a server of the user's own listed no models, and what to do."""
    provider, address = account.provider.name, without_password(account.address)
    problem = answer.problem.rstrip(".")
    if answer.status in (401, 403) and signs_in_by_address(account.address, account.protocol):
        return f"{provider} at {address} rejects {ADDRESS_LOGIN} ({problem}). Correct them there; no key is sent."
    if answer.status in (401, 403):
        if account.key == "not needed":
            needed = f"Set {account.variable} or use" if account.variable else "Use"
            return f"{provider} at {address} requires a key ({problem}). {needed} /login {provider}."
        rejected = f"{provider} at {address} rejects {account.variable or 'the stored key'} ({problem})."
        if account.variable:  # it takes precedence over a stored key
            return f"{rejected} Restart swecli with another key in it, or without it and use /login {provider}."
        return f"{rejected} Use /login {provider} to store another one."
    if not answer.status:
        return f"{provider} at {address}: {problem}. Start the server and use /model, or type {provider}/NAME."
    why = f" ({problem})" if problem else ""
    if 300 <= answer.status < 400:
        return f"{provider} at {address} lists no models{why}. Use that address; swecli does not follow redirects."
    advice = f"Type {provider}/NAME if you know one"
    if not address.rstrip("/").endswith("/v1"):
        advice += "; most addresses end in /v1"
    return f"{provider} at {address} lists no models{why}. {advice}."


def _port(address: str) -> int | None:
    return urlsplit(address).port
