"""The user's models: which one a session begins with, which there are, and their clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from swecli.assembly.accounts import Accounts
from swecli.assembly.prices import Prices, own_prices
from swecli.assembly.windows import Windows
from swecli.core.config.consistency import window_setting
from swecli.core.config.key_store import KeyStore, KeyStoreError
from swecli.core.config.load import ConfigError
from swecli.core.config.settings import EFFORTS, PriceSettings, Settings, expand, named_models
from swecli.core.engine.model_access import ModelAccess, ModelCatalog, ModelUnavailable
from swecli.core.llm.addresses import host_of, is_local, is_loopback, normalise, origin_of, without_password
from swecli.core.llm.cache_lifetime import cheapest, lifetime
from swecli.core.llm.capabilities import CapabilitySource, capability_sources
from swecli.core.llm.catalog import PriceList, load_catalog, read_prices, utc_now
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.client_config import ClientConfig
from swecli.core.llm.exchange_dump import ExchangeDump
from swecli.core.llm.model_listings import EndpointModel
from swecli.core.llm.model_names import NamedModel, chatting, does_chat, find_model, likeliest_first
from swecli.core.llm.offers import Account, ModelOffer, listed_offers, offers
from swecli.core.llm.providers import (
    Overrides,
    ProviderConfig,
    ProviderSetupError,
    configured_providers,
    default_model,
    find_provider,
    has_own_server,
    resolve,
    signs_in_by_address,
)
from swecli.core.llm.refused_fields import refusal_place
from swecli.core.llm.remedies import ADDRESS_LOGIN
from swecli.core.llm.servers import (
    PATIENT_SECONDS,
    LocalServer,
    ModelList,
    endpoint_of,
    find_local_servers,
    list_models,
    listening,
)
from swecli.core.llm.transport import SECONDS as LIST_SECONDS
from swecli.core.llm.types import ModelClient, ModelInfo
from swecli.core.llm.windows import LearnedWindow, WindowTable, host_key, load_windows, lookup_with, model_info
from swecli.core.protocol.events import Price
from swecli.core.sessions.database import DATABASE, changed_at
from swecli.core.sessions.pauses import read_pauses
from swecli.core.validation import changed, fields_of, validated
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError

if TYPE_CHECKING:
    from swecli.assembly.startup import Startup
    from swecli.core.sign_in.session import SignedIn


SCRIPTED = "scripted"
LOADING = "The server at {} still loads its model; /model lists it when it has."
NO_MODEL = (
    "No model is configured. Set OPENAI_API_KEY or ANTHROPIC_API_KEY (OPENAI_BASE_URL for any compatible server), or "
    "store a key with `swecli login PROVIDER`, and choose one with -m, for example: "
    "swecli -m openai/NAME. Or try: swecli demo"
)


def main_model(settings: Settings, environment: Mapping[str, str], accounts: Accounts) -> str | None:
    """``provider/name`` of the settings (including flags), or of the first provider with a key, unless the environment
    names a server of the user's own."""
    name = settings.model.name or default_model(environment)
    if not name and not has_own_server(environment):
        name = accounts.default_model()
    return expand(name, settings) if name else None


def no_model(environment: Mapping[str, str]) -> str:
    """Reason why no model can be selected by default, and the remedy. At an address from the environment, the
    provider's default model may not exist."""
    for provider in configured_providers(environment):
        if not provider.default_model:
            location = " at your own address" if provider.redirected else ""
            return (
                f"No model selected: {provider.name} has no default model{location}. "
                f"Select one with swecli -m {provider.name}/NAME."
            )
    return NO_MODEL


class ModelSupply:
    """Makes clients for ``provider/name`` or an alias, with the facts that a session needs about their models.

    ``--base-url`` applies to the first model of the session; without it, a model of a continued session keeps its
    address, unless environment or settings name another local server. ``data`` stores learned windows; ``dump`` gets
    every request and answer. ``notices`` are sentences for the user. The constructor may take a moment: not for the
    event loop.
    """

    def __init__(
        self,
        options: LaunchOptions,
        settings: Settings,
        environment: Mapping[str, str],
        data: Path,
        keys: KeyStore,
        dump: ExchangeDump | None = None,
    ) -> None:
        self._options = options
        self._settings = settings
        self._data = data
        self._pauses: Sequence[float] | None = None
        """Seconds between turns of the newest sessions, once they have been read."""
        self._environment = environment = _with_address(options, settings, environment)
        self.accounts = Accounts(settings, environment, keys)
        self._main = main_model(settings, environment, self.accounts)
        self._offered: Sequence[ModelOffer] | None = None
        """Result of the last query for available models."""
        self._candidates: tuple[str, ...] = ()
        """Models that match the initial name if it is ambiguous."""
        self.unlisted: tuple[str, ...] = ()
        """Sentences about servers without models at the last query."""
        self.omitted = 0
        """Usable models left out of the last query's result, because they do not chat."""
        self.windows = Windows(data, dump=dump)
        self.own_prices = own_prices(settings)
        self._prices = Prices(own=self.own_prices)
        self._sign_ins: dict[str, SignedIn] = {}
        self._pinned: dict[str, str] = {}
        """Addresses of models that keep an earlier one."""
        self.notices: tuple[str, ...] = ()
        self.remarks: tuple[str, ...] = ()
        """Sentences about automatic choices: no warnings."""
        self._say: Callable[[str], None] = self._remark
        self._silent: tuple[str, ...] = ()
        """Sentences about servers that listed no models at the last query."""
        if options.script is None:
            # Here rather than with the first client on the event loop.
            load_catalog()
            self.notices = tuple(filter(None, (self.accounts.prefetch(),)))

    def chosen(
        self, before: str | None = None, address: str = "", say: Callable[[str], None] | None = None
    ) -> str | None:
        """``provider/name`` by flag; else that of the continued session (``before``), if still usable; else by
        environment, settings, or the first provider with a key; None without any.

        ``address`` is the earlier address of ``before``, if not the provider's own. It stays, and the conversation goes
        to no other address unless the user names another model or address. ``say`` is called before servers of this
        machine are contacted that no setting names, with their addresses; without it, that is a remark.

        Raises:
            StartError: headless, because a run without a model can do nothing.
        """
        if self._options.script is not None:
            return f"{SCRIPTED}/{self._options.script.stem}"
        self._say = say or self._remark
        flagged = self._options.model is not None
        needed = self._options.headless and self._options.needs_model
        unsettled = self._settle_main(quiet=bool(before) and not flagged)
        if unsettled and (flagged or not before):
            if needed:
                raise StartError(unsettled, ExitCode.CONFIG)
            self._tell(unsettled)
            return None
        trouble = ""
        if before and (not flagged or before == self._main):
            trouble = self._go_on_with(before, address)
        elif address and self._main is not None and (current := self._address(self._main)) != address:
            shown = current or "the provider's own address"
            self._tell(f"This session's messages went to {address} before; {self._main} now uses {shown}.")
        stays = bool(trouble and address and not self._options.look_only)
        if stays and needed:
            raise StartError(
                f"{trouble} It was used at {address}; nothing was sent to another model. Select one with -m.",
                ExitCode.CONFIG,
            )
        if self._main is None and needed:
            raise StartError(trouble or no_model(self._environment), ExitCode.CONFIG)
        if stays:
            # Problems are reported when the session tries to connect.
            self._tell(f"{before} was used at {address}. Its messages go to another model only if you choose one.")
            return None
        if trouble:
            self._tell(f"{trouble} {self._main or 'No model'} answers instead.")
        return self._main

    def _settle_main(self, *, quiet: bool) -> str:
        """Look up the initial name if it lacks a provider; without a name, ask the user's server, and report the
        choice. Returns the reason if there is none. ``quiet``: a continued session has its model."""
        if self._main is not None and not self._is_reference(self._main):
            named = self._found(self._main)
            self._candidates = named.candidates
            self._main = named.ref or None
            if named.note:
                self._remark(named.note)
            return named.problem
        if quiet or self._settings.model.name is not None:
            return ""
        if self._main is not None:
            provider = self._main.partition("/")[0]
            account = next(candidate for candidate in self.accounts.all() if candidate.provider.name == provider)
            source = account.variable or "the stored key"
            self._remark(
                f"No model selected; using {self._main}, the default for {source}. /model or -m selects another."
            )
        elif self._options.headless or self._options.plain:
            problem = self._only_model()
            return problem if self._options.needs_model else ""
        return ""

    def _only_model(self) -> str:
        """Use the only model of the user's server. Returns the reason if there is none."""
        if self._opens_nothing:
            return no_model(self._environment)
        near = [offer for offer in self._asked("No model is configured") if offer.listed or offer.running]
        able = [offer for offer in near if does_chat(offer)]
        if len(able) == 1:
            ref, address = able[0].ref, self._resolve(able[0].ref, None, None).base_url
            if self._options.plain and not able[0].listed:  # nobody has named this server
                self._tell(f"No model is configured. {ref} answers at {address}: /model {ref} uses it.")
                return ""
            self._main = ref
            self._remark(f"No model selected; using {ref} at {without_password(address)}, the only one offered.")
            return ""
        if not able:
            return " ".join((no_model(self._environment), *self.unlisted))
        named = ", ".join(f"-m {offer.ref}" for offer in able[:4])
        return f"No model selected; {len(able):,} are available. Select one, for example {named}."

    @property
    def _opens_nothing(self) -> bool:
        """Whether no connection is opened. A dry run shows the request of a real one, so it looks up the same names."""
        return self._options.look_only and not self._options.dry_run

    def _asked(self, why: str) -> Sequence[ModelOffer]:
        """The models of the user's servers; without any, those of other servers on this machine, after naming them."""
        own = any(account.elsewhere and account.key != "missing" for account in self.accounts.all())
        near = () if own else asyncio.run(listening())
        if near:
            self._say(f"{why}; asking {', '.join(near)} for models.")
        return asyncio.run(self.offers(nearby=not own, seconds=PATIENT_SECONDS))

    def _is_reference(self, name: str) -> bool:
        """Whether a name includes its provider, so that no lookup is needed."""
        names = {provider.name for provider in self.accounts.providers}
        return name.partition("/")[0].lower() in names

    def _found(self, name: str) -> NamedModel:
        """Resolve a name without a provider: among connected providers, then in the catalogue. Asks servers only for a
        name found nowhere else."""
        if self._offered is None:
            known = self._ordered(offers(load_catalog(), self.accounts.all(), (), utc_now()))
            named = find_model(name, known)
            if named.ref and not any(account.elsewhere and account.key != "missing" for account in self.accounts.all()):
                return named
            if self._opens_nothing:
                return named
            self._asked(f"{name} is no known model")
        named = find_model(name, self._offered or ())
        if named.ref or named.candidates:
            return named
        if "/" in name:
            try:
                self._resolve(name, None, None)
            except ProviderSetupError as error:  # no such provider
                return replace(named, problem=str(error))
        elif self._silent:
            problem = f"cannot look up {name!r}: {' '.join(self._silent)}"
            return replace(named, problem=problem)
        return named

    def _go_on_with(self, model: str, address: str) -> str:
        """Continue with the model of an earlier run; a sentence if it is no longer usable."""
        main, self._main = self._main, model
        try:
            if address and not self._options.base_url:
                self._pin(model, address)
            self._resolve(model, None, None)
        except (ProviderSetupError, KeyStoreError) as error:
            self._main = main
            return f"Cannot use this session's model {model}: {str(error).rstrip('.')}."
        return ""

    def _pin(self, model: str, address: str) -> None:
        """Keep this address for the model, unless environment or settings name a server of the user's own: it may have
        restarted at another port."""
        current = self._address(model)
        if current == address:  # it may include a password, which was not recorded
            return
        if current and is_local(current):
            self._tell(f"Continuing with {current}; this session used {address} before.")
            return
        self._pinned[model] = address
        if current:
            self._tell(
                f"Continuing with {address}, where this session started. Your settings now name {current}; "
                f"use --base-url {current} to switch."
            )

    def _address(self, model: str) -> str:
        """The model's present address; empty for its provider's own."""
        try:
            return self._resolve(model, None, None).info.address
        except (ProviderSetupError, KeyStoreError):  # a key may be missing for that address only
            return ""

    def _tell(self, notice: str) -> None:
        self.notices = (*self.notices, notice)

    def _remark(self, remark: str) -> None:
        self.remarks = (*self.remarks, remark)

    def make(self, model: str) -> ModelClient:
        """Make a client.

        Raises:
            ModelUnavailable: no such provider, no key; the message includes the remedy.
        """
        if self._options.script is not None:
            return _scripted(self._options)
        name = wanted = expand(model, self._settings)
        if not self._is_reference(name):
            named = find_model(name, self._known())
            if named.ref or "/" not in name:
                name = named.ref
            if not name:
                raise ModelUnavailable(named.problem)
        try:
            setting, key = window_setting(self._settings, name)
            client = self.windows.client(partial(self._resolve, name), ".".join(key) if setting is not None else "")
        except (ProviderSetupError, KeyStoreError) as error:
            raise ModelUnavailable(str(error)) from error
        self._prices.note(client.config, wanted)
        return client

    def check_effort(self, model: str | None) -> None:
        """Refuse an effort that neither swecli nor the model's data know. A usual one that the model is not known to
        take is only warned of, because the data may be old.

        Raises:
            StartError: the word is unknown.
        """
        effort = effort_of(self._settings, model, model) if model is not None else self._settings.model.effort
        if effort is None or effort in EFFORTS or self._options.script is not None:
            return
        levels: tuple[str, ...] | None = None
        if model is not None:
            with suppress(ProviderSetupError, KeyStoreError):  # making the client reports it
                levels = self._resolve(model, None, None).info.efforts
        if effort not in (levels or ()):
            who = model or "a model"
            accepted = f"{who} accepts {', '.join(levels or EFFORTS)}"
            if not levels:
                accepted += f'; others need efforts in models.capabilities."{model or "provider/name"}"'
            raise StartError(f"unknown effort {effort!r}: {accepted}", ExitCode.CONFIG)

    def renewed(self, client: ModelClient) -> ModelClient | None:
        """A client with the key that the user stored since this one was made; None if its key is still the same."""
        if not isinstance(client, HttpModelClient):
            return None
        ref = client.info.ref
        try:
            same = self._resolve(ref, None, None).headers == client.config.headers
            return None if same else self.make(ref)
        except (ProviderSetupError, KeyStoreError, ModelUnavailable):
            return None  # the old key gets the server's own answer

    def access(self) -> ModelAccess:
        return ModelAccess(
            self.make,
            self._prices,
            self.windows,
            lambda model: effort_of(self._settings, self._main, model),
            self.renewed,
        )

    def catalog(self) -> ModelCatalog:
        keep_price = None if self.scripted else self._keep_price
        return ModelCatalog(self.offers, lambda: self.unlisted, lambda: self.omitted, keep_price)

    def adopt(self, settings: Settings) -> None:
        """Apply changed settings. The initial model stays, and existing clients keep window and time-outs."""
        self._settings = settings
        prices = own_prices(settings)
        self.own_prices.update(prices)
        for removed in self.own_prices.keys() - prices.keys():
            del self.own_prices[removed]
        self._offered = None

    def _keep_price(self, model: str, price: Price) -> str:
        """Store a price in the user's settings, and use it from now on.

        Raises:
            ValueError: it is not a price, or can't be written.
        """
        from swecli.core.config.change import dotted, set_value
        from swecli.core.config.paths import user_file  # imported only when a price is set

        given = {"input": price.input, "output": price.output, "cache_read": price.cached}
        try:
            checked = validated(PriceSettings, {name: float(rate) for name, rate in given.items() if rate is not None})
        except ValueError as error:
            raise ValueError("A price is in dollars per million tokens, from 0 to 100,000.") from error
        path = user_file(self._environment)
        try:
            set_value(path, dotted(("models", "price", model)), changed(checked))
        except ConfigError as error:
            raise ValueError(str(error)) from error
        prices = read_prices([{name: rate for name, rate in given.items() if rate is not None}])
        assert prices is not None
        self.own_prices[model] = prices
        return str(path)

    def main(self) -> str | None:
        """The initial model, its name resolved; may contact servers. Not for the event loop."""
        problem = self._settle_main(quiet=True)
        if problem:
            self._tell(problem)
        return self._main

    @property
    def nothing_chosen(self) -> str:
        """Reason why no model can be selected by default, and the remedy."""
        return no_model(self._environment)

    @property
    def scripted(self) -> bool:
        return self._options.script is not None

    async def offers(self, *, nearby: bool = True, seconds: float | None = None) -> Sequence[ModelOffer]:
        """Models to choose from, the likeliest first. Detects servers on this machine (``nearby``), and contacts those
        at the user's own addresses. ``seconds`` limits the wait for each; None = briefly for detected servers, and
        longer for others without a model, because then the list is what the user waits for."""
        if self._options.script is not None:
            return ()
        accounts = await asyncio.to_thread(self.accounts.all)
        own = [account for account in accounts if account.elsewhere and account.key != "missing"]
        wait = seconds or (LIST_SECONDS if self._main else PATIENT_SECONDS)
        servers, lists = await asyncio.gather(
            find_local_servers(seconds=seconds or LIST_SECONDS) if nearby else _none_nearby(),
            asyncio.gather(*(self.offered_by(account, wait) for account in own)),
        )
        self._silent = tuple(filter(None, (problem for _, problem in lists)))
        self.windows.found(servers)
        asked = {_port(account.address) for account in own if is_loopback(account.address)}
        servers = [server for server in servers if _port(server.base_url) not in asked]
        loading = (LOADING.format(host_key(server.base_url)) for server in servers if server.loading)
        self.unlisted = tuple(filter(None, (*(account.problem for account in accounts), *self._silent, *loading)))
        listed = [offer for listing, _ in lists for offer in listing]
        named = named_models(self._settings)
        available = await asyncio.to_thread(
            lambda: offers(load_catalog(), accounts, servers, utc_now(), named, listed),
        )
        self._offered = await asyncio.to_thread(self._ordered, available)
        shown = chatting(self._offered, (self._main or "", *named))
        self.omitted = sum(offer.usable for offer in self._offered) - sum(offer.usable for offer in shown)
        return shown

    def _ordered(self, available: Sequence[ModelOffer]) -> tuple[ModelOffer, ...]:
        """The offers with the user's settings, the likeliest first."""
        windows = self._settings.models.window
        own = {ref: prices.at(utc_now()) for ref, prices in self.own_prices.items()}
        known = [
            replace(offer, rates=own.get(offer.ref, offer.rates), window=windows.get(offer.ref, offer.window))
            for offer in available
        ]
        return likeliest_first(known, (*self._candidates, *named_models(self._settings)))

    def _known(self) -> Sequence[ModelOffer]:
        """Models known without contacting any server."""
        if self._offered is None:
            self._offered = self._ordered(offers(load_catalog(), self.accounts.all(), (), utc_now()))
        return self._offered

    def _lifetime(self, info: ModelInfo) -> str:
        """Lifetime of a model's prompt cache by the settings; "auto" follows the pauses of the newest sessions."""
        wanted, selectable = self._settings.model.cache_ttl, info.capabilities.cache_ttl
        if wanted != "auto":
            return lifetime(wanted, selectable)
        if self._pauses is None:
            self._pauses = read_pauses(newest_databases(self._data))
        prices = self.own_prices.get(info.ref) or self._listed(info)
        return cheapest(selectable, self._pauses, prices.at(utc_now()) if prices is not None else None)

    def _listed(self, info: ModelInfo) -> PriceList | None:
        match = load_catalog().lookup(info.provider, info.name)
        return match.prices if match is not None else None

    def capabilities(self, ref: str) -> Mapping[str, CapabilitySource]:
        """What a model can do at the provider's present address, with sources; needs no key."""
        provider, _, model = ref.partition("/")
        account = next((item for item in self.accounts.all() if item.provider.name == provider), None)
        if account is None:
            return {}
        own = _own_capabilities(self._settings, ref)
        refused = self.windows.refused(refusal_place(account.address, model))
        return capability_sources(account.protocol, host_of(account.address), model, provider, own, refused)

    async def offered_by(self, account: Account, seconds: float = LIST_SECONDS) -> tuple[tuple[ModelOffer, ...], str]:
        """The models of one server, or the reason for none as a sentence."""
        provider = account.provider.name
        try:
            config = await asyncio.to_thread(self._resolve, f"{provider}/models", None, None)
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
        config = next((candidate for candidate in self.accounts.custom if candidate.name == provider), None)
        local = config is not None and config.local
        setting = config.window if config is not None else None
        return model_info(provider, model.id, local=local, asked=model, setting=setting, table=table)

    def _resolve(self, name: str, asked: EndpointModel | None, learned: LearnedWindow | None) -> ClientConfig:
        settings, options = self._settings, self._options
        overrides = Overrides(
            base_url=options.base_url if options.base_url and name == self._main else self._pinned.get(name, ""),
            window=settings.models.window.get(name),
            refuted_window=learned.refuted if learned is not None else None,
            first_timeout=settings.model.first_token_timeout,
            idle_timeout=settings.model.stall_timeout,
            capabilities=_own_capabilities(settings, name),
            efforts=own.efforts if (own := settings.models.capabilities.get(name)) is not None else None,
            refused=self.windows.refused,
            shows_thoughts=settings.model.reasoning == "shown",
            cache_ttl=self._lifetime,
            profile=None if (profile := settings.models.profile.get(name, "auto")) == "auto" else profile,
            warm=_may_warm(settings, name),
            prewarm=settings.models.warm == "hosted",
        )
        provider = name.partition("/")[0]
        custom = self.accounts.custom
        local = any(item.local for item in custom if item.name == provider)
        look_up = lookup_with(asked, learned, local)
        config = resolve(name, self._environment, custom, overrides, look_up, self.accounts.stored_key)
        named = find_provider(provider, custom)
        if named is None or not named.sign_in or config.base_url != named.base_url:
            return config
        return replace(config, authorisation=self._signed_in(named))

    def _signed_in(self, provider: ProviderConfig) -> SignedIn:
        """The sign-in at a provider, the same one for all of its models."""
        from swecli.core.sign_in.session import SignedIn  # only where somebody signed in
        from swecli.core.sign_in.tokens import definitions

        if provider.name not in self._sign_ins:
            origin = origin_of(provider.base_url)
            self._sign_ins[provider.name] = SignedIn(
                provider.name,
                definitions()[provider.name],
                partial(self.accounts.stored_key, provider.name, origin),
                partial(self.accounts.keep_sign_in, provider),
                self._data,
            )
        return self._sign_ins[provider.name]


def supply_of(options: LaunchOptions, startup: Startup, dump: ExchangeDump | None = None) -> ModelSupply:
    """The models of a run, with the keys that the user stored."""
    keys = KeyStore(startup.paths.config)
    return ModelSupply(options, startup.loaded.settings, startup.environment, startup.paths.data, keys, dump)


def _may_warm(settings: Settings, model: str) -> bool | None:
    """None = on this machine only."""
    if settings.models.warm == "off":
        return False
    price = settings.models.price.get(model)
    return True if price is not None and price.input == price.output == 0 else None


async def _none_nearby() -> tuple[LocalServer, ...]:
    await asyncio.sleep(0)
    return ()


def _with_address(options: LaunchOptions, settings: Settings, environment: Mapping[str, str]) -> Mapping[str, str]:
    """The environment with ``--base-url`` as OpenAI's address, if no model is named that it could belong to. A server
    nearby is no other provider's: it gets neither its key nor its default model."""
    if not options.base_url or settings.model.name is not None:
        return environment
    first = next(iter(configured_providers(environment)), None)
    try:
        nearby = is_local(normalise(options.base_url, "openai-chat"))
    except ValueError:
        nearby = False
    if first is not None and first.name != "openai" and not nearby:
        return environment
    return {**environment, "OPENAI_BASE_URL": options.base_url}


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


NEWEST_FOLDERS = 5
"""Workspaces whose sessions show the user's pauses."""


def newest_databases(data: Path) -> list[Path]:
    """The session databases that changed last."""
    try:
        times = {(path := folder / DATABASE): changed_at(path) for folder in (data / "workspaces").iterdir()}
    except OSError:
        return []
    return sorted(filter(times.get, times), key=lambda path: times[path], reverse=True)[:NEWEST_FOLDERS]


def _own_capabilities(settings: Settings, model: str) -> Mapping[str, Any]:
    own = settings.models.capabilities.get(model)
    known = fields_of(own) if own is not None else ()
    return {name: value for name, value in known if value is not None and name != "efforts"}


def effort_of(settings: Settings, main: str | None, model: str) -> str | None:
    """Reasoning effort configured for a model; for the main model, its own setting is the fallback."""
    return settings.models.effort.get(model) or (settings.model.effort if model == main else None)


def _scripted(options: LaunchOptions) -> ModelClient:
    from swecli.core.llm.scripted import (  # only for demonstrations and tests
        ScriptedModel,
        ScriptError,
        load_script,
        without_waiting,
    )
    from swecli.demo import interpreter

    assert options.script is not None
    try:
        script = load_script(options.script, python=interpreter())
    except (ScriptError, OSError) as error:
        raise ModelUnavailable(f"Cannot use the script: {error}") from error
    pause = without_waiting if options.headless else _real_pause
    return ScriptedModel(script, pause=pause, keep_requests=False)


async def _real_pause(seconds: float) -> None:
    await asyncio.sleep(seconds)
