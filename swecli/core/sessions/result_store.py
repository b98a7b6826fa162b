"""Large results of tools, kept whole beside the session so that the context need not hold them."""

from __future__ import annotations

import hashlib
import sqlite3
import time
import zlib
from collections.abc import Callable

from swecli.core.ports import BlobError, BlobRef
from swecli.core.sessions.database import Database
from swecli.core.sessions.reference import encodable, reference_text, usual_excerpt

THRESHOLD = 4_096
"""Bytes up to which a result stays in the context."""
MAX_STORED = 64_000_000
"""Bytes of the largest result that is stored."""

_FIND = """
    WITH RECURSIVE line(id) AS (
        SELECT ? UNION SELECT s.parent FROM sessions s JOIN line ON s.id = line.id WHERE s.parent IS NOT NULL
    )
    SELECT session_id, content, byte_size FROM tool_result_blobs WHERE id = ? AND session_id IN (SELECT id FROM line)
"""
_ADD = """
    INSERT INTO tool_result_blobs(id, session_id, tool_name, content, byte_size, created_at) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT(id) DO UPDATE SET content = excluded.content, byte_size = excluded.byte_size
"""


class ResultStore:
    """The stored results of one session; it reads those of the session that it was forked from as well.

    Contents are compressed. A reference is made of the content, so the same result is stored once and a damaged
    one is noticed. Methods may wait for other processes that write: not for the event loop.
    """

    def __init__(
        self,
        database: Database,
        session_id: str,
        threshold: int = THRESHOLD,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = database
        self._session = session_id
        self.threshold = threshold
        self._clock = clock

    def put(self, tool: str, content: bytes) -> BlobRef:
        """Store a result.

        Raises:
            BlobError: it is too large, or the disk is full or the database locked; nothing was stored.
        """
        if len(content) > MAX_STORED:
            raise BlobError(f"The result has {len(content):,} bytes, more than the {MAX_STORED:,} that are stored.")
        ref = BlobRef(_reference(self._session, content), tool, len(content))
        row = (ref.id, self._session, encodable(tool), zlib.compress(content), len(content), self._clock())
        try:
            with self._database.write() as connection:
                connection.execute(_ADD, row)
        except sqlite3.Error as error:
            raise BlobError(f"The result could not be stored ({error}).") from error
        return ref

    def get(self, ref: str) -> bytes | None:
        """The content; None where the session has no such result.

        Raises:
            BlobError: it is damaged or can't be read.
        """
        try:
            with self._database.read() as connection:
                row = connection.execute(_FIND, (self._session, encodable(ref))).fetchone()
        except sqlite3.Error as error:
            raise BlobError(f"The stored result {ref} can't be read ({error}). Try again.") from error
        if row is None:
            return None
        session, stored, size = row
        content = _unpacked(stored, size)
        if content is None or _reference(str(session), content) != ref:
            raise BlobError(
                f"The stored result {ref} is damaged, so it is not shown. Run the command again if you need its output."
            )
        return content

    def offload_result(self, tool: str, tool_use_id: str, content: str) -> str:
        """Store a result that is larger than the threshold; returns the text that stands for it in the context.
        A smaller one is returned as it is.

        Raises:
            BlobError: it can't be stored.
        """
        text = encodable(content)
        raw = text.encode("utf-8")
        if len(raw) <= self.threshold:
            return text
        note = f"Too long to keep here (call {tool_use_id})"
        return reference_text(self.put(tool, raw), text, usual_excerpt(len(raw), failed=False), note=note)

    def retrieve(self, ref_id: str) -> str:
        """The whole stored result.

        Raises:
            BlobError: there is none of this id, or it is damaged.
        """
        content = self.get(ref_id)
        if content is None:
            raise BlobError(f"There is no stored result {ref_id!r} in this session.")
        return content.decode("utf-8", "replace")


def _reference(session: str, content: bytes) -> str:
    digest = hashlib.sha256(session.encode("utf-8", "replace") + b"\0")
    digest.update(content)
    return f"r{digest.hexdigest()[:12]}"


def _unpacked(stored: object, size: object) -> bytes | None:
    """The content; None where it is no longer what was stored. Never more than ``size`` bytes are unpacked."""
    if not isinstance(stored, bytes) or not isinstance(size, int) or not 0 <= size <= MAX_STORED:
        return None
    unpacker = zlib.decompressobj()
    try:
        content = unpacker.decompress(stored, size + 1)
    except zlib.error:
        return None
    return content if len(content) == size and unpacker.eof else None
