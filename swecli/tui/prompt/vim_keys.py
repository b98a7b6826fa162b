"""Connects the vim keys to the prompt's editor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace
from textual import events
from textual.widgets.text_area import Selection

from swecli.tui.prompt.graphemes import StandIns
from swecli.tui.prompt.vim import Ask, Buffer, Mode, Vim, line_end, line_start, press, selected, settled

if TYPE_CHECKING:
    from swecli.tui.prompt.editor import PromptEditor

_NAMED = frozenset(("escape", "backspace", "delete", "ctrl+r"))


class VimKeys:
    """``changed`` is called after a mode change, ``ask`` for requests to the prompt."""

    def __init__(self, editor: PromptEditor, changed: Callable[[], None], ask: Callable[[Ask], None]) -> None:
        self._editor = editor
        self._changed = changed
        self._ask = ask
        self._vim = Vim()
        self._stand_ins = StandIns()
        self._left: Buffer | None = None
        """Text and cursor after the newest key, except in insert mode."""
        self._at = 0
        """Cursor of visual mode; the editor's selection ends behind it."""
        self._shown: Selection | None = None
        """Selection made by visual mode."""

    @property
    def mode(self) -> Mode:
        return self._vim.mode

    @property
    def pending(self) -> str:
        """Keys of the incomplete command."""
        return "".join(key for key in self._vim.keys if len(key) == 1)

    def begin(self) -> None:
        """Start a new draft in insert mode without undo history."""
        before, self._shown, self._left = self._vim, None, None
        self._vim = replace(before, mode="insert", keys=(), inserting=None, undo=(), redo=(), wish=None)
        if before.mode != "insert" or before.keys:
            self._changed()

    def settle(self) -> None:
        """In normal mode, move the cursor onto the line's last character if a paste or click left it behind that."""
        editor = self._editor
        if self._vim.mode == "normal" and editor.selection.is_empty:
            text = self._stand_ins.encode(editor.text)
            cursor = self._encoded(editor.text, editor.selection.end)
            if (there := settled(text, cursor)) != cursor:
                editor.selection = Selection.cursor(_end(self._stand_ins.decode(text[:there])))

    def take(self, event: events.Key) -> bool:
        """Handle the key; False leaves it to the prompt or the program."""
        vim, key = self._vim, event.key
        named = key if key in _NAMED else ""
        if vim.mode == "insert":
            if key != "escape":
                return False
        elif not named and not (event.is_printable and event.character):
            self._vim = replace(vim, keys=())
            return False
        elif key == "escape" and vim.mode == "normal" and not vim.keys:
            return False
        letters = [named] if named else list(event.character or "")
        for letter in letters:
            self._press(letter)
        return True

    def _press(self, key: str) -> None:
        before, buffer = self._read()
        step = press(before, buffer, key)
        self._vim = step.vim
        self._write(buffer, step.buffer)
        if (before.mode, before.keys) != (step.vim.mode, step.vim.keys):
            self._changed()
        if step.ask:
            self._ask(step.ask)

    def _read(self) -> tuple[Vim, Buffer]:
        """Vim state and the editor's text and cursor. A mouse selection becomes visual mode."""
        editor, vim, text = self._editor, self._vim, self._editor.text
        selection = editor.selection
        cursor = self._encoded(text, selection.end)
        if vim.mode.startswith("visual"):
            if selection == self._shown:
                cursor = self._at
            else:
                vim = replace(vim, mode="normal", keys=())
        if vim.mode == "normal" and not selection.is_empty:
            low, high = sorted((self._encoded(text, selection.start), cursor))
            vim, cursor = replace(vim, mode="visual", anchor=low), max(low, high - 1)
        encode = self._stand_ins.encode
        atoms = tuple((len(encode(text[:left])), len(encode(text[:right]))) for left, right in editor.placeholders())
        buffer = Buffer(encode(text), cursor, atoms)
        if self._left is not None and self._left.text != buffer.text:  # pasted, cleared, from the history
            vim = replace(vim, undo=(*vim.undo[-199:], self._left), redo=())
        return vim, buffer

    def _encoded(self, text: str, location: tuple[int, int]) -> int:
        """Offset of a row and column in the encoded text."""
        return len(self._stand_ins.encode(text[: _offset(text, location)]))

    def _write(self, before: Buffer, after: Buffer) -> None:
        """Replace the differing part in one step, and set cursor or selection."""
        editor, decode = self._editor, self._stand_ins.decode
        old, new = decode(before.text), decode(after.text)
        if old != new:
            head, most = 0, min(len(old), len(new))
            while head < most and old[head] == new[head]:
                head += 1
            tail = 0
            while tail < most - head and old[-1 - tail] == new[-1 - tail]:
                tail += 1
            span = _end(old[:head]), _end(old[: len(old) - tail])
            editor.replace(new[head : len(new) - tail], *span, maintain_selection_offset=False)
        self._shown, self._left = None, None if self._vim.mode == "insert" else after
        if self._vim.mode.startswith("visual"):
            self._at = after.cursor
            low, high = (_end(decode(after.text[:position])) for position in selected(self._vim, after))
            self._shown = Selection(high, low) if after.cursor < self._vim.anchor else Selection(low, high)
            editor.selection = self._shown
        else:
            cursor = after.cursor if self._vim.mode == "insert" else settled(after.text, after.cursor)
            editor.selection = Selection.cursor(_end(decode(after.text[:cursor])))


def _offset(text: str, location: tuple[int, int]) -> int:
    """Offset of a row and column."""
    start = 0
    for _ in range(location[0]):
        start = line_end(text, start) + 1
    return min(start + location[1], len(text))


def _end(text: str) -> tuple[int, int]:
    """Row and column of the text's end."""
    return text.count("\n"), len(text) - line_start(text, len(text))
