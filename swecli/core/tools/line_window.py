"""A window of lines of a file, read without holding the rest of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

_PIECE = 1 << 20
_KEPT = 16_384
"""Bytes of one line that are kept."""
_COUNT_LIMIT = 64_000_000
"""Bytes behind the window that are read only to count the lines."""


@dataclass(frozen=True, slots=True)
class RawLine:
    """The beginning of a line without its end, and the length of the whole line in bytes."""

    data: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Window:
    """``total`` is the number of lines of the file, None when it was not counted to the end. ``seen`` is how
    many lines there are at least."""

    lines: tuple[RawLine, ...]
    total: int | None
    seen: int
    timed_out: bool = False


class _Stopped(Exception):
    """Time is up, or nobody waits any more."""


def read_window(
    descriptor: int, first: int, count: int, *, budget: int, seconds: float, stop: Callable[[], bool] = lambda: False
) -> Window:
    """Up to ``count`` lines from line ``first`` (from 1) on, about ``budget`` bytes of them, ``seconds`` at most
    and not beyond ``stop``.

    A line ends at LF. Memory does not depend on the size of the file or of a line.
    """
    reader = _LineReader(descriptor, time.monotonic() + seconds, stop)
    lines: list[RawLine] = []
    try:
        reader.skip(first - 1)
        used = 0
        while len(lines) < count and used < budget and (line := reader.next()) is not None:
            lines.append(line)
            used += len(line.data)
        complete = reader.skip_rest(_COUNT_LIMIT)
    except _Stopped:
        return Window(tuple(lines), None, reader.lines, timed_out=True)
    return Window(tuple(lines), reader.lines if complete else None, reader.lines)


class _LineReader:
    """Lines of an open file, one piece of it in memory. ``lines`` counts those that were passed."""

    def __init__(self, descriptor: int, deadline: float, stop: Callable[[], bool]) -> None:
        self._descriptor = descriptor
        self._deadline = deadline
        self._stop = stop
        self._piece = b""
        self._at = 0
        self.lines = 0

    def _fill(self) -> bool:
        """Make sure that there is something left of the piece; False at the end of the file."""
        if self._at >= len(self._piece):
            if time.monotonic() > self._deadline or self._stop():
                raise _Stopped
            self._piece, self._at = os.read(self._descriptor, _PIECE), 0
        return bool(self._piece)

    def skip(self, count: int) -> None:
        """Pass over ``count`` lines, or to the end of the file."""
        unfinished = False
        while count > 0 and self._fill():
            found = self._piece.count(b"\n", self._at)
            if found < count:
                unfinished = not self._piece.endswith(b"\n")
                self._at = len(self._piece)
                self.lines += found
                count -= found
                continue
            for _ in range(count):
                self._at = self._piece.index(b"\n", self._at) + 1
            self.lines += count
            return
        self.lines += unfinished

    def next(self) -> RawLine | None:
        """The next line; None at the end of the file."""
        if not self._fill():
            return None
        kept, size = bytearray(), 0
        while self._fill():
            end = self._piece.find(b"\n", self._at)
            edge = end if end >= 0 else len(self._piece)
            kept += self._piece[self._at : min(edge, self._at + _KEPT - len(kept))]
            size += edge - self._at
            self._at = edge
            if end >= 0:
                self._at += 1
                break
        self.lines += 1
        return RawLine(bytes(kept), size)

    def skip_rest(self, limit: int) -> bool:
        """Count the lines that follow; False when there are more than ``limit`` bytes of them."""
        passed, unfinished = 0, False
        while self._fill():
            passed += len(self._piece) - self._at
            if passed > limit:
                return False
            self.lines += self._piece.count(b"\n", self._at)
            unfinished = not self._piece.endswith(b"\n")
            self._at = len(self._piece)
        self.lines += unfinished
        return True
