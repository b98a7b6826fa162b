"""The tables of the checkpoint store, as steps from one version to the next."""

from __future__ import annotations

_VERSION_1: tuple[str, ...] = (
    """
    CREATE TABLE blobs (
        sha256 TEXT PRIMARY KEY,
        size   INTEGER NOT NULL,
        packed INTEGER NOT NULL,
        data   BLOB    NOT NULL
    )
    """,
    """
    CREATE TABLE shadow (
        path    BLOB PRIMARY KEY,
        changed INTEGER NOT NULL,
        inode   INTEGER NOT NULL,
        image   TEXT    NOT NULL,
        sha256  TEXT
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE operations (
        id      INTEGER PRIMARY KEY AUTOINCREMENT,
        session TEXT    NOT NULL,
        turn    INTEGER NOT NULL,
        item    TEXT    NOT NULL,
        kind    TEXT    NOT NULL,
        title   TEXT    NOT NULL,
        started REAL    NOT NULL,
        pid     INTEGER NOT NULL,
        state   TEXT    NOT NULL,
        note    TEXT    NOT NULL DEFAULT ''
    )
    """,
    "CREATE INDEX idx_operations_session ON operations(session, id)",
    """
    CREATE TABLE changes (
        operation     INTEGER NOT NULL REFERENCES operations(id) ON DELETE CASCADE,
        path          BLOB    NOT NULL,
        before        TEXT    NOT NULL,
        after         TEXT    NOT NULL,
        before_sha256 TEXT,
        after_sha256  TEXT,
        PRIMARY KEY (operation, path)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX idx_shadow_sha256 ON shadow(sha256)",
    "CREATE INDEX idx_changes_before ON changes(before_sha256)",
    "CREATE INDEX idx_changes_after ON changes(after_sha256)",
    """
    CREATE TABLE reverts (
        reverted INTEGER NOT NULL REFERENCES operations(id) ON DELETE CASCADE,
        path     BLOB    NOT NULL,
        by       INTEGER NOT NULL REFERENCES operations(id) ON DELETE CASCADE,
        PRIMARY KEY (reverted, path)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX idx_reverts_by ON reverts(by)",
)

SCHEMA: tuple[tuple[str, ...], ...] = (_VERSION_1,)
"""Step i leads from version i to version i + 1. Steps that were released never change."""
