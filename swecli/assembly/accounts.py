"""The user's accounts with providers: the providers of the settings and the stored keys."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from swecli.core.config.key_store import KeyStore, KeyStoreError
from swecli.core.config.settings import ProviderSettings, Settings
from swecli.core.llm.addresses import origin_of, without_password
from swecli.core.llm.offers import Account, account_of
from swecli.core.llm.providers import ProviderConfig, address_of, find_provider, is_key, known_providers

if TYPE_CHECKING:
    from swecli.assembly.startup import Startup


def configured(settings: Settings) -> tuple[ProviderConfig, ...]:
    """The user's own providers, and the built-in ones with changes by the user."""
    return tuple(_configured(name, entry) for name, entry in settings.providers.items())


def _configured(name: str, entry: ProviderSettings) -> ProviderConfig:
    known = known_providers().get(name)
    base = known or ProviderConfig(name, "openai-chat", "")
    changes: dict[str, Any] = {
        "protocol": entry.protocol,
        "base_url": entry.base_url,
        "api_key_env": (entry.api_key_env,) if entry.api_key_env else None,
        "window": entry.window,
        "max_output": entry.max_output,
    }
    given = {key: value for key, value in changes.items() if value is not None}
    local = base.local or (known is None and entry.api_key_env is None)
    headers = {**base.headers, **entry.headers}
    return replace(base, **given, headers=headers, quirks=entry.dialect.given, local=local)


class AccountError(ValueError):
    """A key can't be stored. One sentence."""


class Accounts:
    """Providers from settings and environment, and their stored keys."""

    def __init__(self, settings: Settings, environment: Mapping[str, str], keys: KeyStore) -> None:
        self.custom = configured(settings)
        self._environment = environment
        self._keys = keys

    @property
    def providers(self) -> Sequence[ProviderConfig]:
        own = {item.name: item for item in self.custom}
        return tuple({**own, **known_providers(), **own}.values())

    def is_reference(self, name: str) -> bool:
        """Whether a model's name includes its provider, so that no lookup is needed."""
        return name.partition("/")[0].lower() in self._names

    def all(self) -> tuple[Account, ...]:
        """The state of every provider. An unreadable key store counts as empty here."""
        try:
            stored = {(entry.provider, entry.origin) for entry in self._keys.entries()}
        except KeyStoreError:
            stored = set[tuple[str, str]]()
        return tuple(
            account_of(provider, self._environment, lambda name, origin: (name, origin) in stored)
            for provider in self.providers
        )

    def offered(self) -> Sequence[tuple[str, str]]:
        """Providers that may need a key, each with its address and the state of its key; the user's own servers come
        first."""
        states = {"environment": "key in the environment", "stored": "key stored", "not needed": "key optional"}
        return [
            (account.provider.name, f"{without_password(account.address)} · {states.get(account.key, 'no key yet')}")
            for account in sorted(self.all(), key=lambda account: not account.elsewhere)
            if account.provider.api_key_env
        ]

    def stored_key(self, provider: str, origin: str) -> str:
        """The stored key of exactly this provider and origin.

        Raises:
            KeyStoreError: it can't be read.
        """
        return self._keys.find(provider, origin)

    def prefetch(self) -> str:
        """Read all stored keys now, because a keyring may be slow. Returns a problem, if any."""
        try:
            for entry in self._keys.entries():
                self._keys.find(entry.provider, entry.origin)
        except KeyStoreError as error:
            return str(error)
        return ""

    def default_model(self) -> str:
        """The default model of the first provider with a stored key; empty if there is none."""
        return next(
            (
                f"{account.provider.name}/{account.provider.default_model}"
                for account in self.all()
                if account.key == "stored" and account.own_host and account.provider.default_model
            ),
            "",
        )

    def default_of(self, provider: str) -> str:
        """The default model of this provider; empty if there is none or if another server than the provider's own would
        have to have it.

        Raises:
            AccountError: there is no such provider.
        """
        name = self.find(provider).name
        account = next(account for account in self.all() if account.provider.name == name)
        default = account.provider.default_model
        return f"{name}/{default}" if default and account.own_host else ""

    def find(self, provider: str) -> ProviderConfig:
        """The provider of this name.

        Raises:
            AccountError: there is none.
        """
        config = find_provider(provider, self.custom)
        if config is None:
            near = difflib.get_close_matches(provider.lower(), self._names, 1)
            meant = f" Did you mean {near[0]}?" if near else ""
            raise AccountError(
                f"Provider {provider!r} is unknown.{meant} Known providers: {', '.join(sorted(self._names))}"
            )
        return config

    def store(self, provider: str, key: str) -> str:
        """Store an API key for the provider's present address. Returns a sentence for the user.

        Raises:
            AccountError: no such provider, invalid key, or it can't be stored.
        """
        key = key.strip()
        config = self.find(provider)
        if config.sign_in:
            raise AccountError(f"{config.name} has no keys: sign in with `swecli login {config.name}` in a terminal")
        if not is_key(key):
            raise AccountError("A key is one word without spaces or quotes; nothing was stored")
        try:
            address, _ = address_of(config, self._environment)
            entry = self._keys.put(config.name, origin_of(address), key)
        except (ValueError, KeyStoreError) as error:
            raise AccountError(str(error)) from error
        location = "the system's keyring" if entry.place == "keyring" else f"{self._keys.path}, readable only by you"
        notice = f"Stored the {config.name} key for {entry.origin} in {location}."
        variable = next((name for name in config.api_key_env if self._environment.get(name, "").strip()), "")
        return f"{notice} {variable} in the environment takes precedence." if variable else notice

    def sign_in_place(self, provider: ProviderConfig) -> str:
        """The origin for which tokens of a provider are stored.

        Raises:
            AccountError: its address is not its own.
        """
        known = known_providers().get(provider.name)
        if known is None or provider.base_url != known.base_url:
            raise AccountError(f"{provider.name} has another address in the settings, where nobody can sign in")
        return origin_of(provider.base_url)

    def keep_sign_in(self, provider: ProviderConfig, word: str) -> str:
        """Store what signing in gave. Returns a sentence for the user.

        Raises:
            AccountError: it can't be stored.
        """
        try:
            entry = self._keys.put(provider.name, self.sign_in_place(provider), word)
        except KeyStoreError as error:
            raise AccountError(str(error)) from error
        location = "the system's keyring" if entry.place == "keyring" else f"{self._keys.path}, readable only by you"
        return f"Signed in at {provider.name}; the tokens are in {location}. `swecli logout {provider.name}` signs out."

    @property
    def _names(self) -> list[str]:
        return [provider.name for provider in self.providers]


def accounts_of(startup: Startup) -> Accounts:
    return Accounts(startup.loaded.settings, startup.environment, KeyStore(startup.paths.config))
