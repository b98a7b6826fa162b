"""A window of lines of a file, read without holding the rest of it."""

from __future__ import annotations

import os
import time
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


def read_window(descriptor: int, first: int, count: int, budget: int, seconds: float) -> Window:
    """Up to ``count`` lines from line ``first`` (from 1) on, about ``budget`` bytes of them, ``seconds`` at most.

    A line ends at LF. Memory does not depend on the size of the file or of a line.
    """
    deadline = time.monotonic() + seconds
    lines: list[RawLine] = []
    number, used, behind = 1, 0, 0
    current, size, open_line = bytearray(), 0, False
    while piece := os.read(descriptor, _PIECE):
        full = len(lines) >= count or used >= budget
        if time.monotonic() > deadline:
            return Window(tuple(lines), None, number, timed_out=not full)
        if number < first and (skipped := piece.count(b"\n")) < first - number:
            # The whole piece lies before the window.
            number += skipped
            open_line = not piece.endswith(b"\n")
            continue
        if full:
            behind += len(piece)
            if behind > _COUNT_LIMIT:
                return Window(tuple(lines), None, number)
            number += piece.count(b"\n")
            open_line = not piece.endswith(b"\n")
            continue
        start = 0
        while start < len(piece):
            end = piece.find(b"\n", start)
            stop = end if end >= 0 else len(piece)
            wanted = number >= first and len(lines) < count and used < budget
            if wanted:
                current += piece[start : min(stop, start + max(0, _KEPT - len(current)))]
                size += stop - start
            open_line = end < 0
            if end >= 0:
                if wanted:
                    lines.append(RawLine(bytes(current), size))
                    used += min(size, _KEPT)
                    current, size = bytearray(), 0
                number += 1
                start = end + 1
            else:
                start = len(piece)
    if open_line and number >= first and len(lines) < count and used < budget:
        lines.append(RawLine(bytes(current), size))
    total = number if open_line else number - 1
    return Window(tuple(lines), total, total)
