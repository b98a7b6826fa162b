"""Ctrl+R: the newest message that contains what is typed, then older ones."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.content import Content
from textual.widgets import Static

from swecli.safe_text import safe_line
from swecli.tui.keymap import Keymap
from swecli.tui.prompt.history import History


class HistorySearch(Static):
    """A line that shows the query. ``found`` is called with each message that is found."""

    DEFAULT_CSS = "HistorySearch { height: 1; color: $secondary; display: none; }"

    def __init__(self, history: History, found: Callable[[str], None], keymap: Keymap) -> None:
        super().__init__("", id="history-search", markup=False)
        self._messages = history
        self._found = found
        self._keymap = keymap
        self._query: str | None = None
        self._skip = 0
        self._before = ""

    @property
    def is_open(self) -> bool:
        return self._query is not None

    def start(self, before: str) -> None:
        """Begin; ``before`` is the text that Esc brings back."""
        self._before, self._query, self._skip = before, "", 0
        self._show("")

    def cancel(self) -> str:
        """Leave; the text from before."""
        self._query = None
        self._show("")
        return self._before

    def take_key(self, event: events.Key) -> bool:
        """Narrow, go on, or keep what is found; whether the key was for the search."""
        query = self._query or ""
        if self._keymap.action("prompt", event.key) == "search_history":
            self._skip += 1
            self._find()
            return True
        match self._keymap.action("list", event.key) or event.key:
            case "previous":
                self._skip += 1
            case "next":
                self._skip = max(0, self._skip - 1)
            case "backspace" | "ctrl+h":
                self._query, self._skip = query[:-1], 0
            case "enter" | "tab" | "right" | "left":
                self._query = None
                self._show("")
                return event.key != "left"
            case _ if event.is_printable and event.character:
                self._query, self._skip = query + event.character, 0
            case _:
                return False
        self._find()
        return True

    def _find(self) -> None:
        query = self._query or ""
        found = self._messages.search(query, self._skip) if query else None
        if found is None and self._skip:
            self._skip -= 1
            found = self._messages.search(query, self._skip) if query else None
        if found is not None:
            self._found(found)
        self._show("" if found is not None or not query else "nothing found")

    def _show(self, note: str) -> None:
        self.display = self._query is not None
        if self._query is not None:
            hint = note or f"{self._keymap.shown('search_history')} older · enter takes it · esc leaves"
            line = Content(f"search history: {safe_line(self._query)}▏  {hint}")
            self.update(line.truncate(max(1, self.app.size.width), ellipsis=True))
