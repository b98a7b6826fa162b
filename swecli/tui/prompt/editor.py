"""The prompt's editor: a text area with the habits of a shell's line editor."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.widgets import TextArea

from swecli.tui.keymap import Keymap
from swecli.tui.prompt import line_edit
from swecli.tui.prompt.attachments import Attachments, image_paths
from swecli.tui.prompt.kill_ring import KEEPS_RING, KillRing
from swecli.tui.prompt.paste import Pastes

_OTHER_KEYS = {"shift+\r": "shift+enter", "ctrl+\r": "ctrl+enter", "alt+\r": "alt+enter"}
"""What terminals that report modified keys in the older way are understood to have sent."""


class PromptEditor(TextArea):
    """Several lines of text. What a key means beyond editing is asked of ``intercept`` first, which returns
    whether it took the event."""

    DEFAULT_CSS = """
    PromptEditor {
        height: auto; max-height: 12; min-height: 1; width: 1fr;
        border: none; padding: 0; background: transparent;
        scrollbar-size-vertical: 1;
    }
    PromptEditor:focus { border: none; }
    PromptEditor .text-area--cursor-line { background: transparent; }
    PromptEditor .text-area--placeholder { color: $foreground-muted; text-style: $muted-style; }
    PromptEditor .text-area--selection { text-style: $selection-style; }
    """

    @dataclass
    class Submitted(Message):
        """The user sent the text. ``queue`` asks to keep it for after the running turn."""

        queue: bool = False

    def __init__(self, *, id: str | None = None, keymap: Keymap | None = None) -> None:
        super().__init__(id=id, soft_wrap=True, tab_behavior="focus", show_line_numbers=False, compact=True)
        self.cursor_blink = False
        self.highlight_cursor_line = False
        self.match_cursor_bracket = False
        self.pastes = Pastes()
        self.attachments = Attachments()
        self.blind: Callable[[], str] = lambda: ""
        """Why images can't be attached; empty where they can."""
        self.complain: Callable[[str], None] = lambda text: None
        self.intercept: Callable[[events.Key], bool] = lambda event: False
        self._ring = KillRing(self)
        self._keymap = keymap or Keymap()
        self._edits: dict[str, Callable[[], None]] = {
            "newline": self._newline,
            "send": self._enter,
            "kill_right": self._ring.right,
            "kill_left": self._ring.left,
            "kill_blank_left": self._ring.blank_left,
            "kill_word_left": self._ring.word_left,
            "kill_word_right": self._ring.word_right,
            "yank": self._ring.yank,
            "yank_older": self._ring.yank_older,
            "undo": self.action_undo,
            "paste": self._paste_clipboard,
            "line_start": self.action_cursor_line_start,
            "line_end": self.action_cursor_line_end,
            "word_left": lambda: self._move(line_edit.word_left),
            "word_right": lambda: self._move(line_edit.word_right),
        }

    @property
    def message(self) -> str:
        """The text as it would be sent: pastes in full."""
        return self.pastes.expand(self.text)

    def put(self, text: str) -> None:
        """Replace everything; large parts are folded. Undo takes it back."""
        folded = self.pastes.fold(text) if text else ""
        self.replace(folded, (0, 0), self.document.end, maintain_selection_offset=False)
        self.move_cursor(self.document.end)

    def take(self) -> str:
        """The message, and leave the editor empty."""
        message = self.message
        self.clear()
        self.pastes.clear()
        self.history.clear()
        return message

    def add(self, text: str) -> None:
        """Insert text at the cursor, folded if it is large."""
        result = self.replace(self.pastes.fold(text), *self.selection, maintain_selection_offset=False)
        self.move_cursor(result.end_location)

    def submit(self, *, queue: bool = False) -> None:
        """Send what is there; whoever handles the message takes it."""
        self.post_message(self.Submitted(queue))

    def kill_all(self) -> None:
        """Clear the prompt; Ctrl+Y brings the text back."""
        if self.text:
            self._ring.keep(self.text)
            self.replace("", (0, 0), self.document.end, maintain_selection_offset=False)

    async def _on_key(self, event: events.Key) -> None:
        key = event.key
        if self.intercept(event):
            event.stop()
            event.prevent_default()
            return
        action = self._keymap.action("prompt", _OTHER_KEYS.get(key, key))
        if action not in KEEPS_RING:
            self._ring.rest()
        edit = self._backspace if key in ("backspace", "ctrl+h") else self._edits.get(action or "")
        if edit is not None or self._keymap.freed("prompt", key):
            event.stop()
            event.prevent_default()
            if edit is not None:
                edit()
            return
        await super()._on_key(event)

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.take_paste(event.text)

    def take_paste(self, text: str) -> None:
        """Put in what was pasted: the text, or the images that it names."""
        if not self._take_images(text):
            self.add(text)

    def _take_images(self, pasted: str) -> bool:
        """Take pasted paths of images as attachments; whether it was such a paste and could be done."""
        return bool(image_paths(pasted)) and self._put_images(lambda: self.attachments.take(pasted))

    def _paste_clipboard(self) -> None:
        self.run_worker(self._from_clipboard(), group="clipboard", exclusive=True)

    async def _from_clipboard(self) -> None:
        """Put in what is on the desktop's clipboard, or else what was copied in this program."""
        from swecli.tui.clipboard_content import read_clipboard

        found = await asyncio.to_thread(read_clipboard, os.environ)
        text = found.text or self.app.clipboard
        if found.image:
            self._put_images(lambda: self.attachments.add("clipboard.png", found.image))
        elif text:
            self.add(text)
        else:
            self.complain("Nothing to paste was found; the terminal's own key for pasting may know more")

    def _put_images(self, take: Callable[[], tuple[str, str]]) -> bool:
        """Attach images, unless the model can't see any; whether it was done."""
        label, refusal = "", self.blind()
        if not refusal:
            label, refusal = take()
        if refusal:
            self.complain(refusal)
        elif label:
            self.add(f"{label} ")
        return bool(label)

    def _newline(self) -> None:
        self.replace("\n", *self.selection, maintain_selection_offset=False)

    def _enter(self) -> None:
        line, column = self.here()
        if line_edit.continues(line, column):
            row = self.cursor_location[0]
            self.replace("\n", (row, column - 1), (row, column), maintain_selection_offset=False)
        else:
            self.submit()

    def _backspace(self) -> None:
        row, column = self.cursor_location
        before = self.here()[0][:column]
        whole = None
        if self.selection.is_empty:
            whole = self.pastes.placeholder_before(before) or self.attachments.placeholder_before(before)
        if whole is not None:
            self.delete((row, column - len(whole)), (row, column), maintain_selection_offset=False)
        else:
            self.action_delete_left()

    def here(self) -> tuple[str, int]:
        """The cursor's line and the column in it."""
        row, column = self.cursor_location
        return self.document.get_line(row), column

    def _move(self, target: Callable[[str, int], int]) -> None:
        self.move_cursor((self.cursor_location[0], target(*self.here())))
