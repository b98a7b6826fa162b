"""/logout: forget stored keys."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.config.key_store import KeyStore, KeyStoreError, StoredKey
from swecli.core.config.paths import user_paths
from swecli.core.engine.view import SessionPort


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    store = KeyStore(user_paths(os.environ).config)
    try:
        if not arguments:
            return CommandResult.text(stored_text(await asyncio.to_thread(store.entries)))
        return CommandResult.text(await asyncio.to_thread(forget, store, arguments))
    except KeyStoreError as error:
        return CommandResult.text(str(error), "error")


LOGOUT = SlashCommand("logout", "Forget a provider's stored key", _run, arguments="[provider]")


def stored_text(entries: Sequence[StoredKey]) -> str:
    """What is stored and how it is forgotten."""
    lines = [f"{entry.provider}  {entry.origin}  ({entry.place})" for entry in entries]
    if not lines:
        return "No keys are stored. Keys in the environment are not touched by /logout."
    return "\n".join(["Stored keys:", *lines, "/logout PROVIDER forgets those of one."])


def forget(store: KeyStore, provider: str) -> str:
    """Forget the keys of a provider. Returns a sentence for the user.

    Raises:
        KeyStoreError: a key could not be removed.
    """
    gone = store.remove(provider)
    if not gone:
        return f"No key of {provider} is stored. Keys in the environment are not touched by /logout."
    places = ", ".join(f"{entry.origin} ({entry.place})" for entry in gone)
    return f"Forgotten: the key of {provider} for {places}. A model that is connected keeps it until the session ends."
