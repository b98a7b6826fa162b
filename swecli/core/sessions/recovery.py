"""Recovery of open sessions whose store was removed, replaced or overwritten under the running program."""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, field, json

from swecli.core.atomic_text import alone_in, make_private, name_aside
from swecli.core.sessions.damage import Damaged, examine
from swecli.core.sessions.database import (
    CONTINUED,
    Database,
    open_database,
    read_only,
)
from swecli.core.sessions.file_identity import SIDE_FILES, Change, Identity, identity_of
from swecli.core.sessions.schema import MIGRATIONS
from swecli.figures import plural

HELD_BYTES = 500_000
"""Compressed bytes of a session's newest facts that stay in memory, so that an overwritten store can get them back."""
HELD_FACTS = 256
"""How many of them at most."""
_CHECK_SECONDS = 0.1
"""Time limit for the integrity check of a file that another process may have overwritten."""
_ROWS = 500
"""Rows copied at once."""

Row = tuple[Any, ...]
"""Values of a row of ``events``: the session and its number first, the body and the number of the fact last."""
ADD_EVENT = """
    INSERT INTO events(session_id, seq, ts, turn, agent, v, type, body, fact) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING
"""
_ADD_LONGER = ADD_EVENT.replace(
    "DO NOTHING",
    "DO UPDATE SET body = excluded.body WHERE type = 'item_checkpointed' AND length(excluded.body) > length(body)",
)
"""A half answer may have grown since the file was copied that is there now."""
_NEWEST = "SELECT max(seq) FROM events WHERE session_id = ?"
_COUNT = """
    SELECT count(*), (SELECT fact FROM events WHERE session_id = :session ORDER BY seq DESC LIMIT 1), max(seq)
    FROM events WHERE session_id = :session
"""
_NEWEST_ROWS = """
    SELECT session_id, seq, ts, turn, agent, v, type, body, fact FROM events
    WHERE session_id = ? ORDER BY seq DESC
"""
_SUM_UP = """
    UPDATE sessions SET
        size = (SELECT coalesce(sum(length(e.body)), 0) FROM events e WHERE e.session_id = sessions.id),
        turns = (SELECT count(*) FROM events e
                 WHERE e.session_id = sessions.id AND e.type = 'turn_started' AND e.agent = 'main')
    WHERE id = ?
"""
_LINE = """
    WITH RECURSIVE line(id, depth) AS (
        SELECT :session, 0
        UNION SELECT s.parent, depth + 1 FROM sessions s JOIN line ON s.id = line.id WHERE s.parent IS NOT NULL
    )
    SELECT id FROM line ORDER BY depth DESC
"""
"""A session and those that it was forked from, the oldest first."""
_EMPTY = "UPDATE sessions SET title = '', name = NULL, first = NULL, size = 0, turns = 0 WHERE id = ?"


class _Open(Struct):
    """An open session: its row, and what was stored of it."""

    row: Mapping[str, Any]
    events: int
    """Number of its stored events."""
    fact: int
    """Number of the newest fact; 0 if unknown."""
    newest: int
    """Its sequence number; 0 without one."""
    filled: bool = False
    """Whether ``recent`` has the facts from before this process."""
    recent: deque[bytes] = field(default_factory=deque[bytes])
    """Newest stored rows, packed, up to ``HELD_BYTES``."""
    held: int = 0
    """Their bytes."""


class SessionRecovery:
    """The open sessions of one process.

    Whatever the old file's connection still reads is carried over; of a file that was overwritten in place, at least
    the newest facts, which stay in memory.
    """

    def __init__(self, claim: Callable[[sqlite3.Connection, str], None]) -> None:
        """``claim`` leases a session for this process."""
        self._claim = claim
        self._open: dict[str, _Open] = {}
        self.report: Callable[[str], None] = lambda text: None
        """Receives what happened as a sentence for the user; called on the thread that writes."""

    def opened(self, connection: sqlite3.Connection, session: str) -> None:
        """Keep a session from now on. Inside a transaction."""
        count, fact, newest = connection.execute(_COUNT, {"session": session}).fetchone()
        self._open[session] = _Open({}, count, fact or 0, newest or 0)
        self.described(connection, session)

    def described(self, connection: sqlite3.Connection, session: str) -> None:
        """Keep the present row of an open session."""
        if session in self._open:
            for row in _read(connection, "sessions", "id", session):
                self._open[session].row = row

    def stored(self, rows: Sequence[Row]) -> None:
        """Keep rows that were committed, in order; the first of a session may be its newest one in a longer form."""
        for row in rows:
            session = self._open.get(row[0])
            if session is None:
                continue
            if row[1] == session.newest:
                session.events -= 1
                session.held -= len(session.recent.pop()) if session.recent else 0
            session.events += 1
            session.fact, session.newest = row[-1], row[1]
            session.recent.append(_packed(row))
            session.held += len(session.recent[-1])
            while session.held > HELD_BYTES or len(session.recent) > HELD_FACTS:
                session.held -= len(session.recent.popleft())

    def fill(self, connection: sqlite3.Connection, session: str) -> None:
        """Keep the newest facts of a continued session too. Not at its opening, which has to be fast."""
        memory = self._open.get(session)
        if memory is None or memory.filled:
            return
        memory.filled = True
        with suppress(sqlite3.Error):
            for row in connection.execute(_NEWEST_ROWS, (session,)):
                packed = _packed(row)
                if memory.held + len(packed) > HELD_BYTES or len(memory.recent) == HELD_FACTS:
                    break
                memory.held += len(packed)
                memory.recent.appendleft(packed)

    def next_fact(self, session: str) -> int:
        """Number of a session's next fact, which counts those that were lost too; 0 if unknown."""
        memory = self._open.get(session)
        return memory.fact + 1 if memory is not None and memory.fact else 0

    def closed(self, session: str) -> None:
        self._open.pop(session, None)

    def complete(self, connection: sqlite3.Connection, session: str) -> bool:
        """Whether a session's newest fact is the one that this process stored last."""
        memory = self._open.get(session)
        if memory is None:
            return True
        (newest,) = connection.execute(_NEWEST, (session,)).fetchone()
        return (newest or 0) >= memory.newest

    def restore(self, connection: sqlite3.Connection, session: str) -> str:
        """Add what memory has of a session. Inside a transaction. Returns the sentence about missing events, or an
        empty one."""
        memory = self._open[session]
        if connection.execute("SELECT 1 FROM sessions WHERE id = ?", (session,)).fetchone() is None:
            parent = memory.row.get("parent")
            known = connection.execute("SELECT 1 FROM sessions WHERE id = ?", (parent,)).fetchone()
            _add_row(connection, "sessions", {**memory.row, "parent": parent if known else None})
        connection.executemany(_ADD_LONGER, map(_unpacked, memory.recent))
        connection.execute(_SUM_UP, (session,))
        self._claim(connection, session)
        (there,) = connection.execute("SELECT count(*) FROM events WHERE session_id = ?", (session,)).fetchone()
        missing = memory.events - there
        return f"{plural(missing, 'event')} of its beginning could not be recovered" if missing > 0 else ""

    def read_back(self, path: Path, session: str) -> bool | None:
        """Whether the file at ``path`` has all stored events of a session; None if it has none.

        Raises:
            sqlite3.Error: it can't be read.
        """
        memory = self._open.get(session)
        with closing(read_only(path)) as connection:
            there, fact, _newest = connection.execute(_COUNT, {"session": session}).fetchone()
        if not there:
            return None if memory is None or memory.events else True
        return memory is None or (there >= memory.events and (fact or 0) >= memory.fact)

    # --- a database's recovery -----------------------------------------------------------------------------------

    def is_complete(self, path: Path) -> bool:
        """Whether everything that this process stored is in the file at ``path``."""
        try:
            with closing(read_only(path)) as connection:
                examine(connection, MIGRATIONS, _CHECK_SECONDS)
                return all(self.complete(connection, session) for session in self._open)
        except Damaged:
            return False
        except (sqlite3.Error, OSError):
            return True  # it can't be read now, which says nothing about its content

    def recover(self, path: Path, change: Change, opened: Identity, old: sqlite3.Connection) -> Database:
        """A database with everything of this process that the ``old`` connection or its memory has.

        Raises:
            OSError, sqlite3.Error: the disk fails; the old one stays in use.
        """
        make_private(path.parent)
        with alone_in(path.parent):
            _detach(path, opened, old)
        database = open_database(path)
        where = "a new one" if change is Change.REMOVED else "the one that is there now"
        if not database.durable:
            why, aside = database.why_in_memory, name_aside(path, CONTINUED)
            database.close()
            database = open_database(aside)
            if not database.durable:
                database.close()
                raise sqlite3.OperationalError(f"{path} was {change.value} while swecli used it. {why}")
            where = f"{aside}, because: {why} `swecli doctor --repair recover` adds it to the stored sessions"
        try:
            missing = self._carry_over(None if change is Change.OVERWRITTEN else old, old, database)
        except BaseException:
            database.close()
            raise
        parts = [*database.problems, f"The session database {path} was {change.value} while swecli used it."]
        parts.append(f"This session continues in {where.rstrip('.')}.")
        parts.append(f"{'; '.join(missing)}." if missing else "It is complete.")
        self.report(" ".join(parts))
        return database

    def _carry_over(
        self, sound: sqlite3.Connection | None, old: sqlite3.Connection, database: Database
    ) -> Sequence[str]:
        """Copy the open sessions; the rows of a file that was overwritten only where memory lacks them."""
        with database.write(power_safe=True) as connection:
            connection.execute("PRAGMA defer_foreign_keys=ON")
            missing: list[str] = []
            for session in self._open:
                if sound is not None:
                    _copy_session(sound, connection, session)
                missing.append(self.restore(connection, session))
                if sound is None and missing[-1]:
                    _copy_events(old, connection, session)
                    missing[-1] = self.restore(connection, session)
        return [text for text in missing if text]


def _packed(row: Row) -> bytes:
    return zlib.compress(json.encode(row), 1)


def _unpacked(packed: bytes) -> Row:
    return tuple(json.decode(zlib.decompress(packed)))


def _detach(path: Path, opened: Identity, old: sqlite3.Connection) -> None:
    """Separate the old file's connections from the files that are at ``path`` now: SQLite would apply the old log,
    which lies there by name, to another file.

    Raises:
        OSError, sqlite3.Error: the disk fails.
    """
    now = identity_of(path)
    if now.main is not None and now.main == opened.main:
        if now.stamp == opened.stamp and not now.torn:  # only side files are gone: the old connection still has the log
            old.execute("PRAGMA wal_checkpoint(PASSIVE)")
        _take_copy(path)
        return
    with suppress(sqlite3.Error):
        old.execute("PRAGMA wal_checkpoint(PASSIVE)")  # into the old file, wherever it is
    for suffix, before, there in (("-wal", opened.log, now.log), ("-shm", opened.index, now.index)):
        if before is not None and before == there:
            with suppress(FileNotFoundError):
                os.unlink(f"{path}{suffix}")


def _take_copy(path: Path) -> None:
    """Replace the file by a copy of its present content without its log. A file that is no database stays for the
    repair at opening."""
    fresh = path.with_name(f"{path.name}.copy-{os.getpid()}")
    try:
        os.close(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600))
        uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as source, closing(sqlite3.connect(fresh)) as target:
            source.backup(target)
    except sqlite3.DatabaseError:
        fresh.unlink(missing_ok=True)
        return
    for suffix in SIDE_FILES[1:]:
        with suppress(FileNotFoundError):
            os.unlink(f"{path}{suffix}")
    fresh.rename(path)


def _copy_session(old: sqlite3.Connection, new: sqlite3.Connection, session: str) -> None:
    """Copy a session with all its data, and of those that it was forked from the stored results. Reads as much as the
    old file gives."""
    try:
        line = [str(row[0]) for row in old.execute(_LINE, {"session": session}).fetchall()]
    except sqlite3.Error:
        return
    for name in line:
        there = new.execute("SELECT 1 FROM sessions WHERE id = ?", (name,)).fetchone() is not None
        for row in _read(old, "sessions", "id", name):
            if name == session and there:
                names = [column for column in row if column != "id"]
                sets = ", ".join(f"{column} = :{column}" for column in names if column != "parent")
                new.execute(f"UPDATE sessions SET {sets} WHERE id = :id", row)
            elif not there:
                _add_row(new, "sessions", row)
        if name != session and not there:
            new.execute(_EMPTY, (name,))
        for row in _read(old, "tool_result_blobs", "session_id", name):
            _add_row(new, "tool_result_blobs", row)
    _copy_events(old, new, session)
    new.execute("DELETE FROM session_snapshots WHERE session_id = ?", (session,))
    for row in _read(old, "session_snapshots", "session_id", session):
        _add_row(new, "session_snapshots", row)


def _copy_events(old: sqlite3.Connection, new: sqlite3.Connection, session: str) -> None:
    for row in _read(old, "events", "session_id", session):
        _add_row(new, "events", row)


def _read(connection: sqlite3.Connection, table: str, column: str, value: str) -> Iterator[dict[str, Any]]:
    """The readable rows of a table with a value in a column."""
    with suppress(sqlite3.Error):
        cursor = connection.execute(f"SELECT * FROM {table} WHERE {column} = ?", (value,))
        names = [str(description[0]) for description in cursor.description]
        while rows := cursor.fetchmany(_ROWS):
            for row in rows:
                yield dict(zip(names, row, strict=True))


def _add_row(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> None:
    marks = ", ".join(f":{name}" for name in row)
    connection.execute(f"INSERT INTO {table}({', '.join(row)}) VALUES ({marks}) ON CONFLICT DO NOTHING", row)
