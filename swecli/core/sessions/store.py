"""Sessions of one workspace: their list, their events, and the processes that have them open."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal, InvalidOperation
from random import Random, SystemRandom
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.protocol.codec import CodecError, decode_body, encode_body
from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.events import (
    MAIN,
    Body,
    CompactionCompleted,
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemStarted,
    ModelChanged,
    PermissionResolved,
    RuleRevoked,
    SessionStarted,
    StepEnded,
    TurnStarted,
    Unknown,
    tag_of,
)
from swecli.core.protocol.messages import Part
from swecli.core.sessions.damage import version_of
from swecli.core.sessions.database import Database
from swecli.core.sessions.half_answers import HalfAnswers, has_grown
from swecli.core.sessions.losses import Loss, losses
from swecli.core.sessions.recovery import ADD_EVENT, Row, SessionRecovery
from swecli.core.sessions.titles import FIRST_LENGTH, line_of, meant_by, storable, text_of, title_of
from swecli.core.workspace.process_tree import Process


class SharedViews:
    """Shares equal entries between the bodies of a session, in order. Each compaction stores its whole view, so a long
    session read back would otherwise hold most entries a hundred times."""

    def __init__(self) -> None:
        self._known: dict[str, ViewEntry] = {}

    def shared(self, body: Body | Unknown) -> Body | Unknown:
        if not isinstance(body, CompactionCompleted):
            return body
        return replace(body, view=tuple([self._same(entry) for entry in body.view]))

    def _same(self, entry: ViewEntry) -> ViewEntry:
        known = self._known.get(entry.id)
        if (
            known is not None  # field by field: there are many, and this is the fastest way
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
    def __init__(self, database: Database, session_id: str) -> None:
        self._database = database
        self._session = session_id

    def read(self, after: int, upto: int, limit: int) -> list[Event]:
        """Facts with a sequence number above ``after`` up to ``upto``, in order, at most ``limit``. An ``Unknown``
        replaces an unreadable one.

        Raises:
            sqlite3.Error: the disk fails.
        """
        with self._database.read() as connection:
            rows = connection.execute(_QUERY, (self._session, after, upto, limit)).fetchall()
        return [self._event(*row) for row in rows]

    def begin_of(self, turns: int) -> int:
        """Sequence number of the event that begins the newest ``turns`` turns; 0 if there are fewer.

        Raises:
            sqlite3.Error: the disk fails.
        """
        with self._database.read() as connection:
            row = connection.execute(_TURN, (self._session, turns - 1)).fetchone()
        return 0 if row is None else int(row[0])

    def parts(self, seq: int) -> tuple[Part, ...]:
        """The parts of an item in one stored fact.

        Raises:
            OSError: it can't be read, or has none.
        """
        try:
            events = self.read(seq - 1, seq, 1)
        except sqlite3.Error as error:
            raise OSError(str(error)) from error
        match events[0].body if events else None:
            case ItemCompleted(parts=parts):
                return parts
            case ItemCheckpointed(part=part):
                return (part,)
            case _:
                raise OSError(f"event {seq} of the session is damaged")

    def _event(self, seq: int, ts: float, turn: int, agent: str, v: int, body: bytes) -> Event:
        try:
            decoded = decode_body(bytes(body).decode("utf-8", "replace"))
            return Event(int(seq), float(ts), self._session, int(turn), decoded, str(agent), v)
        except (CodecError, TypeError, ValueError):
            return Event(int(seq), 0.0, self._session, 0, Unknown("unreadable", {"type": "unreadable"}))


UNREADABLE = "unreadable"
"""Type of the placeholder for an unreadable event."""

_POWER_SAFE = (PermissionResolved, RuleRevoked, CompactionCompleted)
"""Facts that must survive a power failure too: the user's permissions, and compactions."""

_ALL_ROWS = "SELECT seq, ts, turn, agent, v, CAST(body AS BLOB), fact FROM events WHERE session_id = ? ORDER BY seq"
_ROWS = """
    SELECT seq, ts, turn, agent, v, CAST(body AS BLOB), fact FROM events
    WHERE session_id = ? AND seq > ? ORDER BY seq
"""
_TURN = """
    SELECT seq FROM events WHERE session_id = ? AND type = 'turn_started' AND agent = 'main'
    ORDER BY seq DESC LIMIT 1 OFFSET ?
"""
_NEXT_FACT = """
    SELECT 1 + coalesce(
        (SELECT fact FROM events WHERE session_id = :session ORDER BY seq DESC LIMIT 1),
        (SELECT count(*) FROM events WHERE session_id = :session)
    )
"""
_TURNS = "(SELECT count(*) FROM events e WHERE e.session_id = s.id AND e.type = 'turn_started' AND e.agent = 'main')"
_COLUMNS = f"""
    s.id, s.title, s.cwd, s.model, s.created, s.updated, s.swecli, s.parent, coalesce(s.turns, {_TURNS}),
    s.name, s.first, s.branch, s.tokens, s.cost,
    coalesce(s.size, 0)
        + (SELECT coalesce(sum(length(b.content)), 0) FROM tool_result_blobs b WHERE b.session_id = s.id)
"""
_COLUMNS_BEFORE_4 = f"""
    s.id, s.title, s.cwd, s.model, s.created, s.updated, s.swecli, s.parent, {_TURNS}, '', '', '', 0, '?', 0
"""
_SUMS_SINCE = 4
"""Version of the tables from which a session's row has its sums."""


_FROM_THE_FUTURE = "s.updated > strftime('%s', 'now') + 60"
"""Whether the clock was wrong, or was set back since then: such a time does not make a session the newest."""
_HAS_MESSAGE = """
    (s.title != '' OR EXISTS (SELECT 1 FROM events e WHERE e.session_id = s.id AND e.type = 'turn_started'))
"""
"""Whether a session ``s`` has a user message. Either sign suffices: one damaged event must not hide a session."""
_IS_THERE = """
    (s.title != '' OR EXISTS (SELECT 1 FROM events e WHERE e.session_id = s.id)
     OR NOT EXISTS (SELECT 1 FROM sessions c WHERE c.parent = s.id))
"""
"""Whether ``s`` is more than the row of a deleted session, which stays for its forks."""
_FORGET = """
    DELETE FROM sessions WHERE turns = 0 AND title = '' AND first IS NULL AND size = 0 AND name IS NULL
    AND NOT EXISTS (SELECT 1 FROM events e WHERE e.session_id = sessions.id)
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.session_id = sessions.id)
    AND (NOT EXISTS (SELECT 1 FROM sessions c WHERE c.parent = sessions.id)
         OR parent IS NULL AND NOT EXISTS (SELECT 1 FROM tool_result_blobs b WHERE b.session_id = sessions.id))
"""
"""Rows without events stay while a fork needs the stored results of the session or of one that it was forked from."""
NAME_LENGTH = 80
"""Characters of the longest name."""
_FORK_SESSION = """
    INSERT INTO sessions(
        id, title, cwd, model, created, updated, swecli, parent, first, branch, turns, tokens, cost, size)
    SELECT ?, title, cwd, model, ?, ?, ?, id, first, branch, turns, tokens, cost, size FROM sessions WHERE id = ?
"""
_FORK_EVENTS = """
    INSERT INTO events(session_id, seq, ts, turn, agent, v, type, body, fact)
    SELECT ?, seq, ts, turn, agent, v, type, body, fact FROM events WHERE session_id = ?
"""
_FORK_SNAPSHOT = """
    INSERT INTO session_snapshots(session_id, messages, token_count, created_at, last_seq, model, sizes,
        state, state_seq, state_facts)
    SELECT ?, messages, token_count, created_at, last_seq, model, sizes, state, state_seq, state_facts
    FROM session_snapshots WHERE session_id = ?
"""
_NEWEST_ITEMS = """
    SELECT CAST(body AS BLOB) FROM events
    WHERE session_id = ? AND agent = 'main'
        AND type IN ('item_started', 'item_completed', 'rewound', 'rewind_undone')
    ORDER BY seq DESC LIMIT 400
"""
LATEST = 32_503_680_000.0
"""Unix seconds beyond which a time is invalid: the year 3000."""


class SessionError(Exception):
    """A session can't be found, opened or written; the message says why and what to do."""


class SeveralSessions(SessionError):
    """A beginning of an id or name that several sessions have."""


class SessionInfo(Struct, frozen=True):
    """A session for a list. Times are Unix seconds; ``turns`` counts the user's messages."""

    id: str
    title: str
    """Title derived from its first message."""
    cwd: str
    model: str
    created: float
    updated: float
    swecli: str
    parent: str | None
    """Id of the session it was forked from."""
    turns: int
    name: str = ""
    """The user's name for it."""
    first: str = ""
    """Beginning of the first message."""
    branch: str = ""
    """The git branch when it was last opened."""
    tokens: int = 0
    """Input and output tokens of all its requests."""
    cost: str = ""
    """US dollars as a decimal number; empty if the price of a part is unknown."""
    size: int = 0
    """Its stored bytes."""

    @property
    def shown(self) -> str:
        """Its label in a list."""
        return self.name or self.title


_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_session_id(now: datetime, random: Random) -> str:
    """Local time and four random characters, such as ``2025-10-07-14-30-45-a1b2``: sorts by age."""
    return f"{now:%Y-%m-%d-%H-%M-%S}-{''.join(random.choices(_ALPHABET, k=4))}"


def add_session(
    connection: sqlite3.Connection,
    identifier: str,
    now: float,
    cwd: str = "",
    model: str = "",
    swecli: str = "",
    parent: str | None = None,
    branch: str = "",
) -> bool:
    """Add the row of a session; False if the id is taken."""
    added = connection.execute(
        "INSERT INTO sessions(id, cwd, model, created, updated, swecli, parent, branch, turns, tokens,"
        " cost, size) VALUES (?,?,?,?,?,?,?,?,0,0,'0',0) ON CONFLICT DO NOTHING",
        (identifier, storable(cwd), storable(model), now, now, swecli, parent, storable(branch)),
    )
    return bool(added.rowcount)


def list_sessions(connection: sqlite3.Connection, *, limit: int = 200, empty: bool = False) -> Sequence[SessionInfo]:
    """Sessions, newest first; those without a user message only if ``empty``."""
    where = f"WHERE {_IS_THERE if empty else _HAS_MESSAGE}"
    # Reading another folder's database must not migrate it.
    columns = _COLUMNS if version_of(connection) >= _SUMS_SINCE else _COLUMNS_BEFORE_4
    query = f"SELECT {columns} FROM sessions s {where} ORDER BY {_FROM_THE_FUTURE}, s.updated DESC, s.id DESC LIMIT ?"
    return [_info(row) for row in connection.execute(query, (limit,)).fetchall()]


def find_session(connection: sqlite3.Connection, name: str) -> SessionInfo:
    """The session that ``name`` means, as ``meant_by`` says.

    Raises:
        SessionError: none or several.
    """
    query = f"SELECT id, name FROM sessions s WHERE {_IS_THERE} ORDER BY updated DESC, id DESC"
    ids = meant_by(name, [(str(row[0]), str(row[1] or "")) for row in connection.execute(query)])
    if not ids:
        raise SessionError(f"No session {name!r} in this folder. `swecli sessions` lists the stored ones.")
    if len(ids) > 1:
        more = ", ".join(ids[:5])
        raise SeveralSessions(f"Ambiguous id {name!r} ({more}): add more characters.")
    return _info(connection.execute(f"SELECT {_COLUMNS} FROM sessions s WHERE s.id = ?", (ids[0],)).fetchone())


_SPENT = """
    SELECT DISTINCT coalesce(json_extract(body, '$.usage.input_total'), 0)
            + coalesce(json_extract(body, '$.usage.output_total'), 0),
        json_extract(body, '$.cost'), ts, seq
    FROM events
    WHERE session_id IN (SELECT id FROM sessions WHERE updated >= :start AND id != :without)
        AND ts >= :start AND ts < :end AND json_valid(body)
        AND (type IN ('step_ended', 'side_answered')
            OR type = 'compaction_completed' AND json_extract(body, '$.usage') IS NOT NULL)
"""
"""A fork has the events of its original too, and they were paid for once."""


def spent_in(connection: sqlite3.Connection, start: float, end: float, without: str) -> list[tuple[int, str | None]]:
    """Tokens and US dollars, as decimal text, of each response between two times (Unix seconds), without those of one
    session.

    Raises:
        sqlite3.Error: they can't be read.
    """
    rows = connection.execute(_SPENT, {"start": start, "end": end, "without": without}).fetchall()
    return [(int(tokens), None if cost is None else str(cost)) for tokens, cost, *_ in rows]


def newest_messages(connection: sqlite3.Connection, session_id: str) -> list[bytes]:
    """Bodies of a session's newest events that may hold messages or take some back, newest first."""
    return [bytes(row[0]) for row in connection.execute(_NEWEST_ITEMS, (session_id,)).fetchall()]


def live_holders(connection: sqlite3.Connection, own: Process) -> dict[str, Process]:
    """Other live processes by the session they have open. Claims of dead processes and damaged ones are ignored."""
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
    """Sessions over a ``Database``. Every method may wait for another writer (see ``database.BUSY_SECONDS``) and may
    raise ``sqlite3.Error`` if the disk fails; ``append`` is meant for the writer thread of a ``Journal``."""

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
        self.recovery = database.recovery = SessionRecovery(self._take)
        self._user_items: dict[tuple[str, str], str] = {}
        """Open user items: the text of the first becomes the title."""
        self._halves: dict[str, HalfAnswers] = {}

    # --- sessions --------------------------------------------------------------------------------------------

    def create(self, cwd: str, model: str, swecli: str, *, parent: str | None = None, branch: str = "") -> SessionInfo:
        """A new session, leased by this process."""
        now = self._clock()
        with self.database.write() as connection:
            while True:
                identifier = new_session_id(datetime.fromtimestamp(now), self._random)
                if add_session(connection, identifier, now, cwd, model, swecli, parent, branch):
                    break
            self._take(connection, identifier)
            self.recovery.opened(connection, identifier)
        return SessionInfo(identifier, "", cwd, model, now, now, swecli, parent, 0, branch=branch, cost="0")

    def latest(self) -> SessionInfo | None:
        """The newest session with a user message and without another live holder."""
        for session in self.list():
            if self.holder(session.id) is None:
                return session
        return None

    def get(self, name: str) -> SessionInfo:
        """The session with that id or name, or else the one whose id or name begins so.

        Raises:
            SessionError: none or several.
        """
        with self.database.read() as connection:
            return find_session(connection, name)

    def rename(self, session_id: str, name: str) -> str:
        """Give a session a name, or remove it with an empty one. Returns the stored name.

        Raises:
            SessionError: it is taken, or an option.
        """
        name = line_of(name, NAME_LENGTH)
        if name.startswith("-"):
            raise SessionError(f"{name!r} would be read as an option after swecli -r. Choose another name.")
        with self.database.write() as connection:
            named = connection.execute("SELECT id, name FROM sessions WHERE name != '' AND id != ?", (session_id,))
            # SQLite knows case only of ASCII, and find_session that of all letters.
            other = next(
                (identifier for identifier, called in named.fetchall() if str(called).casefold() == name.casefold()),
                None,
            )
            if other is not None:
                raise SessionError(f"Session {other} is already called {name!r}. Choose another name.")
            connection.execute("UPDATE sessions SET name = ? WHERE id = ?", (name, session_id))
        return name

    def fork(self, session_id: str, swecli: str) -> SessionInfo:
        """A copy of a session under a new id, leased by this process. The original is unchanged and may be open
        elsewhere; stored results are shared."""
        now = self._clock()
        with self.database.write() as connection:
            parent = find_session(connection, session_id)
            identifier = new_session_id(datetime.fromtimestamp(now), self._random)
            while connection.execute("SELECT 1 FROM sessions WHERE id = ?", (identifier,)).fetchone():
                identifier = new_session_id(datetime.fromtimestamp(now), self._random)
            connection.execute(_FORK_SESSION, (identifier, now, now, swecli, parent.id))
            connection.execute(_FORK_EVENTS, (identifier, parent.id))
            connection.execute(_FORK_SNAPSHOT, (identifier, parent.id))
            self._take(connection, identifier)
            self.recovery.opened(connection, identifier)
            return find_session(connection, identifier)

    def delete(self, ids: Sequence[str]) -> None:
        """Delete sessions that no live process has open, with all their data. A forked session's stored results stay
        until its forks are gone: meanwhile its row has no events.

        Raises:
            SessionError: one of them is open; nothing was deleted.
        """
        with self.database.write(power_safe=True) as connection:
            open_sessions = live_holders(connection, Process(0, "")).keys() & set(ids)
            if open_sessions:
                raise SessionError(
                    f"Session {min(open_sessions)} is open in a running swecli; nothing was deleted. Close it first."
                )
            for session in ids:
                connection.execute("DELETE FROM events WHERE session_id = ?", (session,))
                connection.execute("DELETE FROM session_snapshots WHERE session_id = ?", (session,))
                connection.execute(
                    "UPDATE sessions SET title = '', name = NULL, first = NULL, size = 0, turns = 0 WHERE id = ?",
                    (session,),
                )
            while connection.execute(_FORGET).rowcount:
                pass  # a deleted fork may have been the last that needed its parent

    # --- events ----------------------------------------------------------------------------------------------

    def append(self, events: Sequence[Event]) -> None:
        """Store facts, all or none. Events already stored (same place, same content) are skipped.

        Raises:
            SessionError: another event has a place, so two writers use one session.
            sqlite3.Error: nothing was stored.
        """
        rows = [_row(event) for event in events]
        facts: dict[str, int] = {}
        sums: dict[str, _Sums] = {}
        halves: dict[str, HalfAnswers] = {}
        written: dict[tuple[object, ...], Row] = {}
        """New and changed rows by session and number."""
        with self.database.write(power_safe=any(isinstance(e.body, _POWER_SAFE) for e in events)) as connection:
            for event, row in zip(events, rows, strict=True):
                session = event.session
                if session not in facts:
                    self._require_complete(connection, session)
                    (fact,) = connection.execute(_NEXT_FACT, {"session": session}).fetchone()
                    facts[session] = max(fact, self.recovery.next_fact(session))
                    sums[session] = _Sums()
                    halves[session] = self._halves.get(session, HalfAnswers()).copy()
                half, numbered = halves[session], (*row, facts[session])
                if grown := half.grow(connection, event):
                    sums[session].grow(event, grown.by)
                    written[grown.row[:2]] = grown.row
                    continue
                for emptied in half.end(connection, event):
                    sums[session].grow(event, emptied.by)
                if connection.execute(ADD_EVENT, numbered).rowcount:
                    facts[session] += 1
                    sums[session].add(event, len(row[-1]))
                    written[numbered[:2]] = numbered
                else:
                    numbered = (*row, _require_same(connection, event, row))
                half.stored(event, numbered)
            for event in events:
                self._project(connection, event)
            for session, sum_of in sums.items():
                sum_of.store(connection, session)
        self._halves |= halves
        self.recovery.stored([*written.values()])
        for event in events:  # only now: events not stored will be passed again
            if isinstance(event.body, ItemCompleted):
                self._user_items.pop((event.session, event.body.item), None)

    def load(self, session_id: str, report: Callable[[str], None] | None = None, *, after: int = 0) -> list[Event]:
        """The stored events in order, those ``after`` a sequence number. Unreadable events are reported to ``report``
        in one sentence; an ``Unknown`` of type ``UNREADABLE`` replaces each."""
        events: list[Event] = []
        lost: list[str] = []
        views = SharedViews()
        known, numbered = after, 0 if after == 0 else None
        try:
            for seq, ts, turn, agent, v, stored, fact in self._rows(session_id, after):
                if numbered is None:
                    numbered = fact - 1 if isinstance(fact, int) else 0
                missing = fact - numbered - 1 if isinstance(fact, int) else 0
                if missing > 0 and isinstance(seq, int):
                    lost.append(f"{missing:,} missing after event {known}")
                    events.append(_unreadable_at(max(known + 1, seq - 1), session_id))
                numbered = fact if isinstance(fact, int) else numbered + 1
                try:
                    body = views.shared(decode_body(stored))
                    events.append(Event(seq, float(ts), session_id, int(turn), body, str(agent), v))
                except (CodecError, TypeError, ValueError, OverflowError) as error:
                    lost.append(f"event {seq}: {error}")
                    events.append(_unreadable_at(seq if isinstance(seq, int) else known + 1, session_id))
                known = events[-1].seq
        except sqlite3.DatabaseError as error:
            lost.append(f"everything after event {known}: {error}")
            events.append(_unreadable_at(max(known + 1, self._newest(session_id)), session_id))
        if lost and report is not None:
            more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
            report(f"Skipped unreadable parts of session {session_id} ({'; '.join(lost[:3])}{more}).")
        return events

    def loss(self, session_id: str) -> Loss | None:
        """The session's loss due to a damaged database; None if complete."""
        with self.database.read() as connection:
            return next(iter(losses(connection, session_id)), None)

    def last_seq(self, session_id: str) -> int:
        """Sequence number of the newest stored event; 0 if there is none."""
        with self.database.read() as connection:
            row = connection.execute("SELECT max(seq) FROM events WHERE session_id = ?", (session_id,)).fetchone()
        return int(row[0] or 0)

    def has_all(self, session_id: str) -> bool | None:
        """Whether everything stored of a session is in the file that its path leads to, read from there; None if
        nothing of it is. In memory: None.

        Raises:
            sqlite3.Error: it can't be read.
        """
        if (complete := self._read_back(session_id)) is not True:
            with suppress(sqlite3.Error), self.database.write() as connection:  # brings back what it can
                self._require_complete(connection, session_id)
            complete = self._read_back(session_id)
        return complete

    def _read_back(self, session_id: str) -> bool | None:
        path = self.database.path
        return self.recovery.read_back(path, session_id) if path is not None and os.path.isfile(path) else None

    # --- leases ----------------------------------------------------------------------------------------------

    def lease(self, session_id: str, branch: str | None = None) -> None:
        """Claim the session for this process, until ``release`` or the end of the process. ``branch`` is its folder's
        current branch.

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
                    "Close it there, or add --fork to continue a copy here."
                )
            self._take(connection, session_id)
            if branch is not None:
                connection.execute("UPDATE sessions SET branch = ? WHERE id = ?", (storable(branch), session_id))
            self.recovery.opened(connection, session_id)

    def release(self, session_id: str) -> None:
        """Release the session; does nothing if this process doesn't hold it."""
        self.recovery.closed(session_id)
        self._halves.pop(session_id, None)
        with self.database.write() as connection:
            connection.execute(
                "DELETE FROM leases WHERE session_id = ? AND pid = ? AND process_started = ?",
                (session_id, self._process.pid, self._process.started),
            )

    def holder(self, session_id: str) -> Process | None:
        """The other live process with the session open, if any."""
        with self.database.read() as connection:
            return live_holders(connection, self._process).get(session_id)

    def close(self) -> None:
        self.database.close()

    # Last, because within the class the name hides the type from here on.
    def list(self, *, limit: int = 200, empty: bool = False) -> list[SessionInfo]:
        """Sessions, newest first; those without a user message only if ``empty``."""
        with self.database.read() as connection:
            return [*list_sessions(connection, limit=limit, empty=empty)]

    # --- internals -------------------------------------------------------------------------------------------

    def _take(self, connection: sqlite3.Connection, session_id: str) -> None:
        """Claim the session, whoever held it."""
        connection.execute(
            "INSERT OR REPLACE INTO leases(session_id, pid, process_started, acquired) VALUES (?, ?, ?, ?)",
            (session_id, self._process.pid, self._process.started, self._clock()),
        )

    def _require_complete(self, connection: sqlite3.Connection, session_id: str) -> None:
        """Add again what another program took out of the store."""
        if self.recovery.complete(connection, session_id):
            self.recovery.fill(connection, session_id)
            return
        missing = self.recovery.restore(connection, session_id) or "it is complete"
        self.recovery.report(
            f"Another program changed the session database {self.database.path}. This session was added again: "
            f"{missing}."
        )

    def _project(self, connection: sqlite3.Connection, event: Event) -> None:
        """Update the session's row for its new events."""
        body = event.body
        if event.agent != MAIN:
            return
        if isinstance(body, ItemStarted) and body.kind == "user":
            self._user_items[event.session, body.item] = body.typed
        elif isinstance(body, ItemCompleted) and (event.session, body.item) in self._user_items:
            called = self._user_items[event.session, body.item]
            connection.execute(
                "UPDATE sessions SET title = ?, first = ? WHERE id = ? AND title = ''",
                (line_of(called) or title_of(body), line_of(called or text_of(body), FIRST_LENGTH), event.session),
            )
            self.recovery.described(connection, event.session)
        elif isinstance(body, (SessionStarted, ModelChanged)):
            model = (isinstance(body, ModelChanged) and body.replaces) or body.model
            connection.execute("UPDATE sessions SET model = ? WHERE id = ?", (storable(model), event.session))

    def _rows(self, session_id: str, after: int) -> Iterator[tuple[Any, ...]]:
        # As bytes: invalid UTF-8 must not end the whole query.
        with self.database.read() as connection:
            yield from connection.execute(_ROWS if after else _ALL_ROWS, (session_id, after)[: 2 if after else 1])

    def _newest(self, session_id: str) -> int:
        """Sequence number of the newest event of a session that can't be read to its end."""
        try:
            return self.last_seq(session_id)
        except sqlite3.DatabaseError:
            return 0


class _Sums(Struct):
    """What new events add to the row of their session."""

    newest: float = 0.0
    size: int = 0
    turns: int = 0
    tokens: int = 0
    costs: list[str | None] = field(default_factory=list[str | None])

    def grow(self, event: Event, size: int) -> None:
        """Count a row that an event has changed by ``size`` characters."""
        self.newest = max(self.newest, event.ts)
        self.size += size

    def add(self, event: Event, size: int) -> None:
        self.grow(event, size)
        if isinstance(event.body, TurnStarted) and event.agent == MAIN:
            self.turns += 1
        elif isinstance(event.body, StepEnded):
            usage = event.body.usage
            if usage is not None:
                self.tokens += (usage.input_total or 0) + (usage.output_total or 0)
            self.costs.append(event.body.cost)

    def store(self, connection: sqlite3.Connection, session: str) -> None:
        connection.execute(
            f"UPDATE sessions AS s SET updated = CASE WHEN {_FROM_THE_FUTURE} THEN ? ELSE max(updated, ?) END,"
            " size = size + ?, turns = turns + ?, tokens = tokens + ? WHERE id = ?",
            (self.newest, self.newest, self.size, self.turns, _whole(self.tokens), session),
        )
        if self.costs:
            row = connection.execute("SELECT cost FROM sessions WHERE id = ?", (session,)).fetchone()
            before = None if row is None else _dollars(row[0])
            parts = [_dollars(cost) for cost in self.costs]
            known = [part for part in parts if part is not None]
            total = before + sum(known) if before is not None and len(known) == len(parts) else None
            cost = "?" if total is None else f"{total:f}"
            connection.execute("UPDATE sessions SET cost = ? WHERE id = ?", (cost, session))


def _dollars(text: object) -> Decimal | None:
    try:
        amount = Decimal(text) if isinstance(text, str) else None
    except InvalidOperation:
        return None
    return amount if amount is not None and amount.is_finite() else None


def _info(row: Sequence[Any]) -> SessionInfo:
    """The session of a row, whatever its columns contain."""
    identifier, title, cwd, model, created, updated, swecli, parent, turns, name, first, branch, tokens, cost, size = (
        row
    )
    return SessionInfo(
        str(identifier),
        str(title),
        str(cwd),
        str(model),
        _moment(created),
        _moment(updated),
        str(swecli),
        None if parent is None else str(parent),
        _whole(turns),
        str(name or ""),
        str(first or ""),
        str(branch or ""),
        _whole(tokens),
        "" if _dollars(cost) is None else str(cost),
        _whole(size),
    )


def _whole(value: object) -> int:
    return int(value) if isinstance(value, int | float) and value == value and abs(value) < 1 << 62 else 0


def _moment(value: object) -> float:
    return float(value) if isinstance(value, int | float) and 0 <= value < LATEST else 0.0


def _unreadable_at(seq: int, session_id: str) -> Event:
    """Placeholder for an unreadable event."""
    return Event(seq, 0.0, session_id, 0, Unknown(UNREADABLE, {"type": UNREADABLE}))


def _row(event: Event) -> tuple[Any, ...]:
    body = encode_body(event.body)
    return (event.session, event.seq, event.ts, event.turn, storable(event.agent), event.v, tag_of(event.body), body)


def _require_same(connection: sqlite3.Connection, event: Event, row: tuple[object, ...]) -> int | None:
    """The number of the fact that is stored in this place."""
    query = "SELECT body, fact FROM events WHERE session_id = ? AND seq = ?"
    stored = connection.execute(query, row[:2]).fetchone()
    if stored is None or (stored[0] != row[-1] and not has_grown(stored[0], event)):
        raise SessionError(f"Event {row[1]} of session {row[0]} exists with other content: two writers.")
    return stored[1]
