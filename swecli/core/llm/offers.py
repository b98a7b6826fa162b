"""Models to choose from, from the catalogue and local servers, with their known data. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct

from swecli.core.llm.addresses import host_of, is_loopback, origin_of
from swecli.core.llm.catalog import Catalog, CatalogModel, Rates
from swecli.core.llm.model_listings import EndpointModel
from swecli.core.llm.providers import (
    ProviderConfig,
    ProviderSetupError,
    address_of,
    key_variable,
    known_providers,
    needs_key,
)
from swecli.core.llm.servers import LocalServer
from swecli.core.llm.types import ModelInfo
from swecli.core.llm.windows import host_key

KeyState = Literal["environment", "stored", "not needed", "missing"]


class ModelOffer(Struct, frozen=True):
    """One model. None = unknown; sizes are tokens. ``variable`` is the key's variable, if a key is needed; ``rates``
    are the current prices."""

    ref: str
    key: KeyState
    variable: str = ""
    window: int | None = None
    max_output: int | None = None
    rates: Rates | None = None
    images: bool | None = None
    tools: bool | None = None
    reasoning: bool | None = None
    deprecated: bool = False
    running: str = ""
    """Host and port of the server found running that has it; empty if there is none."""
    listed: bool = False
    """Whether the server at the provider's address has just listed it."""
    assumed: bool = False
    """Whether the window is only assumed."""
    chats: bool | None = None
    """Whether it answers messages, by the catalogue or its server."""

    @property
    def usable(self) -> bool:
        """Whether nothing required is missing."""
        return self.key != "missing"


class Account(Struct, frozen=True):
    """Access to a provider. ``address`` is its base URL; ``problem`` says why it is unusable."""

    provider: ProviderConfig
    address: str
    protocol: str
    key: KeyState
    variable: str = ""
    problem: str = ""

    @property
    def own_host(self) -> bool:
        """Whether its address is the usual one."""
        usual = known_providers().get(self.provider.name)
        return usual is None or host_of(self.address) == host_of(usual.base_url)

    @property
    def elsewhere(self) -> bool:
        """Whether only its server knows its models: the user's own server, or the user's own address."""
        usual = known_providers().get(self.provider.name)
        if usual is None:
            return True
        try:
            return origin_of(self.address) != origin_of(usual.base_url)
        except ValueError:
            return False


def account_of(
    provider: ProviderConfig, env: Mapping[str, str], is_stored: Callable[[str, str], bool] = lambda _p, _o: False
) -> Account:
    """The state of a provider. ``is_stored``: whether the user stored a key for (provider, origin)."""
    try:
        address, protocol = address_of(provider, env)
    except ProviderSetupError as error:
        return Account(provider, provider.base_url, provider.protocol, "missing", problem=str(error))
    variable = key_variable(provider, env)
    if variable:
        return Account(provider, address, protocol, "environment", variable)
    if is_stored(provider.name, origin_of(address)):
        return Account(provider, address, protocol, "stored")
    first = provider.api_key_env[0] if provider.api_key_env else ""
    if needs_key(provider, address):
        return Account(provider, address, protocol, "missing", first)
    return Account(provider, address, protocol, "not needed", first)


def offers(
    catalog: Catalog,
    accounts: Iterable[Account],
    servers: Iterable[LocalServer],
    now: datetime,
    named: Sequence[str] = (),
    listed: Iterable[ModelOffer] = (),
) -> tuple[ModelOffer, ...]:
    """Models to choose from: those of running servers and of the user's ``listed`` servers, then of providers with a
    key, then the others; in each group first the ``named`` models (``provider/name``) from the settings, in their
    order."""
    by_ref: dict[str, ModelOffer] = {}
    for offer in (*listed, *_running(servers), *_listed(catalog, accounts, now, named)):
        by_ref.setdefault(offer.ref, offer)

    places = {ref: index for index, ref in enumerate(named)}

    def order(offer: ModelOffer) -> tuple[bool, bool, int, bool]:
        near = bool(offer.running) or offer.listed
        return (not near, not offer.usable, places.get(offer.ref, len(places)), offer.deprecated)

    return tuple(sorted(by_ref.values(), key=order))


def listed_offers(
    account: Account, models: Iterable[EndpointModel], info: Callable[[EndpointModel], ModelInfo]
) -> tuple[ModelOffer, ...]:
    """The models of an account's server. ``info`` gives the data that requests would be measured against."""
    return tuple(_of_server(account, model, info(model)) for model in models)


def _of_server(account: Account, model: EndpointModel, info: ModelInfo) -> ModelOffer:
    return ModelOffer(
        f"{account.provider.name}/{model.id}",
        account.key,
        account.variable,
        None if info.window_source == "assumed" else info.window,
        info.max_output,
        None,
        info.images,
        model.tools,
        model.reasoning,
        listed=True,
        running=host_key(account.address) if info.warms and is_loopback(account.address) else "",
        chats=model.chats,
    )


def _running(servers: Iterable[LocalServer]) -> Iterator[ModelOffer]:
    for server in servers:
        for model in server.models:
            window = model.window or model.maximum
            yield ModelOffer(
                f"{server.provider}/{model.id}",
                "not needed",
                window=window,
                max_output=model.max_output,
                images=model.images,
                tools=model.tools,
                reasoning=model.reasoning,
                running=host_key(server.base_url),
                chats=model.chats,
            )


def _listed(catalog: Catalog, accounts: Iterable[Account], now: datetime, named: Sequence[str]) -> Iterator[ModelOffer]:
    for account in accounts:
        provider = account.provider
        models = catalog.of_provider(provider.name) if account.own_host and not provider.local else ()
        known = {model.id: model for model in models}
        usual = [provider.default_model] if provider.default_model and account.own_host else []
        own = [name for host, _, name in (ref.partition("/") for ref in named) if name and host == provider.name]
        names = dict.fromkeys([*own, *usual, *known])
        for name in names:
            yield _offer(account, name, known.get(name), now)


def _offer(account: Account, name: str, model: CatalogModel | None, now: datetime) -> ModelOffer:
    ref, variable = f"{account.provider.name}/{name}", account.variable
    if model is None:
        return ModelOffer(ref, account.key, variable, account.provider.window, account.provider.max_output)
    return ModelOffer(
        ref,
        account.key,
        variable,
        account.provider.window or model.window,
        account.provider.max_output or model.max_output,
        model.prices.at(now) if model.prices is not None else None,
        model.images,
        model.tools,
        model.reasoning,
        model.deprecated,
        chats=True,
    )
