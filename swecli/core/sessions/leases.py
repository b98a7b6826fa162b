"""Who has a session open: one live process at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from swecli.core.sessions.process import Process


class Leases:
    """The claims of ``process``, and those of others, over a connection of the caller. A claim of a process that no
    longer lives counts for nothing."""

    def __init__(self, process: Process, clock: Callable[[], float]) -> None:
        self._process = process
        self._clock = clock

    def holder(self, connection: sqlite3.Connection, session_id: str) -> Process | None:
        """The other live process that has the session open, if any."""
        query = "SELECT pid, process_started FROM leases WHERE session_id = ?"
        row = connection.execute(query, (session_id,)).fetchone()
        if row is None:
            return None
        process = Process(int(row[0]), str(row[1]))
        return process if process != self._process and process.alive else None

    def take(self, connection: sqlite3.Connection, session_id: str) -> None:
        """Claim the session, whoever had it."""
        connection.execute(
            "INSERT OR REPLACE INTO leases(session_id, pid, process_started, acquired) VALUES (?, ?, ?, ?)",
            (session_id, self._process.pid, self._process.started, self._clock()),
        )

    def release(self, connection: sqlite3.Connection, session_id: str) -> None:
        """Give the session back; nothing happens where this process doesn't hold it."""
        connection.execute(
            "DELETE FROM leases WHERE session_id = ? AND pid = ? AND process_started = ?",
            (session_id, self._process.pid, self._process.started),
        )
