"""Snapshots of sessions: the model's view and the combined state of the events, ready to resume."""

from __future__ import annotations

import json
import sqlite3
import time
import zlib
from collections.abc import Callable
from typing import Any

import msgspec

from swecli.core.ports import Snapshot, SnapshotError, SnapshotMeasure
from swecli.core.protocol.codec import CodecError, decode_messages, encode_messages, to_text
from swecli.core.protocol.context_events import ModelView
from swecli.core.sessions.database import Database

_FACTS = "SELECT count(*) FROM events e WHERE e.session_id = :session AND e.seq <= :seq"
_FACTS_OF_STATE = (
    "SELECT count(*) FROM events e WHERE e.session_id = session_snapshots.session_id AND e.seq <= state_seq"
)
_SAVE = """
    INSERT INTO session_snapshots(session_id, messages, token_count, created_at, last_seq, model, sizes)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT(session_id) DO UPDATE SET messages = excluded.messages, token_count = excluded.token_count,
        created_at = excluded.created_at, last_seq = excluded.last_seq, model = excluded.model, sizes = excluded.sizes
"""
_SAVE_STATE = f"""
    UPDATE session_snapshots SET state = :state, state_seq = :seq, state_facts = ({_FACTS}) WHERE session_id = :session
"""
_STATE = f"""
    SELECT state, state_seq, state_facts, ({_FACTS_OF_STATE}) FROM session_snapshots WHERE session_id = ?
"""
_MEASURE = "SELECT token_count, last_seq, model, sizes FROM session_snapshots WHERE session_id = ?"
_WHOLE = "SELECT messages, sizes FROM session_snapshots WHERE session_id = ?"
_UNREADABLE = (sqlite3.Error, CodecError, ValueError, TypeError, KeyError, AttributeError)


class SnapshotStore:
    """The newest snapshot of one session: the model's view, ready to resume. Implements ``Snapshots``.

    The events stay authoritative. A snapshot saves counting again and replaces unreadable events.
    """

    def __init__(self, database: Database, session_id: str, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._session_id = session_id
        self._clock = clock

    def save_snapshot(self, snapshot: Snapshot) -> str:
        """Store it in place of the previous one. Returns a sentence if that failed."""
        measure = snapshot.measure
        sizes = {"counter": measure.counter, "marks": measure.marks, "messages": measure.sizes, "view": snapshot.view}
        try:
            state = zlib.compress(snapshot.state, 1) if snapshot.state else b""
            row = (
                self._session_id,
                zlib.compress(encode_messages(snapshot.messages).encode("utf-8", "surrogatepass"), 1),
                measure.token_count,
                self._clock(),
                measure.seq,
                measure.model,
                to_text(sizes),
            )
            with self._database.write() as connection:
                connection.execute(_SAVE, row)
                if state:
                    known = {"session": self._session_id, "seq": measure.seq, "state": state}
                    connection.execute(_SAVE_STATE, known)
        except (sqlite3.Error, ValueError, OverflowError, RecursionError) as error:
            return f"Cannot store this session's snapshot ({error}). Without it, continuing the session takes longer."
        return ""

    def get_state(self) -> tuple[bytes, int] | None:
        """The newest saved state of the events, and its number of stored facts; None if it is missing or damaged, or
        the number does not match: then the events count."""
        try:
            row = self._row(_STATE)
            if row is None or row[0] is None or row[2] != row[3]:
                return None
            return zlib.decompress(row[0]), int(row[3])
        except (*_UNREADABLE, zlib.error):
            return None

    def get_snapshot(self) -> Snapshot | None:
        """The newest snapshot; None if there is none.

        Raises:
            SnapshotError: it is damaged.
        """
        measure = self.get_measure()
        try:
            row = self._row(_WHOLE)
            if row is None or measure is None:
                return None
            view = msgspec.convert(json.loads(row[1]).get("view"), ModelView | None)
            return Snapshot(decode_messages(_text(row[0])), measure, view)
        except (*_UNREADABLE, zlib.error) as error:
            raise SnapshotError(str(error)) from error

    def get_measure(self) -> SnapshotMeasure | None:
        """The newest snapshot's measure, without reading its messages; None if there is none.

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


def _text(stored: str | bytes) -> str:
    """Messages as stored; earlier versions did not compress them."""
    return stored if isinstance(stored, str) else zlib.decompress(stored).decode("utf-8", "surrogatepass")


def _measure(row: tuple[Any, ...]) -> SnapshotMeasure:
    token_count, seq, model, sizes = row
    stored = json.loads(sizes)
    counts = tuple(tuple((str(name), int(tokens)) for name, tokens in message) for message in stored["messages"])
    marks = tuple(str(mark) for mark in stored["marks"])
    return SnapshotMeasure(int(token_count), int(seq), str(model), str(stored["counter"]), marks, counts)
