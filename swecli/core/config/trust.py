"""Whether the user trusts a workspace: kept by real path in one file of the data directory.

The question itself belongs to a front-end. Trust never spreads to folders below unless the user said so. What a
project's settings say about programs, addresses, modes and allow rules needs consent for each item, which is kept by a
hash of what the item said: changed, it is asked about again.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

TrustState = Literal["unknown", "declined", "session", "trusted"]
"""``session`` holds for one run of the program and is never stored."""

FILE_NAME = "trust.json"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class TrustReading:
    """``notice`` is a sentence for the user when the store was damaged or can't be read."""

    state: TrustState
    notice: str = ""
    accepted: frozenset[str] = frozenset()
    """Hashes of single settings of the project that the user consented to."""

    @property
    def trusts(self) -> bool:
        """Whether files of the project count as settings and instructions."""
        return self.state in ("trusted", "session")


def trust_key(directory: Path) -> Path:
    """The folder that trust in ``directory`` is about: the root of its git repository if that root's ``.git``
    is a plain directory of the user, else the directory itself. Resolved."""
    start = Path(os.path.realpath(directory))
    for folder in (start, *start.parents):
        try:
            state = os.lstat(folder / ".git")
        except OSError:
            continue
        plain = (state.st_mode & 0o170000) == 0o040000
        mine = not hasattr(os, "getuid") or state.st_uid == os.getuid()
        return folder if plain and mine else start
    return start


def read_trust(data: Path, directory: Path) -> TrustReading:
    """What the user decided about ``directory``. A damaged store is put aside and counts as empty."""
    try:
        entries = _read(data)
    except _DamagedError as error:
        return TrustReading("unknown", str(error))
    except OSError as error:
        return TrustReading("unknown", f"{data / FILE_NAME} can't be read ({error.strerror}): nothing is trusted.")
    key = trust_key(directory)
    entry = entries.get(str(key))
    if entry is not None and _state(entry) != "unknown":
        return TrustReading(_state(entry), accepted=_accepted(entry))
    accepted = frozenset[str]() if entry is None else _accepted(entry)
    for parent in key.parents:
        above = entries.get(str(parent))
        if above is not None and above.get("below") is True and _state(above) == "trusted":
            return TrustReading("trusted", accepted=accepted)
    return TrustReading("unknown", accepted=accepted)


def write_trust(data: Path, directory: Path, state: TrustState, *, below: bool = False) -> str:
    """Remember a decision; ``unknown`` forgets it and every accepted item. ``below`` extends trust to every folder
    inside. Returns a notice when a damaged store was put aside, else an empty text.

    Raises:
        OSError: the data directory can't be written; nothing was changed.
    """

    def decided(entry: Mapping[str, Any]) -> dict[str, Any] | None:
        if state == "unknown":
            return None
        kept = sorted(_accepted(entry)) if state != "declined" else []
        return {"state": state, "below": below, "since": int(time.time()), "accepted": kept}

    return _change(data, directory, decided)


def accept_items(data: Path, directory: Path, digests: Collection[str]) -> str:
    """Remember consent to single settings of the project, by ``item_digest``. Returns a notice as ``write_trust``.

    Raises:
        OSError: the data directory can't be written; nothing was changed.
    """

    def extended(entry: Mapping[str, Any]) -> dict[str, Any]:
        return {**entry, "accepted": sorted({*_accepted(entry), *digests})}

    return _change(data, directory, extended)


def item_digest(key: Sequence[str], value: object) -> str:
    """What consent to one setting is bound to: the SHA-256 of its key and of everything that it says."""
    shown = json.dumps([list(key), value], sort_keys=True, default=str)
    return hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()


def _change(data: Path, directory: Path, change: Callable[[Mapping[str, Any]], dict[str, Any] | None]) -> str:
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    notice = ""
    with _locked(data):
        try:
            entries = dict(_read(data))
        except _DamagedError as error:
            entries, notice = {}, str(error)
        key = str(trust_key(directory))
        changed = change(entries.pop(key, {}))
        if changed is not None:
            entries[key] = changed
        _write(data, entries)
    return notice


class _DamagedError(Exception):
    """The store was not understood and has been put aside; the text says where."""


def _accepted(entry: Mapping[str, Any]) -> frozenset[str]:
    items = entry.get("accepted")
    return frozenset(str(item) for item in cast("list[object]", items)) if isinstance(items, list) else frozenset()


def _state(entry: Mapping[str, Any]) -> TrustState:
    state = entry.get("state")
    return state if state in ("trusted", "declined") else "unknown"


def _read(data: Path) -> dict[str, dict[str, Any]]:
    path = data / FILE_NAME
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return {}
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError):
        content = None
    if isinstance(content, dict):
        workspaces = cast("dict[str, Any]", content).get("workspaces")
        if isinstance(workspaces, dict):
            named = cast("dict[str, Any]", workspaces)
            return {key: cast("dict[str, Any]", value) for key, value in named.items() if isinstance(value, dict)}
    aside = path.with_name(f"{FILE_NAME}.corrupt-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}")
    os.replace(path, aside)
    raise _DamagedError(f"{path} was damaged. It is kept as {aside.name}, and no workspace is trusted now.")


def _write(data: Path, entries: Mapping[str, Any]) -> None:
    temporary = data / f".{FILE_NAME}-{os.getpid()}-{secrets.token_hex(4)}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            json.dump({"version": _VERSION, "workspaces": entries}, file, indent=1, sort_keys=True)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, data / FILE_NAME)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(data)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _locked(data: Path) -> Generator[None]:
    """One writer at a time, also across processes; without file locks (Windows) the last writer wins."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    descriptor = os.open(data / f"{FILE_NAME}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
