"""The stored sessions of this folder and of others: list, preview, search, and delete."""

from __future__ import annotations

import os
import shlex
import sqlite3
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from swecli.assembly.checkpoints import FILE as CHECKPOINTS
from swecli.assembly.checkpoints import move_changes
from swecli.core.checkpoints.store import Blobs
from swecli.core.config.paths import PROJECT_FOLDER, Paths, user_paths, workspace_key
from swecli.core.config.settings import SessionSettings
from swecli.core.git import git_facts
from swecli.core.protocol.blocks import DisplayBlock, MarkdownBlock, TextBlock
from swecli.core.protocol.codec import CodecError, decode_body
from swecli.core.protocol.events import ItemCompleted, ItemStarted, RewindUndone, Rewound
from swecli.core.protocol.messages import TextPart
from swecli.core.sessions.database import DATABASE, changed_at, open_database, read_database
from swecli.core.sessions.health import copy_rows, shrink, shrink_other
from swecli.core.sessions.search import FILE as INDEX
from swecli.core.sessions.search import SearchIndex, refresh, searched
from swecli.core.sessions.store import (
    SessionError,
    SessionInfo,
    SessionStore,
    list_sessions,
    live_holders,
    newest_messages,
)
from swecli.core.sessions.titles import meant_by, storable
from swecli.core.workspace.process_tree import Process
from swecli.core.worktrees import name_of_tree, trees_of, worktrees_folder
from swecli.figures import cut
from swecli.launch import LaunchOptions

# Selects expired sessions by the rules of the settings: too old, or too large together. Deletes nothing.


DAY = 86_400.0


class Retention(Struct, frozen=True):
    """``older_than`` is the maximum age in days, ``total`` the maximum bytes of all sessions together; None: no such
    rule. ``protected`` is the age in days up to which no rule deletes a session."""

    older_than: float | None = None
    total: int | None = None
    protected: float = 30

    @property
    def limits(self) -> bool:
        return self.older_than is not None or self.total is not None


class Expired(Struct, frozen=True):
    session: SessionInfo
    why: str


def expired(sessions: Sequence[SessionInfo], rules: Retention, now: float, held: Collection[str] = ()) -> list[Expired]:
    """Sessions to delete, oldest first. Those in ``held`` are open and stay. ``now`` is Unix seconds; a session from
    the future, because a clock was wrong, counts as new."""
    result: list[Expired] = []
    total = sum(session.size for session in sessions)
    for session in sorted(sessions, key=lambda candidate: (candidate.updated, candidate.id)):
        days = (now - session.updated) / DAY
        if session.id in held or days < rules.protected:
            continue
        if rules.older_than is not None and days >= rules.older_than:
            result.append(Expired(session, f"unused for {days:.0f} days"))
        elif rules.total is not None and total > rules.total:
            result.append(Expired(session, f"the sessions exceed {rules.total:,} bytes"))
        else:
            continue
        total -= session.size
    return result


FOLDERS = 200
"""Other folders to read, the most recently used. Each takes 2 ms."""
ALL = 1 << 31
MESSAGES = 6
"""Messages of a preview."""
LONGEST = 600
"""Characters of a message in a preview."""

T = TypeVar("T")


class StoredSession(Struct, frozen=True):
    """A stored session. ``updated`` is Unix seconds, ``cost`` US dollars as text, empty if unknown; ``away`` says why
    it can't be continued here."""

    id: str
    title: str
    folder: str
    updated: float
    messages: int
    tokens: int
    cost: str = ""
    model: str = ""
    away: str = ""
    first: str = ""
    """First words of its first message."""
    branch: str = ""
    """Git branch when it was last opened."""
    size: int = 0
    """Size on disk in bytes."""
    parent: str = ""
    """Name of the session that it was forked from."""
    open_elsewhere: bool = False
    """Whether another swecli process has it open."""


class SessionList:
    """The stored sessions, seen from the folder of ``options``."""

    def __init__(self, options: LaunchOptions, environment: Mapping[str, str]) -> None:
        self._paths = paths = user_paths(environment)
        self._data = paths.data
        self._own = paths.workspace_data(options.cwd) / DATABASE
        self._trees = worktrees_folder(paths)
        git = git_facts(options.cwd)
        self._trees_here = None if git is None else trees_of(self._trees, git)

    def read(self) -> Sequence[StoredSession]:
        """Sessions of this folder, then of other folders, newest first."""
        return [session for path in self._databases() for session in self._sessions(path)]

    def here(self) -> Sequence[StoredSession]:
        """Sessions of this folder, newest first."""
        return self._sessions(self._own)

    def earlier(self, session_id: str) -> Sequence[StoredSession]:
        """Other continuable sessions of this folder, newest first."""
        return [session for session in self.here() if session.id != session_id and session.messages]

    def folder_of(self, name: str, below: Path) -> str:
        """The folder of the session that a user means by an id or name, among those of this folder and all of those
        below another; empty for none or several."""
        by_id = {
            session.id: session
            for path in reversed(self._databases())  # this folder's own is last, so that it decides
            for session in read_database(path, lambda connection: list_sessions(connection, limit=ALL, empty=True), ())
            if path == self._own or Path(session.cwd).is_relative_to(below)
        }
        meant = meant_by(name, [(session.id, session.name) for session in by_id.values()])
        return by_id[meant[0]].cwd if len(meant) == 1 else ""

    def search(self, words: str) -> Mapping[str, str]:
        """Sessions of all folders with the words in their content: an excerpt for each, by id."""
        return {
            hit.session: hit.text for path in self._databases() if os.path.exists(path) for hit in searched(path, words)
        }

    def preview(self, session: StoredSession) -> Sequence[DisplayBlock]:
        database = self._database_of(session)
        return messages(read_database(database, lambda connection: newest_messages(connection, session.id), []))

    def delete(self, session: StoredSession) -> str:
        """Delete a session with its other stored data. Returns a sentence for the user.

        Raises:
            ValueError: it is open, or its database can't be written; nothing was deleted.
        """
        name = session.title or session.id
        try:
            troubles = delete_session(self._paths, session.id, self._database_of(session))
        except SessionError as error:
            raise ValueError(f"The session could not be deleted: {error}") from error
        return f"Already deleted: {name}" if troubles is None else " ".join((f"Deleted: {name}", *troubles))

    def _database_of(self, session: StoredSession) -> Path:
        path = self._data / "workspaces" / workspace_key(Path(session.folder)) / DATABASE
        return path if os.path.exists(path) else self._own

    def _databases(self) -> list[Path]:
        """This folder's database, then those of others, the most recently changed first."""
        others = [path for path in databases(self._data) if path != self._own]
        return [self._own, *sorted(others, key=changed_at, reverse=True)[:FOLDERS]]

    def _sessions(self, path: Path) -> list[StoredSession]:
        sessions = read_database(path, lambda connection: list_sessions(connection, limit=ALL), ())
        if not sessions:
            return []
        holders = read_database(path, lambda connection: live_holders(connection, Process.current()), {})
        called = {session.id: session.shown for session in sessions}
        stored: list[StoredSession] = []
        for session in sessions:
            away = ""
            if path != self._own:
                away = self._way_to(session)
            elif session.id in holders:
                away = (
                    f"It is open in another swecli (process {holders[session.id].pid}). "
                    f"Close it there, or continue a copy: swecli -r {session.id} --fork"
                )
            stored.append(
                StoredSession(
                    session.id,
                    " ".join(session.shown.split()),
                    session.cwd,
                    session.updated,
                    session.turns,
                    session.tokens,
                    _cost(session.cost),
                    session.model,
                    away,
                    first=session.first,
                    branch=session.branch,
                    size=session.size,
                    parent="" if session.parent is None else called.get(session.parent, "") or session.parent,
                    open_elsewhere=session.id in holders,
                )
            )
        return stored

    def _way_to(self, session: SessionInfo) -> str:
        """How to continue a session of another folder."""
        folder = shlex.quote(session.cwd)
        if self._trees_here is not None and Path(session.cwd).is_relative_to(self._trees_here):
            tree = name_of_tree(self._trees, Path(session.cwd))
            return f"It belongs to a worktree: swecli -w {tree} -r {session.id}"
        if os.path.isdir(session.cwd):
            return f"It belongs to another folder: swecli -C {folder} -r {session.id}"
        return f"Its folder no longer exists. If you moved it, run there: swecli sessions relink {folder}"


def continuable(options: LaunchOptions, folder: Path | None) -> Sequence[StoredSession]:
    """The sessions with messages of a folder, or of all, newest first; none if these ``options`` store none."""
    if not options.store:
        return ()
    listed = SessionList(replace(options, cwd=folder or options.cwd), os.environ)
    sessions = listed.here() if folder is not None else sorted(listed.read(), key=lambda session: -session.updated)
    return [session for session in sessions if session.messages]


def databases(data: Path) -> list[Path]:
    """The databases of all folders below the data directory."""
    try:
        return [path for folder in (data / "workspaces").iterdir() if os.path.isfile(path := folder / DATABASE)]
    except OSError:
        return []


def messages(newest_first: Sequence[bytes]) -> Sequence[DisplayBlock]:
    """The last messages of a conversation, oldest first, from the bodies of its newest events. Those that a rewind took
    back are left out."""
    kinds: dict[str, str] = {}
    ended: list[ItemCompleted] = []
    for body in _kept(newest_first):
        if isinstance(body, ItemStarted):
            kinds[body.item] = body.kind
        else:
            ended.append(body)
    blocks: list[DisplayBlock] = []
    for body in ended:
        text = "\n".join(part.text for part in body.parts if isinstance(part, TextPart)).strip()
        if text and kinds.get(body.item) in ("user", "text") and len(blocks) < MESSAGES:
            short = cut(text, LONGEST)
            blocks.append(TextBlock(f"› {short}") if kinds[body.item] == "user" else MarkdownBlock(short))
    return blocks[::-1]


def _kept(newest_first: Sequence[bytes]) -> Iterator[ItemStarted | ItemCompleted]:
    """The items, newest first, without those after an undone rewind, or between a rewind and its message."""
    undone, first = "", ""
    for raw in newest_first:
        try:
            body = decode_body(raw.decode("utf-8", "replace"))
        except (CodecError, ValueError):
            continue
        if undone:
            undone = "" if isinstance(body, Rewound) and body.name == undone else undone
        elif first:
            first = "" if isinstance(body, ItemStarted) and body.item == first else first
        elif isinstance(body, RewindUndone):
            undone = body.name
        elif isinstance(body, Rewound):
            first = body.item if body.scope != "files" else ""
        elif isinstance(body, ItemStarted | ItemCompleted):
            yield body


def _cost(amount: str) -> str:
    try:
        return f"${Decimal(amount):.2f}" if amount else ""
    except InvalidOperation:
        return ""


# --- deletion --------------------------------------------------------------------------------------------------


class Folder(Struct, frozen=True):
    """One folder's database with its sessions, and those currently open."""

    database: Path
    sessions: Sequence[SessionInfo]
    held: frozenset[str]


def folder_of(database: Path, limit: int = ALL) -> Folder:
    sessions = read_database(database, lambda connection: list_sessions(connection, limit=limit, empty=True), ())
    open_ids = read_database(
        database, lambda connection: frozenset(live_holders(connection, Process(0, ""))), frozenset[str]()
    )
    return Folder(database, sessions, open_ids)


def remove(paths: Paths, database: Path, sessions: Sequence[SessionInfo], *, vacuum: bool = False) -> Sequence[str]:
    """Delete sessions with their other stored data: results, file changes, log, search index. Returns sentences about
    data that could not be deleted.

    Raises:
        SessionError: one of them is open, or the database can't be written; nothing was deleted.
        sqlite3.Error: the disk fails; nothing was deleted.
    """
    ids = [session.id for session in sessions]
    opened = open_database(database)
    with closing(SessionStore(opened)) as store:
        if not opened.durable:
            raise SessionError(f"{opened.why_in_memory} Nothing was deleted.")
        store.delete(ids)
    troubles = list(opened.problems)
    with suppress(sqlite3.Error, OSError):
        if os.path.exists(database.with_name(INDEX)):
            with closing(SearchIndex(database.with_name(INDEX))) as index:
                index.forget(ids)
    changes = paths.state / "checkpoints" / database.parent.name / CHECKPOINTS
    troubles += _forget_changes(changes, ids)
    if vacuum:
        for shrinks, file in ((shrink, database), (shrink_other, database.with_name(INDEX)), (shrink_other, changes)):
            with suppress(sqlite3.Error, OSError):  # busy elsewhere: left to the next purge
                shrinks(file)
    for log in _logs(sessions):
        try:
            log.unlink(missing_ok=True)
        except OSError as error:
            troubles.append(f"Could not delete the log {log} ({error.strerror}).")
    return troubles


def delete_session(paths: Paths, session_id: str, database: Path | None = None) -> Sequence[str] | None:
    """Delete a stored session of any folder, looked for in ``database`` first. Returns sentences about data that could
    not be deleted; None if there is no such session.

    Raises:
        SessionError: it is open, or the disk fails; nothing was deleted.
    """
    likely = [] if database is None else [database]
    for path in dict.fromkeys(likely + databases(paths.data)):
        matches = [session for session in folder_of(path).sessions if session.id == session_id]
        if matches:
            try:
                return remove(paths, path, matches)
            except sqlite3.Error as error:
                raise SessionError(str(error)) from error
    return None


MOST_AT_ONCE = 50
"""Most sessions to delete at the end of one session."""


def tidy_up(paths: Paths, folder: Path, settings: SessionSettings, until: float) -> None:
    """Update the folder's search index, and delete expired sessions, until ``until`` (monotonic seconds). Failures are
    retried another time."""
    database = paths.workspace_data(folder) / DATABASE
    if not os.path.isfile(database):
        return
    refresh(database, lambda: time.monotonic() > until)
    rules = Retention(settings.delete_after_days, settings.max_total_bytes, settings.protect_days)
    if not rules.limits:
        return
    stored = folder_of(database)
    to_delete = expired(stored.sessions, rules, time.time(), stored.held)[:MOST_AT_ONCE]
    if to_delete and time.monotonic() < until:
        with suppress(SessionError, sqlite3.Error, OSError):
            remove(paths, database, [entry.session for entry in to_delete])


def _forget_changes(path: Path, ids: Sequence[str]) -> list[str]:
    if not os.path.isfile(path):
        return []
    try:
        with closing(sqlite3.connect(path, timeout=2, isolation_level=None)) as connection:
            connection.execute("PRAGMA foreign_keys=ON")
            connection.executemany("DELETE FROM operations WHERE session = ?", [(identifier,) for identifier in ids])
            Blobs(0).sweep(connection)
    except sqlite3.Error as error:
        return [f"Could not write the record of file changes {path} ({error}); it expires by age."]
    return []


def _logs(sessions: Sequence[SessionInfo]) -> Iterator[Path]:
    """The logs of sessions in their workspaces, rotated ones included. Follows no links there."""
    for session in sessions:
        folder = Path(session.cwd, PROJECT_FOLDER, "logs")
        with suppress(OSError, ValueError):
            if not folder.is_symlink() and not folder.parent.is_symlink():
                yield from (path for path in folder.glob(f"{session.id}.*") if not path.is_symlink())


# --- a folder that moved -----------------------------------------------------------------------------------------


class Moved(Struct, frozen=True):
    """Sessions assigned to another folder. ``trouble`` is the reason if their file changes could not be moved, else
    empty."""

    sessions: Sequence[SessionInfo]
    trouble: str = ""


def move_sessions(paths: Paths, old: Path, new: Path, *, dry: bool = False) -> Moved:
    """Assign the sessions of a moved folder to the folder ``new``, with their file changes.

    Raises:
        SessionError: nothing is stored for ``old``, it is the same folder, or one of its sessions is open.
        sqlite3.Error: one of the databases fails; nothing was moved.
    """
    source, target = (paths.workspace_data(folder) / DATABASE for folder in (old, new))
    if source == target:
        raise SessionError(f"{old} and {new} are the same folder. Nothing was moved.")
    if not os.path.exists(source):
        known = sorted({session.cwd for path in databases(paths.data) for session in folder_of(path, 1).sessions})
        missing = [cwd for cwd in known if not os.path.isdir(cwd)]
        hint = f" Missing folders with sessions: {', '.join(missing[:10])}." if missing else ""
        raise SessionError(f"No sessions are stored for {old}.{hint}")
    with closing(SessionStore(open_database(source))) as store:
        _require_durable(store)
        sessions = store.list(limit=1 << 31, empty=True)
        open_id = next((session.id for session in sessions if store.holder(session.id) is not None), None)
        if open_id is not None:
            raise SessionError(f"Session {open_id} is open in another swecli; close it first. Nothing was moved.")
        if dry:
            return Moved(sessions)
        with closing(SessionStore(open_database(target))) as into:
            _require_durable(into)
            with store.database.read() as reading, into.database.write(power_safe=True) as writing:
                copy_rows(reading, writing)
                writing.executemany(
                    "UPDATE sessions SET cwd = ? WHERE id = ?",
                    [(storable(str(new)), session.id) for session in sessions],
                )
        ids = [session.id for session in sessions]
        try:
            move_changes(paths, old, new, ids)
        except sqlite3.Error as error:
            trouble = f"Could not move the file changes of these sessions ({error}): /undo does not cover them"
            store.delete(ids)
            return Moved(sessions, trouble)
        store.delete(ids)
    _forget_changes(paths.state / "checkpoints" / source.parent.name / CHECKPOINTS, ids)
    return Moved(sessions)


def _require_durable(store: SessionStore) -> None:
    if not store.database.durable:
        raise SessionError(f"{store.database.why_in_memory} Nothing was moved.")
