"""Health of a session database in place: a full check, and lossless repairs."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from swecli.core.atomic_text import ASIDE
from swecli.core.sessions.damage import is_damage
from swecli.core.sessions.database import (
    BUSY_SECONDS,
    CONTINUED,
    LOOKED_AT,
    Database,
    has_locks,
    open_database,
    read_only,
)
from swecli.core.sessions.file_identity import SIDE_FILES
from swecli.core.sessions.losses import Loss, losses
from swecli.core.sessions.schema import MIGRATIONS
from swecli.core.sessions.search import FILE as INDEX
from swecli.core.sessions.search import SearchIndex, refresh

WASTE = 0.25
"""Share of free pages from which shrinking the file pays off."""
SMALLEST = 8_000_000
"""Bytes of a file below which it does not pay off."""
TABLES = ("sessions", "events", "tool_result_blobs", "session_snapshots")
"""Tables of stored data, referenced ones first."""


class Health(Struct, frozen=True):
    """``damage`` describes the damage, empty if sound; ``free`` is unused bytes of the file."""

    size: int = 0
    sessions: int = 0
    free: int = 0
    damage: str = ""
    trouble: str = ""
    """Why it can't be examined, if the reason is not damage."""

    @property
    def wasteful(self) -> bool:
        return self.size > SMALLEST and self.free > WASTE * self.size


def health_of(path: Path) -> Health:
    """Read and check the whole file. Changes nothing; may take seconds for a large one."""
    size = size_of(path)
    try:
        with closing(read_only(path)) as connection:
            verdict = str(connection.execute("PRAGMA integrity_check(3)").fetchone()[0])
            pages = int(connection.execute("PRAGMA freelist_count").fetchone()[0])
            page = int(connection.execute("PRAGMA page_size").fetchone()[0])
            made = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()  # not if the disk was full
            count = connection.execute("SELECT count(*) FROM sessions") if made else None
            sessions = int(count.fetchone()[0]) if count is not None else 0
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return Health(size, damage=str(error)) if is_damage(error) else Health(size, trouble=str(error))
    return Health(size, sessions, pages * page, "" if verdict == "ok" else " ".join(verdict.split()))


def quarantined(path: Path) -> Sequence[Path]:
    """Databases kept here under other names, because they were damaged or their place was taken; oldest first."""
    files = (file for mark in (ASIDE, CONTINUED) for file in path.parent.glob(f"{path.name}{mark}*"))
    whole = (file for file in files if not file.name.endswith(("-wal", "-shm")))
    return sorted(whole, key=lambda file: file.name.partition("-")[2])


def size_of(path: Path) -> int:
    """Bytes of a database with its side files; 0 if there is none."""
    return sum(file.stat().st_size for suffix in SIDE_FILES if os.path.exists(file := Path(f"{path}{suffix}")))


def shrink(path: Path) -> int:
    """Free the space of deleted data in a session database. Returns the bytes.

    Raises:
        sqlite3.Error: the disk is full, or another process has a lock; nothing was changed.
    """
    before = size_of(path)
    with _in_place(path) as database, database.alone() as connection:
        _give_back(connection)
    return max(0, before - size_of(path))


def shrink_other(path: Path) -> int:
    """The same for another database of swecli's, which is neither repaired nor migrated by this.

    Raises:
        sqlite3.Error: as for ``shrink``.
    """
    if not os.path.isfile(path) or not has_locks(path.parent):
        return 0
    before = size_of(path)
    with closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
        _give_back(connection)
    return max(0, before - size_of(path))


def _give_back(connection: sqlite3.Connection) -> None:
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # until then the old size stays in the file


@contextmanager
def _in_place(path: Path) -> Generator[Database]:
    """The database in its file: a change of the one in memory that replaces an unusable file would be lost.

    Raises:
        sqlite3.Error: the file can't be used.
    """
    with closing(open_database(path, purpose=LOOKED_AT)) as database:
        if not database.durable:
            raise sqlite3.OperationalError(database.why_in_memory.rstrip("."))
        yield database


def rebuild_index(path: Path) -> None:
    """Rebuild the search index of a database.

    Raises:
        OSError, sqlite3.Error: it can't be written.
    """
    index = path.with_name(INDEX)
    for suffix in SIDE_FILES:
        with suppress(FileNotFoundError):
            os.unlink(f"{index}{suffix}")
    refresh(path)
    with closing(SearchIndex(index)):
        pass


class Recovered(Struct, frozen=True):
    """``found`` sessions are readable in a damaged database, ``added`` of them are new in the present one, which lacked
    events of ``grown`` others. ``lost`` are those with events missing from both."""

    found: int
    added: int
    lost: Sequence[Loss] = ()
    grown: int = 0


def recover(path: Path, damaged: Path) -> Recovered:
    """Add the readable part of a damaged database that was put aside to the one in place, which keeps all its data. The
    damaged one stays.

    Raises:
        OSError, sqlite3.Error: one of the disks fails; nothing was changed.
    """
    from swecli.core.sessions.rescue import bring_over  # only for a damaged file

    fresh = path.with_name(f"{path.name}.found-{os.getpid()}")
    try:
        os.close(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
            for statements in MIGRATIONS:
                for statement in statements:
                    connection.execute(statement)
            rescued = bring_over(damaged, connection)
            with _in_place(path) as database, database.write(power_safe=True) as target:
                before = _events(target)
                copy_rows(connection, target)
                after = _events(target)
                whole = after.keys() - {loss.session for loss in losses(target)}
            lost = tuple(loss for loss in rescued.lost if loss.session not in whole)
            grown = sum(after[session] > events for session, events in before.items())
            return Recovered(rescued.sessions, len(after) - len(before), lost, grown)
    finally:
        for suffix in (*SIDE_FILES, "-journal"):
            with suppress(FileNotFoundError):
                os.unlink(f"{fresh}{suffix}")


def _events(database: sqlite3.Connection) -> dict[str, int]:
    """The number of events of each session."""
    counted = "SELECT id, (SELECT count(*) FROM events WHERE session_id = id) FROM sessions"
    return {str(session): int(events) for session, events in database.execute(counted)}


def copy_rows(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """Copy the sessions of a database to another one, inside its transaction; existing rows stay."""
    target.execute("PRAGMA defer_foreign_keys=ON")
    for table in TABLES:
        columns = [str(row[1]) for row in source.execute(f"PRAGMA table_info({table})")]
        named, marks = ", ".join(columns), ", ".join("?" * len(columns))
        target.executemany(
            f"INSERT INTO {table}({named}) VALUES ({marks}) ON CONFLICT DO NOTHING",
            source.execute(f"SELECT {named} FROM {table}"),
        )
