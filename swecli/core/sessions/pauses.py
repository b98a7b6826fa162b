"""The pauses between the turns of stored sessions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from swecli.core.sessions.database import DATABASE, changed_at

NEWEST_FOLDERS = 5
"""Workspaces whose sessions show the user's pauses."""
SESSIONS = 30
"""Newest sessions of a database that are read."""
_MOST = 2_000
_PAUSES = """
    SELECT started.ts - (
        SELECT before.ts FROM events before
        WHERE before.session_id = started.session_id AND before.seq < started.seq AND before.type = 'turn_ended'
        ORDER BY before.seq DESC LIMIT 1
    )
    FROM events started
    WHERE started.type = 'turn_started' AND started.agent = 'main'
        AND started.session_id IN (SELECT id FROM sessions ORDER BY updated DESC LIMIT ?)
    LIMIT ?
"""


def read_pauses(databases: Iterable[Path]) -> list[float]:
    """Seconds before each turn but the first of a session, from the newest sessions. A database that can't be read
    counts as empty: nothing depends on it but a choice that costs little either way."""
    pauses: list[float] = []
    for path in databases:
        try:
            with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=0.2)) as connection:
                rows = connection.execute(_PAUSES, (SESSIONS, _MOST)).fetchall()
        except sqlite3.Error:
            continue
        pauses += (float(row[0]) for row in rows if row[0] is not None and row[0] >= 0.0)
    return pauses


def newest_databases(data: Path) -> list[Path]:
    """The session databases that changed last."""
    try:
        times = {(path := folder / DATABASE): changed_at(path) for folder in (data / "workspaces").iterdir()}
    except OSError:
        return []
    return sorted(filter(times.get, times), key=lambda path: times[path], reverse=True)[:NEWEST_FOLDERS]
