"""Where a session is stored, and which session a start continues."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from swecli import __version__
from swecli.core.engine.recorder import EventLog
from swecli.core.protocol.events import Event
from swecli.core.sessions.database import open_database, open_in_memory
from swecli.core.sessions.journal import Journal
from swecli.core.sessions.store import SessionError, SessionStore
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError

DATABASE = "sessions.db"


@dataclass(slots=True)
class Stored:
    """One session in its store. ``tell`` is called with troubles of the disk while the session runs."""

    session_id: str
    history: Sequence[Event]
    notices: tuple[str, ...]
    store: SessionStore
    tell: Callable[[str], None] = field(default=lambda _text: None)

    def make_log(self, publish: Callable[[Sequence[Event]], None]) -> EventLog:
        """The journal that writes this session."""
        return Journal(
            self.store.append,
            publish,
            lambda text: self.tell(text),
            on_recovery=lambda text: self.tell(text),
        )


@contextmanager
def open_storage(options: LaunchOptions, directory: Path, model: str) -> Generator[Stored, None, None]:
    """The session that the options name, or a new one; released at the end.

    Raises:
        StartError: the session to continue does not exist or is open elsewhere.
    """
    database = open_database(directory / DATABASE) if options.store else open_in_memory()
    store = SessionStore(database)
    notices: list[str] = list(database.problems)
    try:
        session_id = _continued(options, store)
        if session_id is None:
            session_id = store.create(str(options.cwd), model, __version__).id
            history: Sequence[Event] = ()
        else:
            store.lease(session_id)
            history = store.load(session_id, notices.append)
    except SessionError as error:
        store.close()
        raise StartError(str(error), ExitCode.BAD_INPUT) from error
    except BaseException:
        store.close()
        raise
    try:
        yield Stored(session_id, history, tuple(notices), store)
    finally:
        with suppress(sqlite3.Error):  # a lease that can't be given back ends with the process
            store.release(session_id)
        store.close()


def _continued(options: LaunchOptions, store: SessionStore) -> str | None:
    if options.resume:
        return store.get(options.resume).id
    if options.continue_newest:
        newest = store.latest()
        if newest is None:
            raise StartError(
                "There is no session to continue in this folder. Start one with `swecli`.", ExitCode.BAD_INPUT
            )
        return newest.id
    return None
