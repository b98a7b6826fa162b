"""A line that is typed but not shown, and kept nowhere: a key."""

from __future__ import annotations

from collections.abc import Callable

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Static

from swecli.tui.dock.panel import DockPanel
from swecli.tui.line_input import LineInput


class SecretPanel(DockPanel):
    """Calls ``done`` with what was typed or pasted; Esc leaves without."""

    def __init__(self, title: str, note: str, done: Callable[[str], None]) -> None:
        super().__init__()
        self._title = title
        self._note = note
        self._done = done
        self._line = LineInput(placeholder="paste it here; it is not shown", password=True)

    def compose(self) -> ComposeResult:
        yield Static(Content(self._title), classes="dock--title")
        yield self._line
        yield Static(Content(self._note), classes="dock--note")

    @property
    def field(self) -> LineInput:
        return self._line

    def on_mount(self) -> None:
        self._line.focus()

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        event.stop()
        typed = event.value.strip()
        self._line.value = ""
        if typed:
            self.post_message(self.Finished())
            self._done(typed)
