"""Rescue of a damaged database: diagnosis, reading of its pages, and copying the readable part."""

from __future__ import annotations

import errno
import os
import sqlite3
import struct
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from swecli.core.protocol.codec import CodecError, decode_body
from swecli.core.protocol.events import ItemCompleted, ItemStarted, SessionStarted
from swecli.core.sessions.losses import Loss, loss_sentence, losses
from swecli.core.sessions.schema import APPLICATION_ID, Migration
from swecli.core.sessions.titles import line_of, title_of
from swecli.figures import plural
from swecli.lazy_pattern import lazy_pattern

_HEADER = b"SQLite format 3\x00"
_HEADER_SIZE = 100
_DAMAGED = frozenset((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB))
_ERROR_CODE = lazy_pattern(r"error code=(\d+)")
_SCHEMA = "SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'index')"

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
            found = _schema(connection)
            _examine_schema(connection, found, version, migrations)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        if found:
            _check(connection, seconds)
        return version
    except (sqlite3.Error, UnicodeDecodeError) as error:
        # In a sound file SQLite can read the list of tables, whatever else is wrong.
        if is_damage(error) or code_of(error) in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG):
            raise Damaged(_shown(error)) from error
        raise


def _examine_schema(
    connection: sqlite3.Connection, found: Schema, version: int, migrations: Sequence[Migration]
) -> None:
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    if not found and (version or pages > 1):
        raise Damaged("its tables are missing")
    if not found:
        return
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    wanted = _made(migrations[:version])
    if owner != APPLICATION_ID:
        raise Damaged("it belongs to another program")
    if version > len(migrations):
        if found.keys() == wanted.keys():
            raise Damaged(f"its version is {version:,}, but its tables are those of version {len(migrations)}")
        return
    if version <= 0:
        raise Damaged("its version is missing")
    for (kind, name), made in wanted.items():
        if (kind, name) not in found:
            raise Damaged(f"the {kind} {name} is missing")
        if found[kind, name] != made:
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


Value = int | float | str | bytes | None
USUAL_PAGE = 4096
"""Bytes of a page if the header doesn't say."""
_LEAF = 0x0D
"""Page type with rows of a table."""
_FILE_HEADER = 100
_PAGE_HEADER = 8
_LOG_HEADER = 32
_FRAME_HEADER = 24
_FIXED = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8, 8: 0, 9: 0}
"""Bytes of a value by its serial type."""


class Row(Struct, frozen=True):
    """One row. Invalid UTF-8 becomes U+FFFD."""

    rowid: int
    values: tuple[Value, ...]


class _Undecodable(Exception):
    """The bytes are not a row."""


def rows(path: Path) -> Generator[Row]:
    """Every readable row, in no order, possibly more than once.

    Raises:
        OSError: the disk fails.
    """
    with closing(_Pages(path)) as pages:
        for number in range(1, pages.count + 1):
            page = pages.page(number)
            start = _FILE_HEADER if number == 1 else 0
            if len(page) == pages.size and page[start] == _LEAF:
                yield from _rows_of(page, start, pages)


class _Pages:
    """The pages of a file as of its newest transaction."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._log: int | None = None
        self._logged: dict[int, int] = {}
        try:
            self.size = _page_size(os.pread(self._file, _FILE_HEADER, 0))
            self.count = os.fstat(self._file).st_size // self.size
            try:
                self._log = os.open(f"{path}-wal", os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return
            self._logged = _logged(self._log, self.size)
            self.count = max(self.count, max(self._logged, default=0))
        except BaseException:
            self.close()
            raise

    def page(self, number: int) -> bytes:
        """Its bytes; fewer if the file is too short."""
        at = self._logged.get(number)
        if at is not None and self._log is not None:
            return os.pread(self._log, self.size, at)
        return os.pread(self._file, self.size, (number - 1) * self.size)

    def close(self) -> None:
        os.close(self._file)
        if self._log is not None:
            os.close(self._log)


def _page_size(header: bytes) -> int:
    size = int.from_bytes(header[16:18], "big")
    size = 65_536 if size == 1 else size
    return size if 512 <= size <= 65_536 and size & (size - 1) == 0 else USUAL_PAGE


def _logged(log: int, size: int) -> dict[int, int]:
    """Offset in the log of each page's newest committed version."""
    header = os.pread(log, _LOG_HEADER, 0)
    found: dict[int, int] = {}
    pending: dict[int, int] = {}
    at = _LOG_HEADER
    while True:
        frame = os.pread(log, _FRAME_HEADER, at)
        if len(header) < _LOG_HEADER or len(frame) < _FRAME_HEADER or frame[8:16] != header[16:24]:
            return found
        number, committed = struct.unpack_from(">II", frame)
        pending[number] = at + _FRAME_HEADER
        if committed:
            found |= pending
            pending.clear()
        at += _FRAME_HEADER + size


def _rows_of(page: bytes, start: int, pages: _Pages) -> Iterator[Row]:
    cells = int.from_bytes(page[start + 3 : start + 5], "big")
    first = start + _PAGE_HEADER
    for index in range(min(cells, (len(page) - first) // 2)):
        at = int.from_bytes(page[first + 2 * index : first + 2 * index + 2], "big")
        try:
            yield _row(page, at, pages)
        except (_Undecodable, IndexError, struct.error):
            continue


def _row(page: bytes, at: int, pages: _Pages) -> Row:
    length, at = _varint(page, at)
    rowid, at = _varint(page, at)
    largest = pages.size - 35
    if length <= largest:
        payload = page[at : at + length]
    else:
        smallest = (pages.size - 12) * 32 // 255 - 23
        local = smallest + (length - smallest) % (pages.size - 4)
        local = local if local <= largest else smallest
        if length > pages.count * pages.size:
            raise _Undecodable
        following = int.from_bytes(page[at + local : at + local + 4], "big")
        payload = page[at : at + local] + _overflow(following, length - local, pages)
    if len(payload) != length:
        raise _Undecodable
    return Row(rowid - (1 << 64) if rowid >> 63 else rowid, _values(payload))


def _overflow(number: int, length: int, pages: _Pages) -> bytes:
    """The rest of a row, in its own chain of pages."""
    pieces: list[bytes] = []
    while length > 0:
        if not 1 < number <= pages.count:
            raise _Undecodable
        page = pages.page(number)
        piece = page[4 : 4 + length]
        if not piece:
            raise _Undecodable
        pieces.append(piece)
        length -= len(piece)
        number = int.from_bytes(page[:4], "big")
    return b"".join(pieces)


def _values(payload: bytes) -> tuple[Value, ...]:
    size, at = _varint(payload, 0)
    kinds: list[int] = []
    while at < size:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    values: list[Value] = []
    for kind in kinds:
        width = _FIXED[kind] if kind in _FIXED else (kind - 12) // 2
        if kind in (10, 11) or at + width > len(payload):
            raise _Undecodable
        values.append(_value(kind, payload[at : at + width]))
        at += width
    if at != len(payload):
        raise _Undecodable
    return tuple(values)


def _value(kind: int, raw: bytes) -> Value:
    if kind == 0:
        return None
    if kind == 7:
        return float(struct.unpack(">d", raw)[0])
    if kind in (8, 9):
        return kind - 8
    if kind < 7:
        return int.from_bytes(raw, "big", signed=True)
    return raw.decode("utf-8", "replace") if kind % 2 else raw


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of up to nine bytes, and where it ends."""
    value = 0
    for _ in range(8):
        byte = data[at]
        at += 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at
    return value << 8 | data[at], at + 1


_TABLES = ("sessions", "events", "tool_result_blobs", "session_snapshots")
"""Tables with rows worth keeping."""
_BATCH = 500
_TYPES: dict[str, tuple[type, ...]] = {"TEXT": (str,), "INTEGER": (int,), "REAL": (float, int), "BLOB": (bytes,)}
NOTHING_READABLE = "It contains no readable session"
_MIN_EVENTS = 2
"""Events needed to restore a session whose row is missing: a single one may have a damaged id."""
_BEGINNING = """
    SELECT CAST(body AS BLOB) FROM events
    WHERE session_id = ? AND agent = 'main'
        AND type IN ('session_started', 'item_started', 'item_completed') ORDER BY seq LIMIT 40
"""


class _Table(Struct, frozen=True):
    """Format of a table's rows. ``columns`` are declared type, whether it may be NULL, and whether it belongs to the
    key."""

    name: str
    columns: tuple[tuple[str, bool, bool], ...]
    insert: str

    def fitted(self, values: Sequence[Value]) -> tuple[Value, ...] | None:
        """The values of a row of this table, with NULL for columns missing in an older version; None if it does not
        fit."""
        fitted = (*values, *(None,) * (len(self.columns) - len(values)))
        fits = len(fitted) == len(self.columns) and all(map(_fits, fitted, self.columns))
        return fitted if fits else None


def _fits(value: Value, column: tuple[str, bool, bool]) -> bool:
    kind, nullable, key = column
    if value is None:
        return nullable and not key
    return isinstance(value, _TYPES[kind]) and not (key and isinstance(value, str) and "\ufffd" in value)


class Rescued(Struct, frozen=True):
    """Result of reading a damaged file. ``lost`` names the sessions with missing events."""

    sessions: int
    events: int
    lost: Sequence[Loss] = ()

    def __str__(self) -> str:
        named = plural(self.sessions, "session")
        kept = (
            f"{named} with {self.events:,} events were recovered into a new one" if self.sessions else NOTHING_READABLE
        )
        return f"{kept}. {loss_sentence(self.lost)}" if self.lost else kept


def bring_over(damaged: Path, fresh: sqlite3.Connection) -> Rescued:
    """Copy the readable part of the file ``damaged`` into the empty database ``fresh``, in one transaction. Foreign
    keys must be off.

    Raises:
        OSError, sqlite3.Error: one of the disks fails; nothing was copied.
    """
    tables = [_table(fresh, name) for name in _TABLES]
    fresh.execute("BEGIN IMMEDIATE")
    try:
        with closing(rows(damaged)) as found:
            _copy(found, tables, fresh)
        _add_missing_sessions(fresh)
        lost = losses(fresh)
        _drop_orphans(fresh)
        sessions, events = fresh.execute("SELECT count(DISTINCT session_id), count(*) FROM events").fetchone()
        fresh.execute("COMMIT")
    except BaseException:
        if fresh.in_transaction:
            fresh.execute("ROLLBACK")
        raise
    return Rescued(sessions, events, lost)


def _table(connection: sqlite3.Connection, name: str) -> _Table:
    info = connection.execute(f"PRAGMA table_info({name})").fetchall()
    columns = tuple((str(kind), not notnull, bool(key)) for _, _, kind, notnull, _, key in info)
    marks = ", ".join("?" * len(columns))
    insert = f"INSERT INTO {name} VALUES ({marks}) ON CONFLICT DO NOTHING"
    if name == "sessions":  # an unused page may have an older version of the row
        rest = ", ".join(f"{column[1]} = excluded.{column[1]}" for column in info)
        insert = (
            f"INSERT INTO {name} VALUES ({marks})"
            f" ON CONFLICT(id) DO UPDATE SET {rest} WHERE excluded.updated > sessions.updated"
        )
    return _Table(name, columns, insert)


def _copy(found: Iterable[Row], tables: Sequence[_Table], fresh: sqlite3.Connection) -> None:
    waiting: dict[str, list[tuple[Value, ...]]] = {table.insert: [] for table in tables}
    for row in found:
        for table in tables:
            values = table.fitted(row.values)
            if values is not None:
                batch = waiting[table.insert]
                batch.append(values)
                if len(batch) >= _BATCH:
                    fresh.executemany(table.insert, batch)
                    batch.clear()
                break
    for insert, batch in waiting.items():
        fresh.executemany(insert, batch)


def _add_missing_sessions(fresh: sqlite3.Connection) -> None:
    """Create rows for sessions with only events left."""
    lost = fresh.execute(
        "SELECT session_id, min(ts), max(ts) FROM events WHERE session_id NOT IN (SELECT id FROM sessions)"
        " GROUP BY session_id HAVING count(*) >= ?",
        (_MIN_EVENTS,),
    ).fetchall()
    for session, first, last in lost:
        title = cwd = model = swecli = ""
        users: dict[str, str] = {}
        for (raw,) in fresh.execute(_BEGINNING, (session,)):
            try:
                body = decode_body(bytes(raw))
            except CodecError:
                continue
            if isinstance(body, SessionStarted):
                cwd, model, swecli = body.cwd, body.model, body.swecli
            elif isinstance(body, ItemStarted) and body.kind == "user":
                users[body.item] = body.typed
            elif isinstance(body, ItemCompleted) and body.item in users:
                title = title or line_of(users[body.item]) or title_of(body)
        fresh.execute(
            "INSERT INTO sessions(id, title, cwd, model, created, updated, swecli) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (session, title, cwd, model, first, last, swecli),
        )


_UNNEEDED = """
    DELETE FROM sessions WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.session_id = sessions.id)
    AND (NOT EXISTS (SELECT 1 FROM sessions c WHERE c.parent = sessions.id)
         OR parent IS NULL AND NOT EXISTS (SELECT 1 FROM tool_result_blobs b WHERE b.session_id = sessions.id))
"""
_EMPTIED = """
    UPDATE sessions SET title = '', name = NULL, first = NULL, size = 0, turns = 0
    WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.session_id = sessions.id)
"""


def _drop_orphans(fresh: sqlite3.Connection) -> None:
    """Remove data without a session, and sessions without events. Of those with stored results that a fork needs, the
    row stays, as after a deletion."""
    fresh.execute(_EMPTIED)
    while True:
        fresh.execute("UPDATE sessions SET parent = NULL WHERE parent NOT IN (SELECT id FROM sessions)")
        if not fresh.execute(_UNNEEDED).rowcount:
            break
    for table in _TABLES[1:]:
        fresh.execute(f"DELETE FROM {table} WHERE session_id NOT IN (SELECT id FROM sessions)")
