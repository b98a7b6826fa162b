"""Which model a session uses, and how its client is made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from swecli.assembly.accounts import Accounts
from swecli.assembly.prices import Prices, own_prices
from swecli.assembly.windows import Windows
from swecli.core.config.key_store import KeyStore, KeyStoreError
from swecli.core.config.model_names import expand, named_models
from swecli.core.config.settings import Settings
from swecli.core.engine.services import ModelUnavailable, Services
from swecli.core.llm.base_url import is_local
from swecli.core.llm.catalog import load_catalog
from swecli.core.llm.client import ClientConfig
from swecli.core.llm.cost import utc_now
from swecli.core.llm.endpoint_replies import EndpointModel
from swecli.core.llm.exchange_dump import ExchangeDump
from swecli.core.llm.learned_windows import LearnedWindow
from swecli.core.llm.local_servers import find_local_servers
from swecli.core.llm.offers import ModelOffer, offers
from swecli.core.llm.providers import Overrides, ProviderSetupError, configured_providers, default_model, resolve
from swecli.core.llm.script_format import ScriptError, load_script
from swecli.core.llm.scripted import ScriptedModel, without_waiting
from swecli.core.llm.types import ModelClient
from swecli.core.llm.windows import lookup_with
from swecli.demo import interpreter
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError

SCRIPTED = "scripted"
NO_MODEL = (
    "No model is configured. Set OPENAI_API_KEY or ANTHROPIC_API_KEY (OPENAI_BASE_URL for any compatible server), or "
    "store a key with `swecli login PROVIDER`, and choose one with -m, for example: "
    "swecli -m openai/NAME. Or try: swecli demo"
)


def main_model(settings: Settings, environment: Mapping[str, str], accounts: Accounts) -> str | None:
    """``provider/name`` of the settings (flags are among them), or of the first provider with a key."""
    name = settings.model.name or default_model(environment) or accounts.default_model()
    return expand(name, settings) if name else None


def no_model(environment: Mapping[str, str]) -> str:
    """Why none can be chosen without being named, and what to do. At an address that the environment changes, the
    provider's usual model may not exist."""
    for provider in configured_providers(environment):
        if not provider.default_model:
            return (
                f"No model was named. {provider.key_variable} is set, but that does not tell which model of "
                f"{provider.name} is meant: swecli -m {provider.name}/NAME chooses one."
            )
    return NO_MODEL


class ModelSupply:
    """Makes clients for ``provider/name`` or an alias, and brings what a session needs to know of their models.

    ``--base-url`` holds for the model that the session starts with; without it, a model that goes on answering is
    asked where it was asked before, unless environment or settings name another server nearby. ``data`` is where
    learned windows are kept; ``dump`` gets every request and answer. ``notices`` are sentences for the user. Making
    one may take a moment: not for the event loop.
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
        self._environment = environment
        self.accounts = Accounts(settings, environment, keys)
        self._main = main_model(settings, environment, self.accounts)
        self.windows = Windows(data, dump=dump)
        self.own_prices = own_prices(settings)
        self._prices = Prices(own=self.own_prices)
        self._pinned: dict[str, str] = {}
        """Addresses of models that go on where they were asked before."""
        self.notices: tuple[str, ...] = ()
        if options.script is None:
            # Here rather than with the first client on the event loop.
            load_catalog()
            self.notices = tuple(filter(None, (self.accounts.prefetch(),)))

    def chosen(self, before: str | None = None, address: str = "") -> str | None:
        """``provider/name`` by flag; else that of the session that goes on (``before``), if it can still be used;
        else by environment, settings, or the first provider with a key; None without any.

        ``address`` is where ``before`` was asked, if not at its provider's own address. It goes on there, and what was
        said there goes nowhere else unless the user names another model or address.

        Raises:
            StartError: headless, where a run without a model can do nothing.
        """
        if self._options.script is not None:
            return f"{SCRIPTED}/{self._options.script.stem}"
        flagged = self._options.model is not None
        trouble = ""
        if before and (not flagged or before == self._main):
            trouble = self._go_on_with(before, address)
        elif address and self._main is not None and (here := self._address(self._main)) != address:
            place = here or "its provider's own address"
            self._tell(f"This session's messages went to {address} before; {self._main} is asked at {place}.")
        stays = bool(trouble and address and not self._options.look_only)
        if stays and self._options.headless:
            raise StartError(
                f"{trouble} It was asked at {address}, and nothing was sent to any other model; -m names one.",
                ExitCode.CONFIG,
            )
        if self._main is None and self._options.headless:
            raise StartError(trouble or no_model(self._environment), ExitCode.CONFIG)
        if stays:
            # What is wrong is told when the session tries to connect it.
            self._tell(f"{before} was asked at {address}: no other model is sent its messages unless you choose one.")
            return None
        if trouble:
            self._tell(f"{trouble} {self._main or 'No model'} answers instead.")
        return self._main

    def _go_on_with(self, model: str, address: str) -> str:
        """Take the model of an earlier run; a sentence where it can't be used any more."""
        main, self._main = self._main, model
        try:
            if address and not self._options.base_url:
                self._pin(model, address)
            self._resolve(model, None, None)
        except (ProviderSetupError, KeyStoreError) as error:
            self._main = main
            return f"This session's model {model} can't be used: {str(error).rstrip('.')}."
        return ""

    def _pin(self, model: str, address: str) -> None:
        """Ask the model at this address from now on, unless environment or settings name a server of the user's own:
        one that was started anew may be at another port."""
        here = self._address(model)
        if here == address:  # it may come with a password, which was not recorded
            return
        if here and is_local(here):
            self._tell(f"This session goes on at {here}; it was asked at {address} before.")
            return
        self._pinned[model] = address
        if here:
            self._tell(
                f"This session goes on at {address}, where it began; environment or settings name {here} now. "
                f"To go there: --base-url {here}"
            )

    def _address(self, model: str) -> str:
        """Where the model would be asked now; empty for its provider's own address."""
        try:
            return self._resolve(model, None, None).info.address
        except (ProviderSetupError, KeyStoreError):  # a key may be missing for that address only
            return ""

    def _tell(self, notice: str) -> None:
        self.notices = (*self.notices, notice)

    def make(self, model: str) -> ModelClient:
        """A client.

        Raises:
            ModelUnavailable: no such provider, no key; the message says what to do.
        """
        if self._options.script is not None:
            return _scripted(self._options)
        name = expand(model, self._settings)
        try:
            client = self.windows.client(partial(self._resolve, name))
        except (ProviderSetupError, KeyStoreError) as error:
            raise ModelUnavailable(str(error)) from error
        self._prices.note(client.config)
        return client

    def equip(self, services: Services) -> Services:
        """The services with everything about models filled in."""
        return replace(
            services,
            make_client=self.make,
            windows=self.windows,
            price=self._prices,
            effort=effort_of(self._settings, self._main),
            fallback=tuple(expand(name, self._settings) for name in self._settings.model.fallback),
            side_models=side_models(self._settings),
            offers=self.offers,
        )

    @property
    def nothing_chosen(self) -> str:
        """Why no model can be chosen without being named, and what to do."""
        return no_model(self._environment)

    @property
    def scripted(self) -> bool:
        """Whether a script answers instead of any provider."""
        return self._options.script is not None

    async def offers(self) -> Sequence[ModelOffer]:
        """Models to choose from; servers on this machine are looked for."""
        if self._options.script is not None:
            return ()
        servers = await find_local_servers()
        named, windows = named_models(self._settings), self._settings.models.window
        found = await asyncio.to_thread(lambda: offers(load_catalog(), self.accounts.all(), servers, utc_now(), named))
        own = {ref: prices.at(utc_now()).rates for ref, prices in self.own_prices.items()}
        return [
            replace(offer, rates=own.get(offer.ref, offer.rates), window=windows.get(offer.ref, offer.window))
            for offer in found
        ]

    def _resolve(self, name: str, asked: EndpointModel | None, learned: LearnedWindow | None) -> ClientConfig:
        settings, options = self._settings, self._options
        overrides = Overrides(
            base_url=options.base_url if options.base_url and name == self._main else self._pinned.get(name, ""),
            window=settings.models.window.get(name),
            first_timeout=settings.model.first_token_timeout,
            idle_timeout=settings.model.stall_timeout,
        )
        provider = name.partition("/")[0]
        custom = self.accounts.custom
        local = any(item.local for item in custom if item.name == provider)
        look_up = lookup_with(asked, learned, local)
        return resolve(name, self._environment, custom, overrides, look_up, self.accounts.stored_key)


def effort_of(settings: Settings, main: str | None) -> Callable[[str], str | None]:
    """How much the user wants each model to think: what is said of it, else for the main model what is said of
    that."""

    def effort(model: str) -> str | None:
        return settings.models.effort.get(model) or (settings.model.effort if model == main else None)

    return effort


def side_models(settings: Settings) -> dict[str, str]:
    """The models for work beside the conversation, as far as they are set."""
    roles = {"summary": settings.model.summary, "small": settings.model.small}
    return {work: expand(name, settings) for work, name in roles.items() if name is not None}


def _scripted(options: LaunchOptions) -> ModelClient:
    assert options.script is not None
    try:
        script = load_script(options.script, python=interpreter())
    except (ScriptError, OSError) as error:
        raise ModelUnavailable(f"The script can't be used: {error}") from error
    pause = without_waiting if options.headless else _real_pause
    return ScriptedModel(script, pause=pause, keep_requests=False)


async def _real_pause(seconds: float) -> None:
    await asyncio.sleep(seconds)
