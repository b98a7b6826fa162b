"""The keyring of the system, where there is a real one. Loaded when it is first needed; bounded in time, because a
locked keyring may wait for somebody who is not there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, TypeVar, cast

SECONDS = 5.0
"""How long the keyring may take for an answer."""

T = TypeVar("T")


class KeyringError(Exception):
    """There is no usable keyring, or it did not do what it was asked to. One sentence."""


class Keyring(Protocol):
    """Secrets by service and name."""

    def get_password(self, service: str, username: str) -> str | None: ...
    def set_password(self, service: str, username: str, password: str) -> None: ...
    def delete_password(self, service: str, username: str) -> None: ...


def system_keyring() -> Keyring | None:
    """The system's keyring; None where there is none that protects anything."""
    try:
        return bounded(_find)
    except KeyringError:
        return None


def _find() -> Keyring | None:
    import keyring
    from keyring.backends import chainer, fail, null

    found = keyring.get_keyring()
    members: list[object] = list(found.backends) if isinstance(found, chainer.ChainerBackend) else [found]
    for member in members:
        priority = getattr(member, "priority", 0)
        if not isinstance(member, fail.Keyring | null.Keyring) and isinstance(priority, int | float) and priority >= 1:
            return cast("Keyring", found)
    return None


def bounded(work: Callable[[], T], seconds: float = SECONDS) -> T:
    """The result of ``work``, done in a thread that is left alone when it takes too long.

    Raises:
        KeyringError: it failed, or it took too long.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:  # noqa: BLE001 - backends raise what their system's service raises
            errors.append(error)

    thread = threading.Thread(target=run, name="keyring", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise KeyringError(f"the system's keyring failed: {type(errors[0]).__name__}: {errors[0]}") from errors[0]
    if not results:
        raise KeyringError(f"the system's keyring did not answer within {seconds:g} s; it may be locked")
    return results[0]
