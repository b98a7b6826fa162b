"""The one screen of the program: transcript or an open list, todos, activity line, dock, status bar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from swecli.safe_text import safe_line
from swecli.tui.backend import Backend
from swecli.tui.dock.dock import Dock
from swecli.tui.dock.panel import Clock
from swecli.tui.keymap import Keymap
from swecli.tui.prompt.box import Prompt
from swecli.tui.status_bar import ActivityLine, StatusBar

if TYPE_CHECKING:
    from swecli.core.protocol.blocks import Todo
    from swecli.tui.screens.board import Board
    from swecli.tui.screens.list_screen import ListPage, ListScreen
    from swecli.tui.transcript.view import Transcript


TODO_MARKS = {"pending": "☐", "in_progress": "▶", "completed": "☑"}
MAX_TODOS = 8


def visible_todos(todos: Sequence[Todo], lines: int) -> tuple[int, int]:
    """First and end index of the part to show in ``lines`` lines: around the first unfinished step."""
    if len(todos) <= lines:
        return 0, len(todos)
    at = next((n for n, todo in enumerate(todos) if todo.status != "completed"), len(todos) - 1)
    start = max(0, min(at - 1, len(todos) - lines))
    return start, start + lines


class TodoPanel(Widget, can_focus=False):
    """Shown with Ctrl+T while there are todos."""

    DEFAULT_CSS = """
    TodoPanel { height: auto; border-top: solid $border-blurred; padding: 0 1; display: none; }
    TodoPanel > .todo--done { color: $foreground-muted; text-style: $muted-style; }
    TodoPanel > .todo--now { color: $accent; text-style: bold; }
    """
    COMPONENT_CLASSES = {"todo--done", "todo--now"}

    def __init__(self) -> None:
        super().__init__(id="todos")
        self._todos: tuple[Todo, ...] = ()

    def show(self, todos: tuple[Todo, ...]) -> None:
        if todos != self._todos:
            taller = len(todos) != len(self._todos)
            self._todos = todos
            self.refresh(layout=taller)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return 1 + min(len(self._todos), MAX_TODOS, max(1, viewport.height // 4))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y == 0:
            done = sum(todo.status == "completed" for todo in self._todos)
            line = Content(f"Todos {done}/{len(self._todos)}").stylize("bold")
        else:
            start, end = visible_todos(self._todos, max(1, self.size.height - 1))
            if start + y > end:
                return Strip.blank(width, self.rich_style)
            todo = self._todos[start + y - 1]
            line = Content(f"{TODO_MARKS[todo.status]} {safe_line(todo.text)}")
            if todo.status != "pending":
                name = "todo--done" if todo.status == "completed" else "todo--now"
                line = line.stylize(self.get_visual_style(name, partial=True))
        line = line.truncate(width, ellipsis=True, pad=True)
        return Strip(list(line.render_segments(self.visual_style)), width)


class MainScreen(Screen[None]):
    """The first frame has everything but the transcript, which is added once its modules are loaded."""

    DEFAULT_CSS = """
    MainScreen { layout: vertical; overflow: hidden; background: $background; color: $foreground; }
    MainScreen #content { height: 1fr; min-height: 1; }
    MainScreen.-full-screen #content, MainScreen.-full-screen TodoPanel { display: none; }
    MainScreen.-full-screen ActivityLine, MainScreen.-full-screen StatusBar { display: none; }
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
        self.list_view: ListScreen | Board | None = None
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

    def open_list(self, page: ListPage, words: str = "") -> None:
        """Show a list in place of the transcript, or of the list that is open; ``words`` are searched for in it."""
        from swecli.tui.screens.list_screen import ListScreen

        self._open(ListScreen(page, words))

    def open_board(self, board: Board) -> None:
        """Show a board in place of the transcript, or of what is open there."""
        self._open(board)

    def _open(self, opened: ListScreen | Board) -> None:
        self.activity.end_flash()
        if self.list_view is not None:
            self.list_view.remove()
        self.list_view = opened
        self.transcript.display = False
        self.content.mount(opened)
        self.dock.open_screen(opened.take_focus)

    def close_list(self) -> None:
        closed, self.list_view = self.list_view, None
        if closed is not None:
            closed.remove()
            self.transcript.display = True
            self.dock.close_screen()
