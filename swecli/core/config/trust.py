"""Trust in a workspace, consent to single settings of it, and grants that outlive a session."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, cast

from msgspec import Struct
from msgspec.structs import asdict

from swecli.core.atomic_text import DamagedFile, one_writer, read_json, write_json
from swecli.core.config.paths import PROJECT_FOLDER

TrustState = Literal["unknown", "declined", "session", "trusted"]
"""``session`` holds for one run of the program and is never stored."""

TRUST_FILE = "trust.json"
_VERSION = 1


class TrustReading(Struct, frozen=True):
    """``notice`` is a sentence for the user when the store was damaged or can't be read."""

    state: TrustState
    notice: str = ""
    accepted: frozenset[str] = frozenset()
    """Hashes of single settings of the project that the user consented to."""
    refused: frozenset[str] = frozenset()
    """The same of those that the user said no to, so that they are not asked about again."""

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
        return TrustReading("unknown", f"{error}, so no workspace is trusted.")
    except OSError as error:
        return TrustReading(
            "unknown", f"Cannot read {data / TRUST_FILE} ({error.strerror}), so no workspace is trusted."
        )
    key = trust_key(directory)
    entry = entries.get(str(key))
    if entry is not None and _state(entry) != "unknown":
        return TrustReading(_state(entry), accepted=_items(entry), refused=_items(entry, "refused"))
    accepted = frozenset[str]() if entry is None else _items(entry)
    refused = frozenset[str]() if entry is None else _items(entry, "refused")
    for parent in key.parents:
        above = entries.get(str(parent))
        if above is not None and above.get("below") is True and _state(above) == "trusted":
            return TrustReading("trusted", accepted=accepted, refused=refused)
    return TrustReading("unknown", accepted=accepted, refused=refused)


def write_trust(data: Path, directory: Path, state: TrustState, *, below: bool = False) -> str:
    """Remember a decision; ``unknown`` forgets it and every accepted item. ``below`` extends trust to every folder
    inside. Returns a notice when a damaged store was put aside, else an empty text.

    Raises:
        OSError: the data directory can't be written; nothing was changed.
    """

    def decided(entry: Mapping[str, Any]) -> dict[str, Any] | None:
        if state == "unknown":
            return None
        kept = sorted(_items(entry)) if state != "declined" else []
        return {"state": state, "below": below, "since": int(time.time()), "accepted": kept}

    return _change(data, directory, decided)


def accept_items(data: Path, directory: Path, digests: Collection[str]) -> str:
    """Remember consent to single settings of the project, by ``item_digest``. Returns a notice as ``write_trust``.

    Raises:
        OSError: the data directory can't be written; nothing was changed.
    """

    return _decide_items(data, directory, "accepted", "refused", digests)


def refuse_items(data: Path, directory: Path, digests: Collection[str]) -> str:
    """Remember that the user said no to single settings of the project. Returns a notice as ``write_trust``.

    Raises:
        OSError: the data directory can't be written; nothing was changed.
    """
    return _decide_items(data, directory, "refused", "accepted", digests)


def _decide_items(data: Path, directory: Path, into: str, out_of: str, digests: Collection[str]) -> str:
    def decided(entry: Mapping[str, Any]) -> dict[str, Any]:
        there, elsewhere = {*_items(entry, into), *digests}, _items(entry, out_of) - {*digests}
        return {**entry, into: sorted(there), **({out_of: sorted(elsewhere)} if out_of in entry else {})}

    return _change(data, directory, decided)


def item_digest(key: Sequence[str], value: object) -> str:
    """What consent to one setting is bound to: the SHA-256 of its key and of everything that it says."""
    shown = json.dumps([list(key), value], sort_keys=True, default=str)
    return hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()


def file_digest(directory: Path, file: Path, sha256: str) -> str:
    """What consent to one file of the project is bound to: its path within the project and the hash of its bytes."""
    return item_digest(("file", os.path.relpath(os.path.realpath(file), trust_key(directory))), sha256)


def _change(data: Path, directory: Path, change: Callable[[Mapping[str, Any]], dict[str, Any] | None]) -> str:
    path, notice = data / TRUST_FILE, ""
    with one_writer(path):
        try:
            entries = dict(_read(data))
        except DamagedFile as error:
            entries, notice = {}, f"{error}, so no other workspace is trusted."
        key = str(trust_key(directory))
        changed = change(entries.pop(key, {}))
        if changed is not None:
            entries[key] = changed
        write_json(path, {"version": _VERSION, "workspaces": entries})
    return notice


def _items(entry: Mapping[str, Any], which: str = "accepted") -> frozenset[str]:
    items = entry.get(which)
    return frozenset(str(item) for item in cast("list[object]", items)) if isinstance(items, list) else frozenset()


def _state(entry: Mapping[str, Any]) -> TrustState:
    state = entry.get("state")
    return state if state in ("trusted", "declined") else "unknown"


def _read(data: Path) -> dict[str, dict[str, Any]]:
    named: dict[str, Any] = read_json(data / TRUST_FILE, "workspaces", dict)
    return {key: cast("dict[str, Any]", value) for key, value in named.items() if isinstance(value, dict)}


LOOSENING = frozenset(
    (
        *("providers", "keys", "hooks", "mcp", "language_servers", "sandbox", "environment"),
        *("checkpoints", "sessions", "budget"),
    )
)
"""Sections that name programs, addresses or variables, lift a question, or say what can be taken back or spent."""

_LOOSENING_KEYS = frozenset((("approval", "allow"), ("ui", "status_line")))
"""Single keys that do."""

ProjectLayer = Literal["project", "local"]


class PendingItem(Struct, frozen=True):
    """A setting of the project that is left out until the user consents. ``value`` is all of it as text, ``digest``
    what consent is bound to."""

    key: str
    value: str
    origin: str
    digest: str


class Consent:
    """``accepted`` are the hashes of what the user consented to; ``pending`` collects what waits for it."""

    def __init__(self, accepted: frozenset[str]) -> None:
        self._accepted = accepted
        self.pending: list[PendingItem] = []

    def refuses(self, key: Sequence[str], value: object, origin: str) -> bool:
        if not loosens(key, value):
            return False
        digest = item_digest(key, value)
        if digest in self._accepted:
            return False
        shown = json.dumps(value, ensure_ascii=False, default=str)
        self.pending.append(PendingItem(".".join(key), shown, origin, digest))
        return True


def loosens(key: Sequence[str], value: object) -> bool:
    """Whether a setting could make something run, go elsewhere or go unasked that did not before."""
    if tuple(key) == ("approval", "mode"):
        return value != "plan"
    return key[0] in LOOSENING or tuple(key) in _LOOSENING_KEYS


def without_links(
    files: Sequence[tuple[ProjectLayer, Path]], notices: list[str]
) -> Iterator[tuple[ProjectLayer, Path]]:
    """Files that are in the project themselves: a link could bring in any file of the user's."""
    for layer, path in files:
        if path.is_symlink() or path.parent.is_symlink():
            notices.append(f"{path} ignored: it is a link or inside one.")
        else:
            yield layer, path


INSTRUCTION_FILES = ("OPENCLI.md", "AGENTS.md", "CLAUDE.md", "GEMINI.md")
OTHER_FILES = (".mcp.json", ".claude/settings.json", ".claude/settings.local.json")
EXTENSION_HOMES = (PROJECT_FOLDER, ".agents", ".claude")
"""Folders that may have skills, commands and agent profiles in them, the first to win first."""
EXTENSION_FOLDERS = ("skills", "commands", "agents")
MAX_NAMES = 200
_HARMLESS = frozenset((".gitignore", "logs", "pastes", "plans"))


def covered_by_trust(directory: Path) -> tuple[str, ...]:
    """Relative names of the settings, instructions, hooks and the like of the workspace, for the user to see before
    the question. Empty where trust would make no difference. Links are named and not followed."""
    key = trust_key(directory)
    start = Path(os.path.realpath(directory))
    folders = [start]
    while folders[-1] != key and key in folders[-1].parents:
        folders.append(folders[-1].parent)
    found: list[str] = []
    for folder in reversed(folders):
        found += (os.path.relpath(folder / name, start) for name in _in(folder))
    return tuple(found[:MAX_NAMES])


def _in(folder: Path) -> list[str]:
    entries = _entries(folder, (*INSTRUCTION_FILES, *OTHER_FILES, PROJECT_FOLDER))
    names: list[str] = []
    for name, is_directory in sorted(entries.items()):
        if name == PROJECT_FOLDER and is_directory:
            names += (f"{name}/{inner}" for inner in _inside(folder / name))
        else:
            names.append(name)
    for home in EXTENSION_HOMES[1:]:
        for kind, is_directory in _entries(folder / home, EXTENSION_FOLDERS).items():
            count = len(_entries(folder / home / kind, None)) if is_directory else 0
            if count or not is_directory:
                names.append(f"{home}/{kind}/ ({count})" if is_directory else f"{home}/{kind}")
    return names


def _inside(folder: Path) -> list[str]:
    """The project's own folder, with how many there are in each folder of it."""
    names: list[str] = []
    for name, is_directory in sorted(_entries(folder, None).items()):
        if name in _HARMLESS:
            continue
        count = len(_entries(folder / name, None)) if is_directory else 0
        if count or not is_directory:
            names.append(f"{name}/ ({count})" if is_directory else name)
    return names


def _entries(folder: Path, wanted: tuple[str, ...] | None) -> dict[str, bool]:
    """Names in a directory, each with whether it is a directory itself."""
    found: dict[str, bool] = {}
    try:
        if wanted is not None:
            for name in wanted:
                path = folder / name
                if os.path.lexists(path):
                    found[name] = path.is_dir() and not path.is_symlink()
            return found
        with os.scandir(folder) as entries:
            for entry in entries:
                if len(found) >= MAX_NAMES:
                    break
                found[entry.name] = entry.is_dir(follow_symlinks=False)
    except OSError:
        return {}
    return found


GRANTS_FILE = "grants.json"
WEEK = 7 * 24 * 3600

Span = Literal["week", "project"]
"""Seven days, or as long as it is not revoked; in this workspace only."""


class Grant(Struct, frozen=True):
    """An allow rule. ``since`` and ``expires`` are Unix seconds; ``expires`` is None where it holds until revoked."""

    id: str
    rule: str
    since: float
    expires: float | None

    def holds(self, now: float) -> bool:
        """Whether it counts at this time. One from the future does not: the clock was wrong then or is now."""
        return self.since <= now + 60 and (self.expires is None or now < self.expires)

    @property
    def origin(self) -> str:
        """When it was given and how long it holds, for people."""
        until = "until revoked" if self.expires is None else f"until {_day(self.expires)}"
        return f"granted {_day(self.since)}, {until}"


class GrantStore:
    """The grants of one workspace in the file ``path``. What another process changes is seen at the next call."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._seen: tuple[int, int, int] | None = None
        self._read: tuple[Grant, ...] = ()

    def active(self) -> tuple[Grant, ...]:
        """What holds now; empty where the file can't be read."""
        now = self._clock()
        try:
            return tuple(grant for grant in self._grants() if grant.holds(now))
        except (OSError, DamagedFile):
            return ()

    def add(self, rule: str, span: Span) -> Grant:
        """Remember a rule, in place of an equal one.

        Raises:
            OSError: it can't be written; nothing was changed.
        """
        now = self._clock()
        grant = Grant(secrets.token_hex(3), rule, now, now + WEEK if span == "week" else None)
        self._change(lambda grants: [*(each for each in grants if each.rule != rule), grant])
        return grant

    def revoke(self, name: str) -> tuple[Grant, ...]:
        """Forget every grant with this id or rule. Returns what was forgotten.

        Raises:
            OSError: it can't be written; nothing was changed.
        """
        gone: list[Grant] = []

        def without(grants: tuple[Grant, ...]) -> list[Grant]:
            gone.extend(each for each in grants if name in (each.id, each.rule))
            return [each for each in grants if each not in gone]

        if self._path.exists():
            self._change(without)
        return tuple(gone)

    def _change(self, change: Callable[[tuple[Grant, ...]], list[Grant]]) -> None:
        with one_writer(self._path):
            try:
                grants = self._grants()
            except DamagedFile:  # put aside, so that what is granted now is not lost with it
                grants = ()
            now = self._clock()
            kept = [asdict(grant) for grant in change(grants) if grant.expires is None or now < grant.expires]
            write_json(self._path, {"version": _VERSION, "grants": kept})

    def _grants(self) -> tuple[Grant, ...]:
        try:
            state = self._path.stat()
        except FileNotFoundError:
            return ()
        seen = (state.st_mtime_ns, state.st_size, state.st_ino)
        if seen != self._seen:
            entries: list[Any] = read_json(self._path, "grants", list)
            self._read = tuple(grant for grant in map(_grant, entries) if grant is not None)
            self._seen = seen
        return self._read


def _grant(entry: object) -> Grant | None:
    if not isinstance(entry, dict):
        return None
    data = cast("dict[str, Any]", entry)
    name, rule, since, expires = (data.get(key) for key in ("id", "rule", "since", "expires"))
    if not isinstance(name, str) or not isinstance(rule, str) or not isinstance(since, int | float):
        return None
    if expires is not None and not isinstance(expires, int | float):
        return None
    return Grant(name, rule, since, expires)


def _day(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp).strftime("%Y-%m-%d")
