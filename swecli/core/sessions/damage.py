"""Damage of a database: its signs, and the examination of a file."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from swecli.core.sessions.schema import APPLICATION_ID, Migration
from swecli.lazy_pattern import lazy_pattern

_HEADER = b"SQLite format 3\x00"
_HEADER_SIZE = 100
_DAMAGED = frozenset((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB))
_ERROR_CODE = lazy_pattern(r"error code=(\d+)")
_SCHEMA = "SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'index')"

_PLAUSIBLE = 10_000
"""How far a later version's number may be above the known ones; more is damage."""

Schema = dict[tuple[str, str], str]
"""Creating statement by type and name."""


class Damaged(Exception):
    """The file differs from what was written; the message describes the damage, for a sentence in parentheses."""


def lenient(raw: bytes) -> str:
    """Text as SQLite returns it: one bad byte must not end a whole query."""
    return raw.decode("utf-8", "replace")


def code_of(error: Exception) -> int:
    """SQLite's primary result code; SQLITE_ERROR for other exceptions."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def is_damage(error: Exception) -> bool:
    """Whether an SQLite error means that the file is damaged. Its messages may quote damaged bytes, which then can't be
    decoded."""
    return isinstance(error, UnicodeDecodeError) or code_of(error) in _DAMAGED


def version_of(connection: sqlite3.Connection) -> int:
    """The version of the tables; 0 for a new file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def header_damage(path: Path) -> str:
    """Damage in header bytes that SQLite does not write, or an empty string.

    Raises:
        OSError: the disk fails.
    """
    with path.open("rb") as file:
        header = file.read(_HEADER_SIZE)
    if not header.startswith(_HEADER) or len(header) < _HEADER_SIZE:
        return "it is not a database"
    return "" if max(header[18:20]) <= 2 else "its header is damaged"


def examine(connection: sqlite3.Connection, migrations: Sequence[Migration], seconds: float) -> int:
    """Check the file for at most ``seconds``; returns the version of its tables, which may be a later one.

    Raises:
        Damaged: the file differs from what was written.
        sqlite3.Error: the disk fails, or another process has a lock.
    """
    try:
        connection.execute("BEGIN")  # a concurrent change by another process is seen as a whole
        try:
            version = version_of(connection)
            schema = _schema(connection)
            _examine_schema(connection, schema, version, migrations)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        if schema:
            _check(connection, seconds)
        return version
    except (sqlite3.Error, UnicodeDecodeError) as error:
        # In a sound file SQLite can read the list of tables, whatever else is wrong.
        if is_damage(error) or code_of(error) in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG):
            raise Damaged(_shown(error)) from error
        raise


def _examine_schema(
    connection: sqlite3.Connection, schema: Schema, version: int, migrations: Sequence[Migration]
) -> None:
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    if not schema and (version or pages > 1):
        raise Damaged("its tables are missing")
    if not schema:
        return
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    if owner != APPLICATION_ID:
        raise Damaged("it belongs to another program")
    if version <= 0:
        raise Damaged("its version is missing")
    if version > len(migrations) + _PLAUSIBLE:
        raise Damaged(f"its version is {version:,}, and this swecli knows {len(migrations)}")
    if version > len(migrations):
        return  # whatever its tables are: a later version may change rows only
    wanted = _made(migrations[:version])
    for (kind, name), made in wanted.items():
        if (kind, name) not in schema:
            raise Damaged(f"the {kind} {name} is missing")
        if schema[kind, name] != made:
            raise Damaged(f"the {kind} {name} has changed")


def _made(migrations: Sequence[Migration]) -> Schema:
    with closing(sqlite3.connect(":memory:")) as connection:
        for statements in migrations:
            for statement in statements:
                connection.execute(statement)
        return _schema(connection)


def _schema(connection: sqlite3.Connection) -> Schema:
    rows = connection.execute(_SCHEMA).fetchall()
    return {(str(kind), str(name)): " ".join(str(sql).split()) for kind, name, sql in rows}


def _check(connection: sqlite3.Connection, seconds: float) -> None:
    """Run the full check: the quick one costs hardly less and does not compare indexes with their tables."""
    deadline = time.monotonic() + seconds
    connection.set_progress_handler(lambda: time.monotonic() > deadline, 20_000)
    try:
        verdict = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except sqlite3.OperationalError as error:
        if code_of(error) != sqlite3.SQLITE_INTERRUPT:
            raise
        return  # too large for the time: counts as sound
    finally:
        connection.set_progress_handler(None, 0)
    if verdict != "ok":
        require_no_disk_error(verdict)
        raise Damaged("; ".join(line for line in verdict.splitlines() if not line.startswith("***")))


def require_no_disk_error(verdict: str) -> None:
    """Reject a verdict that is due to the disk: SQLite's check lists unreadable pages along with damaged ones.

    Raises:
        OSError: the disk fails.
    """
    codes = {int(code) & 0xFF for code in _ERROR_CODE.findall(verdict)}
    if sqlite3.SQLITE_IOERR in codes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def _shown(error: Exception) -> str:
    return "its list of tables is damaged" if isinstance(error, UnicodeDecodeError) else str(error)
