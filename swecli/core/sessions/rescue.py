"""Rescue of a damaged database: reading of its pages, and copying the readable part."""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from swecli.core.protocol.codec import CodecError, decode_body
from swecli.core.protocol.events import ItemCompleted, ItemStarted, SessionStarted
from swecli.core.sessions.losses import Loss, loss_sentence, losses
from swecli.core.sessions.titles import line_of, title_of
from swecli.figures import plural

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
    offsets: dict[int, int] = {}
    pending: dict[int, int] = {}
    at = _LOG_HEADER
    while True:
        frame = os.pread(log, _FRAME_HEADER, at)
        if len(header) < _LOG_HEADER or len(frame) < _FRAME_HEADER or frame[8:16] != header[16:24]:
            return offsets
        number, committed = struct.unpack_from(">II", frame)
        pending[number] = at + _FRAME_HEADER
        if committed:
            offsets |= pending
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
        summary = (
            f"{named} with {self.events:,} events were recovered into a new one" if self.sessions else NOTHING_READABLE
        )
        return f"{summary}. {loss_sentence(self.lost)}" if self.lost else summary


def bring_over(damaged: Path, fresh: sqlite3.Connection) -> Rescued:
    """Copy the readable part of the file ``damaged`` into the empty database ``fresh``, in one transaction. Foreign
    keys must be off.

    Raises:
        OSError, sqlite3.Error: one of the disks fails; nothing was copied.
    """
    tables = [_table(fresh, name) for name in _TABLES]
    fresh.execute("BEGIN IMMEDIATE")
    try:
        with closing(rows(damaged)) as rescued_rows:
            _copy(rescued_rows, tables, fresh)
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


def _copy(rescued_rows: Iterable[Row], tables: Sequence[_Table], fresh: sqlite3.Connection) -> None:
    waiting: dict[str, list[tuple[Value, ...]]] = {table.insert: [] for table in tables}
    for row in rescued_rows:
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
