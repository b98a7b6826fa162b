"""The sessions of one workspace: their list, their events, and who has them open."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random, SystemRandom
from typing import Any

from msgspec.structs import replace

from swecli.core.ports import Snapshot, SnapshotError, SnapshotMeasure
from swecli.core.protocol.codec import CodecError, decode_body, decode_messages, encode_body, encode_messages, to_text
from swecli.core.protocol.events import (
    MAIN,
    Body,
    CompactionCompleted,
    Event,
    ItemCompleted,
    ItemStarted,
    ModelChanged,
    PermissionResolved,
    SessionStarted,
    Unknown,
    ViewEntry,
)
from swecli.core.sessions.database import Database
from swecli.core.sessions.schema import line_of, storable, title_of
from swecli.core.workspace.process_tree import Process


class SharedViews:
    """Takes the bodies of a session in their order. Each compaction tells its whole view, so that a long session that
    is read back would hold most entries a hundred times."""

    def __init__(self) -> None:
        self._known: dict[str, ViewEntry] = {}

    def shared(self, body: Body | Unknown) -> Body | Unknown:
        if not isinstance(body, CompactionCompleted):
            return body
        return replace(body, view=tuple([self._same(entry) for entry in body.view]))

    def _same(self, entry: ViewEntry) -> ViewEntry:
        known = self._known.get(entry.id)
        if (
            known is not None  # field by field: there are many, and this is the quickest
            and known.kind == entry.kind
            and known.text == entry.text
            and known.sources == entry.sources
            and known.rule == entry.rule
        ):
            return known
        self._known[entry.id] = entry
        return entry


_QUERY = """
    SELECT seq, ts, turn, agent, v, CAST(body AS BLOB) FROM events
    WHERE session_id = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?
"""


class StoredFacts:
    """The stored facts of one session."""

    def __init__(self, database: Database, session_id: str) -> None:
        self._database = database
        self._session = session_id

    def read(self, after: int, upto: int, limit: int) -> list[Event]:
        """Facts with a sequence number above ``after`` and not above ``upto``, in order, ``limit`` at most. An
        ``Unknown`` holds the place of one that can't be read.

        Raises:
            sqlite3.Error: the disk fails.
        """
        with self._database.read() as connection:
            rows = connection.execute(_QUERY, (self._session, after, upto, limit)).fetchall()
        return [self._event(*row) for row in rows]

    def _event(self, seq: int, ts: float, turn: int, agent: str, v: int, body: bytes) -> Event:
        try:
            decoded = decode_body(bytes(body).decode("utf-8", "replace"))
            return Event(int(seq), float(ts), self._session, int(turn), decoded, str(agent), v)
        except (CodecError, TypeError, ValueError):
            return Event(int(seq), 0.0, self._session, 0, Unknown("unreadable", {"type": "unreadable"}))


UNREADABLE = "unreadable"
"""Type of what stands in the place of an event that can't be read."""

_POWER_SAFE = (PermissionResolved, CompactionCompleted)
"""Facts that have to survive a power cut too: what the user allowed, and what left the context."""

_INSERT = """
    INSERT INTO events(session_id, seq, ts, turn, agent, v, type, body, fact) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING
"""
_NEXT_FACT = """
    SELECT 1 + coalesce(
        (SELECT fact FROM events WHERE session_id = :session ORDER BY seq DESC LIMIT 1),
        (SELECT count(*) FROM events WHERE session_id = :session)
    )
"""
_COLUMNS = """
    s.id, s.title, s.cwd, s.model, s.created, s.updated, s.swecli, s.parent,
    (SELECT count(*) FROM events e WHERE e.session_id = s.id AND e.type = 'turn_started' AND e.agent = 'main')
"""


_HAS_MESSAGE = """
    (s.title != '' OR EXISTS (SELECT 1 FROM events e WHERE e.session_id = s.id AND e.type = 'turn_started'))
"""
"""Whether a session ``s`` has a message of the user. Either sign is enough: one event that is not what it was must not
hide a session."""
_STEPS = """
    SELECT session_id,
        sum(coalesce(json_extract(body, '$.usage.input_total'), 0)
            + coalesce(json_extract(body, '$.usage.output_total'), 0)),
        group_concat(coalesce(json_extract(body, '$.cost'), '?'), ' ')
    FROM events WHERE type = 'step_ended' GROUP BY session_id
"""
_NEWEST_ITEMS = """
    SELECT CAST(body AS BLOB) FROM events
    WHERE session_id = ? AND agent = 'main' AND type IN ('item_started', 'item_completed')
    ORDER BY seq DESC LIMIT ?
"""
_LATEST = 32_503_680_000.0
"""Unix seconds beyond which a time is none: the year 3000."""


class SessionError(Exception):
    """A session can't be found, opened or written; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """One session as a list shows it. Times are Unix seconds; ``turns`` counts the user's messages."""

    id: str
    title: str
    cwd: str
    model: str
    created: float
    updated: float
    swecli: str
    parent: str | None
    turns: int


_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_session_id(now: datetime, random: Random) -> str:
    """Local time and four random characters, such as ``2025-10-07-14-30-45-a1b2``: sorts by age."""
    return f"{now:%Y-%m-%d-%H-%M-%S}-{''.join(random.choices(_ALPHABET, k=4))}"


def list_sessions(connection: sqlite3.Connection, *, limit: int = 200, empty: bool = False) -> Sequence[SessionInfo]:
    """Sessions, newest first; those without any message of the user only if ``empty``."""
    where = "" if empty else f"WHERE {_HAS_MESSAGE}"
    query = f"SELECT {_COLUMNS} FROM sessions s {where} ORDER BY s.updated DESC, s.id DESC LIMIT ?"
    return [_info(row) for row in connection.execute(query, (limit,)).fetchall()]


def session_usage(connection: sqlite3.Connection) -> dict[str, tuple[int, str]]:
    """Tokens of each session, and the costs of its steps: decimal numbers between blanks, ``?`` for an unknown one.

    Raises:
        sqlite3.Error: a step can't be read.
    """
    return {str(name): (tokens or 0, costs) for name, tokens, costs in connection.execute(_STEPS).fetchall()}


def newest_messages(connection: sqlite3.Connection, session_id: str, events: int = 400) -> list[bytes]:
    """The bodies of a session's newest events that may hold messages, newest first."""
    return [bytes(row[0]) for row in connection.execute(_NEWEST_ITEMS, (session_id, events)).fetchall()]


def live_holders(connection: sqlite3.Connection, own: Process) -> dict[str, Process]:
    """Other live processes by the session that they have open. A claim of a process that no longer lives, and a damaged
    one, count for nothing."""
    holders: dict[str, Process] = {}
    for session, pid, started in connection.execute("SELECT session_id, pid, process_started FROM leases").fetchall():
        try:
            process = Process(int(pid), str(started))
        except ValueError:
            continue
        if process != own and process.alive:
            holders[str(session)] = process
    return holders


class SessionStore:
    """Sessions over a ``Database``. Every method may wait for another process that writes (see
    ``database.BUSY_SECONDS``) and may raise ``sqlite3.Error`` when the disk fails; ``append`` is meant for the
    writer thread of a ``Journal``."""

    def __init__(
        self,
        database: Database,
        *,
        clock: Callable[[], float] = time.time,
        random: Random | None = None,
        process: Process | None = None,
    ) -> None:
        self.database = database
        self._clock = clock
        self._random = random or SystemRandom()
        self._process = process or Process.current()
        self._user_items: dict[tuple[str, str], str] = {}
        """User items that began and have not ended: the text of the first becomes the title."""

    # --- sessions --------------------------------------------------------------------------------------------

    def create(self, cwd: str, model: str, swecli: str, *, parent: str | None = None) -> SessionInfo:
        """A new session, leased by this process."""
        now = self._clock()
        with self.database.write() as connection:
            while True:
                identifier = new_session_id(datetime.fromtimestamp(now), self._random)
                added = connection.execute(
                    "INSERT INTO sessions(id, cwd, model, created, updated, swecli, parent) VALUES (?,?,?,?,?,?,?)"
                    " ON CONFLICT DO NOTHING",
                    (identifier, storable(cwd), storable(model), now, now, swecli, parent),
                ).rowcount
                if added:
                    break
            self._take(connection, identifier)
        return SessionInfo(identifier, "", cwd, model, now, now, swecli, parent, 0)

    def latest(self) -> SessionInfo | None:
        """The newest session that has a message of the user and that no other live process holds."""
        for session in self.list():
            if self.holder(session.id) is None:
                return session
        return None

    def get(self, name: str) -> SessionInfo:
        """The session of that id, or the one whose id begins with ``name``.

        Raises:
            SessionError: none or several.
        """
        query = f"""
            SELECT {_COLUMNS} FROM sessions s WHERE substr(s.id, 1, ?) = ?
            ORDER BY s.id = ? DESC, s.updated DESC LIMIT 6
        """
        name = storable(name)
        with self.database.read() as connection:
            rows = connection.execute(query, (len(name), name, name)).fetchall() if name else []
        found = [_info(row) for row in rows]
        if not found:
            raise SessionError(f"No session {name!r} in this folder. `swecli sessions` lists the stored ones.")
        if len(found) > 1 and found[0].id != name:
            more = ", ".join(session.id for session in found[:5])
            raise SessionError(f"Several sessions begin with {name!r}: {more}. Type more of the id.")
        return found[0]

    # --- events ----------------------------------------------------------------------------------------------

    def append(self, events: Sequence[Event]) -> None:
        """Store facts, all or none. Events that are stored already (same place, same content) are passed over.

        Raises:
            SessionError: a place is taken by another event, so two writers are at one session.
            sqlite3.Error: nothing was stored.
        """
        rows = [_row(event) for event in events]
        facts: dict[str, int] = {}
        with self.database.write(power_safe=any(isinstance(e.body, _POWER_SAFE) for e in events)) as connection:
            for event, row in zip(events, rows, strict=True):
                if event.session not in facts:
                    facts[event.session] = connection.execute(_NEXT_FACT, {"session": event.session}).fetchone()[0]
                if connection.execute(_INSERT, (*row, facts[event.session])).rowcount:
                    facts[event.session] += 1
                else:
                    _require_same(connection, row)
            for event in events:
                self._project(connection, event)
            for session in {event.session for event in events}:
                newest = max(event.ts for event in events if event.session == session)
                connection.execute("UPDATE sessions SET updated = max(updated, ?) WHERE id = ?", (newest, session))
        for event in events:  # only now: what was not stored is handed over again
            if isinstance(event.body, ItemCompleted):
                self._user_items.pop((event.session, event.body.item), None)

    def load(self, session_id: str, report: Callable[[str], None] | None = None) -> list[Event]:
        """The stored events in order. What can't be read is named to ``report``, in one sentence; an ``Unknown`` of
        type ``UNREADABLE`` holds its place."""
        events: list[Event] = []
        lost: list[str] = []
        views = SharedViews()
        known = numbered = 0
        try:
            for seq, ts, turn, agent, v, stored, fact in self._rows(session_id):
                missing = fact - numbered - 1 if isinstance(fact, int) else 0
                if missing > 0 and isinstance(seq, int):
                    lost.append(f"{missing:,} missing after event {known}")
                    events.append(_lost_at(max(known + 1, seq - 1), session_id))
                numbered = fact if isinstance(fact, int) else numbered + 1
                try:
                    body = views.shared(decode_body(stored))
                    events.append(Event(seq, float(ts), session_id, int(turn), body, str(agent), v))
                except (CodecError, TypeError, ValueError, OverflowError) as error:
                    lost.append(f"event {seq}: {error}")
                    events.append(_lost_at(seq if isinstance(seq, int) else known + 1, session_id))
                known = events[-1].seq
        except sqlite3.DatabaseError as error:
            lost.append(f"everything after event {known}: {error}")
            events.append(_lost_at(max(known + 1, self._newest(session_id)), session_id))
        if lost and report is not None:
            more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
            report(f"Parts of session {session_id} can't be read and were left out ({'; '.join(lost[:3])}{more}).")
        return events

    def last_seq(self, session_id: str) -> int:
        """Place of the newest stored event; 0 when there is none."""
        with self.database.read() as connection:
            row = connection.execute("SELECT max(seq) FROM events WHERE session_id = ?", (session_id,)).fetchone()
        return int(row[0] or 0)

    # --- leases ----------------------------------------------------------------------------------------------

    def lease(self, session_id: str) -> None:
        """Claim the session for this process, until ``release`` or the end of the process.

        Raises:
            SessionError: no such session, or another live process holds it.
        """
        with self.database.write() as connection:
            if connection.execute("SELECT 1 FROM sessions WHERE id = ?", (session_id,)).fetchone() is None:
                raise SessionError(f"No session {session_id!r} in this folder.")
            holder = live_holders(connection, self._process).get(session_id)
            if holder is not None:
                raise SessionError(
                    f"Session {session_id} is open in another swecli (process {holder.pid}). "
                    "Close it there, or start a new session here."
                )
            self._take(connection, session_id)

    def release(self, session_id: str) -> None:
        """Give the session back; nothing happens where this process doesn't hold it."""
        with self.database.write() as connection:
            connection.execute(
                "DELETE FROM leases WHERE session_id = ? AND pid = ? AND process_started = ?",
                (session_id, self._process.pid, self._process.started),
            )

    def holder(self, session_id: str) -> Process | None:
        """The other live process that has the session open, if any."""
        with self.database.read() as connection:
            return live_holders(connection, self._process).get(session_id)

    def close(self) -> None:
        self.database.close()

    # Last, because inside of the class the name hides the type from here on.
    def list(self, *, limit: int = 200, empty: bool = False) -> list[SessionInfo]:
        """Sessions, newest first; those without any message of the user only if ``empty``."""
        with self.database.read() as connection:
            return [*list_sessions(connection, limit=limit, empty=empty)]

    # --- inside ----------------------------------------------------------------------------------------------

    def _take(self, connection: sqlite3.Connection, session_id: str) -> None:
        """Claim the session, whoever had it."""
        connection.execute(
            "INSERT OR REPLACE INTO leases(session_id, pid, process_started, acquired) VALUES (?, ?, ?, ?)",
            (session_id, self._process.pid, self._process.started, self._clock()),
        )

    def _project(self, connection: sqlite3.Connection, event: Event) -> None:
        """Keep the session's row in step with what its events say."""
        body = event.body
        if event.agent != MAIN:
            return
        if isinstance(body, ItemStarted) and body.kind == "user":
            self._user_items[event.session, body.item] = body.title if body.name == "command" else ""
        elif isinstance(body, ItemCompleted) and (event.session, body.item) in self._user_items:
            title = line_of(self._user_items[event.session, body.item]) or title_of(body)
            connection.execute("UPDATE sessions SET title = ? WHERE id = ? AND title = ''", (title, event.session))
        elif isinstance(body, (SessionStarted, ModelChanged)):
            connection.execute("UPDATE sessions SET model = ? WHERE id = ?", (storable(body.model), event.session))

    def _rows(self, session_id: str) -> Iterator[tuple[Any, ...]]:
        # As bytes: a text that is no UTF-8 any more must not end the whole query.
        query = "SELECT seq, ts, turn, agent, v, CAST(body AS BLOB), fact FROM events WHERE session_id = ? ORDER BY seq"
        with self.database.read() as connection:
            yield from connection.execute(query, (session_id,))

    def _newest(self, session_id: str) -> int:
        """Place of the newest event of a session that can't be read to its end."""
        try:
            return self.last_seq(session_id)
        except sqlite3.DatabaseError:
            return 0


def _info(row: Sequence[Any]) -> SessionInfo:
    """The session of a row, whatever is in its columns."""
    identifier, title, cwd, model, created, updated, swecli, parent, turns = row
    return SessionInfo(
        str(identifier),
        str(title),
        str(cwd),
        str(model),
        _moment(created),
        _moment(updated),
        str(swecli),
        None if parent is None else str(parent),
        int(turns),
    )


def _moment(value: object) -> float:
    return float(value) if isinstance(value, int | float) and 0 <= value < _LATEST else 0.0


def _lost_at(seq: int, session_id: str) -> Event:
    """What stands in the place of an event that can't be read."""
    return Event(seq, 0.0, session_id, 0, Unknown(UNREADABLE, {"type": UNREADABLE}))


def _row(event: Event) -> tuple[object, ...]:
    body = encode_body(event.body)
    return (event.session, event.seq, event.ts, event.turn, storable(event.agent), event.v, event.body.type, body)


def _require_same(connection: sqlite3.Connection, row: tuple[object, ...]) -> None:
    query = "SELECT body FROM events WHERE session_id = ? AND seq = ?"
    stored = connection.execute(query, row[:2]).fetchone()
    if stored is None or stored[0] != row[-1]:
        raise SessionError(f"Event {row[1]} of session {row[0]} exists with another content: two writers.")


_SAVE = """
    INSERT OR REPLACE INTO session_snapshots(session_id, messages, token_count, created_at, last_seq, model, sizes)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_MEASURE = "SELECT token_count, last_seq, model, sizes FROM session_snapshots WHERE session_id = ?"
_MESSAGES = "SELECT messages FROM session_snapshots WHERE session_id = ?"
_UNREADABLE = (sqlite3.Error, CodecError, ValueError, TypeError, KeyError, AttributeError)


class SnapshotStore:
    """The newest snapshot of one session: what the model saw, ready to be resumed. Implements ``Snapshots``.

    The events stay the record. A snapshot spares the counting of what was counted, and stands in where events can't be
    read.
    """

    def __init__(self, database: Database, session_id: str, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._session_id = session_id
        self._clock = clock

    def save_snapshot(self, snapshot: Snapshot) -> str:
        """Keep it in place of the one before. Returns a sentence where that failed."""
        measure = snapshot.measure
        sizes = {"counter": measure.counter, "marks": measure.marks, "messages": measure.sizes}
        try:
            row = (
                self._session_id,
                encode_messages(snapshot.messages),
                measure.token_count,
                self._clock(),
                measure.seq,
                measure.model,
                to_text(sizes),
            )
            with self._database.write() as connection:
                connection.execute(_SAVE, row)
        except (sqlite3.Error, ValueError, RecursionError) as error:
            return (
                f"The snapshot of this session can't be stored ({error}). Nothing is lost: it resumes from its record."
            )
        return ""

    def get_snapshot(self) -> Snapshot | None:
        """The newest one; None where there is none.

        Raises:
            SnapshotError: it is damaged.
        """
        measure = self.get_measure()
        try:
            row = self._row(_MESSAGES)
            return Snapshot(decode_messages(row[0]), measure) if row is not None and measure is not None else None
        except _UNREADABLE as error:
            raise SnapshotError(str(error)) from error

    def get_measure(self) -> SnapshotMeasure | None:
        """That of the newest one, without reading its messages; None where there is none.

        Raises:
            SnapshotError: it is damaged.
        """
        try:
            row = self._row(_MEASURE)
            return _measure(row) if row is not None else None
        except _UNREADABLE as error:
            raise SnapshotError(str(error)) from error

    def _row(self, query: str) -> tuple[Any, ...] | None:
        with self._database.read() as connection:
            return connection.execute(query, (self._session_id,)).fetchone()


def _measure(row: tuple[Any, ...]) -> SnapshotMeasure:
    token_count, seq, model, sizes = row
    stored = json.loads(sizes)
    counts = tuple(tuple((str(name), int(tokens)) for name, tokens in one) for one in stored["messages"])
    marks = tuple(str(mark) for mark in stored["marks"])
    return SnapshotMeasure(int(token_count), int(seq), str(model), str(stored["counter"]), marks, counts)
