"""The schema of a workspace's database: the steps from one version to the next, and texts that its columns can hold."""

from __future__ import annotations

from swecli.core.protocol.events import ItemCompleted
from swecli.core.protocol.messages import TextPart

APPLICATION_ID = 0x5357_4543
"""Marks a SQLite file as ours: the bytes "SWEC" in its header."""

Migration = tuple[str, ...]
"""Statements that lead from one version to the next; they run in one transaction."""

_VERSION_1: Migration = (
    """
    CREATE TABLE sessions (
        id      TEXT PRIMARY KEY,
        title   TEXT NOT NULL DEFAULT '',
        cwd     TEXT NOT NULL,
        model   TEXT NOT NULL,
        created REAL NOT NULL,
        updated REAL NOT NULL,
        swecli  TEXT NOT NULL,
        parent  TEXT REFERENCES sessions(id) ON DELETE SET NULL
    )
    """,
    "CREATE INDEX idx_sessions_updated ON sessions(updated)",
    """
    CREATE TABLE events (
        session_id TEXT    NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
        seq        INTEGER NOT NULL,
        ts         REAL    NOT NULL,
        turn       INTEGER NOT NULL,
        agent      TEXT    NOT NULL,
        v          INTEGER NOT NULL,
        type       TEXT    NOT NULL,
        body       TEXT    NOT NULL,
        PRIMARY KEY (session_id, seq)
    )
    """,
    "CREATE INDEX idx_events_turns ON events(session_id) WHERE type = 'turn_started'",
    """
    CREATE TABLE tool_result_blobs (
        id         TEXT PRIMARY KEY,
        session_id TEXT    NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
        tool_name  TEXT    NOT NULL,
        content    BLOB    NOT NULL,
        byte_size  INTEGER NOT NULL,
        created_at REAL    NOT NULL
    )
    """,
    "CREATE INDEX idx_blobs_session ON tool_result_blobs(session_id)",
    """
    CREATE TABLE leases (
        session_id      TEXT PRIMARY KEY REFERENCES sessions(id) ON DELETE CASCADE,
        pid             INTEGER NOT NULL,
        process_started TEXT    NOT NULL,
        acquired        REAL    NOT NULL
    )
    """,
)

_VERSION_2: Migration = (
    # Some databases of version 1 have an empty table of this name, with fewer columns.
    "DROP TABLE IF EXISTS session_snapshots",
    """
    CREATE TABLE session_snapshots (
        session_id  TEXT PRIMARY KEY REFERENCES sessions(id) ON DELETE CASCADE,
        messages    TEXT    NOT NULL,
        token_count INTEGER NOT NULL,
        created_at  REAL    NOT NULL,
        last_seq    INTEGER NOT NULL,
        model       TEXT    NOT NULL,
        sizes       TEXT    NOT NULL
    )
    """,
)

_VERSION_3: Migration = (
    # Numbers the stored events of a session without a gap: those that are only shown take a place in ``seq`` too.
    "ALTER TABLE events ADD COLUMN fact INTEGER",
)

MIGRATIONS: tuple[Migration, ...] = (_VERSION_1, _VERSION_2, _VERSION_3)
"""Step i leads from version i to version i + 1. Steps that were released never change."""

TITLE_LENGTH = 80
"""Characters of the longest title."""


def title_of(message: ItemCompleted) -> str:
    """The title that the first message of a user gives its session: on one line."""
    return line_of(" ".join(part.text for part in message.parts if isinstance(part, TextPart)))


def line_of(text: str) -> str:
    """A text as a title: on one line, and not too long."""
    line = " ".join(text.split())
    return storable(line if len(line) <= TITLE_LENGTH else f"{line[: TITLE_LENGTH - 1]}…")


def storable(text: str) -> str:
    """``text`` as UTF-8 can hold it: names of files may have lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")
