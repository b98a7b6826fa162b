"""The database of one workspace: opened, checked and migrated without blocking the work.

Opening always gives a usable database: a damaged file is moved aside unchanged, and its readable part goes into a new
one; if the disk fails or can't be written, the database lives in memory and the file is kept. Each problem is a
sentence for the user in ``Database.problems``.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sqlite3
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from swecli.core.atomic_text import ASIDE, alone_in, make_private, name_aside
from swecli.core.sessions.damage import (
    Damaged,
    code_of,
    examine,
    header_damage,
    is_damage,
    lenient,
    version_of,
)
from swecli.core.sessions.file_identity import SIDE_FILES, Change, Identity, identity_of
from swecli.core.sessions.schema import APPLICATION_ID, MIGRATIONS, Migration
from swecli.steady_clock import SteadyClock

if TYPE_CHECKING:
    from swecli.core.sessions.recovery import SessionRecovery

T = TypeVar("T")
DATABASE = "sessions.db"
"""Name of a folder's database of sessions."""

BUSY_SECONDS = 5.0
"""Time limit for another process's write lock."""

CHECK_SECONDS = 2.0
"""Time limit for the integrity check at opening; a file too large for it counts as sound."""

CONTINUED = ".continued-"
"""Part of the name of a sound database, in which a session goes on whose own place was taken meanwhile."""
_STALE_SECONDS = 60.0
"""Age from which a lock folder counts as left by a killed process."""
_SHARING_FAILED = frozenset(
    (
        sqlite3.SQLITE_IOERR_LOCK,
        sqlite3.SQLITE_IOERR_UNLOCK,
        sqlite3.SQLITE_IOERR_RDLOCK,
        sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK,
        sqlite3.SQLITE_IOERR_SHMOPEN,
        sqlite3.SQLITE_IOERR_SHMSIZE,
        sqlite3.SQLITE_IOERR_SHMLOCK,
        sqlite3.SQLITE_IOERR_SHMMAP,
    )
)


def _rescued(damaged: Path, fresh: sqlite3.Connection) -> object:
    from swecli.core.sessions.rescue import bring_over  # only for a damaged file

    return bring_over(damaged, fresh)


class Purpose(Struct, frozen=True):
    """A database's purpose, in the words of its problem messages."""

    name: str = "session database"
    unusable: str = "This session is kept in memory only and is lost when swecli ends"
    rescue: Callable[[Path, sqlite3.Connection], object] = _rescued
    """Copies the readable part of a damaged file into a new database; ``str`` of the result is the report for the
    user."""
    copied: bool = False
    """Whether a read-only file is worth a temporary copy that ends with the process."""


SESSIONS = Purpose(copied=True)
LOOKED_AT = Purpose(unusable="It was not changed", copied=True)
"""For commands about sessions that start none."""


_NOT_WRITABLE = frozenset((sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM))
"""SQLite's codes for a file, or its folder, that this user must not write."""
_NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT))


class Sharing(Enum):
    """How processes share the file: the best method of its file system."""

    LOG = "write-ahead log"
    """Needs file locks and shared memory."""
    LOCKS = "file locks"
    """A rollback journal: slower, and readers wait for writers."""
    DOT_FILE = "a folder as lock"
    """A rollback journal with a folder as lock, for file systems without locks."""


class Database:
    """One connection for writing and one for reading, each used by one thread at a time.

    Readers don't wait for the writer. In memory, one connection serves both.
    """

    def __init__(self, path: Path | None, writer: sqlite3.Connection, reader: sqlite3.Connection) -> None:
        self.path = path
        """None if the database lives in memory."""
        self.problems: tuple[str, ...] = ()
        """Problems on opening for the user, one sentence each."""
        self.why_in_memory = ""
        """Why it is not in its file, as a sentence; empty if it is, or if no file was requested."""
        self.copied = False
        """Whether it has the contents of its read-only file."""
        self.recovery: SessionRecovery | None = None
        """Without it, writing fails once the file is no longer the one that was opened."""
        self._identity = Identity()
        self._closed = False
        self._writer = writer
        self._reader = reader
        self._write_lock = threading.Lock()
        self._read_lock = threading.Lock() if reader is not writer else self._write_lock
        self._recognise()

    @property
    def durable(self) -> bool:
        return self.path is not None

    @contextmanager
    def write(self, *, power_safe: bool = False) -> Generator[sqlite3.Connection, None, None]:
        """One transaction: committed at the end of the block, rolled back if the block raises.

        An open file would take all writes after it lost its name, and end with the process: so its identity is compared
        before each transaction, and ``recovery`` continues in the file that is at the path then.

        Waits up to ``BUSY_SECONDS`` for other processes, so call it from a thread beside an event loop. A commit
        survives the death of the process; with ``power_safe`` also a power failure.

        Raises:
            sqlite3.Error: nothing was written.
        """
        with self._write_lock:
            self._require_file()
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
                self._recognise()

    def _recognise(self) -> None:
        """Note the identity of the files as this process leaves them."""
        if self.path is not None:
            with suppress(OSError):
                self._identity = identity_of(self.path, looks_into=False)

    def _require_file(self) -> None:
        if self.path is None or self._closed:
            return
        try:
            now = identity_of(self.path)
        except OSError:
            return  # it can't be looked at now, which does not mean that it is gone
        change = self._identity.change(now)
        if change is None and now.stamp != self._identity.stamp and now.log is not None and self.recovery is not None:
            if self.recovery.is_complete(self.path):
                self._identity = now
            else:
                change = Change.OVERWRITTEN
        if change is None:
            return
        if self.recovery is None:
            raise sqlite3.OperationalError(f"{self.path} was {change.value} while swecli uses it")
        with self._read_lock if self._read_lock is not self._write_lock else nullcontext():
            try:
                other = self.recovery.recover(self.path, change, self._identity, self._writer)
            except OSError as error:  # who stores something is ready for an error of the database
                what = f"{self.path} was {change.value} while swecli uses it"
                raise sqlite3.OperationalError(f"{what} ({error.strerror or error})") from error
            self._adopt(other)

    def _adopt(self, other: Database) -> None:
        """Continue with another database's connections. SQLite neither shortens nor removes the log of a file that has
        lost its name, so closing the old ones leaves the new file's log alone."""
        old = {self._reader, self._writer}
        self.path, self._reader, self._writer = other.path, other._reader, other._writer
        for connection in old:
            with suppress(sqlite3.Error):
                connection.close()
        self._recognise()

    @contextmanager
    def read(self) -> Generator[sqlite3.Connection, None, None]:
        with self._read_lock:
            yield self._reader

    @contextmanager
    def alone(self) -> Generator[sqlite3.Connection, None, None]:
        """The writing connection outside a transaction, for statements that can't be in one."""
        with self._write_lock:
            yield self._writer

    def close(self) -> None:
        """Close both connections. The last process to close merges the write-ahead log into the file."""
        self._closed = True
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
    """Open the database at ``path``, creating folder and file as needed (readable only by the user).

    Never raises for what it finds there: see ``Database.problems`` and ``Database.durable``.
    """
    problems: list[str] = []
    try:
        make_private(path.parent)
        database = _open_or_mend(_Opening(path, migrations, check_seconds, purpose, problems))
    except (OSError, sqlite3.Error, _Unusable) as error:
        database = open_unwritten(path, error, migrations, purpose=purpose)
        problems += database.problems
    database.problems = tuple(problems)
    return database


def open_unwritten(
    path: Path, error: Exception, migrations: Sequence[Migration] = MIGRATIONS, *, purpose: Purpose = SESSIONS
) -> Database:
    """A database in memory instead of one that fails with ``error``; with the file's contents if only writing fails.
    The file stays unchanged. Never raises for what it finds there."""
    copy = _open_copy(path, migrations) if purpose.copied and _only_readable(path, error) else None
    database = copy or open_in_memory(migrations)
    database.copied = copy is not None
    how = "can't be used" if copy is None else "can't be written" if is_full(error) else "is read-only"
    database.why_in_memory = f"The {purpose.name} {path} {how} ({_reason(error)})."
    database.problems = (f"{database.why_in_memory} {purpose.unusable}.",)
    return database


def is_full(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno in _NO_ROOM
    return isinstance(error, sqlite3.Error) and code_of(error) == sqlite3.SQLITE_FULL


def open_in_memory(migrations: Sequence[Migration] = MIGRATIONS) -> Database:
    """A database that ends with the process, for a run that must leave no trace."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA foreign_keys=ON")
    _migrate(connection, None, migrations, [])
    return Database(None, connection, connection)


class _Unusable(Exception):
    """The file stays in place and this process can't write it; the message says why and what to do."""


class _Opening(Struct, frozen=True):
    path: Path
    migrations: Sequence[Migration]
    check_seconds: float
    purpose: Purpose
    problems: list[str]


def _open_or_mend(opening: _Opening) -> Database:
    """Open the file; a damaged one is moved aside, and its readable part goes into a new one."""
    path = opening.path
    if odd := _no_file(path):
        raise _Unusable(odd)
    try:
        if os.path.exists(path) or not _abandoned(path):
            return _open_shared(opening)
    except Damaged:
        pass
    with alone_in(path.parent):
        if not os.path.exists(path) and (left := _abandoned(path)):
            opening.problems.append(_complete(opening, left[-1]))
        try:
            return _open_shared(opening)  # repaired by another process meanwhile, or the disk failed only once
        except Damaged as damaged:
            _require_readable(path)
            opening.problems.append(_mend(opening, str(damaged)))
        return _open_shared(opening)


def _open_shared(opening: _Opening) -> Database:
    """Open the file with the best sharing method of its file system."""
    path = opening.path
    if _size(path) == 0 and os.path.exists(path):
        before = any(path.parent.glob(f"{path.name}.before-v*"))
        if before or _size(_beside(path, "-wal")) > 0:
            raise Damaged("it is empty but should contain data")
    try:
        return _open_file(opening, Sharing.LOG)
    except sqlite3.Error as error:
        if code_of(error) == sqlite3.SQLITE_READONLY and (damage := header_damage(path)):
            raise Damaged(damage) from error
        if not _is_about_sharing(error, path) or not _allows(path.parent, os.W_OK):
            raise
    return _open_file(opening, Sharing.LOCKS if has_locks(path.parent) else Sharing.DOT_FILE)


def _open_file(opening: _Opening, sharing: Sharing) -> Database:
    path = opening.path
    with suppress(FileExistsError):
        # SQLite gives its side files the mode of the main file, so that one has to exist with the right mode first. One
        # that exists is never opened here: closing it would drop the locks of this process's other connections.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    writer = _connect(path, sharing)
    try:
        if sharing is not Sharing.LOG:
            # A log of an earlier time on another system can be read by one process alone, and then it is no more.
            writer.execute("PRAGMA locking_mode=EXCLUSIVE")
        _check_lock(writer, path, sharing)
        version = examine(writer, opening.migrations, opening.check_seconds)
        if version > len(opening.migrations):
            raise _Unusable("a newer swecli wrote it; upgrade swecli to continue its sessions")
        _enter_journal(writer, sharing)
        writer.execute("PRAGMA synchronous=NORMAL")
        writer.execute("PRAGMA foreign_keys=ON")
        _migrate(writer, path, opening.migrations, opening.problems)
        writer.execute("BEGIN IMMEDIATE")
        writer.execute(f"PRAGMA user_version={len(opening.migrations)}")  # unwritable parts are now known
        writer.execute("ROLLBACK")
        reader = _connect(path, sharing) if sharing is Sharing.LOG else writer
    except BaseException as error:
        writer.close()
        if isinstance(error, sqlite3.Error) and is_damage(error):
            raise Damaged(str(error)) from error
        raise
    return Database(path, writer, reader)


def _check_lock(connection: sqlite3.Connection, path: Path, sharing: Sharing) -> None:
    """Find out without ``BUSY_SECONDS`` whether a refused lock belongs to another process. A lock folder of a killed
    process is removed."""
    connection.execute("PRAGMA busy_timeout=300")
    try:
        connection.execute("PRAGMA schema_version").fetchone()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if code_of(error) != sqlite3.SQLITE_BUSY:
            return  # recurs when the file is examined
        if sharing is Sharing.LOG and not has_locks(path.parent):
            raise
        if sharing is Sharing.DOT_FILE:
            lock = _beside(path, ".lock")
            with suppress(OSError):
                if time.time() - lock.stat().st_mtime > _STALE_SECONDS:
                    lock.rmdir()
    finally:
        connection.execute(f"PRAGMA busy_timeout={round(BUSY_SECONDS * 1000)}")


def _extended(error: sqlite3.Error) -> int:
    """SQLite's extended code, 0 if unknown."""
    return getattr(error, "sqlite_errorcode", 0)


def _is_about_sharing(error: sqlite3.Error, path: Path) -> bool:
    """Whether the file system lacks shared memory or locks, as opposed to an unreadable file."""
    if isinstance(error, _NoLog) or _extended(error) in _SHARING_FAILED:
        return True
    if code_of(error) in (sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_CANTOPEN):
        return os.path.exists(path)
    return code_of(error) == sqlite3.SQLITE_BUSY and not has_locks(path.parent)


def has_locks(folder: Path) -> bool:
    """Whether the file system of a writable folder has file locks."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a broken link",
}


def _no_file(path: Path) -> str:
    """What is no file where SQLite opens one, with what to do: it would wait for the other end of a pipe, and speak of
    the disk. Empty if there is nothing like that."""
    for suffix in (*SIDE_FILES, "-journal"):
        side_file = _beside(path, suffix)
        try:
            mode = (side_file.stat() if side_file.exists() else side_file.lstat()).st_mode
        except OSError:
            continue  # there is none; other faults are SQLite's to tell
        if not stat.S_ISREG(mode):
            return f"{side_file.name} is {_KINDS.get(stat.S_IFMT(mode), 'a device')}; move it away"
    return ""


def _require_readable(path: Path) -> None:
    """Distinguish disk errors: SQLite calls a page malformed that the disk failed to deliver.

    Raises:
        OSError: the disk fails.
    """
    for suffix in ("", "-wal"):
        with suppress(FileNotFoundError), _beside(path, suffix).open("rb", buffering=0) as file:
            while file.read(1 << 20):
                pass


def _mend(opening: _Opening, damage: str) -> str:
    """Replace the damaged file with a new database of its readable part, and move it aside; returns the sentence for
    the user."""
    path, purpose = opening.path, opening.purpose
    for left in path.parent.glob(f"{path.name}.fresh-*"):
        left.unlink()
    fresh = _beside(path, f".fresh-{os.getpid()}")
    try:
        os.close(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with closing(_connect(fresh, Sharing.LOG if has_locks(path.parent) else Sharing.DOT_FILE)) as connection:
            _migrate(connection, None, opening.migrations, [])
            outcome = purpose.rescue(path, connection)
    except (OSError, sqlite3.Error) as error:
        with suppress(OSError):
            fresh.unlink()
        raise _Unusable(f"it is damaged: {damage}; cannot copy the readable data: {_reason(error)}") from error
    target = _move_aside(path)
    fresh.rename(path)
    return f"The {purpose.name} was damaged ({damage}). It was kept as {target}. {outcome}."


def _abandoned(path: Path) -> list[Path]:
    """New databases of repairs that a kill ended, oldest first. If the file itself is missing, the newest one is
    complete: the damaged file is moved only then."""
    files = (file for file in path.parent.glob(f"{path.name}.fresh-*") if file.name.rpartition("-")[2].isdecimal())
    return sorted(files, key=lambda file: file.stat().st_mtime)


def _complete(opening: _Opening, fresh: Path) -> str:
    """Finish a repair that a kill ended after the damaged file was moved; returns the sentence for the user."""
    path = opening.path
    set_aside = sorted(
        file for file in path.parent.glob(f"{path.name}{ASIDE}*") if not file.name.endswith(("-wal", "-shm"))
    )
    target = set_aside[-1] if set_aside else name_aside(path)
    for suffix in SIDE_FILES[1:]:  # of the damaged file: its log must not be applied to the new one
        with suppress(FileNotFoundError):
            _beside(path, suffix).rename(_beside(target, suffix))
    fresh.rename(path)
    return (
        f"The {opening.purpose.name} was damaged. It was kept as {target}. The recovery of its readable part was "
        "interrupted, and is complete now."
    )


def _move_aside(path: Path) -> Path:
    """Rename the file and its side files together; returns its new name."""
    target = name_aside(path)
    for suffix in SIDE_FILES:
        with suppress(FileNotFoundError):
            _beside(path, suffix).rename(_beside(target, suffix))
    return target


def _only_readable(path: Path, error: Exception) -> bool:
    """Whether only writing failed: the file exists, and the disk is full, or the file or its folder is not writable."""
    refused = isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
    closed = isinstance(error, sqlite3.Error) and code_of(error) in _NOT_WRITABLE
    return (refused or closed or is_full(error)) and _allows(path, os.R_OK)


def _allows(path: Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _open_copy(path: Path, migrations: Sequence[Migration]) -> Database | None:
    """A private database that begins with a file's contents; None if unreadable."""
    target = sqlite3.connect("", isolation_level=None, check_same_thread=False)  # large ones go to a nameless file
    try:
        with closing(read_only(path)) as source:
            source.backup(target)
        target.text_factory = lenient
        examine(target, migrations, CHECK_SECONDS)
        target.execute("PRAGMA foreign_keys=ON")
        _migrate(target, None, migrations, [])
    except (sqlite3.Error, Damaged, _Unusable):
        target.close()
        return None
    return Database(None, target, target)


def _connect(path: Path, sharing: Sharing = Sharing.LOG) -> sqlite3.Connection:
    system = "?vfs=unix-dotfile" if sharing is Sharing.DOT_FILE else ""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}{system}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.text_factory = lenient
    return connection


def read_only(path: Path) -> sqlite3.Connection:
    """A connection that takes no part in writing, to a database that may be open elsewhere. If its folder is not
    writable, it shows the present state.

    Raises:
        sqlite3.Error: it can't be read.
    """
    if odd := _no_file(path):
        raise sqlite3.OperationalError(odd)
    system = "" if has_locks(path.parent) or not _allows(path.parent, os.W_OK) else "&vfs=unix-dotfile"
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro{system}", uri=True, timeout=2)
    connection.text_factory = lenient
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        connection.close()
        if not (_only_readable(path, error) or _extended(error) in _SHARING_FAILED):  # the latter also on a full disk
            raise
        return _aside(path)
    return connection


def _aside(path: Path) -> sqlite3.Connection:
    """A copy of a database whose write-ahead log can't be read in place: SQLite needs a side file for that.

    Raises:
        sqlite3.Error: it can't be read or copied.
    """
    try:
        return _copied(path)
    except (OSError, sqlite3.Error) as error:
        if _size(_beside(path, "-wal")) == 0:  # all is in the file itself, which needs no side file then
            connection = sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True, check_same_thread=False)
            connection.text_factory = lenient
            return connection
        if isinstance(error, sqlite3.Error):
            raise
        raise sqlite3.OperationalError(f"cannot copy it: {error.strerror or error}") from error


def _copied(path: Path) -> sqlite3.Connection:
    with tempfile.TemporaryDirectory(prefix="swecli-") as folder:
        there = Path(folder, path.name)
        for suffix in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(_beside(path, suffix), _beside(there, suffix))
        copy = sqlite3.connect("", timeout=2, check_same_thread=False)
        copy.text_factory = lenient
        with closing(sqlite3.connect(there)) as source:
            source.backup(copy)
    return copy


def _enter_journal(connection: sqlite3.Connection, sharing: Sharing) -> None:
    """Switch to the journal of this sharing method. SQLite's own waiting doesn't cover the first switch of a new
    file."""
    wanted = "wal" if sharing is Sharing.LOG else "delete"
    clock = SteadyClock()
    deadline = clock() + BUSY_SECONDS
    while True:
        try:
            mode = connection.execute(f"PRAGMA journal_mode={wanted}").fetchone()[0]
            break
        except sqlite3.OperationalError as error:
            if code_of(error) != sqlite3.SQLITE_BUSY or clock() > deadline:
                raise
            time.sleep(0.01)
    if mode != wanted and sharing is Sharing.LOG:
        raise _NoLog(f"the journal mode is still {mode}")
    if sharing is not Sharing.LOG:
        connection.execute("PRAGMA locking_mode=NORMAL")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # only now the lock is released


class _NoLog(sqlite3.OperationalError):
    """The file system has no shared memory for a write-ahead log."""


def _migrate(
    connection: sqlite3.Connection, path: Path | None, migrations: Sequence[Migration], problems: list[str]
) -> None:
    version = version_of(connection)
    if version == len(migrations):
        return
    copy = _copy_before(connection, path, version) if path is not None and version > 0 else None
    try:
        _take_steps(connection, migrations)
    except sqlite3.Error as error:
        note = f"; it is unchanged, a copy is {copy}" if copy else ""
        raise _Unusable(f"migrating it from version {version} to {len(migrations)} failed: {error}{note}") from error
    if copy is not None:
        problems.append(
            f"The session database was migrated to version {len(migrations)}; {copy} is a backup of the old one."
        )


def _take_steps(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    """Run all migrations in one transaction: another process that starts meanwhile would take what is half done for an
    old database. It may also have been faster, so the version is read inside."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = version_of(connection)
        if version < len(migrations):
            for migration in migrations[version:]:
                for statement in migration:
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version={len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _copy_before(connection: sqlite3.Connection, path: Path, version: int) -> Path:
    """A copy through SQLite's backup, which includes the write-ahead log."""
    target = _beside(path, f".before-v{version + 1}")
    temporary = _beside(target, f".{os.getpid()}")
    os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600))
    with closing(sqlite3.connect(temporary)) as copy:
        connection.backup(copy)
    temporary.replace(target)
    return target


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _first_file(path: str) -> str:
    """What stands in a path in place of its first folder that is missing."""
    ways = (*reversed(Path(path).parents), Path(path))
    return str(next((way for way in ways if os.path.lexists(way) and not os.path.isdir(way)), path))


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        text, advice = error.strerror or str(error), "make the folder writable"
        if error.errno == errno.EIO:
            advice = "check the disk; the file is unchanged"
        elif is_full(error):
            advice = "free some space"
        elif error.errno in (errno.EEXIST, errno.ENOTDIR) and error.filename:
            text, advice = f"{_first_file(error.filename)} is not a folder", "move it away"
        return f"{text}; {advice}"
    advice = _ADVICE.get(code_of(error), "") if isinstance(error, sqlite3.Error) else ""
    return f"{error}; {advice}" if advice else str(error)


_ADVICE = {
    sqlite3.SQLITE_BUSY: "another program has locked it",
    sqlite3.SQLITE_CANTOPEN: "make the folder writable",
    sqlite3.SQLITE_FULL: "free some space",
    sqlite3.SQLITE_IOERR: "check the disk; the file is unchanged",
    sqlite3.SQLITE_PERM: "make the folder writable",
    sqlite3.SQLITE_READONLY: "make the folder writable",
}


def changed_at(path: Path) -> float:
    """Time of a database's last change, in Unix seconds; 0 if there is none."""
    try:
        return max(os.path.getmtime(each) for each in (path, Path(f"{path}-wal")) if os.path.exists(each))
    except (OSError, ValueError):
        return 0.0


def read_database(path: Path, read: Callable[[sqlite3.Connection], T], missing: T) -> T:
    """Read from a database that may be open elsewhere; ``missing`` if it can't be read."""
    if not os.path.isfile(path):
        return missing
    try:
        with closing(read_only(path)) as connection:
            return read(connection)
    except sqlite3.Error:
        return missing
