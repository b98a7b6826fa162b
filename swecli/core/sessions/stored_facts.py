"""A session's facts read back from the store in pages, so that nobody has to keep them in memory."""

from __future__ import annotations

from swecli.core.protocol.codec import CodecError, decode_body
from swecli.core.protocol.events import Event, Unknown
from swecli.core.sessions.database import Database

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
