"""The one screen of the program: transcript or an open list, todos, activity line, dock, status bar."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import Screen

from swecli.tui.backend import Backend
from swecli.tui.dock.dock import Dock
from swecli.tui.dock.panel import Clock
from swecli.tui.keymap import Keymap
from swecli.tui.prompt.box import Prompt
from swecli.tui.status_bar import ActivityLine, StatusBar
from swecli.tui.todos import TodoPanel

if TYPE_CHECKING:
    from swecli.tui.screens.list_screen import ListScreen
    from swecli.tui.transcript.view import Transcript


class MainScreen(Screen[None]):
    """The first frame has everything but the transcript, which is added once its modules are loaded."""

    DEFAULT_CSS = """
    MainScreen { layout: vertical; overflow: hidden; background: $background; color: $foreground; }
    MainScreen #content { height: 1fr; min-height: 1; }
    MainScreen.-whole #content, MainScreen.-whole TodoPanel { display: none; }
    MainScreen.-whole ActivityLine, MainScreen.-whole StatusBar { display: none; }
    """

    transcript: Transcript

    def __init__(self, backend: Backend, keys: Keymap, clock: Clock, wall: Callable[[], float]) -> None:
        """``clock`` is monotonic seconds, ``wall`` Unix seconds."""
        super().__init__(id="_default")
        self.content = Vertical(id="content")
        self.todos = TodoPanel()
        self.activity = ActivityLine(clock=wall)
        self.prompt = Prompt(backend.state, backend.files, self.activity.flash, keys, clock=clock)
        self.dock = Dock(self.prompt, clock=clock)
        self.status = StatusBar()
        self.list_view: ListScreen | None = None
        """The list that is open in place of the transcript."""

    def compose(self) -> ComposeResult:
        yield self.content
        yield self.todos
        yield self.activity
        yield self.dock
        yield self.status

    def add_transcript(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.content.mount(transcript)

    def open_list(self, opened: ListScreen) -> None:
        """Show a list in place of the transcript, or of the list that is open."""
        if self.list_view is not None:
            self.list_view.remove()
        self.list_view = opened
        self.transcript.display = False
        self.content.mount(opened)
        self.dock.cover(opened.take_focus)

    def close_list(self) -> None:
        """Back to the transcript."""
        closed, self.list_view = self.list_view, None
        if closed is not None:
            closed.remove()
            self.transcript.display = True
            self.dock.uncover()
