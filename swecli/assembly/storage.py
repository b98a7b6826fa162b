"""Where sessions are stored, which one a start continues, and the list of all."""

from __future__ import annotations

import ctypes
import os
import shlex
import sqlite3
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import partial
from math import inf
from pathlib import Path
from typing import Final, TypeVar

from swecli import __version__
from swecli.core.atomic_text import ASIDE
from swecli.core.config.paths import user_paths
from swecli.core.engine.recorder import EventLog
from swecli.core.ports import BlobStore, Snapshot, SnapshotError, Snapshots
from swecli.core.protocol.blocks import DisplayBlock, MarkdownBlock, TextBlock
from swecli.core.protocol.codec import CodecError, decode_body
from swecli.core.protocol.events import Event, ItemCompleted, ItemStarted, ModelChanged, SessionStarted
from swecli.core.protocol.messages import TextPart
from swecli.core.sessions.database import Database, open_database, open_in_memory, read_only
from swecli.core.sessions.journal import Journal, MaskedBlobs, MaskedSnapshots, masked_events
from swecli.core.sessions.rescue import is_damage
from swecli.core.sessions.results import ResultStore
from swecli.core.sessions.store import (
    SessionError,
    SessionStore,
    SnapshotStore,
    StoredFacts,
    list_sessions,
    live_holders,
    newest_messages,
    session_usage,
)
from swecli.core.workspace.process_tree import Process
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError
from swecli.tui.backend import OpenSession, StoredSession

DATABASE = "sessions.db"


@dataclass(slots=True)
class Stored:
    """One session in its store, leased by this process. ``tell`` takes troubles of the disk while it runs."""

    session_id: str
    history: Sequence[Event]
    notices: tuple[str, ...]
    store: SessionStore
    model: str = ""
    """The model of the session when it ended, ``provider/name``; empty for a new one."""
    address: str = ""
    """Where it was asked; empty where that was its provider's own address."""
    elsewhere: bool = False
    """Whether the history is not in the store."""
    tell: Callable[[str], None] = field(default=lambda _text: None)

    cover: Callable[[str], str] = field(default=lambda text: text)
    """Puts stars in place of keys in what is stored."""

    def make_log(self, publish: Callable[[Sequence[Event]], None]) -> EventLog:
        """The journal that writes this session; closing it releases the session. Needs a running event loop."""
        stored = StoredFacts(self.store.database, self.session_id).read
        return Journal(
            lambda events: self.store.append(masked_events(events, self.cover)),
            publish,
            lambda text: self.tell(text),
            read=partial(read_both, self.history, stored) if self.elsewhere else stored,
            on_recovery=lambda text: self.tell(text),
            on_close=self.release,
        )

    def blobs(self, threshold: int) -> BlobStore:
        """Where the session's large results are kept; ``threshold`` is bytes."""
        return MaskedBlobs(ResultStore(self.store.database, self.session_id, threshold), lambda text: self.cover(text))

    @property
    def snapshots(self) -> Snapshots:
        return MaskedSnapshots(SnapshotStore(self.store.database, self.session_id), lambda text: self.cover(text))

    def release(self) -> None:
        with suppress(sqlite3.Error):  # a lease that can't be given back ends with the process
            self.store.release(self.session_id)
        self.store.close()


def read_both(
    history: Sequence[Event], stored: Callable[[int, int, int], Sequence[Event]], after: int, upto: int, limit: int
) -> Sequence[Event]:
    """A page of the facts of a session whose history is not in the store that has the rest of them."""
    page = [event for event in history if after < event.seq <= upto][:limit]
    return page or stored(after, upto, limit)


def open_storage(options: LaunchOptions, directory: Path, model: str) -> Stored:
    """The session that the options name, or a new one.

    Raises:
        StartError: the session to continue does not exist or is open elsewhere.
    """
    if options.look_only:
        return _looked_at(options, directory)
    if not options.store:
        return _opened(options, open_in_memory(), model)
    database = open_database(directory / DATABASE)
    try:
        return _opened(options, database, model)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if not is_damage(error):
            raise
    # Damage that the check at opening had no time to find: now it has.
    mended = open_database(directory / DATABASE, check_seconds=inf)
    mended.problems = (*database.problems, *mended.problems)
    return _opened(options, mended, model)


def _opened(options: LaunchOptions, database: Database, model: str) -> Stored:
    store = SessionStore(database)
    notices: list[str] = list(database.problems)
    try:
        session_id = _continued(options, store, notices.append)
        if session_id is None:
            session_id = store.create(str(options.cwd), model, __version__).id
            return Stored(session_id, (), tuple(notices), store)
        store.lease(session_id)
        history = store.load(session_id, notices.append)
        model = store.get(session_id).model
        return Stored(session_id, history, tuple(notices), store, model, _address(history, model))
    except (SessionError, StartError) as error:
        store.close()
        raise _not_continued(database, error) from error
    except BaseException:
        store.close()
        raise


def _not_continued(database: Database, error: Exception) -> StartError:
    """Why a session can't be continued: what is wrong with the database comes first."""
    if database.why_in_memory:
        return StartError(f"{database.why_in_memory} No session can be continued.", ExitCode.BAD_INPUT)
    said = [*database.problems, str(error)]
    if not database.problems and database.path is not None:
        kept = sorted(
            path
            for path in database.path.parent.glob(f"{DATABASE}{ASIDE}*")
            if not path.name.endswith(("-wal", "-shm"))
        )
        said += [f"The damaged database was kept as {kept[-1]}."] if kept else []
    return StartError(" ".join(said), ExitCode.BAD_INPUT)


def _address(history: Sequence[Event], model: str) -> str:
    for event in reversed(history):
        if isinstance(event.body, SessionStarted | ModelChanged) and event.body.model == model:
            return event.body.address
    return ""


def _looked_at(options: LaunchOptions, directory: Path) -> Stored:
    """A stored session as it is now, for looking only: what happens from here on is kept in memory and forgotten."""
    notices: list[str] = []
    history: Sequence[Event] = ()
    snapshot: Snapshot | None = None
    model = ""
    if (options.resume or options.continue_newest) and not (directory / DATABASE).exists():
        raise StartError("No sessions are stored for this folder.", ExitCode.BAD_INPUT)
    if options.resume or options.continue_newest:
        with closing(SessionStore(open_database(directory / DATABASE))) as store:
            notices += store.database.problems
            try:
                stored_id = _continued(options, store, notices.append) or ""
                history = store.load(stored_id, notices.append)
                model = store.get(stored_id).model
                with suppress(SnapshotError):  # what it would spare is done again
                    snapshot = SnapshotStore(store.database, stored_id).get_snapshot()
            except (SessionError, StartError) as error:
                raise _not_continued(store.database, error) from error
    memory = SessionStore(open_in_memory())
    session_id = memory.create(str(options.cwd), "", __version__).id
    stored = Stored(session_id, history, tuple(notices), memory, model, _address(history, model), elsewhere=True)
    if snapshot is not None:
        stored.snapshots.save_snapshot(snapshot)
    return stored


def _continued(options: LaunchOptions, store: SessionStore, tell: Callable[[str], None]) -> str | None:
    """The id of the session that goes on; None for a new one. A newer one that can't is told."""
    if options.resume:
        return store.get(options.resume).id
    if options.continue_newest:
        newest, there = store.latest(), next(iter(store.list(limit=1)), None)
        holder = None if there is None or there == newest else store.holder(there.id)
        if there is None or (newest is None and holder is None):
            raise StartError(
                "There is no session to continue in this folder. Start one with `swecli`.", ExitCode.BAD_INPUT
            )
        title = f" ({' '.join(there.title.split())[:60]})" if there.title else ""
        held = f"Session {there.id}{title} is open in another swecli (process {holder.pid})" if holder else ""
        if newest is None:
            raise StartError(
                f"{held}, and this folder has no other session to continue. Close it there, or start a new one "
                "with `swecli`; `swecli -r` lists all.",
                ExitCode.BAD_INPUT,
            )
        if held:
            tell(f"{held}. Continuing the newest other session.")
        return newest.id
    return None


FOLDERS = 40
"""Folders besides this one that are looked into, those used last."""
PER_FOLDER = 200
MESSAGES = 6
"""Messages of a preview."""
LONGEST = 600
"""Characters of a message in a preview."""

T = TypeVar("T")


class SessionList:
    """Implements ``SessionsPort`` for the folder of ``options``; ``opener`` opens a session by its id."""

    def __init__(
        self, options: LaunchOptions, environment: Mapping[str, str], opener: Callable[[str], OpenSession]
    ) -> None:
        self._folder = options.cwd
        self._data = user_paths(environment).data / "workspaces"
        self._own = user_paths(environment).workspace_data(options.cwd) / DATABASE
        self._opener = opener

    def read(self) -> Sequence[StoredSession]:
        others = sorted(self._databases(), key=_changed, reverse=True)[:FOLDERS]
        found: list[StoredSession] = []
        for path in (self._own, *others):
            found += self._sessions(path)
        return found

    def here(self) -> Sequence[StoredSession]:
        """Sessions of this folder, newest first."""
        return self._sessions(self._own)

    def preview(self, session: StoredSession) -> Sequence[DisplayBlock]:
        path = user_paths_of(self._data, session.folder, self._own)
        return messages(_read(path, lambda connection: newest_messages(connection, session.id), []))

    def open(self, session_id: str) -> OpenSession:
        return self._opener(session_id)

    def _databases(self) -> list[Path]:
        try:
            return [path for folder in self._data.iterdir() if (path := folder / DATABASE) != self._own]
        except OSError:
            return []

    def _sessions(self, path: Path) -> list[StoredSession]:
        sessions = _read(path, lambda connection: list_sessions(connection, limit=PER_FOLDER), ())
        if not sessions:
            return []
        usage = _read(path, session_usage, {})
        holders = _read(path, lambda connection: live_holders(connection, Process.current()), {})
        found: list[StoredSession] = []
        for one in sessions:
            tokens, costs = usage.get(one.id, (0, ""))
            away = ""
            if path != self._own:
                away = f"It belongs to another folder: swecli -C {shlex.quote(one.cwd)} -r {one.id}"
            elif one.id in holders:
                away = f"It is open in another swecli (process {holders[one.id].pid}); close it there first"
            title = " ".join(one.title.split())
            cost = _cost(costs)
            found.append(StoredSession(one.id, title, one.cwd, one.updated, one.turns, tokens, cost, one.model, away))
        return found


def user_paths_of(data: Path, folder: str, own: Path) -> Path:
    from swecli.core.config.paths import workspace_key

    path = data / workspace_key(Path(folder)) / DATABASE
    return path if path.exists() else own


def messages(newest_first: Sequence[bytes]) -> Sequence[DisplayBlock]:
    """The last messages of a conversation, oldest first, from the bodies of its newest events."""
    kinds: dict[str, str] = {}
    ended: list[ItemCompleted] = []
    for raw in newest_first:
        try:
            body = decode_body(raw.decode("utf-8", "replace"))
        except (CodecError, ValueError):
            continue
        if isinstance(body, ItemStarted):
            kinds[body.item] = body.kind
        elif isinstance(body, ItemCompleted):
            ended.append(body)
    blocks: list[DisplayBlock] = []
    for body in ended:
        text = "\n".join(part.text for part in body.parts if isinstance(part, TextPart)).strip()
        if text and kinds.get(body.item) in ("user", "text") and len(blocks) < MESSAGES:
            short = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
            blocks.append(TextBlock(f"› {short}") if kinds[body.item] == "user" else MarkdownBlock(short))
    return blocks[::-1]


def _cost(costs: str) -> str:
    """The sum in dollars; empty where a part of it is unknown."""
    try:
        total = sum((Decimal(each) for each in costs.split()), Decimal(0))
    except InvalidOperation:
        return ""
    return f"${total:.2f}"


def _changed(path: Path) -> float:
    try:
        return max(os.path.getmtime(each) for each in (path, Path(f"{path}-wal")) if each.exists())
    except (OSError, ValueError):
        return 0.0


def _read(path: Path, read: Callable[[sqlite3.Connection], T], missing: T) -> T:
    """What is read of a database that may be open elsewhere; ``missing`` where it can't be."""
    if not path.is_file():
        return missing
    try:
        with closing(read_only(path)) as connection:
            return read(connection)
    except sqlite3.Error:
        return missing


LARGE: Final = 131_072
"""Bytes from which on a block of memory is one of its own, which goes back to the system as soon as it is freed."""
_THRESHOLD: Final = -3
"""glibc's M_MMAP_THRESHOLD, see mallopt(3)."""


def give_back_large_blocks() -> bool:
    """Let large blocks always be of their own. By itself glibc takes ever larger ones from the common heap once some
    were freed; requests and views of a long session are such blocks, and they leave it full of holes: a third of what
    an hour of work adds. Returns False where there is no glibc."""
    mallopt = _of_glibc("mallopt")
    return mallopt is not None and mallopt(_THRESHOLD, LARGE) == 1


def give_back_free_blocks() -> bool:
    """Give back what is free in the common heap: after a long session was read back half of it is. Takes about ten
    milliseconds. Returns False where there is no glibc."""
    trim = _of_glibc("malloc_trim")
    return trim is not None and trim(0) in (0, 1)


def _of_glibc(name: str) -> Callable[..., int] | None:
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
