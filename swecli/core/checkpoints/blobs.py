"""Bytes of files, stored once under their SHA-256."""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import Protocol


class Rows(Protocol):
    """A SQLite database: transactions to write in, and a connection to read with."""

    @property
    def durable(self) -> bool:
        """Whether it is on a disk; otherwise it takes memory."""
        ...

    @property
    def problems(self) -> tuple[str, ...]:
        """What the user should know of how it was opened."""
        ...

    def write(self, *, power_safe: bool = False) -> AbstractContextManager[sqlite3.Connection]: ...

    def read(self) -> AbstractContextManager[sqlite3.Connection]: ...

    def close(self) -> None: ...


class Blobs:
    """What is stored, and how much of it. ``limit`` is bytes, compressed, for all together. Methods take the
    connection of a transaction."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._total: int | None = None

    def total(self, connection: sqlite3.Connection) -> int:
        """Bytes of all that is stored."""
        if self._total is None:
            row = connection.execute("SELECT coalesce(sum(packed), 0) FROM blobs").fetchone()
            self._total = int(row[0])
        return self._total

    def keep(self, connection: sqlite3.Connection, data: bytes, digest: str, *, always: bool = False) -> bool:
        """Store ``data``; False where the limit leaves no room, unless it is to be stored ``always``."""
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
        """Remove what neither the copy of the tree nor a recorded change refers to."""
        connection.execute(
            """
            DELETE FROM blobs WHERE NOT EXISTS (SELECT 1 FROM shadow s WHERE s.sha256 = blobs.sha256)
            AND NOT EXISTS (SELECT 1 FROM changes c WHERE c.before_sha256 = blobs.sha256)
            AND NOT EXISTS (SELECT 1 FROM changes c WHERE c.after_sha256 = blobs.sha256)
            """
        )
        self._total = None


def stored(connection: sqlite3.Connection, digest: str) -> bytes | None:
    """The bytes of that hash; None where they are not stored, or no longer what they were."""
    row = connection.execute("SELECT size, data FROM blobs WHERE sha256 = ?", (digest,)).fetchone()
    if row is None:
        return None
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(bytes(row[1]), int(row[0]) + 1)
    except zlib.error:
        return None
    return data if sha256(data).hexdigest() == digest else None
