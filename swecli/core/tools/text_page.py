"""A part of a long text, by bytes, cut at whole characters."""

from __future__ import annotations

from dataclasses import dataclass

MAX_PAGE = 24_000
"""Bytes of one page at most."""


@dataclass(frozen=True, slots=True)
class TextPage:
    """Bytes ``start`` to ``end`` of ``total``. ``end`` is where the next page begins."""

    text: str
    start: int
    end: int
    total: int

    @property
    def position(self) -> str:
        """Where this page lies and how to go on, in words."""
        if self.start == 0 and self.end == self.total:
            return f"all {self.total:,} bytes"
        more = f"go on with offset={self.end}" if self.end < self.total else "this is the end"
        return f"bytes {self.start:,} to {self.end:,} of {self.total:,}; {more}"


def page_of(raw: bytes, offset: int, limit: int) -> TextPage:
    """``limit`` bytes of UTF-8 from ``offset`` on, a few less or more so that no character is cut; an offset inside
    of a character means that character. One character at least, unless the offset is past the end."""
    start = _character(raw, min(offset, len(raw)))
    end = _character(raw, min(len(raw), start + min(limit, MAX_PAGE)))
    if end == start < len(raw):
        end = _character(raw, min(len(raw), start + 4))
        while end < len(raw) and raw[end] & 0xC0 == 0x80:
            end += 1
        end = max(end, start + 1)
    return TextPage(raw[start:end].decode("utf-8", "replace"), start, end, len(raw))


def _character(raw: bytes, at: int) -> int:
    """``at``, or the beginning of the character that ``at`` lies in."""
    for back in range(4):
        if at - back <= 0 or at >= len(raw) or raw[at - back] & 0xC0 != 0x80:
            return max(0, at - back)
    return at
