"""Whether the user trusts a workspace: kept by real path in one file of the data directory.

The question itself belongs to a front-end. Trust never spreads to folders below unless the user said so. What a
project's settings say about programs, addresses, modes and allow rules needs consent for each item, which is kept by a
hash of what the item said: changed, it is asked about again.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from swecli.core.config.private_json import DamagedFile, one_writer, read_private, write_private

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
    except DamagedFile as error:
        return TrustReading("unknown", f"{error}, and no workspace is trusted now.")
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
    path, notice = data / FILE_NAME, ""
    with one_writer(path):
        try:
            entries = dict(_read(data))
        except DamagedFile as error:
            entries, notice = {}, f"{error}, and no other workspace is trusted now."
        key = str(trust_key(directory))
        changed = change(entries.pop(key, {}))
        if changed is not None:
            entries[key] = changed
        write_private(path, {"version": _VERSION, "workspaces": entries})
    return notice


def _accepted(entry: Mapping[str, Any]) -> frozenset[str]:
    items = entry.get("accepted")
    return frozenset(str(item) for item in cast("list[object]", items)) if isinstance(items, list) else frozenset()


def _state(entry: Mapping[str, Any]) -> TrustState:
    state = entry.get("state")
    return state if state in ("trusted", "declined") else "unknown"


def _read(data: Path) -> dict[str, dict[str, Any]]:
    named: dict[str, Any] = read_private(data / FILE_NAME, "workspaces", dict)
    return {key: cast("dict[str, Any]", value) for key, value in named.items() if isinstance(value, dict)}
