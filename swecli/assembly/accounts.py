"""The providers a user can reach: with keys of the environment, stored keys, or none."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from swecli.assembly.providers import configured
from swecli.core.config.key_store import KeyStore, KeyStoreError
from swecli.core.config.settings import Settings
from swecli.core.llm.base_url import origin_of
from swecli.core.llm.offers import Account, account_of
from swecli.core.llm.providers import ProviderConfig, address_of, find_provider, is_key, known_providers


class AccountError(ValueError):
    """A key can't be stored. One sentence."""


class Accounts:
    """Providers by the settings and the environment, and the keys that are stored for them."""

    def __init__(self, settings: Settings, environment: Mapping[str, str], keys: KeyStore) -> None:
        self.custom = configured(settings)
        self._environment = environment
        self._keys = keys

    @property
    def providers(self) -> Sequence[ProviderConfig]:
        """The user's own first; each name once."""
        return tuple({**{item.name: item for item in self.custom}, **_others(self.custom)}.values())

    def all(self) -> tuple[Account, ...]:
        """The state of every provider. A store that can't be read counts as empty here."""
        try:
            stored = {(entry.provider, entry.origin) for entry in self._keys.entries()}
        except KeyStoreError:
            stored = set[tuple[str, str]]()
        return tuple(
            account_of(provider, self._environment, lambda name, origin: (name, origin) in stored)
            for provider in self.providers
        )

    def stored_key(self, provider: str, origin: str) -> str:
        """The key that is stored for exactly this provider and origin.

        Raises:
            KeyStoreError: it can't be read.
        """
        return self._keys.find(provider, origin)

    def prefetch(self) -> str:
        """Read all stored keys now, as a keyring may take its time. Returns what went wrong."""
        try:
            for entry in self._keys.entries():
                self._keys.find(entry.provider, entry.origin)
        except KeyStoreError as error:
            return str(error)
        return ""

    def default_model(self) -> str:
        """The usual model of the first provider whose key is stored; empty where there is none."""
        return next(
            (
                f"{account.provider.name}/{account.provider.default_model}"
                for account in self.all()
                if account.key == "stored" and account.own_host and account.provider.default_model
            ),
            "",
        )

    def find(self, provider: str) -> ProviderConfig:
        """The provider of this name.

        Raises:
            AccountError: there is none.
        """
        found = find_provider(provider, self.custom)
        if found is None:
            near = difflib.get_close_matches(provider.lower(), self._names, 1)
            meant = f" Did you mean {near[0]}?" if near else ""
            raise AccountError(f"there is no provider {provider!r}.{meant} Known are {', '.join(sorted(self._names))}")
        return found

    def store(self, provider: str, key: str) -> str:
        """Store a key for a provider at the address where it is asked. Returns a sentence for the user.

        Raises:
            AccountError: no such provider, no such key, or it can't be stored.
        """
        key = key.strip()
        found = self.find(provider)
        if not is_key(key):
            raise AccountError("that is no key: one word without blanks and without quotes; nothing was stored")
        try:
            address, _ = address_of(found, self._environment)
            entry = self._keys.put(found.name, origin_of(address), key)
        except (ValueError, KeyStoreError) as error:
            raise AccountError(str(error)) from error
        place = "the system's keyring" if entry.place == "keyring" else f"{self._keys.path}, readable for you only"
        told = f"The key of {found.name} for {entry.origin} is in {place}."
        variable = next((name for name in found.api_key_env if self._environment.get(name, "").strip()), "")
        return f"{told} {variable} in the environment comes before it." if variable else told

    @property
    def _names(self) -> list[str]:
        return [provider.name for provider in self.providers]


def _others(custom: Sequence[ProviderConfig]) -> dict[str, ProviderConfig]:
    taken = {provider.name for provider in custom}
    return {name: provider for name, provider in known_providers().items() if name not in taken}
