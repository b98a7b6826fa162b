"""The database of one workspace: opened, checked, migrated, and never in the way of the work.

Whatever is wrong with the file, opening it gives a usable database: a damaged file is moved aside as it is,
and where nothing can be written the database lives in memory. Each such thing is a sentence in
``Database.problems``, for the user to read.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from swecli.core.sessions.migrations import APPLICATION_ID, MIGRATIONS, Migration

BUSY_SECONDS = 5.0
"""How long a connection waits for another process that writes."""

CHECK_SECONDS = 2.0
"""Longest time for the integrity check at opening; a file too large for it is taken as sound."""

_HEADER = b"SQLite format 3\x00"
_SUFFIXES = ("", "-wal", "-shm")
_DAMAGED = frozenset((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB))


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a database is for, in the words of the sentences about its troubles."""

    name: str = "session database"
    unusable: str = "This session is kept in memory only and is lost when swecli ends"
    damaged: str = "earlier sessions of this folder are not listed"


SESSIONS = Purpose()


class Database:
    """One connection to write with and one to read with, each used by one thread at a time.

    Readers don't wait for the writer. In memory there is a single connection for both.
    """

    def __init__(self, path: Path | None, writer: sqlite3.Connection, reader: sqlite3.Connection) -> None:
        self.path = path
        """None where the database lives in memory."""
        self.problems: tuple[str, ...] = ()
        """What the user should know of how it was opened, one sentence each."""
        self._writer = writer
        self._reader = reader
        self._write_lock = threading.Lock()
        self._read_lock = threading.Lock() if reader is not writer else self._write_lock

    @property
    def durable(self) -> bool:
        """Whether what is written outlives the process."""
        return self.path is not None

    @contextlib.contextmanager
    def write(self, *, power_safe: bool = False) -> Generator[sqlite3.Connection, None, None]:
        """One transaction: committed at the end of the block, rolled back when the block raises.

        Waits up to ``BUSY_SECONDS`` for other processes, so call it from a thread where an event loop runs.
        A commit survives the death of the process; with ``power_safe`` that of the machine as well.

        Raises:
            sqlite3.Error: nothing was written.
        """
        with self._write_lock:
            connection = self._writer
            if power_safe:
                connection.execute("PRAGMA synchronous=FULL")
            try:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
            finally:
                if power_safe:
                    connection.execute("PRAGMA synchronous=NORMAL")

    @contextlib.contextmanager
    def read(self) -> Generator[sqlite3.Connection, None, None]:
        """The connection for queries."""
        with self._read_lock:
            yield self._reader

    def close(self) -> None:
        """Close both connections. The last process to close folds the write-ahead log into the file."""
        with self._write_lock:
            self._writer.close()
        if self._reader is not self._writer:
            with self._read_lock:
                self._reader.close()


def open_database(
    path: Path,
    *,
    migrations: Sequence[Migration] = MIGRATIONS,
    check_seconds: float = CHECK_SECONDS,
    purpose: Purpose = SESSIONS,
) -> Database:
    """Open the database at ``path``, creating folder and file as needed (readable by the user only).

    Never raises for what it finds there: see ``Database.problems`` and ``Database.durable``.
    """
    problems: list[str] = []
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        damage = _damage_of(path, check_seconds)
        if damage:
            problems.append(_quarantine(path, damage, purpose))
        database = _open_file(path, migrations, problems)
    except (OSError, sqlite3.Error, _Unusable) as error:
        problems.append(
            f"The {purpose.name} {path} can't be used ({_reason(error)}). {purpose.unusable}; "
            "make the folder writable or free some space, then start again."
        )
        database = _open_memory(migrations)
    database.problems = tuple(problems)
    return database


def open_in_memory(migrations: Sequence[Migration] = MIGRATIONS) -> Database:
    """A database that ends with the process, for a run that shall leave nothing behind."""
    return _open_memory(migrations)


class _Unusable(Exception):
    """The file is sound but not for this program to write."""


def _damage_of(path: Path, check_seconds: float) -> str:
    """What is wrong with the file, or an empty string."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return ""
    if size == 0:
        leftovers = _size(_beside(path, "-wal")) > 0 or any(path.parent.glob(f"{path.name}.before-v*"))
        return "it is empty although it held sessions" if leftovers else ""
    with path.open("rb") as file:
        header = file.read(100)
    if not header.startswith(_HEADER) or len(header) < 100:
        return "it is not a database"
    try:
        return _check(path, check_seconds)
    except sqlite3.Error as error:
        if _code(error) in _DAMAGED:
            return str(error)
        raise


def _check(path: Path, seconds: float) -> str:
    deadline = time.monotonic() + seconds
    connection = _connect(path)
    try:
        connection.set_progress_handler(lambda: time.monotonic() > deadline, 20_000)
        owner = connection.execute("PRAGMA application_id").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and owner != APPLICATION_ID:
            return "it belongs to another program"
        verdict = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        return "" if verdict == "ok" else verdict
    except sqlite3.OperationalError as error:
        if _code(error) == sqlite3.SQLITE_INTERRUPT:
            return ""
        raise
    finally:
        connection.close()


def _quarantine(path: Path, damage: str, purpose: Purpose) -> str:
    """Move the file and what belongs to it aside, together; returns the sentence for the user."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    target = _beside(path, f".corrupt-{stamp}")
    number = 1
    while target.exists():
        number += 1
        target = _beside(path, f".corrupt-{stamp}-{number}")
    for suffix in _SUFFIXES:
        with contextlib.suppress(FileNotFoundError):
            _beside(path, suffix).rename(_beside(target, suffix))
    return (
        f"The {purpose.name} was damaged ({damage}). It was kept as {target} and a new one was started; "
        f"{purpose.damaged}."
    )


def _open_file(path: Path, migrations: Sequence[Migration], problems: list[str]) -> Database:
    # SQLite gives its side files the mode of the main file, so that one has to exist with the right mode first.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    writer = _connect(path)
    try:
        _enter_wal(writer)
        writer.execute("PRAGMA synchronous=NORMAL")
        writer.execute("PRAGMA foreign_keys=ON")
        _migrate(writer, path, migrations, problems)
        reader = _connect(path)
    except BaseException:
        writer.close()
        raise
    return Database(path, writer, reader)


def _open_memory(migrations: Sequence[Migration]) -> Database:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA foreign_keys=ON")
    _migrate(connection, None, migrations, [])
    return Database(None, connection, connection)


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def _enter_wal(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging. SQLite's own waiting doesn't cover the first switch of a new file."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _migrate(
    connection: sqlite3.Connection, path: Path | None, migrations: Sequence[Migration], problems: list[str]
) -> None:
    version = _version(connection)
    if version > len(migrations):
        raise _Unusable("a newer swecli wrote it; update swecli to continue these sessions")
    if version == len(migrations):
        return
    copy = _copy_before(connection, path, version) if path is not None and version > 0 else None
    try:
        while (version := _step(connection, migrations)) < len(migrations):
            pass
    except sqlite3.Error as error:
        kept = f"; it is unchanged, a copy is {copy}" if copy else ""
        raise _Unusable(f"bringing it from version {version} to {len(migrations)} failed: {error}{kept}") from error
    if copy is not None:
        problems.append(f"The session database was brought to version {len(migrations)}; {copy} is the copy of before.")


def _step(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> int:
    """One migration in one transaction. Another process may have been faster, so the version is read inside."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)
        if version < len(migrations):
            for statement in migrations[version]:
                connection.execute(statement)
            version += 1
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version={version}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return version


def _copy_before(connection: sqlite3.Connection, path: Path, version: int) -> Path:
    """A copy through SQLite's backup, which has what is still in the write-ahead log too."""
    target = _beside(path, f".before-v{version + 1}")
    temporary = _beside(target, f".{os.getpid()}")
    os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600))
    with contextlib.closing(sqlite3.connect(temporary)) as copy:
        connection.backup(copy)
    temporary.replace(target)
    return target


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
