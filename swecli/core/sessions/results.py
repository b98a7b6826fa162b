"""Large tool results, stored whole outside the conversation, and the reference that replaces them."""

from __future__ import annotations

import hashlib
import re
import sqlite3
import time
import zlib
from collections.abc import Sequence

from msgspec import Struct

from swecli.core.ports import BlobError, BlobRef
from swecli.core.sessions.database import Database
from swecli.lazy_pattern import lazy_pattern

_ERROR = lazy_pattern(
    r"\b(?:errors?|failed|failures?|fatal|panic(?:ked)?|exception|traceback|undefined|unresolved|cannot|denied|"
    r"segmentation fault|no such file)\b|\w(?:Error|Exception)\b|\bassert|^E\s",
    re.IGNORECASE,
)
_LINE = 200
"""Characters of an error line that are shown."""
_LONE_SURROGATE = lazy_pattern("[\ud800-\udfff]")


class Excerpt(Struct, frozen=True):
    """Shown part of a stored result, in bytes: its beginning, its end, and error lines in between."""

    head: int
    tail: int
    errors: int


SMALLEST = Excerpt(0, 0, 0)
"""Only its description and how to read it."""


def usual_excerpt(size: int, *, failed: bool) -> Excerpt:
    """Excerpt for a result of ``size`` bytes: a third and at most 4,000 bytes, so that a reference is always much
    smaller than its result; up to 12,000 bytes of a failed command's output, most of it the end."""
    if failed:
        return Excerpt(2_000, 6_000, 4_000)
    ends = min(3_000, size // 3)
    return Excerpt(ends // 2, ends - ends // 2, min(1_000, size // 8))


def encodable(text: str) -> str:
    """``text`` in a form valid for UTF-8: lone surrogates become U+FFFD."""
    return _LONE_SURROGATE.sub("\ufffd", text)


def reference_text(ref: BlobRef, text: str, excerpt: Excerpt, *, exit_status: int | None = None, note: str = "") -> str:
    """Text for the model instead of ``text``. Cut between whole characters, and at line ends if there are any.

    ``note`` says why the result is not here.
    """
    raw = encodable(text).encode("utf-8")
    head = _head(raw, excerpt.head)
    tail = _tail(raw[len(head) :], excerpt.tail)
    end = len(raw) - len(tail)
    status = f", exit status {exit_status}" if exit_status is not None else ""
    why = f" {note}." if note else ""
    lines = raw.count(b"\n") + (not raw.endswith(b"\n"))
    parts = [
        f"[{ref.tool}: {len(raw):,} bytes, {lines:,} lines{status}.{why} The whole result is stored as {ref.id}: "
        f'read_result(ref_id="{ref.id}", offset={len(head)}) reads more, pattern=… searches in it.]'
    ]
    if head:
        parts.append(head.decode("utf-8").removesuffix("\n"))
    between = raw[len(head) : end].decode("utf-8")
    errors = error_lines(between, raw[: len(head)].count(b"\n") + 1, excerpt.errors)
    if head or tail:
        parts.append(f"[… bytes {len(head):,} to {end:,} are left out{'; error lines in there:' if errors else ''} …]")
    parts.extend(errors)
    if errors and tail:
        parts.append(f"[… the end, from byte {end:,} …]")
    if tail:
        parts.append(tail.decode("utf-8"))
    return "\n".join(parts)


def error_lines(text: str, first: int, budget: int) -> list[str]:
    """Lines that look like errors, numbered from ``first``, within ``budget`` bytes.

    Repeated lines count once. If there are too many, the first and the last are kept: the cause and the summary.
    """
    if budget <= 0:
        return []
    seen: set[str] = set()
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), first):
        if _ERROR.search(line[: 4 * _LINE]):
            shown = " ".join(line[: 4 * _LINE].split())[:_LINE]
            if shown not in seen:
                seen.add(shown)
                lines.append(f"{number:>6}: {shown}")
    head = _within(lines, budget // 2)
    rest = _within(lines[len(head) :][::-1], budget - budget // 2)
    return [*head, *reversed(rest)]


def _within(lines: Sequence[str], budget: int) -> list[str]:
    chosen: list[str] = []
    for line in lines:
        budget -= len(line.encode("utf-8")) + 1
        if budget < 0:
            break
        chosen.append(line)
    return chosen


def _head(raw: bytes, size: int) -> bytes:
    """The first ``size`` bytes, cut at the last line end if it is in their second half, else between characters."""
    if len(raw) <= size:
        return raw
    piece = raw[:size]
    edge = piece.rfind(b"\n") + 1
    return piece[:edge] if edge > size // 2 else piece.decode("utf-8", "ignore").encode("utf-8")


def _tail(raw: bytes, size: int) -> bytes:
    """The last ``size`` bytes, from the first line start if it is in their first half, else between characters."""
    if size <= 0 or len(raw) <= size:
        return raw if size > 0 else b""
    piece = raw[-size:]
    edge = piece.find(b"\n") + 1
    if 0 < edge <= size // 2:
        return piece[edge:]
    while piece and piece[0] & 0xC0 == 0x80:
        piece = piece[1:]
    return piece


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
    """The stored results of one session; it also reads those of the session it was forked from.

    Contents are compressed. A reference is derived from the content, so equal results are stored once and damage is
    detected. Methods may wait for other writers: keep them off the event loop.
    """

    def __init__(self, database: Database, session_id: str, threshold: int = THRESHOLD) -> None:
        self._database = database
        self._session = session_id
        self.threshold = threshold

    def put(self, tool: str, content: bytes) -> BlobRef:
        """Store a result.

        Raises:
            BlobError: it is too large, or the disk is full or the database locked; nothing was stored.
        """
        if len(content) > MAX_STORED:
            raise BlobError(f"The result has {len(content):,} bytes, above the limit of {MAX_STORED:,}.")
        ref = BlobRef(result_reference(self._session, content), tool, len(content))
        row = (ref.id, self._session, encodable(tool), zlib.compress(content), len(content), time.time())
        try:
            with self._database.write() as connection:
                connection.execute(_ADD, row)
        except sqlite3.Error as error:
            raise BlobError(f"Could not store the result ({error}).") from error
        return ref

    def get(self, ref: str) -> bytes | None:
        """The content; None if the session has no such result.

        Raises:
            BlobError: it is damaged or can't be read.
        """
        try:
            with self._database.read() as connection:
                row = connection.execute(_FIND, (self._session, encodable(ref))).fetchone()
        except sqlite3.Error as error:
            raise BlobError(f"Cannot read the stored result {ref} ({error}). Try again.") from error
        if row is None:
            return None
        session, stored, size = row
        content = _unpacked(stored, size)
        if content is None or result_reference(str(session), content) != ref:
            raise BlobError(
                f"The stored result {ref} is damaged, so it is not shown. Run the command again if you need its output."
            )
        return content


def result_reference(session: str, content: bytes) -> str:
    """The reference of a session's result: derived from both, so that it shows whether they belong together."""
    digest = hashlib.sha256(session.encode("utf-8", "replace") + b"\0")
    digest.update(content)
    return f"r{digest.hexdigest()[:12]}"


def _unpacked(stored: object, size: object) -> bytes | None:
    """The content; None if it is damaged. Unpacks at most ``size`` bytes."""
    if not isinstance(stored, bytes) or not isinstance(size, int) or not 0 <= size <= MAX_STORED:
        return None
    unpacker = zlib.decompressobj()
    try:
        content = unpacker.decompress(stored, size + 1)
    except zlib.error:
        return None
    return content if len(content) == size and unpacker.eof else None
