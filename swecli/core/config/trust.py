"""Workspace trust, consent to single project settings, and grants that outlive a session."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, cast

from msgspec import Struct
from msgspec.structs import asdict

from swecli.core.atomic_text import DamagedFile, one_writer, read_json, write_json
from swecli.core.config.paths import PROJECT_FOLDER

TrustState = Literal["unknown", "declined", "session", "trusted"]
"""``session`` lasts for one run of the program and is never stored."""

TRUST_FILE = "trust.json"
_VERSION = 1


class TrustReading(Struct, frozen=True):
    """``notice`` is a sentence for the user if the store was damaged or unreadable."""

    state: TrustState
    notice: str = ""
    accepted: frozenset[str] = frozenset()
    """Hashes of project settings that the user accepted."""
    refused: frozenset[str] = frozenset()
    """Hashes of project settings that the user refused, so that swecli does not ask again."""

    @property
    def trusts(self) -> bool:
        """Whether project files are used as settings and instructions."""
        return self.state in ("trusted", "session")


def trust_key(directory: Path) -> Path:
    """The folder whose trust covers ``directory``: the root of its git repository if the root's ``.git`` is a plain
    directory owned by the user, otherwise the directory itself. Resolved."""
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
    """The user's decision about ``directory``. A damaged store is set aside and counts as empty."""
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
    """Store a decision; ``unknown`` removes it and every accepted item. ``below`` extends trust to all folders inside.
    Returns a notice if a damaged store was set aside, otherwise an empty text.

    Raises:
        OSError: the data directory can't be written; nothing was changed.
    """

    def decided(entry: Mapping[str, Any]) -> dict[str, Any] | None:
        if state == "unknown":
            return None
        accepted = sorted(_items(entry)) if state != "declined" else []
        return {"state": state, "below": below, "since": int(time.time()), "accepted": accepted}

    return _change(data, directory, decided)


def accept_items(data: Path, directory: Path, digests: Collection[str]) -> str:
    """Store consent to project settings, by ``item_digest``. Returns a notice, or raises, as ``write_trust`` does."""

    return _decide_items(data, directory, "accepted", "refused", digests)


def refuse_items(data: Path, directory: Path, digests: Collection[str]) -> str:
    """Store the refusal of project settings. Returns a notice, or raises, as ``write_trust`` does."""
    return _decide_items(data, directory, "refused", "accepted", digests)


def _decide_items(data: Path, directory: Path, into: str, out_of: str, digests: Collection[str]) -> str:
    def decided(entry: Mapping[str, Any]) -> dict[str, Any]:
        there, elsewhere = {*_items(entry, into), *digests}, _items(entry, out_of) - {*digests}
        return {**entry, into: sorted(there), **({out_of: sorted(elsewhere)} if out_of in entry else {})}

    return _change(data, directory, decided)


def item_digest(key: Sequence[str], value: object) -> str:
    """Hash that binds consent to one setting: SHA-256 of its key and complete value."""
    shown = json.dumps([list(key), value], sort_keys=True, default=str)
    return hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()


def file_digest(directory: Path, file: Path, sha256: str) -> str:
    """Hash that binds consent to one project file: its path within the project and the hash of its bytes."""
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
        *("checkpoints", "sessions", "budget", "web_search", "telemetry"),
    )
)
"""Sections that name programs, addresses or variables, remove a question, or limit undo or spending."""

_LOOSENING_KEYS = frozenset(
    (("approval", "allow"), ("approval", "secret_names"), ("ui", "status_line"), ("models", "price"))
)
"""Single keys with the same effect."""

_LIMITS = frozenset(
    (
        *(("agent", "max_steps"), ("tools", "process_limit"), ("subagents", "at_once")),
        *(("subagents", "max_steps"), ("subagents", "max_tokens"), ("subagents", "max_price")),
    )
)
"""Keys with the same effect if a project raises the user's value."""

_SWITCHES = frozenset(
    (
        *(("tools", "web_fetch"), ("diagnostics", "enabled"), ("subagents", "enabled"), ("memory", "enabled")),
        *(("playbook", "enabled"), ("playbook", "reflect"), ("context", "retrieval_model")),
    )
)
"""Keys with the same effect if a project turns on what is off for the user."""

ProjectLayer = Literal["project", "local"]


class PendingItem(Struct, frozen=True):
    """A project setting that is ignored until the user accepts it. ``value`` is its complete text, ``digest`` binds the
    consent."""

    key: str
    value: str
    origin: str
    digest: str


class Consent:
    """``accepted`` are the hashes of accepted items; ``pending`` collects items that wait for consent."""

    def __init__(self, accepted: frozenset[str]) -> None:
        self._accepted = accepted
        self.pending: list[PendingItem] = []

    def refuses(self, key: Sequence[str], value: object, origin: str, before: object = None) -> bool:
        """Whether a setting that replaces the value ``before`` is ignored."""
        if not loosens(key, value, before):
            return False
        digest = item_digest(key, value)
        if digest in self._accepted:
            return False
        shown = json.dumps(value, ensure_ascii=False, default=str)
        self.pending.append(PendingItem(".".join(key), shown, origin, digest))
        return True


def loosens(key: Sequence[str], value: object, before: object = None) -> bool:
    """Whether a setting could start a program, redirect a connection, remove a question, or lift a limit. ``before`` is
    the value that it would replace; None: there is none, or no limit."""
    if tuple(key) == ("approval", "mode"):
        return value != "plan"
    if tuple(key) in _LIMITS:
        return isinstance(value, int | float) and isinstance(before, int | float) and value > before
    if tuple(key) in _SWITCHES:
        return value is True and before is False
    return key[0] in LOOSENING or tuple(key[:2]) in _LOOSENING_KEYS


def is_led_away(path: Path) -> bool:
    """Whether a file or folder, or the folder that it is in, is a link."""
    return os.path.islink(path) or os.path.islink(path.parent)


def without_links(
    files: Sequence[tuple[ProjectLayer, Path]], notices: list[str]
) -> Iterator[tuple[ProjectLayer, Path]]:
    """Project files that are not links: a link could pull in any file of the user's."""
    for layer, path in files:
        if is_led_away(path):
            notices.append(f"{path} ignored: it is a link or inside one.")
        else:
            yield layer, path


INSTRUCTION_FILES = (
    *("OPENCLI.md", "AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", "GEMINI.md"),
    *(".github/copilot-instructions.md", ".cursorrules", ".windsurfrules", ".clinerules"),
)
"""The first of these in a folder that exists and is not empty counts; the last ones are those of other agents."""
LOCAL_INSTRUCTIONS = "CLAUDE.local.md"
"""One person's own addition, which counts beside the folder's instruction file."""
AIDER_SETTINGS = ".aider.conf.yml"
"""Its ``read`` names texts that count beside the folder's instruction file."""
RULE_FOLDERS = (".claude/rules", ".github/instructions", ".cursor/rules", ".windsurf/rules", ".clinerules")
"""Folders of instructions that may hold for some files or tasks only."""
OTHER_FILES = (".mcp.json", ".claude/settings.json", ".claude/settings.local.json")
EXTENSION_FOLDERS = MappingProxyType({"skills": "skills", "commands": "commands", "agents": "agents"})
"""Folders for extensions, each with the kind of extension in it."""
_OPENCODE = {**EXTENSION_FOLDERS, "skill": "skills", "command": "commands", "agent": "agents"}
EXTENSION_HOMES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        PROJECT_FOLDER: EXTENSION_FOLDERS,
        ".agents": EXTENSION_FOLDERS,
        ".claude": EXTENSION_FOLDERS,
        ".opencode": _OPENCODE,
        ".gemini": {"skills": "skills", "commands": "commands"},
        ".codex": {"skills": "skills", "prompts": "commands"},
        ".cursor": {"commands": "commands"},
    }
)
"""Folders of a project or home that have such folders, in order of precedence."""
INSTALLED_PLUGINS = ".claude/plugins/installed_plugins.json"
"""Claude Code's list of plugins, in the user's home."""
_ELSEWHERE_AT_HOME = MappingProxyType({".opencode": ".config/opencode"})


def own_extensions(user_folder: Path, home: Path) -> dict[Path, Mapping[str, str]]:
    """The user's own folders, in order of precedence, with their folders for extensions."""
    by_folder: dict[Path, Mapping[str, str]] = {user_folder: EXTENSION_FOLDERS}
    for name, folders in EXTENSION_HOMES.items():
        if name != PROJECT_FOLDER:
            by_folder[home / _ELSEWHERE_AT_HOME.get(name, name)] = folders
    return by_folder


MAX_NAMES = 200
_HARMLESS = frozenset((".gitignore", "logs", "pastes", "plans"))


def instructs(path: Path) -> bool:
    """Whether a file with this path is one that tells agents what to do in a project."""
    text = path.as_posix()
    if text.endswith(tuple(f"/{name}" for name in (*INSTRUCTION_FILES, LOCAL_INSTRUCTIONS))):
        return True
    return any(f"/{folder}/" in text for folder in RULE_FOLDERS)


def covered_by_trust(directory: Path) -> tuple[str, ...]:
    """Relative names of the workspace's settings, instructions, hooks and similar files, shown before the trust
    question. Empty if trust would change nothing. Links are named but not followed."""
    key = trust_key(directory)
    start = Path(os.path.realpath(directory))
    folders = [start]
    while folders[-1] != key and key in folders[-1].parents:
        folders.append(folders[-1].parent)
    names: list[str] = []
    for folder in reversed(folders):
        names += (os.path.relpath(folder / name, start) for name in _in(folder))
    return tuple(names[:MAX_NAMES])


def _in(folder: Path) -> list[str]:
    entries = _entries(
        folder, (*INSTRUCTION_FILES, LOCAL_INSTRUCTIONS, AIDER_SETTINGS, *RULE_FOLDERS, *OTHER_FILES, PROJECT_FOLDER)
    )
    names: list[str] = []
    for name, is_directory in sorted(entries.items()):
        if name == PROJECT_FOLDER and is_directory:
            names += (f"{name}/{inner}" for inner in _inside(folder / name))
        elif name in RULE_FOLDERS and is_directory:
            count = len(_entries(folder / name, None))
            names += [f"{name}/ ({count})"] if count else []
        else:
            names.append(name)
    for home, folders in EXTENSION_HOMES.items():
        if home == PROJECT_FOLDER:
            continue
        for kind, is_directory in _entries(folder / home, tuple(folders)).items():
            count = len(_entries(folder / home / kind, None)) if is_directory else 0
            if count or not is_directory:
                names.append(f"{home}/{kind}/ ({count})" if is_directory else f"{home}/{kind}")
    return names


def _inside(folder: Path) -> list[str]:
    """The project's own folder, with the number of files in each subfolder."""
    names: list[str] = []
    for name, is_directory in sorted(_entries(folder, None).items()):
        if name in _HARMLESS:
            continue
        count = len(_entries(folder / name, None)) if is_directory else 0
        if count or not is_directory:
            names.append(f"{name}/ ({count})" if is_directory else name)
    return names


def _entries(folder: Path, wanted: tuple[str, ...] | None) -> dict[str, bool]:
    """Names in a directory, mapped to whether each is a directory."""
    is_folder: dict[str, bool] = {}
    try:
        if wanted is not None:
            for name in wanted:
                path = folder / name
                if os.path.lexists(path):
                    is_folder[name] = os.path.isdir(path) and not os.path.islink(path)
            return is_folder
        with os.scandir(folder) as entries:
            for entry in entries:
                if len(is_folder) >= MAX_NAMES:
                    break
                is_folder[entry.name] = entry.is_dir(follow_symlinks=False)
    except OSError:
        return {}
    return is_folder


GRANTS_FILE = "grants.json"
WEEK = 7 * 24 * 3600

Span = Literal["week", "project"]
"""Seven days, or until revoked; in this workspace only."""


class Grant(Struct, frozen=True):
    """An allow rule. ``since`` and ``expires`` are Unix seconds; ``expires`` is None for a grant without an end."""

    id: str
    rule: str
    since: float
    expires: float | None

    def holds(self, now: float) -> bool:
        """Whether the grant applies at this time. A grant from the future does not: one of the two clock readings is
        wrong."""
        return self.since <= now + 60 and (self.expires is None or now < self.expires)

    @property
    def origin(self) -> str:
        """When it was given and when it expires, for display."""
        until = "until revoked" if self.expires is None else f"until {_day(self.expires)}"
        return f"granted {_day(self.since)}, {until}"


class GrantStore:
    """The grants of one workspace in the file ``path``. Changes by other processes are seen at the next call."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._seen: tuple[int, int, int] | None = None
        self._read: tuple[Grant, ...] = ()

    def active(self) -> tuple[Grant, ...]:
        """Grants that apply now; empty if the file can't be read."""
        now = self._clock()
        try:
            return tuple(grant for grant in self._grants() if grant.holds(now))
        except (OSError, DamagedFile):
            return ()

    def trouble(self) -> str:
        """Why the grants that were stored do not apply, as a sentence; empty if they do. A damaged file is kept under
        another name, so only the first reading of it tells."""
        try:
            self._grants()
        except DamagedFile as error:
            return f"{error}, so nothing is granted here any more."
        except OSError as error:
            return f"Cannot read {self._path} ({error.strerror or error}), so no grant applies."
        return ""

    def add(self, rule: str, span: Span) -> Grant:
        """Add a rule, replacing an equal one.

        Raises:
            OSError: the file can't be written; nothing was changed.
        """
        now = self._clock()
        grant = Grant(secrets.token_hex(3), rule, now, now + WEEK if span == "week" else None)
        self._change(lambda grants: [*(each for each in grants if each.rule != rule), grant])
        return grant

    def revoke(self, name: str) -> tuple[Grant, ...]:
        """Remove and return every grant with this id or rule.

        Raises:
            OSError: the file can't be written; nothing was changed.
        """
        revoked: list[Grant] = []

        def without(grants: tuple[Grant, ...]) -> list[Grant]:
            revoked.extend(each for each in grants if name in (each.id, each.rule))
            return [each for each in grants if each not in revoked]

        if os.path.exists(self._path):
            self._change(without)
        return tuple(revoked)

    def _change(self, change: Callable[[tuple[Grant, ...]], list[Grant]]) -> None:
        with one_writer(self._path):
            try:
                grants = self._grants()
            except DamagedFile:  # put aside, so that what is granted now is not lost with it
                grants = ()
            now = self._clock()
            valid = [asdict(grant) for grant in change(grants) if grant.expires is None or now < grant.expires]
            write_json(self._path, {"version": _VERSION, "grants": valid})

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
