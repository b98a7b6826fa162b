"""State of a path at one moment, and the store of its bytes."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import Literal, Protocol

from msgspec import Struct

from swecli.core.workspace.text_file import READ_FLAGS, read_all

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

_VERSION_2 = (
    """
    CREATE TABLE told (
        path BLOB PRIMARY KEY
    ) WITHOUT ROWID
    """,
)
"""Uncovered paths already reported to the user."""

_VERSION_3 = ("ALTER TABLE operations ADD COLUMN ended REAL",)
"""Unix seconds of a completed operation's end."""

_VERSION_4 = ("CREATE TABLE starts (day INTEGER PRIMARY KEY)",)
"""Days, by the machine's clock, on which a session began; counted from 1970."""

SCHEMA: tuple[tuple[str, ...], ...] = (_VERSION_1, _VERSION_2, _VERSION_3, _VERSION_4)
"""Step i leads from version i to version i + 1. Released steps never change."""


Kind = Literal["absent", "file", "link", "folder", "other"]
Keep = Callable[[bytes, str], bool]
"""Store a file's bytes under their hash; False if there is no room."""


class Image(Struct, frozen=True):
    """State of one path. ``other`` is never restored: a pipe, a device, an unscanned folder."""

    kind: Kind
    mode: int = 0
    """Permission bits; 0 for links, whose bits have no meaning."""
    content: str = ""
    """For a file: SHA-256 of its bytes, which is their key in the store; or ``?`` and a stamp if they are not
    stored."""
    target: str = ""
    """Target of a link."""
    twin: str = ""
    """For a file with several names: the known names including its own, separated by NUL. During a scan: device and
    inode."""
    note: str = ""
    """Why the content is not stored."""

    @property
    def kept(self) -> bool:
        """Whether it can be restored completely."""
        return self.kind != "other" and not self.content.startswith("?")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.twin.split("\0")) if self.twin else ()

    def same(self, other: Image) -> bool:
        """Whether both look the same at this path alone."""
        return (self.kind, self.mode, self.content, self.target) == (
            other.kind,
            other.mode,
            other.content,
            other.target,
        )

    def encoded(self) -> str:
        return json.dumps({name: value for name in _FIELDS if (value := getattr(self, name))})


ABSENT = Image("absent")
_FIELDS = tuple(Image.__struct_fields__)


def decoded(text: str) -> Image:
    return Image(**json.loads(text))


def capture(path: str, keep: Keep, limit: int, status: os.stat_result | None = None, *, secret: bool = False) -> Image:
    """Current state of ``path``, links not followed. The content of a file of up to ``limit`` bytes goes to ``keep``,
    unless it may be ``secret``. Never raises for what it finds."""
    try:
        status = status or os.lstat(path)
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISDIR(status.st_mode):
            return Image("folder", mode)
        if stat.S_ISLNK(status.st_mode):
            return Image("link", target=os.readlink(path))
        if not stat.S_ISREG(status.st_mode):
            return Image("other", mode, note="a special file")
        return _file(path, keep, limit, status, secret)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError as error:
        return Image("other", note=f"can't be read ({error.strerror or error})")


def too_large(limit: int) -> str:
    """Why a larger file is not copied."""
    return f"larger than {limit / 1_000_000:g} MB"


def unread(status: os.stat_result) -> str:
    """What stands for the content of a file that is not stored: it changes with the file."""
    return f"?{status.st_size}:{status.st_mtime_ns}:{status.st_ino}"


def _file(path: str, keep: Keep, limit: int, status: os.stat_result, secret: bool) -> Image:
    twin = f"{status.st_dev}:{status.st_ino}" if status.st_nlink > 1 else ""
    mode = stat.S_IMODE(status.st_mode)
    stamp = unread(status)
    if secret:
        return Image("file", mode, stamp, twin=twin, note="may hold secrets, judging by its name")
    if status.st_size > limit:
        return Image("file", mode, stamp, twin=twin, note=too_large(limit))
    try:
        descriptor = os.open(path, READ_FLAGS)
    except PermissionError:
        return Image("file", mode, stamp, twin=twin, note="can't be read")
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return Image("other", note="changed during the scan")
        data = read_all(descriptor, status.st_size)
    finally:
        os.close(descriptor)
    digest = sha256(data).hexdigest()
    if len(data) > limit or not keep(data, digest):
        large = too_large(limit)
        note = large if len(data) > limit else "no space left under checkpoints.max_total_bytes"
        return Image("file", mode, stamp, twin=twin, note=note)
    return Image("file", mode, digest, twin=twin)


class Rows(Protocol):
    @property
    def durable(self) -> bool:
        """Whether it is on a disk; otherwise in memory."""
        ...

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems on opening, for the user."""
        ...

    def write(self, *, power_safe: bool = False) -> AbstractContextManager[sqlite3.Connection]: ...

    def read(self) -> AbstractContextManager[sqlite3.Connection]: ...

    def close(self) -> None: ...


class Blobs:
    """Stored contents and their total size. ``limit`` is compressed bytes in total. Methods take the connection of a
    transaction."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._total: int | None = None

    def total(self, connection: sqlite3.Connection) -> int:
        if self._total is None:
            row = connection.execute("SELECT coalesce(sum(packed), 0) FROM blobs").fetchone()
            self._total = int(row[0])
        return self._total

    def keep(self, connection: sqlite3.Connection, data: bytes, digest: str, *, always: bool = False) -> bool:
        """Store ``data``; False if the limit leaves no room, unless ``always``."""
        if connection.execute("SELECT 1 FROM blobs WHERE sha256 = ?", (digest,)).fetchone():
            return True
        packed = zlib.compress(data, 1)
        total = self.total(connection)
        if total + len(packed) > self._limit and not always:
            return False
        connection.execute(
            "INSERT INTO blobs(sha256, size, packed, data) VALUES (?, ?, ?, ?)",
            (digest, len(data), len(packed), packed),
        )
        self._total = total + len(packed)
        return True

    def sweep(self, connection: sqlite3.Connection) -> None:
        """Remove contents that neither the tree's copy nor a recorded change refers to."""
        connection.execute(
            """
            DELETE FROM blobs WHERE NOT EXISTS (SELECT 1 FROM shadow s WHERE s.sha256 = blobs.sha256)
            AND NOT EXISTS (SELECT 1 FROM changes c WHERE c.before_sha256 = blobs.sha256)
            AND NOT EXISTS (SELECT 1 FROM changes c WHERE c.after_sha256 = blobs.sha256)
            """
        )
        self._total = None


def stored(connection: sqlite3.Connection, digest: str) -> bytes | None:
    """The bytes of that hash; None if they are missing or damaged."""
    row = connection.execute("SELECT size, data FROM blobs WHERE sha256 = ?", (digest,)).fetchone()
    if row is None:
        return None
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(bytes(row[1]), int(row[0]) + 1)
    except zlib.error:
        return None
    return data if sha256(data).hexdigest() == digest else None
