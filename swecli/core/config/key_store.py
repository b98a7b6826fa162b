"""Stored API keys: in the system's keyring, else in a file that only the user can read.

A key belongs to one provider at one origin (scheme, host and port) and is found for no other. A separate index lists
the stored keys, so that the keyring is only asked for existing ones.
"""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeVar, cast

from msgspec import Struct

from swecli.core.atomic_text import one_writer, write_whole

SECONDS = 5.0
"""Seconds to wait for the keyring's answer."""

T = TypeVar("T")


class KeyringError(Exception):
    """There is no usable keyring, or it failed. One sentence."""


class Keyring(Protocol):
    """Secrets by service and name."""

    def get_password(self, service: str, username: str) -> str | None: ...
    def set_password(self, service: str, username: str, password: str) -> None: ...
    def delete_password(self, service: str, username: str) -> None: ...


def system_keyring() -> Keyring | None:
    """The system's keyring; None if there is none with real protection."""
    try:
        return bounded(_find)
    except KeyringError:
        return None


def _find() -> Keyring | None:
    import keyring
    from keyring.backends import chainer, fail, null

    ring = keyring.get_keyring()
    members: list[object] = list(ring.backends) if isinstance(ring, chainer.ChainerBackend) else [ring]
    for member in members:
        priority = getattr(member, "priority", 0)
        if not isinstance(member, fail.Keyring | null.Keyring) and isinstance(priority, int | float) and priority >= 1:
            return cast("Keyring", ring)
    return None


def bounded(work: Callable[[], T], seconds: float = SECONDS) -> T:
    """The result of ``work``, done in a thread that is abandoned after ``seconds``.

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


FILE_NAME = "keys.json"
SERVICE = "swecli"
_VERSION = 1
_MAX_BYTES = 1_000_000

Place = Literal["keyring", "file"]


class KeyStoreError(Exception):
    """The key was not stored or removed, or the store can't be used. One sentence; nothing was lost."""


class StoredKey(Struct, frozen=True):
    """Existence and place of a key. Never the key itself."""

    provider: str
    origin: str
    place: Place

    @property
    def account(self) -> str:
        """Name of the key in a keyring."""
        return f"{self.provider} {self.origin}"


class KeyStore:
    """The store in ``directory``. ``keyring`` finds the system's keyring; every call reads the index again."""

    def __init__(self, directory: Path, keyring: Callable[[], Keyring | None] = system_keyring) -> None:
        self._path = directory / FILE_NAME
        self._keyring = keyring
        self._read_before: dict[StoredKey, str] = {}
        """Keys that a keyring gave, while the index is unchanged: each change of a key writes the index."""
        self._index = (0, 0)
        """Inode and time of the index when it was last read."""

    @property
    def path(self) -> Path:
        return self._path

    def entries(self) -> tuple[StoredKey, ...]:
        """The stored keys.

        Raises:
            KeyStoreError: the file is accessible to others, or damaged.
        """
        return tuple(self._load())

    def find(self, provider: str, origin: str) -> str:
        """The key of ``provider`` at ``origin``; empty without one.

        Raises:
            KeyStoreError: it can't be read.
        """
        for entry, key in self._load().items():
            if (entry.provider, entry.origin) == (provider, origin):
                return key if entry.place == "file" else self._from_keyring(entry)
        return ""

    def put(self, provider: str, origin: str, key: str) -> StoredKey:
        """Store a key, replacing an existing one. If the keyring fails, the file is used.

        Raises:
            KeyStoreError: neither could be written.
        """
        self._load()  # a damaged file is an error before the keyring has the key
        entry = StoredKey(provider, origin, "keyring")
        ring = self._keyring()
        try:
            if ring is None:
                raise KeyringError("no key is stored")
            bounded(lambda: ring.set_password(SERVICE, entry.account, key))
            self._read_before[entry] = key
        except KeyringError:
            entry = StoredKey(provider, origin, "file")
        stored = key if entry.place == "file" else ""
        self._change(lambda other: (other.provider, other.origin) != (provider, origin), {entry: stored})
        return entry

    def remove(self, provider: str) -> tuple[StoredKey, ...]:
        """Delete the keys of a provider, of all its origins. Returns the deleted ones.

        Raises:
            KeyStoreError: a key could not be removed from the keyring; it is still listed.
        """
        removed = [entry for entry in self._load() if entry.provider == provider]
        for entry in removed:
            if entry.place == "keyring":
                self._delete(entry)
        if removed:
            self._change(lambda other: other not in removed)
        return tuple(removed)

    def _from_keyring(self, entry: StoredKey) -> str:
        if entry not in self._read_before:
            ring = self._keyring()
            if ring is None:
                raise KeyStoreError(f"the {entry.provider} key is in an unavailable keyring; /login stores it again")
            try:
                self._read_before[entry] = bounded(lambda: ring.get_password(SERVICE, entry.account)) or ""
            except KeyringError as error:
                raise KeyStoreError(f"cannot read the {entry.provider} key: {error}") from error
        return self._read_before[entry]

    def _delete(self, entry: StoredKey) -> None:
        self._read_before.pop(entry, None)
        ring = self._keyring()
        if ring is None:
            return
        try:
            if bounded(lambda: ring.get_password(SERVICE, entry.account)) is not None:
                bounded(lambda: ring.delete_password(SERVICE, entry.account))
        except KeyringError as error:
            raise KeyStoreError(f"could not remove the {entry.provider} key: {error}") from error

    # --- the file -------------------------------------------------------------------------------------------------

    def _load(self) -> dict[StoredKey, str]:
        text = self._text()
        if not text:
            return {}
        try:
            data = cast("dict[str, Any]", json.loads(text))
            return {
                StoredKey(str(item["provider"]), str(item["origin"]), item["place"]): str(item.get("key", ""))
                for item in data["keys"]
                if item["place"] in ("keyring", "file")
            }
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise KeyStoreError(f"{self._path} is damaged; move it away and store your keys again") from error

    def _text(self) -> str:
        """The file's text, if it belongs to the user. Removes others' rights before reading."""
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
        try:
            descriptor = os.open(self._path, flags)
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except OSError as error:
            if self._path.is_symlink():
                raise KeyStoreError(f"{self._path} is a link, which is not followed; its keys are ignored") from error
            raise KeyStoreError(f"cannot read {self._path}: {error.strerror}") from error
        with os.fdopen(descriptor, "rb") as file:
            state = os.fstat(file.fileno())
            mine = not hasattr(os, "getuid") or state.st_uid == os.getuid()
            if not stat.S_ISREG(state.st_mode) or not mine or state.st_size > _MAX_BYTES:
                raise KeyStoreError(f"{self._path} is not a regular file of yours; its keys are ignored")
            if self._index != (index := (state.st_ino, state.st_mtime_ns)):
                self._index = index
                self._read_before.clear()
            if state.st_mode & 0o077 and hasattr(os, "fchmod"):
                with suppress(OSError):
                    os.fchmod(file.fileno(), 0o600)
            return file.read().decode("utf-8", "replace")

    def _change(self, keeps: Callable[[StoredKey], bool], more: Mapping[StoredKey, str] = MappingProxyType({})) -> None:
        """Write the entries that it ``keeps``, and ``more``. Another program's changes meanwhile are kept, too."""
        try:
            with one_writer(self._path):
                known = {entry: key for entry, key in self._load().items() if keeps(entry)}
                items = [_item(entry, key) for entry, key in {**known, **more}.items()]
                write_whole(self._path, json.dumps({"version": _VERSION, "keys": items}, indent=1) + "\n")
        except OSError as error:
            raise KeyStoreError(f"cannot write {self._path}: {error.strerror}; nothing was changed") from error


def _item(entry: StoredKey, key: str) -> dict[str, str]:
    where = {"provider": entry.provider, "origin": entry.origin, "place": entry.place}
    return {**where, "key": key} if key else where
