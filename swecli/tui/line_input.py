"""One line to type in, for panels and screens."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.widgets import Input

from swecli.tui.keymap import keymap_of


class LineInput(Input):
    """Each key does its work as it comes, in order: as a binding it would come after the letters that were typed
    behind it. ``intercept`` gets every key first, and says whether it took it."""

    def __init__(
        self,
        text: str = "",
        *,
        placeholder: str = "",
        password: bool = False,
        intercept: Callable[[events.Key], bool] = lambda event: False,
        id: str | None = None,
    ) -> None:
        super().__init__(text, placeholder=placeholder, password=password, id=id, compact=True, select_on_focus=False)
        self.cursor_blink = False
        self._intercept = intercept
        self._edits: dict[str, Callable[[], None]] = {
            "backspace": self.action_delete_left,
            "delete": self.action_delete_right,
            "left": self.action_cursor_left,
            "right": self.action_cursor_right,
            "home": self.action_home,
            "end": self.action_end,
            "line_start": self.action_home,
            "line_end": self.action_end,
            "word_left": self.action_cursor_left_word,
            "word_right": self.action_cursor_right_word,
            "kill_left": self.action_delete_left_all,
            "kill_right": self.action_delete_right_all,
            "kill_blank_left": self.action_delete_left_word,
            "kill_word_left": self.action_delete_left_word,
            "kill_word_right": self.action_delete_right_word,
        }

    def put(self, text: str) -> None:
        """Replace what is typed, with the cursor behind it."""
        self.value = text
        self.cursor_position = len(text)

    async def _on_key(self, event: events.Key) -> None:
        await self.take_key(event)

    async def take_key(self, event: events.Key) -> None:
        """Do what a key means here; one that means nothing is left alone."""
        if not self._intercept(event):
            if event.key == "enter":
                await self.action_submit()
            elif (edit := self._edits.get(self._edit_of(event.key))) is not None:
                edit()
            else:
                await super()._on_key(event)
                return
        event.stop()
        event.prevent_default()

    def _edit_of(self, key: str) -> str:
        """Keys of the prompt mean the same here."""
        return {"ctrl+h": "backspace"}.get(key) or keymap_of(self).action("prompt", key) or key
