"""The scrolling half of the transcript: layout, following the end, keeping the place.

Only the blocks in sight have exact heights. Whenever one above the first line in sight is measured, the scroll
position moves with it, so that what the user reads stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from textual import events
from textual.geometry import Size
from textual.reactive import Reactive, reactive
from textual.widget import Widget

from swecli.tui import compat
from swecli.tui.preferences import Density
from swecli.tui.transcript.blocks import Operation
from swecli.tui.transcript.index import Anchor
from swecli.tui.transcript.page_view import PageView
from swecli.tui.transcript.palette import DARK, Palette
from swecli.tui.transcript.sight import last_line, measure_end, measure_from


@dataclass(frozen=True, slots=True)
class _Place:
    """The first line in sight, by the id of its block."""

    block_id: str
    line: int
    height: int


class BlockScroll(PageView):
    """A virtualised view of a ``Page``."""

    following: reactive[bool] = reactive(True)
    """Whether the end stays in sight as new lines come."""
    unseen: reactive[int] = reactive(0)
    """Lines that have come below what is in sight since the user scrolled up."""

    def __init__(
        self, palette: Palette = DARK, *, name: str | None = None, id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(palette, name=name, id=id, classes=classes)
        self._moving = False
        """Whether a change of the scroll position is our own."""

    def set_palette(self, palette: Palette) -> None:
        """Draw everything in other styles."""
        self._reconfigure(palette=palette)

    def on_mount(self) -> None:
        self._reconfigure()

    def on_resize(self, event: events.Resize) -> None:
        self._reconfigure()

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

    def _reconfigure(self, *, palette: Palette | None = None, density: Density | None = None) -> None:
        if not self.is_attached:
            self.page.configure(palette=palette, density=density)
            return
        place = self._remember()
        self._unpaint()
        if self.page.configure(width=self.painter.inner, palette=palette, density=density):
            self.drop_selection()
        self._settle(place)

    def _remember(self) -> _Place | None:
        if not self.page.blocks:
            return None
        anchor = self.page.index.at(self.scroll_line)
        return _Place(self.page.blocks.id_at(anchor.block), anchor.line, self.page.index.height(anchor.block))

    def _settle(self, place: _Place | None) -> None:
        """Measure what is in sight, set the size, and scroll to the end or back to the remembered place."""
        if self.following or place is None:
            measure_end(self.page, self.view_height)
            target = self._last_line()
        else:
            number = self.page.place(place.block_id)
            if number is None:
                target = self.scroll_line
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
        return last_line(self.page, self.view_height)

    def _measure_from(self, line: int) -> int:
        found, moved = measure_from(self.page, line, self.view_height)
        self._origin += moved
        return found

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
        # More room moves the position to the end as it is known, before what came into sight is measured.
        at_end = self.scroll_line >= self._last_line()
        found = self._measure_from(self.scroll_line)
        self._set_size()
        if at_end:
            self._settle(None)
        elif found != self.scroll_line:
            self._move_to(found)
        self.following = at_end or self.scroll_line >= self._last_line()
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
        self.scroll_to_line(min(self.scroll_line + lines, self._last_line()))

    def follow(self) -> None:
        """Go to the end and stay there."""
        self.following = True
        if self.is_attached:
            self._settle(None)
