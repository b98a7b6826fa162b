"""Schema of a workspace's database: the steps from one version to the next."""

from __future__ import annotations

APPLICATION_ID = 0x5357_4543
"""Marks a SQLite file as swecli's: the bytes "SWEC" in its header."""

Migration = tuple[str, ...]
"""Statements from one version to the next; they run in one transaction."""

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
    # Numbers the stored events of a session without gaps: transient ones take a place in ``seq`` too.
    "ALTER TABLE events ADD COLUMN fact INTEGER",
)

_VERSION_4: Migration = (
    # Columns shown in a list of sessions, updated with the events: NULL if unknown.
    "ALTER TABLE sessions ADD COLUMN name TEXT",
    "ALTER TABLE sessions ADD COLUMN first TEXT",
    "ALTER TABLE sessions ADD COLUMN branch TEXT",
    "ALTER TABLE sessions ADD COLUMN turns INTEGER",
    "ALTER TABLE sessions ADD COLUMN tokens INTEGER",
    "ALTER TABLE sessions ADD COLUMN cost TEXT",
    "ALTER TABLE sessions ADD COLUMN size INTEGER",
    """
    UPDATE sessions SET
        turns = (SELECT count(*) FROM events e
                 WHERE e.session_id = sessions.id AND e.type = 'turn_started' AND e.agent = 'main'),
        size = (SELECT coalesce(sum(length(e.body)), 0) FROM events e WHERE e.session_id = sessions.id)
    """,
    """
    UPDATE sessions SET (tokens, cost) = (
        SELECT coalesce(sum(coalesce(json_extract(body, '$.usage.input_total'), 0)
                            + coalesce(json_extract(body, '$.usage.output_total'), 0)), 0),
               CASE WHEN count(*) = count(json_extract(body, '$.cost'))
                    THEN printf('%.6f', coalesce(sum(json_extract(body, '$.cost')), 0)) ELSE '?' END
        FROM (SELECT CASE WHEN json_valid(e.body) THEN e.body ELSE '{}' END AS body FROM events e
              WHERE e.session_id = sessions.id AND e.type = 'step_ended')
    )
    """,
)

_VERSION_5: Migration = (
    # Combined state of all events up to ``state_seq`` (``state_facts`` of them): compressed, NULL if unknown.
    "ALTER TABLE session_snapshots ADD COLUMN state BLOB",
    "ALTER TABLE session_snapshots ADD COLUMN state_seq INTEGER",
    "ALTER TABLE session_snapshots ADD COLUMN state_facts INTEGER",
)

MIGRATIONS: tuple[Migration, ...] = (_VERSION_1, _VERSION_2, _VERSION_3, _VERSION_4, _VERSION_5)
"""Step i leads from version i to version i + 1. Released steps never change."""
