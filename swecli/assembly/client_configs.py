"""What model clients are made from, by ``provider/name``: address, key, window, and the settings of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from swecli.assembly.accounts import Accounts
from swecli.assembly.prices import Prices
from swecli.assembly.windows import Windows
from swecli.core.config.key_store import KeyStoreError
from swecli.core.config.settings import Settings
from swecli.core.llm.addresses import host_of, is_local, normalise, origin_of
from swecli.core.llm.cache_lifetime import cheapest, lifetime
from swecli.core.llm.capabilities import CapabilitySource, capability_sources
from swecli.core.llm.client_config import ClientConfig
from swecli.core.llm.model_listings import EndpointModel
from swecli.core.llm.providers import (
    Overrides,
    ProviderConfig,
    ProviderSetupError,
    configured_providers,
    find_provider,
    resolve,
)
from swecli.core.llm.refused_fields import refusal_place
from swecli.core.llm.types import ModelInfo
from swecli.core.llm.windows import LearnedWindow, lookup_with
from swecli.core.sessions.pauses import newest_databases, read_pauses
from swecli.core.validation import fields_of
from swecli.launch import LaunchOptions

if TYPE_CHECKING:
    from swecli.core.sign_in.session import SignedIn


class ClientConfigs:
    """``main`` is the model that the session begins with: ``--base-url`` applies to it, and the effort of the settings.
    ``pinned`` are addresses of models that keep an earlier one. ``data`` stores tokens of a sign-in."""

    def __init__(
        self,
        options: LaunchOptions,
        settings: Settings,
        environment: Mapping[str, str],
        data: Path,
        accounts: Accounts,
        prices: Prices,
        windows: Windows,
    ) -> None:
        self._options = options
        self.settings = settings
        self._environment = environment
        self._data = data
        self._accounts = accounts
        self._prices = prices
        self._windows = windows
        self.main: str | None = None
        self.pinned: dict[str, str] = {}
        self._sign_ins: dict[str, SignedIn] = {}
        self._pauses: Sequence[float] | None = None
        """Seconds between turns of the newest sessions, once they have been read."""

    def resolve(
        self, name: str, asked: EndpointModel | None = None, learned: LearnedWindow | None = None
    ) -> ClientConfig:
        """The configuration of a model's client, with the answer of its server and the window learned for it.

        Raises:
            ProviderSetupError: no such provider, or no key for it.
            KeyStoreError: a stored key can't be read.
        """
        settings, options = self.settings, self._options
        overrides = Overrides(
            base_url=options.base_url if options.base_url and name == self.main else self.pinned.get(name, ""),
            window=settings.models.window.get(name),
            refuted_window=learned.refuted if learned is not None else None,
            first_timeout=settings.model.first_token_timeout,
            idle_timeout=settings.model.stall_timeout,
            capabilities=_own_capabilities(settings, name),
            efforts=own.efforts if (own := settings.models.capabilities.get(name)) is not None else None,
            refused=self._windows.refused,
            shows_thoughts=settings.model.reasoning == "shown",
            cache_ttl=self._lifetime,
            profile=None if (profile := settings.models.profile.get(name, "auto")) == "auto" else profile,
            warm=_may_warm(settings, name),
            prewarm=settings.models.warm == "hosted",
        )
        provider = name.partition("/")[0]
        custom = self._accounts.custom
        local = any(item.local for item in custom if item.name == provider)
        look_up = lookup_with(asked, learned, local)
        config = resolve(name, self._environment, custom, overrides, look_up, self._accounts.stored_key)
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
                partial(self._accounts.stored_key, provider.name, origin),
                partial(self._accounts.keep_sign_in, provider),
                self._data,
            )
        return self._sign_ins[provider.name]

    def address(self, model: str) -> str:
        """The model's present address; empty for its provider's own."""
        try:
            return self.resolve(model).info.address
        except (ProviderSetupError, KeyStoreError):  # a key may be missing for that address only
            return ""

    def capabilities(self, ref: str) -> Mapping[str, CapabilitySource]:
        """What a model can do at the provider's present address, with sources; needs no key."""
        provider, _, model = ref.partition("/")
        account = next((item for item in self._accounts.all() if item.provider.name == provider), None)
        if account is None:
            return {}
        own = _own_capabilities(self.settings, ref)
        refused = self._windows.refused(refusal_place(account.address, model))
        return capability_sources(account.protocol, host_of(account.address), model, provider, own, refused)

    def effort_of(self, model: str) -> str | None:
        """The reasoning effort of the settings for a model; for the main model, its own setting is the fallback."""
        return self.settings.models.effort.get(model) or (self.settings.model.effort if model == self.main else None)

    def _lifetime(self, info: ModelInfo) -> str:
        """Lifetime of a model's prompt cache by the settings; "auto" follows the pauses of the newest sessions."""
        wanted, selectable = self.settings.model.cache_ttl, info.capabilities.cache_ttl
        if wanted != "auto":
            return lifetime(wanted, selectable)
        if self._pauses is None:
            self._pauses = read_pauses(newest_databases(self._data))
        return cheapest(selectable, self._pauses, self._prices.rates(info))


def _may_warm(settings: Settings, model: str) -> bool | None:
    """None = on this machine only."""
    if settings.models.warm == "off":
        return False
    price = settings.models.price.get(model)
    return True if price is not None and price.input == price.output == 0 else None


def _own_capabilities(settings: Settings, model: str) -> Mapping[str, Any]:
    own = settings.models.capabilities.get(model)
    known = fields_of(own) if own is not None else ()
    return {name: value for name, value in known if value is not None and name != "efforts"}


def with_address(options: LaunchOptions, settings: Settings, environment: Mapping[str, str]) -> Mapping[str, str]:
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
