"""Storage of sessions: database, session to continue, and the list of all."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from swecli import __version__
from swecli.assembly.continuing import no_sessions, not_continued, session_to_continue
from swecli.assembly.heap import uncollected
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
    is_full,
    open_database,
    open_in_memory,
    open_unwritten,
)
from swecli.core.sessions.journal import Journal, MaskedBlobs, MaskedSnapshots, masked_events
from swecli.core.sessions.log import SessionLog
from swecli.core.sessions.results import ResultStore
from swecli.core.sessions.snapshots import SnapshotStore
from swecli.core.sessions.store import (
    SessionError,
    SessionStore,
    StoredFacts,
)
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
        session_id, parent = session_to_continue(options, store, notices.append), ""
        facts = git_facts(options.cwd)
        branch = "" if facts is None else facts.branch or ""
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
        raise not_continued(database, error) from error
    except BaseException:
        store.close()
        raise


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
                stored_id = session_to_continue(options, store, notices.append) or ""
                history = store.load(stored_id, notices.append)
                model = store.get(stored_id).model
                with suppress(SnapshotError):  # without it that work is repeated
                    snapshot = SnapshotStore(store.database, stored_id).get_snapshot()
            except (SessionError, StartError) as error:
                raise not_continued(store.database, error) from error
    memory = SessionStore(open_in_memory())
    session_id = memory.create(str(options.cwd), "", __version__).id
    stored = Stored(session_id, history, tuple(notices), memory, model, _address(None, history, model), elsewhere=True)
    if snapshot is not None:
        stored.snapshots.save_snapshot(snapshot)
    return stored
