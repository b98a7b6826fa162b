"""The prompt's editor: a text area with the habits of a shell's line editor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.widgets import TextArea

from swecli.tui.prompt import line_edit
from swecli.tui.prompt.paste import Pastes


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
    PromptEditor .text-area--placeholder { color: $foreground-muted; }
    """

    BINDINGS = [Binding("ctrl+underscore", "undo", show=False)]

    @dataclass
    class Submitted(Message):
        """The user sent the text. ``queue`` asks to keep it for after the running turn."""

        queue: bool = False

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, soft_wrap=True, tab_behavior="focus", show_line_numbers=False, compact=True)
        self.cursor_blink = False
        self.highlight_cursor_line = False
        self.match_cursor_bracket = False
        self.pastes = Pastes()
        self.intercept: Callable[[events.Key], bool] = lambda event: False
        self._killed = ""
        self._killing = False
        self._edits: dict[str, Callable[[], None]] = {
            "shift+enter": self._newline,
            "shift+\r": self._newline,
            "ctrl+j": self._newline,
            "ctrl+enter": self._newline,
            "alt+enter": self._newline,
            "enter": self._enter,
            "ctrl+k": self._kill_right,
            "ctrl+u": self._kill_left,
            "ctrl+w": self._kill_blank_left,
            "alt+backspace": self._kill_word_left,
            "alt+d": self._kill_word_right,
            "ctrl+y": self._yank,
            "alt+b": lambda: self.move_cursor(self._at(line_edit.word_left(*self._here()))),
            "alt+f": lambda: self.move_cursor(self._at(line_edit.word_right(*self._here()))),
            "backspace": self._backspace,
            "ctrl+h": self._backspace,
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
            self._killed = self.text
            self.replace("", (0, 0), self.document.end, maintain_selection_offset=False)

    async def _on_key(self, event: events.Key) -> None:
        key = event.key
        if self.intercept(event):
            event.stop()
            event.prevent_default()
            return
        edit = self._edits.get(key)
        if not key.startswith(("ctrl+k", "ctrl+u", "ctrl+w", "alt+d", "alt+backspace")):
            self._killing = False
        if edit is not None:
            event.stop()
            event.prevent_default()
            edit()
            return
        await super()._on_key(event)

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.add(event.text)

    def _newline(self) -> None:
        self.replace("\n", *self.selection, maintain_selection_offset=False)

    def _enter(self) -> None:
        line, column = self._here()
        if line_edit.continues(line, column):
            row = self.cursor_location[0]
            self.replace("\n", (row, column - 1), (row, column), maintain_selection_offset=False)
        else:
            self.submit()

    def _backspace(self) -> None:
        row, column = self.cursor_location
        whole = self.pastes.placeholder_before(self._here()[0][:column]) if self.selection.is_empty else None
        if whole is not None:
            self.delete((row, column - len(whole)), (row, column), maintain_selection_offset=False)
        else:
            self.action_delete_left()

    def _here(self) -> tuple[str, int]:
        row, column = self.cursor_location
        return self.document.get_line(row), column

    def _at(self, column: int) -> tuple[int, int]:
        return self.cursor_location[0], column

    def _kill(self, start: tuple[int, int], end: tuple[int, int], *, forward: bool) -> None:
        text = self.get_text_range(start, end)
        if not text:
            return
        if not self._killing:
            self._killed = text
        elif forward:
            self._killed += text
        else:
            self._killed = text + self._killed
        self._killing = True
        self.delete(start, end, maintain_selection_offset=False)

    def _kill_right(self) -> None:
        line, column = self._here()
        row = self.cursor_location[0]
        end = (row, len(line)) if column < len(line) else (row + 1, 0)
        if end[0] < self.document.line_count:
            self._kill((row, column), end, forward=True)

    def _kill_left(self) -> None:
        self._kill(self._at(0), self.cursor_location, forward=False)

    def _kill_blank_left(self) -> None:
        self._kill(self._at(line_edit.blank_left(*self._here())), self.cursor_location, forward=False)

    def _kill_word_left(self) -> None:
        self._kill(self._at(line_edit.word_left(*self._here())), self.cursor_location, forward=False)

    def _kill_word_right(self) -> None:
        self._kill(self.cursor_location, self._at(line_edit.word_right(*self._here())), forward=True)

    def _yank(self) -> None:
        if self._killed:
            self.replace(self._killed, *self.selection, maintain_selection_offset=False)
