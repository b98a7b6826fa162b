"""Transcript search: a line in place of the prompt."""

from __future__ import annotations

from textual import events, on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Static

from swecli.tui.dock.panel import NARROW, DockPanel, Hint, KeyLine
from swecli.tui.keymap import keymap_of
from swecli.tui.line_input import LineInput
from swecli.tui.transcript.view import Transcript

DELAY = 0.08
"""Seconds from a key to the search of a long transcript."""


class FindPanel(DockPanel):
    """Typing finds the newest match; Enter and Up go to earlier ones."""

    def __init__(self, transcript: Transcript, words: str = "") -> None:
        super().__init__()
        self._transcript = transcript
        self._query = LineInput(words, placeholder="Find in the transcript", intercept=self._intercept)
        # Kept here because the panel may close before its children are mounted.
        self._note = Static("", classes="dock--note", id="found", markup=False)
        self._keys = KeyLine()

    def compose(self) -> ComposeResult:
        yield self._query
        yield self._note
        yield self._keys

    def on_mount(self) -> None:
        self._query.focus()
        self._show_matches()
        self.fit()
        self.watch(self._transcript, "search_state", self._show_matches, init=False)

    def on_unmount(self) -> None:
        self._transcript.clear_find()

    @property
    def field(self) -> LineInput:
        return self._query

    def _intercept(self, event: events.Key) -> bool:
        keymap = keymap_of(self)
        match keymap.action("list", event.key) or keymap.action("everywhere", event.key):
            case "previous":
                self._transcript.action_find_previous()
            case "next":
                self._transcript.action_find_next()
            case "page_up":
                self._transcript.action_page_up()
            case "page_down":
                self._transcript.action_page_down()
            case _:
                return False
        return True

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        query = event.value

        def search() -> None:
            if query == self._query.value:
                self._transcript.find(query) if query.strip() else self._transcript.clear_find()

        self.set_timer(DELAY, search)

    @on(Input.Submitted)
    def _next(self, event: Input.Submitted) -> None:
        event.stop()
        self._transcript.action_find_previous()

    def fit(self) -> None:
        super().fit()
        columns = self.screen.size.width
        moves: list[Hint] = [("enter", "older", 2), ("\u2193", "newer", 3)]
        searched = self._transcript.search_state
        hints: list[Hint] = [*(moves if searched.total or not searched.query else ()), ("esc", "closes", 0)]
        self._keys.tell(hints, columns - 2, narrow=columns < NARROW)

    def _show_matches(self) -> None:
        search = self._transcript.search_state
        text = (
            f"{search.current} of {search.total}" if search.current else f"{search.total} found" if search.total else ""
        )
        self._note.display = bool(search.query)
        self._note.update(Content(text or "no match"))
        self.fit()
