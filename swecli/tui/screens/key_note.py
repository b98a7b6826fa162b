"""The last line of a screen: which keys do what, as much of it as has room."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from swecli.safe_text import safe_line
from swecli.tui.transcript.wrap import cells

BETWEEN = " · "


class KeyNote(Static):
    """Parts of the note are left out where there is no room for all."""

    DEFAULT_CSS = "KeyNote { height: 1; color: $foreground-muted; text-style: $muted-style; }"

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self._note = ""

    def tell(self, note: str) -> None:
        """Show another note."""
        self._note = safe_line(note)
        self.on_resize()

    def on_resize(self) -> None:
        self.update(Content(fitted(self._note, self.size.width)))


def fitted(note: str, width: int) -> str:
    """The parts of a note that have room: the last one, how to leave, before any other, then those that come first."""
    *others, last = note.split(BETWEEN)
    kept: list[str] = []
    for part in others:
        if cells(BETWEEN.join((*kept, part, last))) > width:
            break
        kept.append(part)
    return BETWEEN.join((*kept, last))
