"""Copying what is selected, with a word about how it went."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

from textual.app import App

from swecli.tui import clipboard
from swecli.tui.prompt.editor import PromptEditor


class Copier:
    """Copies the screen's selection, or the editor's. ``write`` puts a sequence to the terminal, ``flash`` shows
    a short message."""

    def __init__(self, app: App[Any], editor: PromptEditor, write: Callable[[str], None], flash: Callable[[str], None]):
        self._app = app
        self._editor = editor
        self._write = write
        self._flash = flash

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
        sequence = clipboard.terminal_sequence(text, os.environ)
        if await asyncio.to_thread(clipboard.copy_with_helper, text, os.environ):
            self._flash(f"Copied the {what} ({len(text):,} characters)")
        elif sequence is not None:
            self._write(sequence)
            self._flash(f"Sent the {what} to the terminal's clipboard ({len(text):,} characters)")
        else:
            self._flash(f"The {what} is too long for the terminal's clipboard; Shift+drag selects in the terminal")
