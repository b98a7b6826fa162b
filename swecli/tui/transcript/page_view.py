"""The painting half of the transcript: strips of what is in sight, and the text under a selection."""

from __future__ import annotations

from collections import deque
from typing import Final

from textual.geometry import Region
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from swecli.safe_text import SafeText
from swecli.tui.transcript.page import Page
from swecli.tui.transcript.painter import Mark, Painter
from swecli.tui.transcript.palette import DARK, Palette
from swecli.tui.transcript.rows import Row

MAX_PAINTED: Final = 400
"""Finished strips that are kept; each consists of many objects."""


class PageView(ScrollView):
    """Shows the lines of a ``Page`` from the scroll position on."""

    def __init__(
        self, palette: Palette = DARK, *, name: str | None = None, id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self.page = Page(palette)
        self._painter: Painter | None = None
        self._painted: deque[Row] = deque()
        """Rows that hold a finished strip, oldest first."""
        self._origin = 0
        """By how much lines in sight have moved because heights above them became exact. Offsets of a selection
        count from here, so that they stay with the text."""

    @property
    def view_height(self) -> int:
        """Lines in sight."""
        return self.scrollable_content_region.height

    @property
    def scroll_line(self) -> int:
        """The first line in sight."""
        return int(self.scroll_offset.y)

    def notify_style_update(self) -> None:
        """Textual calls this when colours of the widget may have changed."""
        super().notify_style_update()
        self._unpaint()

    def _unpaint(self) -> None:
        self._painter = None
        while self._painted:
            self._painted.pop().painted = None

    @property
    def painter(self) -> Painter:
        """How rows are painted just now."""
        if self._painter is None:
            background = self.background_colors[1]
            filters = tuple(self.get_line_filters())
            width = max(1, self.scrollable_content_region.width)
            self._painter = Painter(width, self.rich_style, filters, background)
        return self._painter

    def rows_at(self, line: int, count: int) -> list[tuple[int, Row]]:
        """The rows from a line on, each with the number of its block; fewer at the end."""
        index = self.page.index
        out: list[tuple[int, Row]] = []
        if line >= index.total:
            return out
        anchor = index.at(line)
        number, skip = anchor.block, anchor.line
        while len(out) < count and number < len(index):
            rows = self.page.rows(number)[: index.height(number)]
            out += [(number, row) for row in rows[skip : skip + count - len(out)]]
            number, skip = number + 1, 0
        return out

    def render_lines(self, crop: Region) -> list[Strip]:
        first = self.scroll_line + crop.y
        painter = self.painter
        selection = self.text_selection
        strips: list[Strip] = []
        for place, (number, row) in enumerate(self.rows_at(first, crop.height), first):
            strips.append(self._paint(painter, place, number, row, selection))
        if len(strips) < crop.height:
            strips += [painter.blank()] * (crop.height - len(strips))
        left, right = crop.column_span
        if (left, right) == (0, painter.width):
            return strips
        return [strip.crop(left, right) for strip in strips]

    def render_line(self, y: int) -> Strip:
        """One line with its offsets, for finding what is under the mouse."""
        line = self.scroll_line + y
        found = self.rows_at(line, 1)
        strip = self._paint(self.painter, line, *found[0], None) if found else self.painter.blank()
        return strip.apply_offsets(0, line - self._origin)

    def marks_of(self, number: int, row: Row) -> list[Mark]:
        """What is marked in a row besides the selection."""
        return []

    def has_cursor(self, number: int) -> bool:
        """Whether the block cursor is at the block."""
        return False

    def _paint(self, painter: Painter, line: int, number: int, row: Row, selection: Selection | None) -> Strip:
        marks = self.marks_of(number, row)
        if selection is not None:
            span = selection.get_span(line - self._origin)
            if span is not None:
                length = painter.margin + len(row.text)
                end = length if span[1] < 0 else min(span[1], length)
                marks.append(Mark(span[0], end, self.page.palette.selection))
        cursor = self.page.palette.cursor if self.has_cursor(number) else None
        if marks or cursor is not None:
            return painter.paint_marked(row, marks, cursor)
        if row.painted is None:
            self._painted.append(row)
            if len(self._painted) > MAX_PAINTED:
                self._painted.popleft().painted = None
        return painter.paint(row)

    # --- selection ---

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text without margins and gutters; rows that were wrapped are joined again. A selection
        that comes from, or goes on in, another widget counts from or to what is in sight."""
        first, last = self.scroll_line, self.scroll_line + self.view_height - 1
        if selection.start is None and selection.end is None:
            first, last = 0, self.page.index.total - 1
        if selection.start is not None:
            first = selection.start.y + self._origin
        if selection.end is not None:
            last = selection.end.y + self._origin
        margin = self.painter.margin
        parts: list[str] = []
        for place, (_, row) in enumerate(self.rows_at(max(0, first), last - first + 1), max(0, first)):
            span = selection.get_span(place - self._origin)
            if span is None:
                continue
            lead = margin + len(row.gutter_text)
            start = max(0, span[0] - lead)
            end = None if span[1] < 0 else max(0, span[1] - lead)
            if parts:
                parts.append("\n" if row.join is None else row.join)
            parts.append(row.body[start:end])
        return SafeText("".join(parts)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    def drop_selection(self) -> None:
        """A selection can't survive a new layout."""
        if self.is_attached and self.text_selection is not None:
            self.screen.clear_selection()
