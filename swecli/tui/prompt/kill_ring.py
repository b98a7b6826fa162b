"""What was cut from the line, to be put back with Ctrl+Y. Cuts in a row come back as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from swecli.tui.prompt import line_edit

if TYPE_CHECKING:
    from textual.document._document import Location

    from swecli.tui.prompt.editor import PromptEditor

KILLS = frozenset(("kill_right", "kill_left", "kill_blank_left", "kill_word_right", "kill_word_left"))
"""Actions after which the next cut is added to the one before."""

YANKS = frozenset(("yank", "yank_older"))
"""Actions after which what was put back can be exchanged for what was cut before it."""

KEEPS_RING = KILLS | YANKS

MOST = 30
"""Cuts that are kept."""


class KillRing:
    """Cuts around the editor's cursor."""

    def __init__(self, editor: PromptEditor) -> None:
        self._editor = editor
        self._cuts: list[str] = []
        """Oldest first."""
        self._running = False
        self._put: tuple[Location, Location] | None = None
        """Where the cut was put back just now."""
        self._back = 0

    def keep(self, text: str) -> None:
        """Remember a text that was cut elsewhere."""
        self._cuts = [*self._cuts[1 - MOST :], text]

    def rest(self) -> None:
        """Something else was done: the next cut begins anew."""
        self._running = False
        self._put = None

    def yank(self) -> None:
        """Put the cut text in at the cursor."""
        self._running = False
        self._back = 0
        if self._cuts:
            self._insert(*self._editor.selection)

    def yank_older(self) -> None:
        """Right after putting back: exchange it for what was cut before that, around to the newest again."""
        if self._put is not None:
            self._back = (self._back + 1) % len(self._cuts)
            self._insert(*self._put)

    def _insert(self, start: Location, end: Location) -> None:
        text = self._cuts[-1 - self._back]
        result = self._editor.replace(text, start, end, maintain_selection_offset=False)
        self._put = (min(start, end), result.end_location)

    def right(self) -> None:
        """Cut to the end of the line, or the line's end itself."""
        line, column = self._editor.here()
        row = self._editor.cursor_location[0]
        end = (row, len(line)) if column < len(line) else (row + 1, 0)
        if end[0] < self._editor.document.line_count:
            self._cut((row, column), end, forward=True)

    def left(self) -> None:
        """Cut to the start of the line."""
        self._cut_back(lambda line, column: 0)

    def blank_left(self) -> None:
        """Cut back to the blank before the word."""
        self._cut_back(line_edit.blank_left)

    def word_left(self) -> None:
        """Cut back to the start of the word."""
        self._cut_back(line_edit.word_left)

    def word_right(self) -> None:
        """Cut to the end of the word."""
        row, column = self._editor.cursor_location
        self._cut((row, column), (row, line_edit.word_right(*self._editor.here())), forward=True)

    def _cut_back(self, start: Callable[[str, int], int]) -> None:
        row, column = self._editor.cursor_location
        self._cut((row, start(*self._editor.here())), (row, column), forward=False)

    def _cut(self, start: tuple[int, int], end: tuple[int, int], *, forward: bool) -> None:
        text = self._editor.get_text_range(start, end)
        if not text:
            return
        if not self._running:
            self.keep(text)
        else:
            self._cuts[-1] = self._cuts[-1] + text if forward else text + self._cuts[-1]
        self._running = True
        self._put = None
        self._editor.delete(start, end, maintain_selection_offset=False)
