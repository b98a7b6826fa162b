"""The scrolling half of the transcript: layout, following the end, keeping the place, painting.

Only the blocks in sight have exact heights. Whenever one above the first line in sight is measured, the scroll
position moves with it, so that what the user reads stays where it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, cast

from textual import events
from textual.geometry import Offset, Region, Size
from textual.reactive import Reactive, reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from swecli.tui import compat
from swecli.tui.safe_text import SafeText
from swecli.tui.transcript.blocks import Operation
from swecli.tui.transcript.index import Anchor
from swecli.tui.transcript.page import Page
from swecli.tui.transcript.painter import Mark, Painter
from swecli.tui.transcript.palette import DARK, Palette
from swecli.tui.transcript.rows import Row

MAX_PAINTED: Final = 400
"""Finished strips that are kept; each consists of many objects."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The first line in sight, by the id of its block."""

    block_id: str
    line: int
    height: int


class BlockScroll(ScrollView):
    """A virtualised view of a ``Page``."""

    following: reactive[bool] = reactive(True)
    """Whether the end stays in sight as new lines come."""
    unseen: reactive[int] = reactive(0)
    """Lines that have come below what is in sight since the user scrolled up."""

    def __init__(
        self, palette: Palette = DARK, *, name: str | None = None, id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self.page = Page(palette)
        self._painter: Painter | None = None
        self._painted: deque[Row] = deque()
        """Rows that hold a finished strip, oldest first."""
        self._moving = False
        """Whether a change of the scroll position is our own."""
        self._origin = 0
        """By how much lines in sight have moved because heights above them became exact. Offsets of a selection
        count from here, so that they stay with the text."""

    # --- layout ---

    @property
    def view_height(self) -> int:
        """Lines in sight."""
        return self.scrollable_content_region.height

    @property
    def _scroll_line(self) -> int:
        return int(self.scroll_offset.y)

    def set_palette(self, palette: Palette) -> None:
        """Draw everything in other styles."""
        self._reconfigure(palette=palette)

    def on_mount(self) -> None:
        self._reconfigure()

    def on_resize(self, event: events.Resize) -> None:
        self._reconfigure()

    def notify_style_update(self) -> None:
        """Textual calls this when colours of the widget may have changed."""
        super().notify_style_update()
        self._unpaint()

    def change_blocks(self, operations: Iterable[Operation]) -> None:
        """Apply operations with one change of size and one refresh."""
        if not self.is_attached:
            for operation in operations:
                self.page.apply(operation)
            return
        place = self._remember()
        before = self.page.index.total
        for operation in operations:
            self.page.apply(operation)
        self._settle(place)
        if not self.following:
            self.unseen += max(0, self.page.index.total - before)

    def refresh_layout(self) -> None:
        """Lay out again after heights have been changed from outside."""
        self._settle(self._remember())

    def _reconfigure(self, *, palette: Palette | None = None, verbose: bool | None = None) -> None:
        if not self.is_attached:
            self.page.configure(palette=palette, verbose=verbose)
            return
        place = self._remember()
        self._unpaint()
        if self.page.configure(width=self.painter.inner, palette=palette, verbose=verbose):
            self.drop_selection()
        self._settle(place)

    def _unpaint(self) -> None:
        self._painter = None
        while self._painted:
            self._painted.pop().painted = None

    def _remember(self) -> _Place | None:
        if not self.page.blocks:
            return None
        anchor = self.page.index.at(self._scroll_line)
        return _Place(self.page.blocks[anchor.block].id, anchor.line, self.page.index.height(anchor.block))

    def _settle(self, place: _Place | None) -> None:
        """Measure what is in sight, set the size, and scroll to the end or back to the remembered place."""
        if self.following or place is None:
            self._measure_end()
            target = self._last_line()
        else:
            number = self.page.place(place.block_id)
            if number is None:
                target = self._scroll_line
            else:
                self.page.measure(number)
                height = self.page.index.height(number)
                line = place.line if height >= place.height else place.line * height // max(1, place.height)
                target = self.page.index.line(Anchor(number, line))
            target = self._measure_from(target)
        self._set_size()
        self._move_to(target)
        self.refresh()

    def _last_line(self) -> int:
        return max(0, self.page.index.total - self.view_height)

    def _measure_end(self) -> None:
        index = self.page.index
        wanted = self.view_height
        for number in range(len(index) - 1, -1, -1):
            if wanted <= 0:
                break
            if not index.is_exact(number):
                self.page.measure(number)
            wanted -= index.height(number)

    def _measure_from(self, line: int) -> int:
        """Make heights exact in what is in sight from a line on. Returns the line where that text is now, or the
        last one from which the view is full."""
        while True:
            line = self._measure_below(min(line, self._last_line()))
            if line <= self._last_line():
                return line

    def _measure_below(self, line: int) -> int:
        index = self.page.index
        height = self.view_height
        number = index.at(line).block
        while number < len(index) and index.top(number) < line + height:
            if index.is_exact(number):
                number += 1
                continue
            above = index.top(number) < line
            difference = self.page.measure(number)
            if above and difference:
                line = max(0, line + difference)
                self._origin += difference
                number = min(number, index.at(line).block)
        return line

    def _set_size(self) -> None:
        size = Size(self.painter.width, self.page.index.total)
        if self.virtual_size != size:
            self.set_reactive(cast("Reactive[Size]", Widget.virtual_size), size)
            if self.show_vertical_scrollbar:
                self.vertical_scrollbar.window_virtual_size = size.height

    def _move_to(self, line: int) -> None:
        self._moving = True
        try:
            self.scroll_target_y = line
            self.scroll_y = line
        finally:
            self._moving = False

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._moving or round(old_value) == round(new_value):
            return
        found = self._measure_from(self._scroll_line)
        self._set_size()
        if found != self._scroll_line:
            self._move_to(found)
        self.following = self._scroll_line >= self._last_line()
        compat.extend_selection(self)

    def watch_following(self, following: bool) -> None:
        if following:
            self.unseen = 0

    def scroll_to_line(self, line: int) -> None:
        """Bring a line to the top, or as near to it as there are lines."""
        self.scroll_y = self.scroll_target_y = min(max(0, line), max(0, self.page.index.total - 1))

    def action_page_up(self) -> None:
        self._scroll_by(1 - self.view_height)

    def action_page_down(self) -> None:
        self._scroll_by(self.view_height - 1)

    def action_scroll_up(self) -> None:
        self._scroll_by(-1)

    def action_scroll_down(self) -> None:
        self._scroll_by(1)

    def action_scroll_home(self) -> None:
        self.scroll_to_line(0)

    def action_scroll_end(self) -> None:
        self.follow()

    def _scroll_by(self, lines: int) -> None:
        self.scroll_to_line(min(self._scroll_line + lines, self._last_line()))

    def follow(self) -> None:
        """Go to the end and stay there."""
        self.following = True
        if self.is_attached:
            self._settle(None)

    # --- painting ---

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
        first = self._scroll_line + crop.y
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
        line = self._scroll_line + y
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
                style = self.screen.get_component_rich_style("screen--selection")
                marks.append(Mark(span[0], end, style))
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
        first, last = self._scroll_line, self._scroll_line + self.view_height - 1
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

    def offset_of_line(self, line: int, x: int = 0) -> Offset:
        """Where a line is in the coordinates of selections."""
        return Offset(x, line - self._origin)
