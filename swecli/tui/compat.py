"""The only user of non-public Textual names, and a defect of Textual. Each name is optional: if it is missing, only the
feature that needs it is off. A test checks them against the installed version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual.app import App
from textual.binding import Binding, BindingsMap
from textual.dom import DOMNode
from textual.screen import Screen
from textual.selection import SelectEnd
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import TextArea

BACK_PRESSURE = 0.010
"""Seconds between two checks of an output queue that the terminal has not emptied."""


def writer_depth(app: App[Any]) -> int:
    """Number of writes waiting for the terminal; 0 if unknown."""
    thread = getattr(getattr(app, "_driver", None), "_writer_thread", None)
    queue = getattr(thread, "_queue", None)
    return queue.qsize() if queue is not None else 0


class PacedScreen(Screen[None]):
    """Draws only once the terminal has taken what was drawn before. Textual's queue of output is short, and to wait for
    room in it would stop everything: keys, the turn, its commands. What changed meanwhile is drawn together."""

    _late: Timer | None = None
    """Runs while something is not drawn yet because of that."""

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
    only after the scrollbar, whose change scrolls to the cursor: to a line that is gone, which ended the program."""

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
    found, offset = screen.get_widget_and_offset_at(x, y)
    if found is widget and offset is not None and isinstance(widget.parent, Widget):
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


def replace_bindings(node: DOMNode, bindings: Sequence[Binding]) -> None:
    """Replace the key bindings of a widget or the app."""
    node._bindings = BindingsMap(list(bindings))  # pyright: ignore[reportPrivateUsage] - keymaps of Textual drop clashes
