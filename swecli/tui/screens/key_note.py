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
        self._note = self._leave = ""

    def tell(self, note: str, leave: str) -> None:
        """Show another note; ``leave`` is its last part."""
        self._note, self._leave = safe_line(note), safe_line(leave)
        self.on_resize()

    def on_resize(self) -> None:
        self.update(Content(fitted(self._note, self._leave, self.size.width)))


def fitted(note: str, last: str, width: int) -> str:
    """The parts of a note that have room: how to leave before any other, then those that come first."""
    kept: list[str] = []
    for part in filter(None, note.split(BETWEEN)):
        if cells(BETWEEN.join((*kept, part, last))) > width:
            break
        kept.append(part)
    return BETWEEN.join((*kept, last))
