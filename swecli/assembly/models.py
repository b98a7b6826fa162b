"""The models of a run: clients for their names, and what a session needs to know of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.assembly.accounts import Accounts
from swecli.assembly.client_configs import ClientConfigs, with_address
from swecli.assembly.first_model import FirstModel
from swecli.assembly.offered_models import OfferedModels
from swecli.assembly.prices import Prices, own_prices
from swecli.assembly.windows import Windows
from swecli.core.config.consistency import window_setting
from swecli.core.config.key_store import KeyStore, KeyStoreError
from swecli.core.config.settings import Settings, expand
from swecli.core.engine.model_access import ModelAccess, ModelCatalog, ModelUnavailable
from swecli.core.llm.catalog import load_catalog
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.exchange_dump import ExchangeDump
from swecli.core.llm.model_names import find_model
from swecli.core.llm.providers import ProviderSetupError
from swecli.core.llm.types import ModelClient
from swecli.launch import LaunchOptions

if TYPE_CHECKING:
    from swecli.assembly.startup import Startup


class ModelSupply:
    """Makes clients for ``provider/name`` or an alias.

    ``data`` stores learned windows; ``dump`` gets every request and answer. The constructor may take a moment: not for
    the event loop.
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
        self._environment = environment = with_address(options, settings, environment)
        self.accounts = Accounts(settings, environment, keys)
        self.windows = Windows(data, dump=dump)
        self.prices = Prices(own=own_prices(settings))
        self.configs = ClientConfigs(options, settings, environment, data, self.accounts, self.prices, self.windows)
        self.offered = OfferedModels(self.accounts, self.configs, self.prices, self.windows)
        self.first = FirstModel(options, environment, self.accounts, self.configs, self.offered)
        if options.script is None:
            # Here rather than with the first client on the event loop.
            load_catalog()
            self.first.notices = tuple(filter(None, (self.accounts.prefetch(),)))

    def make(self, model: str) -> ModelClient:
        """Make a client.

        Raises:
            ModelUnavailable: no such provider, no key; the message includes the remedy.
        """
        if self._options.script is not None:
            return _scripted(self._options)
        name = wanted = expand(model, self.configs.settings)
        if not self.accounts.is_reference(name):
            named = find_model(name, self.offered.known())
            if named.ref or "/" not in name:
                name = named.ref
            if not name:
                raise ModelUnavailable(named.problem)
        try:
            setting, key = window_setting(self.configs.settings, name)
            client = self.windows.client(
                partial(self.configs.resolve, name), ".".join(key) if setting is not None else ""
            )
        except (ProviderSetupError, KeyStoreError) as error:
            raise ModelUnavailable(str(error)) from error
        self.prices.note(client.config, wanted)
        return client

    def renewed(self, client: ModelClient) -> ModelClient | None:
        """A client with the key that the user stored since this one was made; None if its key is still the same."""
        if not isinstance(client, HttpModelClient):
            return None
        ref = client.info.ref
        try:
            same = self.configs.resolve(ref).headers == client.config.headers
            return None if same else self.make(ref)
        except (ProviderSetupError, KeyStoreError, ModelUnavailable):
            return None  # the old key gets the server's own answer

    def access(self) -> ModelAccess:
        return ModelAccess(self.make, self.prices, self.windows, self.configs.effort_of, self.renewed)

    def catalog(self) -> ModelCatalog:
        if self.scripted:
            return ModelCatalog()
        return self.offered.catalog(partial(self.prices.keep, self._environment))

    def adopt(self, settings: Settings) -> None:
        """Apply changed settings. The initial model stays, and existing clients keep window and time-outs."""
        self.configs.settings = settings
        self.prices.adopt(settings)
        self.offered.last = None

    @property
    def scripted(self) -> bool:
        return self._options.script is not None


def supply_of(options: LaunchOptions, startup: Startup, dump: ExchangeDump | None = None) -> ModelSupply:
    """The models of a run, with the keys that the user stored."""
    keys = KeyStore(startup.paths.config)
    return ModelSupply(options, startup.loaded.settings, startup.environment, startup.paths.data, keys, dump)


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
    pause = without_waiting if options.headless else asyncio.sleep
    return ScriptedModel(script, pause=pause, keep_requests=False)
