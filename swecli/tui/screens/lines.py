"""A long list in columns, drawn by the line: only what is in sight is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.content import Content
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from swecli.safe_text import SafeText, safe_line
from swecli.tui.screens.entry import Entry
from swecli.tui.transcript.table import SEPARATOR, column_widths
from swecli.tui.transcript.wrap import cells, cut

GAP = 3
"""Cells between two columns."""
NARROW = 62
"""Columns below which a single cell has to do."""


class Lines(Widget, can_focus=False):
    """Entries with a chosen one, scrolled so that it is in sight."""

    DEFAULT_CSS = """
    Lines { height: 1fr; color: $foreground; }
    Lines > .lines--dim { color: $foreground-muted; text-style: $muted-style; }
    Lines > .lines--ok { color: $success; }
    Lines > .lines--warning { color: $warning; }
    Lines > .lines--heading { color: $accent; text-style: bold; }
    Lines > .lines--chosen { color: $accent; text-style: $chosen-style; background: $panel; }
    """
    COMPONENT_CLASSES = {"lines--dim", "lines--ok", "lines--warning", "lines--heading", "lines--chosen"}

    @dataclass
    class Clicked(Message):
        """An entry was clicked; ``again`` when it was the chosen one already."""

        again: bool

    def __init__(self) -> None:
        super().__init__()
        self._entries: list[Entry] = []
        self._natural: list[int] = []
        self._top = 0
        self._at = -1

    @property
    def chosen(self) -> Entry | None:
        """The chosen entry, if there is one to choose."""
        return self._entries[self._at] if 0 <= self._at < len(self._entries) else None

    def show(self, entries: Sequence[Entry], name: str | None = None) -> None:
        """Replace the entries; the one of this name is chosen, or else the one that was, or else the first."""
        wanted = name if name is not None else self.chosen.name if self.chosen else ""
        self._entries = list(entries)
        self._natural = _natural(self._entries)
        places = [number for number, entry in enumerate(self._entries) if not entry.heading]
        named = [number for number in places if self._entries[number].name == wanted]
        self._at = (named or places or [-1])[0]
        if not named:
            self._top = 0
        self.refresh()

    def move(self, step: int) -> None:
        """Choose the entry so many entries on; one step goes around the ends."""
        places = [number for number, entry in enumerate(self._entries) if not entry.heading]
        if not places:
            return
        here = places.index(self._at)
        there = (here + step) % len(places) if abs(step) == 1 else min(max(0, here + step), len(places) - 1)
        self._at = places[there]
        if there == 0:
            self._top = 0
        self.refresh()

    def move_page(self, step: int) -> None:
        """Choose the entry about a screen on."""
        self.move(step * max(2, self.size.height - 2))

    def move_to_end(self, *, last: bool) -> None:
        """Choose the first or the last entry."""
        self.move(len(self._entries) * (1 if last else -1) + (2 if last else -2))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y == 0:
            self._follow()
        number = self._top + y
        if number >= len(self._entries) or width < 1:
            return Strip.blank(max(0, width), self.rich_style)
        line = self._line(self._entries[number], number == self._at, width)
        return Strip(list(line.render_segments(self.visual_style)), width)

    def _follow(self) -> None:
        height = max(1, self.size.height)
        if self._at >= 0:
            self._top = min(self._top, self._at - (self._at > 0 and self._entries[self._at - 1].heading))
            self._top = max(self._top, self._at - height + 1)
        self._top = max(0, min(self._top, len(self._entries) - height))

    def _line(self, entry: Entry, chosen: bool, width: int) -> Content:
        if entry.heading:
            text = cut(safe_line(entry.cells[0]), max(0, width - 1))
            line = Content(" " + text).pad_right(max(0, width - 1 - cells(text)))
            return line.stylize(self.get_visual_style("lines--heading", partial=True))
        lead = ("›" if chosen else " ") + entry.mark + " "
        gap = GAP if width >= NARROW else 1
        text = _in_columns(entry, self._widths(width - len(lead), gap), gap)
        line = Content(cut(SafeText(lead + text), width))
        line = line.pad_right(max(0, width - line.cell_length))
        style = "chosen" if chosen else entry.tone
        return line if style == "plain" else line.stylize(self.get_visual_style(f"lines--{style}", partial=True))

    def _widths(self, width: int, gap: int) -> list[int]:
        natural = self._natural or [1]
        between = len(natural) - 1
        if sum(natural) + gap * between <= width:
            return natural
        most = max(12, width * 2 // 5)
        squeezed = [*(min(size, most) for size in natural[:-1]), natural[-1]]
        return column_widths(squeezed, width + (len(SEPARATOR) - gap) * between)

    def on_click(self, event: events.Click) -> None:
        number = self._top + event.y
        if 0 <= number < len(self._entries) and not self._entries[number].heading:
            again, self._at = self._at == number, number
            self.refresh()
            self.post_message(self.Clicked(again))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, 1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, -1)

    def _wheel(self, event: events.MouseEvent, step: int) -> None:
        event.stop()
        for _ in range(3):
            places = [number for number, entry in enumerate(self._entries) if not entry.heading]
            if places and self._at != (places[-1] if step > 0 else places[0]):
                self.move(step)
        self.post_message(self.Clicked(again=False))


def _natural(entries: Sequence[Entry]) -> list[int]:
    """How wide each column would like to be."""
    widths: list[int] = []
    for entry in entries:
        if entry.heading:
            continue
        for column, cell in enumerate(entry.cells):
            size = cells(safe_line(cell))
            if column == len(widths):
                widths.append(1)
            widths[column] = max(widths[column], size)
    return widths


def _in_columns(entry: Entry, widths: Sequence[int], gap: int) -> str:
    parts: list[str] = []
    for text, size in zip(entry.cells, widths, strict=False):
        safe = safe_line(text)
        shown = _without_middle(safe, size) if entry.tail and not parts else cut(safe, size)
        parts.append(shown + " " * (size - cells(shown)))
    return (" " * gap).join(parts)


def _without_middle(text: SafeText, size: int) -> str:
    """A text in so many cells: of one that is too long, a third of them for its beginning."""
    if cells(text) <= size or size < 6:
        return cut(text, size)
    start = cut(text, size // 3 + 1)
    return start + cut(text, size - cells(start) + 1, keep="end")[1:]
