"""From rows to the strips that Textual shows: base colours, margins, filters, marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter
from textual.strip import Strip

from swecli.tui.transcript.rows import Row
from swecli.tui.transcript.wrap import cells

MARGIN: Final = 1
"""Cells at the left for the block cursor, and as many at the right."""
NARROW: Final = 10
"""Width below which there are no margins."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Characters ``start`` to ``end`` of a row (gutter and margin counted) that are shown in another style."""

    start: int
    end: int
    style: Style


@dataclass(frozen=True, slots=True)
class Painter:
    """How rows become strips ``width`` cells wide. Filters are those of the app, for example for NO_COLOR."""

    width: int
    base: Style
    filters: tuple[LineFilter, ...]
    background: Color

    @property
    def margin(self) -> int:
        return MARGIN if self.width >= NARROW else 0

    @property
    def inner(self) -> int:
        """Cells for rows."""
        return max(1, self.width - 2 * self.margin)

    def paint(self, row: Row) -> Strip:
        """The strip of a row, made once."""
        strip = row.painted
        if strip is None:
            strip = row.painted = self._filter(self._plain(row))
        return strip

    def paint_marked(self, row: Row, marks: Sequence[Mark], cursor: Style | None) -> Strip:
        """A strip with some of its text in other styles, and a sign in the margin for the block cursor."""
        strip = self._plain(row)
        text = strip.text
        for mark in marks:
            start, end = cells(text[: mark.start]), cells(text[: mark.end])
            if end > start:
                parts = strip.divide([start, end, strip.cell_length])
                marked = Strip(Segment.apply_style(parts[1], post_style=mark.style), end - start)
                strip = Strip.join([parts[0], marked, parts[2]])
        if cursor is not None and self.margin:
            rest = strip.crop(self.margin, strip.cell_length)
            strip = Strip.join([Strip([Segment("▌", self.base + cursor)], 1), rest])
        return self._filter(strip)

    def blank(self) -> Strip:
        """An empty line."""
        return self._filter(Strip([Segment(" " * self.width, self.base)], self.width))

    def _plain(self, row: Row) -> Strip:
        base = self.base
        fill = base + row.fill if row.fill is not None else base
        segments = [Segment(" " * self.margin, base)] if self.margin else []
        used = self.margin
        for text, style, _ in row.segments():
            segments.append(Segment(text, base + style if style else base))
            used += cells(text)
        if used < self.width:
            segments.append(Segment(" " * (self.width - used), fill))
        return Strip(segments, max(used, self.width)).adjust_cell_length(self.width, base)

    def _filter(self, strip: Strip) -> Strip:
        for line_filter in self.filters:
            strip = strip.apply_filter(line_filter, self.background)
        return strip
