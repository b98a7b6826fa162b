"""The only user of non-public Textual names, and two defects of Textual. Each name is optional: if it is missing, only
the feature that needs it is off. A test checks them against the installed version."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App
from textual.binding import Binding, BindingsMap
from textual.dom import DOMNode
from textual.geometry import Size
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.selection import SelectEnd
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import TextArea

from swecli.tui.cells import erases_in_colour
from swecli.tui.drawn_screen import DrawnScreen, Placed
from swecli.tui.prompt.graphemes import ends_in_mark, spans

if TYPE_CHECKING:
    from rich.console import RenderableType

T = TypeVar("T")

FRAME_BEGINS, FRAME_ENDS = "\x1b[?2026h", "\x1b[?2026l"
"""Between these, a terminal that knows them shows nothing, so that no frame is seen half drawn."""
BACK_PRESSURE = 0.010
"""Seconds between two checks of an output queue that the terminal has not emptied."""


def writer_depth(app: App[Any]) -> int:
    """Number of writes waiting for the terminal; 0 if unknown."""
    thread = getattr(getattr(app, "_driver", None), "_writer_thread", None)
    queue = getattr(thread, "_queue", None)
    return queue.qsize() if queue is not None else 0


class DrawingApp(App[T], inherit_bindings=False):
    """Writes only the cells of a frame that differ from what the terminal shows; Textual writes all cells of all lines
    in which something may have changed."""

    _drawn: DrawnScreen | None = None

    def forget_screen(self) -> None:
        """Have the next frames written in full: something else has changed the terminal's screen."""
        if self._drawn is not None:
            self._drawn.forget()

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        driver = self._driver
        if (
            not isinstance(renderable, LayoutUpdate | ChopsUpdate)
            or driver is None
            or driver.is_headless
            or driver.is_inline
            or self._batch_count
            or not self._running
            or self._closed
        ):
            super()._display(screen, renderable)
            return
        if self._drawn is None:
            self._drawn = DrawnScreen(self.console.color_system, coloured_erase=erases_in_colour(os.environ))
        size = self.screen.outer_size
        sequences = self._drawn.draw(_lines(renderable), size, size.clamp_offset(self.cursor_position))
        if sequences:
            if self._sync_available:
                sequences = f"{FRAME_BEGINS}{sequences}{FRAME_ENDS}"
            driver.write(sequences)
            driver.flush()
        self.post_display_hook()


def _lines(update: LayoutUpdate | ChopsUpdate) -> Iterator[Placed]:
    """The lines of an update. Of one that is partial, the whole strips in which something may have changed."""
    if isinstance(update, LayoutUpdate):
        for y, strips in enumerate(update.strips, update.region.y):
            x = update.region.x
            placed: list[tuple[int, Strip]] = []
            for strip in strips:
                placed.append((x, strip))
                x += strip.cell_length
            yield y, placed
        return
    for y, start, stop in update.spans:
        strips = zip(update.chops[y].items(), update.chop_ends[y], strict=False)
        yield y, [(x, strip) for (x, strip), end in strips if strip is not None and x < stop and end > start]


class PacedScreen(Screen[None]):
    """Draws only once the terminal has taken what was drawn before. Textual's queue of output is short, and to wait for
    room in it would stop everything: keys, the turn, its commands. What changed meanwhile is drawn together.

    A layout tells each widget its new size. Textual compares with the map of the screen, which a look at a widget's
    region may have made anew before the layout: the widget then never learned its size, so that a list that opened
    left the end of the transcript out of view. Here the comparison is always with the last layout."""

    _late: Timer | None = None
    """Runs while something is not drawn yet because of that."""
    _laid_out: Any = None
    """Map of the last layout."""

    def _refresh_layout(self, size: Size | None = None, scroll: bool = False) -> None:
        compositor: Any = self._compositor
        if self._laid_out is not None and compositor._full_map is not self._laid_out:
            compositor._full_map, compositor._full_map_invalidated = self._laid_out, True
        super()._refresh_layout(size, scroll)
        self._laid_out = getattr(compositor, "_full_map", None)

    def _compositor_refresh(self) -> None:
        if not writer_depth(self.app) and not getattr(self.app, "_batch_count", 0):
            if self._late is not None:
                self._late.stop()
                self._late = None
            super()._compositor_refresh()
        elif self._late is None:
            self._late = self.set_interval(BACK_PRESSURE, self._draw_on)

    def _draw_on(self) -> None:
        """Have the next update draw, after a layout that may be due."""
        self._dirty_widgets.add(self)
        self.check_idle()


class ShrinkingTextArea(TextArea):
    """A text area whose text may lose lines while the cursor is below them, as by an undo. Textual moves the cursor
    only after the scrollbar, whose change scrolls to the cursor: to a line that is gone, which ended the program. Its
    cursor steps over what a reader takes for one character, where Textual steps over code points."""

    def units(self, row: int) -> Sequence[tuple[int, int]]:
        """Spans of a line that the cursor never stops within."""
        return spans(self.document.get_line(row))

    def get_cursor_left_location(self) -> tuple[int, int]:
        row, column = super().get_cursor_left_location()
        return row, next((left for left, right in self.units(row) if left < column < right), column)

    def get_cursor_right_location(self) -> tuple[int, int]:
        row, column = super().get_cursor_right_location()
        return row, next((right for left, right in self.units(row) if left < column < right), column)

    def action_delete_left(self) -> None:
        row, column = self.cursor_location
        alone = column > 0 and ends_in_mark(self.document.get_line(row)[:column])
        self.delete_to((row, column - 1) if alone else self.get_cursor_left_location())

    def action_delete_right(self) -> None:
        self.delete_to(self.get_cursor_right_location())

    def delete_to(self, to: tuple[int, int]) -> None:
        """Delete the selection, or from the cursor to another place."""
        start, end = self.selection if not self.selection.is_empty else (self.cursor_location, to)
        self.delete(min(start, end), max(start, end), maintain_selection_offset=False)

    def _watch_show_vertical_scrollbar(self) -> None:
        if self.cursor_location[0] >= self.document.line_count:
            self.move_cursor(self.document.end)
        super()._watch_show_vertical_scrollbar()


def is_selecting(screen: Screen[Any]) -> bool:
    """Whether the user is dragging a selection."""
    return bool(getattr(screen, "_selecting", False)) and getattr(screen, "_select_state", None) is not None


def extend_selection(widget: Widget) -> None:
    """After ``widget`` scrolled during a drag, move the selection's end to the position under the mouse."""
    screen = widget.screen
    state = getattr(screen, "_select_state", None)
    if not is_selecting(screen) or state is None or state.start.content_widget is not widget:
        return
    region = widget.scrollable_content_region
    x, y = widget.app.mouse_position
    x = min(max(x, region.x), region.right - 1)
    y = min(max(y, region.y), region.bottom - 1)
    hovered, offset = screen.get_widget_and_offset_at(x, y)
    if hovered is widget and offset is not None and isinstance(widget.parent, Widget):
        screen._select_state = state.update_end(  # pyright: ignore[reportPrivateUsage] - no public way to it
            state.screen_offset, SelectEnd(widget.parent, widget, offset)
        )


def stop_after_defect(app: App[Any], error: BaseException) -> None:
    """End the app after an unhandled exception, without Textual's own report: it prints all variables, which may hold
    the user's keys. A test driver receives the exception."""
    app._return_code = 1  # pyright: ignore[reportPrivateUsage] - no public way to it
    if getattr(app, "_exception", None) is None and isinstance(error, Exception):
        app._exception = error  # pyright: ignore[reportPrivateUsage] - the same
        app._exception_event.set()  # pyright: ignore[reportPrivateUsage] - the same
    app._close_messages_no_wait()  # pyright: ignore[reportPrivateUsage] - the same


def keep_handling(spares: Callable[[], bool]) -> None:
    """Let widgets and the app take further messages after an exception if ``spares`` then returns True. Textual ends
    the loop in which it was raised."""
    dispatch = getattr(MessagePump, "_dispatch_message", None)
    dispatch = getattr(dispatch, "_whole", dispatch)
    if dispatch is None:
        return

    async def spared(self: MessagePump, message: Message) -> None:
        try:
            await dispatch(self, message)
        except Exception:
            if not spares():
                raise

    spared._whole = dispatch  # pyright: ignore[reportFunctionMemberAccess] - so that the next app wraps it anew
    MessagePump._dispatch_message = spared  # pyright: ignore[reportPrivateUsage] - there is no public place for it


def replace_bindings(node: DOMNode, bindings: Sequence[Binding]) -> None:
    """Replace the key bindings of a widget or the app."""
    node._bindings = BindingsMap(list(bindings))  # pyright: ignore[reportPrivateUsage] - keymaps of Textual drop clashes
