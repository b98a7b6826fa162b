"""Copying what is selected, with a word about how it went."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.app import App

from swecli.safe_text import safe_line
from swecli.tui import clipboard
from swecli.tui.prompt.editor import PromptEditor


def shown_path(path: Path) -> str:
    """A path for people, the home folder as ~."""
    home = Path.home()
    return safe_line(f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path))


class Copier:
    """Copies the screen's selection, or the editor's. ``write`` puts a sequence to the terminal, ``flash`` shows
    a short message; below ``state`` is kept what the terminal may not have taken."""

    def __init__(
        self,
        app: App[Any],
        editor: PromptEditor,
        write: Callable[[str], None],
        flash: Callable[[str], None],
        state: Path | None,
    ) -> None:
        self._app = app
        self._editor = editor
        self._write = write
        self._flash = flash
        self._state = state

    def unselect(self) -> None:
        """Nothing is selected any more."""
        self._app.screen.clear_selection()
        self._editor.move_cursor(self._editor.cursor_location)

    def copy_selection(self) -> None:
        """Copy what is selected, and clear the selection."""
        text = self._app.screen.get_selected_text() or self._editor.selected_text
        self.unselect()
        self.copy(text, "selection")

    def copy(self, text: str, what: str) -> None:
        """Copy a text; ``what`` names it in the message."""
        self._app.run_worker(self._copy(text, what), group="copy")

    async def _copy(self, text: str, what: str) -> None:
        size = f"{len(text):,} characters"
        if await asyncio.to_thread(clipboard.copy_with_helper, text, os.environ):
            self._flash(f"Copied the {what} ({size})")
            return
        kept = await asyncio.to_thread(clipboard.keep_in_file, text, self._state) if self._state is not None else None
        place = shown_path(kept) if kept is not None else ""
        sequence = clipboard.terminal_sequence(text, os.environ)
        if sequence is not None:
            self._write(sequence)
            self._flash(f"Sent the {what} to the terminal ({size}){f', and into {place}' if place else ''}")
        elif place:
            self._flash(f"Too long for the terminal's clipboard ({size}): the {what} is in {place}")
        else:
            self._flash(f"The {what} is too long for the terminal's clipboard; Shift+drag selects in the terminal")
