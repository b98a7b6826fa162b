"""The newest snapshot of a session: what the model saw, ready to be resumed.

The events stay the record. A snapshot spares the counting of what was counted, and stands in where events can't be
read.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from typing import Any

from swecli.core.ports import Snapshot, SnapshotError, SnapshotMeasure
from swecli.core.protocol.codec import CodecError, decode_messages, encode_messages, to_text
from swecli.core.sessions.database import Database

_SAVE = """
    INSERT OR REPLACE INTO session_snapshots(session_id, messages, token_count, created_at, last_seq, model, sizes)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_MEASURE = "SELECT token_count, last_seq, model, sizes FROM session_snapshots WHERE session_id = ?"
_MESSAGES = "SELECT messages FROM session_snapshots WHERE session_id = ?"
_UNREADABLE = (sqlite3.Error, CodecError, ValueError, TypeError, KeyError, AttributeError)


class SnapshotStore:
    """Implements ``Snapshots`` for one session over its database."""

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
