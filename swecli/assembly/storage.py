"""Where a session is stored, and which session a start continues."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from swecli import __version__
from swecli.core.engine.recorder import EventLog
from swecli.core.ports import BlobStore, Snapshot, SnapshotError, Snapshots
from swecli.core.protocol.events import Event, ModelChanged, SessionStarted
from swecli.core.sessions.database import open_database, open_in_memory
from swecli.core.sessions.journal import Journal
from swecli.core.sessions.masking import MaskedBlobs, MaskedSnapshots, masked_events
from swecli.core.sessions.result_store import ResultStore
from swecli.core.sessions.snapshots import SnapshotStore
from swecli.core.sessions.store import SessionError, SessionStore
from swecli.core.sessions.stored_facts import StoredFacts
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError

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
        journal = Journal(
            lambda events: self.store.append(masked_events(events, self.cover)),
            publish,
            lambda text: self.tell(text),
            read=StoredFacts(self.store.database, self.session_id).read,
            on_recovery=lambda text: self.tell(text),
        )
        return _ReleasingLog(journal, self) if self.elsewhere else _ReadableLog(journal, self)

    def blobs(self, threshold: int) -> BlobStore:
        """Where the session's large results are kept; ``threshold`` is bytes."""
        return MaskedBlobs(ResultStore(self.store.database, self.session_id, threshold), lambda text: self.cover(text))

    @property
    def snapshots(self) -> Snapshots:
        """Where the session's newest snapshot is kept."""
        return MaskedSnapshots(SnapshotStore(self.store.database, self.session_id), lambda text: self.cover(text))

    def release(self) -> None:
        """Give the session back and close the store."""
        with suppress(sqlite3.Error):  # a lease that can't be given back ends with the process
            self.store.release(self.session_id)
        self.store.close()


@dataclass(frozen=True, slots=True)
class _ReleasingLog:
    journal: Journal
    stored: Stored

    def append(self, event: Event) -> None:
        self.journal.append(event)

    async def barrier(self) -> None:
        await self.journal.barrier()

    async def close(self) -> None:
        await self.journal.close()
        self.stored.release()


@dataclass(frozen=True, slots=True)
class _ReadableLog(_ReleasingLog):
    def read(self, after: int, upto: int, limit: int) -> Sequence[Event]:
        return self.journal.read(after, upto, limit)


def open_storage(options: LaunchOptions, directory: Path, model: str) -> Stored:
    """The session that the options name, or a new one.

    Raises:
        StartError: the session to continue does not exist or is open elsewhere.
    """
    if options.look_only:
        return _looked_at(options, directory)
    database = open_database(directory / DATABASE) if options.store else open_in_memory()
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
    except SessionError as error:
        store.close()
        raise StartError(str(error), ExitCode.BAD_INPUT) from error
    except BaseException:
        store.close()
        raise


def _address(history: Sequence[Event], model: str) -> str:
    """Where the model was asked last."""
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
            try:
                stored_id = _continued(options, store, notices.append) or ""
                history = store.load(stored_id, notices.append)
                model = store.get(stored_id).model
                with suppress(SnapshotError):  # what it would spare is done again
                    snapshot = SnapshotStore(store.database, stored_id).get_snapshot()
            except SessionError as error:
                raise StartError(str(error), ExitCode.BAD_INPUT) from error
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
                f"{held}, and there is no other one to continue in this folder. Close it there, or start a new one "
                "with `swecli`; `swecli -r` lists all.",
                ExitCode.BAD_INPUT,
            )
        if held:
            tell(f"{held}. This is the newest of the others.")
        return newest.id
    return None
