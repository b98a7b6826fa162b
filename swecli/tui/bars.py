"""The two lines around the prompt that are drawn without layout: activity above it, status below."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from textual.content import Content
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from swecli.safe_text import safe_line
from swecli.tui import activity, status
from swecli.tui.state import UiState

SPIN = 1 / 8
"""Seconds between two frames of the spinner."""

FLASH = 4.0
"""Seconds for which a short message stays."""


class LineWidget(Widget, can_focus=False):
    """One line, drawn from content that is made when it is drawn."""

    def content(self, width: int) -> Content:
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y or width < 1:
            return Strip.blank(max(0, width), self.rich_style)
        line = self.content(width).truncate(width, ellipsis=True, pad=True)
        return Strip(list(line.render_segments(self.visual_style)), width)


class ActivityLine(LineWidget):
    """What is going on, or a short message, or nothing. It ticks only while something runs and the terminal
    has the focus."""

    DEFAULT_CSS = """
    ActivityLine { height: 1; padding: 0 1; color: $foreground; }
    ActivityLine > .activity--stop { color: $foreground-muted; text-style: $muted-style; }
    ActivityLine > .activity--flash { color: $warning; }
    ActivityLine > .activity--unseen { color: $accent; text-style: bold; background: $panel; }
    """
    COMPONENT_CLASSES = {"activity--stop", "activity--flash", "activity--unseen"}

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        super().__init__(id="activity")
        self._clock = clock
        self._still = False
        self._state = UiState()
        self._starting = True
        self._shown = 0.0
        self._flash = ""
        self._unseen = 0
        self._timer: Timer | None = None
        self._flash_timer: Timer | None = None

    def show(self, state: UiState, *, starting: bool) -> None:
        """Take the newest state."""
        self._state, self._starting = state, starting
        self._tick_if_needed()
        self._shown = self._clock()
        self.refresh()

    def keep_still(self, still: bool) -> None:
        """Whether nothing turns; seconds are counted all the same."""
        if still != self._still:
            self._still = still
            if self._timer is not None:
                self._timer.stop()
                self._timer = None
            self._tick_if_needed()
            self.refresh()

    def flash(self, text: str, seconds: float = FLASH) -> None:
        """Show a short message for a while."""
        self._flash = text
        if self._flash_timer is not None:
            self._flash_timer.stop()
        self._flash_timer = self.set_timer(seconds, self._unflash) if text else None
        self.refresh()

    def show_unseen(self, lines: int) -> None:
        """How many lines have come below what is in sight since the user scrolled up."""
        if lines != self._unseen:
            self._unseen = lines
            self.refresh()

    def focus_changed(self) -> None:
        """The terminal got or lost the focus."""
        self._tick_if_needed()

    def content(self, width: int) -> Content:
        line = self._what(width)
        if not self._unseen:
            return line
        new = f" ↓ {self._unseen:,} new {'line' if self._unseen == 1 else 'lines'} · End "
        pill = Content(new).stylize(self.get_visual_style("activity--unseen", partial=True))
        if pill.cell_length >= width:
            return line
        room = width - pill.cell_length
        return line.truncate(room, ellipsis=True).pad_right(max(0, room - line.cell_length)) + pill

    def _what(self, width: int) -> Content:
        muted = self.get_visual_style("activity--stop", partial=True)
        what, stop = activity.describe(self._state, now=self._clock())
        if self._flash:  # what stops the work is told all the same
            line = Content(safe_line(self._flash)).stylize(self.get_visual_style("activity--flash", partial=True))
        elif self._starting:
            return Content("Starting…").stylize(muted)
        elif not what:
            return Content("")
        else:
            frame = int(self._clock() / SPIN) % len(activity.FRAMES)
            mark = "●" if self._still else activity.FRAMES[frame]
            line = Content(f"{mark} {safe_line(what)}")
        rest = Content(f" · {stop}" if stop else "").stylize(muted)
        return line.truncate(max(1, width - rest.cell_length), ellipsis=True) + rest

    def _tick_if_needed(self) -> None:
        wanted = (self._state.busy or bool(self._state.running)) and self.app.app_focus
        if wanted and self._timer is None:
            self._timer = self.set_interval(1.0 if self._still else SPIN, self._tick)
        elif not wanted and self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _tick(self) -> None:
        """While an answer streams, each piece of it draws this line too: no frames beside those."""
        if not 0 <= self._clock() - self._shown < SPIN:
            self.refresh()

    def _unflash(self) -> None:
        self._flash = ""
        self.refresh()


class StatusBar(LineWidget):
    """Mode, model, context, cache, cost, branch."""

    DEFAULT_CSS = """
    StatusBar { height: 1; padding: 0 1; background: $panel; color: $foreground; }
    StatusBar > .status--dim { color: $foreground-muted; text-style: $muted-style; }
    StatusBar > .status--mode { color: $accent; text-style: bold; }
    StatusBar > .status--ok { color: $success; }
    StatusBar > .status--warn { color: $warning; }
    StatusBar > .status--compact { color: $warning; text-style: bold; }
    StatusBar > .status--block { color: $error; text-style: bold reverse; }
    """
    COMPONENT_CLASSES = {f"status--{tone}" for tone in ("dim", "mode", "ok", "warn", "compact", "block")}

    def __init__(self) -> None:
        super().__init__(id="status")
        self._facts: status.Facts | None = None
        self._line: Content | None = None

    def show(self, facts: status.Facts) -> None:
        """Take new facts."""
        if facts != self._facts:
            self._facts = facts
            self.refresh()

    def show_line(self, line: Content | None) -> None:
        """Show this in place of the facts; None brings them back."""
        self._line = line
        self.refresh()

    def content(self, width: int) -> Content:
        if self._line is not None:
            return self._line
        if self._facts is None:
            return Content("")
        return self._assembled(status.line(self._facts, width))

    def _assembled(self, pieces: Sequence[status.Piece]) -> Content:
        line = Content("")
        for piece in pieces:
            part = Content(safe_line(piece.text))
            if piece.tone != "plain":
                part = part.stylize(self.get_visual_style(f"status--{piece.tone}", partial=True))
            line = line + part
        return line
