"""The line that searches the history of sent messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import events
from textual.content import Content
from textual.widgets import Static

from swecli.safe_text import safe_line
from swecli.tui.keymap import Keymap

if TYPE_CHECKING:
    from swecli.tui.prompt.box import History


class HistorySearch(Static):
    """Line with the search query, displayed while the search is open. ``found`` is called with each match."""

    DEFAULT_CSS = "HistorySearch { height: 1; color: $secondary; }"

    def __init__(self, history: History, found: Callable[[str], None], keymap: Keymap) -> None:
        super().__init__("", id="history-search", markup=False)
        self._messages = history
        self._found = found
        self._keymap = keymap
        self._query: str | None = None
        self._skip = 0
        self._before = ""
        self.display = False

    def start(self, before: str) -> None:
        """Start; ``before`` is the text that Esc restores."""
        self._before, self._query, self._skip = before, "", 0
        self._show("")

    def cancel(self) -> str:
        """Cancel; returns the text from before."""
        self._query = None
        self._show("")
        return self._before

    def take_key(self, event: events.Key) -> bool:
        """Narrow, continue or accept; returns whether the search handled the key. A key that means nothing here accepts
        the match and then has its usual meaning."""
        query = self._query or ""
        match self._edit_of(event.key):
            case "search_history":
                self._skip += 1
            case "previous":
                self._skip += 1
            case "next":
                self._skip = max(0, self._skip - 1)
            case "backspace" | "ctrl+h":
                self._query, self._skip = query[:-1], 0
            case "kill_blank_left" | "kill_word_left":
                self._query, self._skip = "".join(query.rstrip().rpartition(" ")[:2]), 0
            case "kill_left":
                self._query, self._skip = "", 0
            case _ if event.is_printable and event.character:
                self._query, self._skip = query + event.character, 0
            case _ if self._keymap.action("everywhere", event.key):
                return False
            case key:
                self._query = None
                self._show("")
                return key in ("enter", "tab", "right")
        self._find()
        return True

    def take_paste(self, text: str) -> bool:
        """Add a paste to the query; False if the search is not open."""
        if self._query is None:
            return False
        self._query, self._skip = self._query + " ".join(text.split()), 0
        self._find()
        return True

    def _edit_of(self, key: str) -> str:
        """What a key does to the search, as the keys of the prompt and of lists are set."""
        action = self._keymap.action("prompt", key) or ""
        if action == "search_history" or action.startswith("kill_"):
            return action
        return self._keymap.action("list", key) or key

    def _find(self) -> None:
        query = self._query or ""
        match = self._messages.search(query, self._skip) if query else None
        if match is None and self._skip:
            self._skip -= 1
            match = self._messages.search(query, self._skip) if query else None
        if match is not None:
            self._found(match)
        self._show("" if match is not None or not query else "no match")

    def _show(self, note: str) -> None:
        self.display = self._query is not None
        if self._query is not None:
            hint = note or f"{self._keymap.shown('search_history')} older · enter uses it · esc closes"
            line = Content(f"search history: {safe_line(self._query)}▏  {hint}")
            self.update(line.truncate(max(1, self.app.size.width - 1), ellipsis=True), layout=False)
