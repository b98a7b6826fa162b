"""Output of a program on disk: all of it up to a cap, then its first and its last part.

The file has no name, so nobody else finds it and nothing stays behind when swecli is killed. What comes is collected in
memory and written in large pieces by whoever calls ``write``: not the event loop, for a disk may be slow.
"""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path
from typing import IO

CAP = 64_000_000
PIECE = 1 << 18
"""Bytes that wait in memory until it is worth to write them; a short output never reaches the disk."""
HIGH = 1 << 20
"""Bytes that may wait while the disk is slow; then no more is to be added until it has caught up."""


class OutputSpill:
    """``add`` on one thread, ``write`` and ``read`` on any. A disk that fails costs the middle, never the end."""

    def __init__(self, folder: Path | None = None, cap: int = CAP) -> None:
        """``folder`` is where the file is made, when it is needed; None for the system's temporary directory."""
        self._folder = folder
        self._head = cap // 2
        self._ring = cap - self._head
        self._file: IO[bytes] | None = None
        self._waiting = bytearray()
        self._writing = b""
        self._written = 0
        self._closed = False
        self._base = 0
        """Where what is in memory begins: behind ``_written`` only after a failure."""
        self._memory = threading.Lock()
        self._disk = threading.Lock()
        self.total = 0
        self.failure = ""
        """Why nothing is written any more; empty while all is well."""

    def add(self, data: bytes) -> None:
        """Take what the program wrote."""
        with self._memory:
            self.total += len(data)
            if self._closed:
                return
            self._waiting += data
            surplus = len(self._waiting) - HIGH
            if self.failure and surplus > 0:
                del self._waiting[:surplus]
                self._base += surplus

    @property
    def wants_writing(self) -> bool:
        return len(self._waiting) >= PIECE and not self.failure

    @property
    def full(self) -> bool:
        """Whether adding should pause until a ``write`` has ended."""
        return len(self._waiting) >= HIGH and not self.failure

    def write(self) -> None:
        """Bring to disk what waits. A failure is kept in ``failure``."""
        with self._disk:
            with self._memory:
                self._writing, self._waiting = bytes(self._waiting), bytearray()
            try:
                self._store(self._writing)
            except OSError as error:
                with self._memory:
                    self.failure = error.strerror or str(error)
                    self._waiting[:0] = self._writing
                    self._writing = b""
                return
            with self._memory:
                self._written += len(self._writing)
                self._base = self._written
                self._writing = b""

    def _store(self, data: bytes) -> None:
        if self._file is None:
            if self._folder is not None:
                self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115 - lives as long as this
        at, view = self._written, memoryview(data)
        while view:
            place, room = self._place(at)
            done = os.pwrite(self._file.fileno(), view[:room], place)
            at, view = at + done, view[done:]

    def _place(self, at: int) -> tuple[int, int]:
        """Where byte ``at`` of the output is in the file, and how many follow it there."""
        if at < self._head:
            return at, self._head - at
        inside = (at - self._head) % self._ring
        return self._head + inside, self._ring - inside

    def read(self, offset: int, size: int) -> tuple[int, bytes]:
        """Up to ``size`` bytes from ``offset`` on, and where they begin: later than ``offset`` where that was dropped.
        Ends early before a gap.

        Raises:
            OSError: the file can't be read.
        """
        with self._disk:
            with self._memory:
                memory, base = self._writing + bytes(self._waiting), self._base
            if self._closed:
                return self.total, b""
            for start, end in self._kept(base, len(memory)):
                at = max(offset, start)
                if at < end:
                    size = min(size, end - at)
                    return at, self._stored(at, min(size, base - at)) + memory[
                        max(0, at - base) : max(0, at + size - base)
                    ]
            return self.total, b""

    def _kept(self, base: int, memory: int) -> list[tuple[int, int]]:
        """The ranges that are there, in order."""
        parts = [
            (0, min(self._head, self._written)),
            (max(self._head, self._written - self._ring), self._written),
            (base, base + memory),
        ]
        ranges: list[tuple[int, int]] = []
        for start, end in parts:
            if start >= end:
                continue
            if ranges and ranges[-1][1] == start:
                ranges[-1] = (ranges[-1][0], end)
            else:
                ranges.append((start, end))
        return ranges

    def _stored(self, at: int, size: int) -> bytes:
        pieces: list[bytes] = []
        while size > 0 and self._file is not None:
            place, room = self._place(at)
            piece = os.pread(self._file.fileno(), min(size, room), place)
            if not piece:
                break
            pieces.append(piece)
            at, size = at + len(piece), size - len(piece)
        return b"".join(pieces)

    @property
    def mode(self) -> int | None:
        """Permission bits of the file; None while there is none."""
        return None if self._file is None else os.fstat(self._file.fileno()).st_mode & 0o777

    def close(self) -> None:
        """Give up what was kept; what is added from now on is only counted."""
        with self._disk, self._memory:
            self._closed = True
            self._waiting = bytearray()
            if self._file is not None:
                self._file.close()
                self._file = None
