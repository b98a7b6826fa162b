"""The text of a command while it is edited in a panel: all of it can be seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.widgets import TextArea

from swecli.safe_text import sanitise

_NEW_LINE = frozenset(("ctrl+j", "shift+enter", "alt+enter", "ctrl+enter"))


class CommandEditor(TextArea):
    """Enter posts ``Submitted``; Ctrl+J makes a new line."""

    DEFAULT_CSS = """
    CommandEditor {
        display: none; height: auto; max-height: 8; border: none; padding: 0; background: $panel;
        &:focus { border: none; background-tint: transparent; }
    }
    """

    @dataclass
    class Submitted(Message):
        """The user is done; ``text`` is the command."""

        text: str

    def __init__(self, command: str) -> None:
        super().__init__(visible_part(command), soft_wrap=True, show_line_numbers=False, compact=True)
        self.cursor_blink = False
        self.move_cursor(self.document.end)
        # At once: as a binding each would come after the letters that were typed behind it.
        self._edits: dict[str, Callable[[], None]] = {
            "backspace": self.action_delete_left,
            "delete": self.action_delete_right,
            "left": self.action_cursor_left,
            "right": self.action_cursor_right,
            "up": self.action_cursor_up,
            "down": self.action_cursor_down,
            "home": self.action_cursor_line_start,
            "ctrl+a": self.action_cursor_line_start,
            "end": self.action_cursor_line_end,
            "ctrl+e": self.action_cursor_line_end,
            "alt+b": self.action_cursor_word_left,
            "alt+f": self.action_cursor_word_right,
            "ctrl+u": self.action_delete_to_start_of_line,
            "ctrl+k": self.action_delete_to_end_of_line,
            "ctrl+w": self.action_delete_word_left,
            "alt+d": self.action_delete_word_right,
        }

    async def _on_key(self, event: events.Key) -> None:
        await self.take_key(event)

    async def take_key(self, event: events.Key) -> None:
        """Do what a key means here; one that means nothing is left alone."""
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            self.post_message(self.Submitted(self.text))
        elif event.key in _NEW_LINE:
            event.stop()
            event.prevent_default()
            self.insert("\n")
        elif (edit := self._edits.get(event.key)) is not None:
            event.stop()
            event.prevent_default()
            edit()
        else:
            await super()._on_key(event)

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.insert(visible_part(event.text))


def visible_part(command: str) -> str:
    """The command without characters that can't be seen as what they are: line ends other than LF, control and other
    hidden characters."""
    text = command.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(char for char in text if char in "\n\t" or sanitise(char) == char)
