"""Storage of sessions: database, session to continue, and the list of all."""

from __future__ import annotations

import os
import shlex
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from swecli import __version__
from swecli.assembly.heap import uncollected
from swecli.core.atomic_text import ASIDE
from swecli.core.engine.recorder import HELD_TURNS, EventLog
from swecli.core.engine.reductions import Before, StaleState, decode_reductions
from swecli.core.git import git_facts
from swecli.core.ports import BlobStore, Snapshot, SnapshotError, Snapshots
from swecli.core.protocol.events import Event, ModelChanged, SessionStarted, Unknown
from swecli.core.sessions.damage import is_damage
from swecli.core.sessions.database import (
    CONTINUED,
    DATABASE,
    Database,
    changed_at,
    is_full,
    open_database,
    open_in_memory,
    open_unwritten,
    read_database,
)
from swecli.core.sessions.journal import Journal, MaskedBlobs, MaskedSnapshots, masked_events
from swecli.core.sessions.log import SessionLog
from swecli.core.sessions.results import ResultStore
from swecli.core.sessions.snapshots import SnapshotStore
from swecli.core.sessions.store import (
    SessionError,
    SessionStore,
    SeveralSessions,
    StoredFacts,
)
from swecli.core.sessions.titles import line_of
from swecli.core.worktrees import is_in_tree
from swecli.exit_codes import ExitCode
from swecli.figures import plural
from swecli.launch import LaunchOptions, StartError

if TYPE_CHECKING:
    from swecli.core.protocol.result import Kept
    from swecli.core.sessions.search import BackgroundIndex


class Stored(Struct):
    """One session in its store, leased by this process. ``tell`` receives disk problems while it runs."""

    session_id: str
    history: Sequence[Event]
    notices: tuple[str, ...]
    store: SessionStore
    model: str = ""
    """The model of the session at its end, ``provider/name``; empty for a new one."""
    address: str = ""
    """Address of the model; empty for its provider's own."""
    forked_from: str = ""
    """The original session if this start made a copy."""
    elsewhere: bool = False
    """Whether the history is outside the store."""
    before: Before | None = None
    """State before the history, which then has only the newest turns."""
    tell: Callable[[str], None] = field(default=lambda _text: None)

    cover: Callable[[str], str] = field(default=lambda text: text)
    """Masks keys in stored text."""
    log: SessionLog | None = None
    """Log in the project beside the stored session."""
    tidy: Callable[[], None] = field(default=lambda: None)
    """Clean-up after everything of the session is stored: runs in a thread, never raises."""
    journal: Journal | None = None
    index: BackgroundIndex | None = None
    """The update of the search index beside this session."""
    _kept_at_end: Kept | None = None
    """What was on the disk when the session was closed."""

    @property
    def is_durable(self) -> bool:
        return self.store.database.durable

    def kept(self) -> Kept:
        """What of the session is on the disk, as read back from there."""
        if not self.is_durable:
            return "nothing"
        if self.journal is not None and self.journal.degraded:
            return "a part"
        if self._kept_at_end is not None:
            return self._kept_at_end
        try:
            whole = self.store.has_all(self.session_id)
        except sqlite3.Error:
            return "a part"
        if not whole:
            return "nothing" if whole is None else "a part"
        return "aside" if CONTINUED in str(self.store.database.path) else "all"

    def make_log(self, publish: Callable[[Sequence[Event]], None]) -> EventLog:
        """The journal that writes this session; closing it releases the session. Needs a running event loop."""
        stored = StoredFacts(self.store.database, self.session_id)
        self.journal = Journal(
            self._write,
            publish,
            lambda text: self.tell(text),
            read=partial(read_both, self.history, stored.read) if self.elsewhere else stored.read,
            begin_of=(lambda turns: 0) if self.elsewhere else stored.begin_of,
            on_recovery=lambda text: self.tell(text),
            on_close=self._closed,
        )
        self.store.recovery.report = self.journal.report
        return self.journal

    def _write(self, events: Sequence[Event]) -> None:
        """Store facts, then log them: the log has nothing that the store lacks."""
        covered = masked_events(events, self.cover)
        self.store.append(covered)
        if self.log is not None:
            self.log.write(covered)

    def _closed(self) -> None:
        try:  # before the database is closed: a read-only connection leaves side files behind
            if self.index is not None:
                self.index.end()
            self.tidy()
            self._kept_at_end = self.kept()
        finally:
            self.release()

    def blobs(self, threshold: int) -> BlobStore:
        """Store of the session's large results; ``threshold`` is bytes."""
        return MaskedBlobs(ResultStore(self.store.database, self.session_id, threshold), lambda text: self.cover(text))

    @property
    def snapshots(self) -> Snapshots:
        return MaskedSnapshots(SnapshotStore(self.store.database, self.session_id), lambda text: self.cover(text))

    def name(self) -> str:
        """The user's name for it; empty without one, or if it can't be read."""
        try:
            return self.store.get(self.session_id).name
        except (SessionError, sqlite3.Error):
            return ""

    def rename(self, name: str) -> str:
        """Raises:
        ValueError: another session has the name, or it can't be stored; a sentence.
        """
        try:
            return self.store.rename(self.session_id, self.cover(name))
        except SessionError as error:
            raise ValueError(str(error)) from error
        except sqlite3.Error as error:
            raise ValueError(f"Could not store the name ({error}). The session is not affected.") from error

    def release(self) -> None:
        with suppress(sqlite3.Error):  # a lease that can't be released ends with the process
            self.store.release(self.session_id)
        self.store.close()
        if self.log is not None:
            self.log.close()


def read_both(
    history: Sequence[Event], stored: Callable[[int, int, int], Sequence[Event]], after: int, upto: int, limit: int
) -> Sequence[Event]:
    """A page of a session's facts from both sources: the history outside the store, and the store with the rest."""
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
        if is_full(error):  # opening needs no space, claiming the session does
            return _opened(options, open_unwritten(directory / DATABASE, error), model)
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
        session_id, parent = _continued(options, store, notices.append), ""
        branch = _branch(options.cwd)
        if session_id is None:
            session_id = store.create(str(options.cwd), model, __version__, branch=branch).id
            return Stored(session_id, (), tuple(notices), store)
        if options.fork:
            parent, session_id = session_id, store.fork(session_id, __version__).id
        store.lease(session_id, branch)
        with uncollected():
            before, history = _history(store, session_id, notices.append)
        model = store.get(session_id).model
        address = _address(before, history, model)
        return Stored(session_id, history, tuple(notices), store, model, address, parent, before=before)
    except (SessionError, StartError) as error:
        store.close()
        raise _not_continued(database, error) from error
    except BaseException:
        store.close()
        raise


def _branch(cwd: Path) -> str:
    facts = git_facts(cwd)
    return "" if facts is None else facts.branch or ""


def _not_continued(database: Database, error: Exception) -> StartError:
    """Reason why a session can't be continued: problems of the database come first."""
    if database.why_in_memory and not database.copied:
        return StartError(f"{database.why_in_memory} Stored sessions are not available.", ExitCode.BAD_INPUT)
    sentences = [*database.problems, str(error)]
    if not database.problems and database.path is not None:
        set_aside = sorted(
            path
            for path in database.path.parent.glob(f"{DATABASE}{ASIDE}*")
            if not path.name.endswith(("-wal", "-shm"))
        )
        sentences += [f"The damaged database was kept as {set_aside[-1]}."] if set_aside else []
    return StartError(" ".join(sentences), ExitCode.BAD_INPUT)


def _history(store: SessionStore, session_id: str, tell: Callable[[str], None]) -> tuple[Before | None, list[Event]]:
    """The stored session: the newest turns and the snapshot before them; everything if there is no snapshot, or the
    newest turns are not enough to show."""
    facts = StoredFacts(store.database, session_id)
    stored = SnapshotStore(store.database, session_id).get_state()
    begin = facts.begin_of(HELD_TURNS) if stored is not None else 0
    if stored is not None and begin:
        try:
            reductions, seq = decode_reductions(stored[0], facts.parts)
        except StaleState:
            pass  # fall back to the events
        else:
            history = store.load(session_id, tell, after=min(begin - 1, seq))
            if history and not any(isinstance(event.body, Unknown) for event in history):
                return Before(reductions, seq, stored[1]), history
    return None, store.load(session_id, tell)


def _address(before: Before | None, history: Sequence[Event], model: str) -> str:
    for event in reversed(history):
        if isinstance(event.body, SessionStarted | ModelChanged) and event.body.model == model:
            return event.body.address
    return before.reductions.state.address_of(model) if before is not None else ""


def no_sessions(folder: Path) -> StartError:
    """The error of a command that needs a stored session of this folder."""
    return StartError(
        f"no sessions are stored for {folder}; swecli sessions list --all shows others", ExitCode.BAD_INPUT
    )


def _looked_at(options: LaunchOptions, directory: Path) -> Stored:
    """A stored session in its present form, for looking only: later events are kept in memory and discarded."""
    notices: list[str] = []
    history: Sequence[Event] = ()
    snapshot: Snapshot | None = None
    model = ""
    if (options.resume or options.continue_newest) and not os.path.exists(directory / DATABASE):
        raise no_sessions(options.cwd)
    if options.resume or options.continue_newest:
        with closing(SessionStore(open_database(directory / DATABASE))) as store:
            notices += store.database.problems
            try:
                stored_id = _continued(options, store, notices.append) or ""
                history = store.load(stored_id, notices.append)
                model = store.get(stored_id).model
                with suppress(SnapshotError):  # without it that work is repeated
                    snapshot = SnapshotStore(store.database, stored_id).get_snapshot()
            except (SessionError, StartError) as error:
                raise _not_continued(store.database, error) from error
    memory = SessionStore(open_in_memory())
    session_id = memory.create(str(options.cwd), "", __version__).id
    stored = Stored(session_id, history, tuple(notices), memory, model, _address(None, history, model), elsewhere=True)
    if snapshot is not None:
        stored.snapshots.save_snapshot(snapshot)
    return stored


def _continued(options: LaunchOptions, store: SessionStore, tell: Callable[[str], None]) -> str | None:
    """The id of the session to continue; None for a new one. A newer one that can't be continued is reported."""
    if options.resume:
        try:
            return store.get(options.resume).id
        except SeveralSessions:
            raise
        except SessionError:
            elsewhere = _place_words(store.database.path, options.resume)
            if not elsewhere:
                raise
            raise StartError(elsewhere, ExitCode.BAD_INPUT) from None
    if options.continue_newest:
        there = next(iter(store.list(limit=1)), None)
        newest = there if options.fork else store.latest()  # an open session can be copied
        holder = None if there is None or there == newest else store.holder(there.id)
        if there is None or (newest is None and holder is None):
            none = "This folder has no session to continue. Start one with `swecli`."
            raise StartError(" ".join([none, *_moved_words(store.database.path)]), ExitCode.BAD_INPUT)
        title = f" ({line_of(there.shown, 60)})" if there.shown else ""
        notice = f"Session {there.id}{title} is open in another swecli (process {holder.pid})" if holder else ""
        if newest is None:
            raise StartError(
                f"{notice}, and this folder has no other session to continue. Close it there, or start a new one "
                "with `swecli`; `swecli -r` lists all.",
                ExitCode.BAD_INPUT,
            )
        if notice:
            tell(f"{notice}. Continuing the newest other session.")
        return newest.id
    return None


def _place_words(database: Path | None, name: str) -> str:
    """Where a session of another folder is, as a sentence; empty if no folder has one of this id or name."""
    if database is None:
        return ""
    query = "SELECT id, cwd FROM sessions WHERE id = ? OR name = ? LIMIT 1"
    for path in _other_databases(database):
        for session, cwd in read_database(
            path, lambda connection: connection.execute(query, (name, name)).fetchall(), []
        ):
            if os.path.isdir(cwd):
                return f"Session {session} belongs to {cwd}: run swecli there."
            relink = f"swecli sessions relink {shlex.quote(cwd)}"
            return f"Session {session} belongs to {cwd}, which no longer exists; `{relink}` moves its sessions here."
    return ""


def _other_databases(database: Path) -> list[Path]:
    """The databases of other folders, the most recently used first."""
    others = [path for path in database.parent.parent.glob(f"*/{DATABASE}") if path != database]
    return sorted(others, key=changed_at, reverse=True)


def _moved_words(database: Path | None) -> list[str]:
    """Missing folders with sessions, as a sentence for each of the newest: this folder may be one of them after a
    move. Removed work trees were not moved."""
    if database is None:
        return []
    sentences: list[str] = []
    for path in _other_databases(database)[:_EXAMINED_FOLDERS]:
        for cwd, count in read_database(path, _counts, []):
            if cwd and not os.path.isdir(cwd) and not is_in_tree(cwd) and len(sentences) < _NAMED_FOLDERS:
                many = plural(count, "session")
                relink = f"swecli sessions relink {shlex.quote(cwd)}"
                sentences.append(f"{cwd} no longer exists and has {many}; `{relink}` moves them here.")
    return sentences


def _counts(connection: sqlite3.Connection) -> list[tuple[str, int]]:
    return connection.execute("SELECT cwd, count(*) FROM sessions WHERE turns > 0 GROUP BY cwd").fetchall()


_EXAMINED_FOLDERS: Final = 40
"""Databases of other folders to read, the most recently used."""
_NAMED_FOLDERS: Final = 3
"""Missing folders to report."""
