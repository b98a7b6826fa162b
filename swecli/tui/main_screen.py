"""The main screen: transcript or an open list, todos, activity line, dock with panels, status bar."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from swecli.figures import plural
from swecli.safe_text import safe_line
from swecli.tui.compat import PacedScreen
from swecli.tui.dock.panel import ANSWERS, Clock, DockPanel, PanelContext
from swecli.tui.keymap import Keymap
from swecli.tui.program import Program
from swecli.tui.prompt.box import Prompt
from swecli.tui.status_bar import ActivityLine, StatusBar

if TYPE_CHECKING:
    from swecli.core.protocol.blocks import Todo
    from swecli.core.protocol.events import Mode, PermissionRequested
    from swecli.tui.screens.board import Board
    from swecli.tui.screens.list_screen import ListPage, ListScreen
    from swecli.tui.session_state import Request
    from swecli.tui.transcript.view import Transcript

# --- the dock: the prompt, or one panel in its place ---


FULL_SCREEN = "-full-screen"
"""Class of the screen while a panel fills it."""


class Dock(Vertical):
    """The dock at the bottom. The model's requests take precedence over pickers, oldest first."""

    DEFAULT_CSS = "Dock { height: auto; }"

    class Changed(Message):
        """The keyboard moved to another part: prompt, panel or screen."""

    def __init__(self, prompt: Prompt, *, clock: Clock = time.monotonic, above: Callable[[], int] = lambda: 0) -> None:
        """``above`` returns the lines that the open todo list takes."""
        super().__init__(id="dock")
        self._prompt = prompt
        self._panel_context = PanelContext(
            clock,
            lambda: prompt.typed_at,
            self._set_full_screen,
            prompt.receive,
            prompt.receive_paste,
            lambda: prompt.editor.text,
            above,
            prompt.editor.hold,
            prompt.editor.pass_on,
        )
        self._request: str | None = None
        self._asked: set[str] = set()
        """Requests that waited since the last time none did."""
        self._consent = False
        self._waiting: Sequence[PermissionRequested] = ()
        self._focus_list: Callable[[], None] | None = None
        self.panel: DockPanel | None = None

    def compose(self) -> ComposeResult:
        yield self._prompt

    def show_requests(self, requests: Sequence[Request]) -> None:
        """Show the oldest waiting request, or the previous content if none is left."""
        if not requests:
            self._waiting = ()
            self._asked.clear()
            if self._request is not None:
                self.close()
            return
        from swecli.core.protocol.events import PermissionRequested

        self._waiting = waiting = [request for request in requests if isinstance(request, PermissionRequested)]
        self._asked.update(request.request for request in requests)
        first, position = requests[0], (len(self._asked) - len(requests) + 1, len(self._asked))
        if first.request != self._request:
            self._request = first.request
            self._open(self._panel_for(first, position, waiting))
        elif self.panel is not None:
            self.panel.show_place(position, waiting)

    def meaning_for_waiting(self, mode: Mode) -> str:
        """Effect of the selected mode on waiting requests; empty if it has none."""
        if not self._waiting:
            return ""
        # Only of edits is it known here what a mode does with each; some commands count as edits, some calls still ask.
        edits = plural(len(self._waiting), "waiting edit")
        known = all(request.acceptable for request in self._waiting)
        match mode:
            case "accept-edits" if known:
                return f"accepts {edits} in a moment"
            case "plan":
                return f"rejects {edits if known else 'the waiting calls that it refuses'} in a moment"
            case "accept-edits" | "auto":
                return "runs the waiting calls that it allows in a moment"
            case _:
                return ""

    def show(self, panel: DockPanel) -> None:
        """Show one of the user's own panels, unless a request is open or the program ends."""
        if self._request is None and self.is_attached:
            self._open(panel)

    def dismiss_plan(self) -> None:
        """Close the question about a plan, which was settled otherwise."""
        if self.panel is None:
            return
        from swecli.tui.dock.choices import PlanPanel

        if isinstance(self.panel, PlanPanel):
            self.close()

    @property
    def asks_consent(self) -> bool:
        """Whether the panel is an approval, in which Ctrl+C interrupts instead of closing it."""
        return self._consent

    def escape(self) -> None:
        if self.panel is not None:
            self.panel.take_back()
            self.panel.escape()

    def fit(self) -> None:
        """Fit the panel to the new screen size. A panel not yet mounted fits itself; the end of the program removes
        panels, with their children first."""
        if self.panel is not None and self.panel.is_mounted and self.panel.is_attached:
            self.panel.fit()

    def focus_panel(self) -> None:
        """Return the keyboard to the dock's content or the open screen."""
        if self.panel is not None:
            self.panel.focus()
        elif self._focus_list is not None:
            self._focus_list()
        else:
            self._prompt.editor.focus()

    def open_screen(self, focus: Callable[[], None]) -> None:
        """Hide the prompt while a screen is open; ``focus`` gives the screen the keyboard, or does nothing until the
        screen is mounted."""
        self._focus_list = focus
        self._prompt.display = False
        if self.panel is None:
            self.screen.set_focus(None)  # keys before that come up to the app, which gives them to the screen
        self.focus_panel()
        self.post_message(self.Changed())

    def close_screen(self) -> None:
        self._focus_list = None
        self._prompt.display = self.panel is None
        self.focus_panel()
        self.post_message(self.Changed())

    @on(DockPanel.Finished)
    def _finished(self, message: DockPanel.Finished) -> None:
        message.stop()
        if message.panel is self.panel:  # not a panel that replaced it since
            self.close()

    def expand_panel(self) -> bool:
        """Toggle a larger panel; returns whether the panel supports that."""
        return self.panel is not None and self.panel.toggle_expanded()

    def close(self) -> None:
        """Return to the prompt or the open screen."""
        self._request, self._consent = None, False
        panel, self.panel = self.panel, None
        self.screen.remove_class(FULL_SCREEN)
        self._prompt.display = self._focus_list is None
        self.focus_panel()
        if panel is not None:
            if panel.last_key is not None and panel.last_key.key in ANSWERS:
                self._prompt.answered()
            panel.remove()
        self.post_message(self.Changed())

    def _open(self, panel: DockPanel) -> None:
        before, self.panel = self.panel, panel
        panel.prompt_context = self._panel_context
        self.screen.remove_class(FULL_SCREEN)
        self._prompt.display = False
        self.mount(panel)
        panel.focus()
        if before is not None:
            before.remove()
        self.post_message(self.Changed())

    def _set_full_screen(self, panel: DockPanel, on: bool) -> None:
        if panel is self.panel:
            self.screen.set_class(on, FULL_SCREEN)

    def _panel_for(
        self, request: Request, position: tuple[int, int], waiting: Sequence[PermissionRequested]
    ) -> DockPanel:
        from swecli.core.protocol.events import PermissionRequested

        self._consent = isinstance(request, PermissionRequested)
        if isinstance(request, PermissionRequested):
            from swecli.tui.dock.approval import ApprovalPanel

            return ApprovalPanel(request, place=position, waiting=waiting)
        from swecli.tui.dock.question import QuestionPanel

        return QuestionPanel(request)


# --- the screen ---------------------------------------------------------------------------------------------


TODO_MARKS = {"pending": "☐", "in_progress": "▶", "completed": "☑"}
MAX_TODOS = 8


def visible_todos(todos: Sequence[Todo], lines: int) -> tuple[int, int]:
    """First and end index of the todos shown in ``lines`` lines: around the first unfinished one."""
    if len(todos) <= lines:
        return 0, len(todos)
    at = next((n for n, todo in enumerate(todos) if todo.status != "completed"), len(todos) - 1)
    start = max(0, min(at - 1, len(todos) - lines))
    return start, start + lines


class TodoPanel(Widget, can_focus=False):
    """Todo list, toggled with Ctrl+T."""

    DEFAULT_CSS = """
    TodoPanel { height: auto; border-top: solid $border-blurred; padding: 0 1; display: none; }
    TodoPanel.-open { display: block; }
    TodoPanel > .todo--done { color: $foreground-muted; text-style: $muted-style; }
    TodoPanel > .todo--now { color: $accent; text-style: bold; }
    """
    COMPONENT_CLASSES = {"todo--done", "todo--now"}

    class Resized(Message):
        """The list's height changed."""

    def __init__(self) -> None:
        super().__init__(id="todos")
        self._todos: tuple[Todo, ...] = ()

    def show(self, todos: tuple[Todo, ...]) -> None:
        if todos != self._todos:
            taller = len(todos) != len(self._todos)
            self._todos = todos
            self.open = self.open and bool(todos)
            self.refresh(layout=taller)

    @property
    def open(self) -> bool:
        """Whether the user wants the list; a full-screen panel hides it nevertheless."""
        return self.has_class("-open")

    @open.setter
    def open(self, on: bool) -> None:
        self.set_class(on, "-open")

    @on(events.Show)
    @on(events.Hide)
    @on(events.Resize)
    def _resized(self) -> None:
        self.post_message(self.Resized())

    def lines(self) -> int:
        """Height of the open list, including its rule."""
        return 1 + self._height(self.screen.size) if self.open else 0

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self._height(viewport)

    def _height(self, viewport: Size) -> int:
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


class MainScreen(PacedScreen):
    """Has everything but the transcript in the first frame; the transcript is added once its modules are loaded."""

    DEFAULT_CSS = """
    MainScreen { layout: vertical; overflow: hidden; background: $background; color: $foreground; }
    MainScreen #content { height: 1fr; min-height: 1; }
    MainScreen.-full-screen #content, MainScreen.-full-screen TodoPanel { display: none; }
    MainScreen.-full-screen ActivityLine, MainScreen.-full-screen StatusBar { display: none; }
    """

    transcript: Transcript

    class Wanted(Message):
        """Asks to run a slash command as if it had been typed."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class PreferencesChanged(Message):
        """Asks to re-read the user's interface settings."""

    def __init__(self, program: Program, keys: Keymap, clock: Clock, wall: Callable[[], float]) -> None:
        """``clock`` is monotonic seconds, ``wall`` Unix seconds."""
        super().__init__(id="_default")
        self.content = Vertical(id="content")
        self.todos = TodoPanel()
        self.activity = ActivityLine(clock=wall)
        self.prompt = Prompt(program.state, program.files, self.activity.flash, keys, clock=clock)
        self.dock = Dock(self.prompt, clock=clock, above=self.todos.lines)
        self.status = StatusBar()
        self.list_view: ListScreen | Board | None = None
        """List open in place of the transcript."""
        self._styled = False

    def compose(self) -> ComposeResult:
        yield self.content
        yield self.todos
        yield self.activity
        yield self.dock
        yield self.status

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        if not self._styled:  # mounting has just styled each widget
            self._styled, event.refresh_styles = True, False

    def on_resize(self, event: events.Resize) -> None:
        if event.size == self.outer_size:  # Textual reports the size several times at the start
            event.prevent_default()

    @on(TodoPanel.Resized)
    def _fit_dock(self, message: TodoPanel.Resized) -> None:
        message.stop()
        self.dock.fit()

    def flash(self, text: str) -> None:
        """Show a short message of untrusted text; paths in the home folder are shortened to ``~``."""
        from swecli.tui.greeting import short_paths

        self.activity.flash(safe_line(short_paths(text, os.environ.get("HOME", ""))), 6.0)

    def warn(self, sentences: Sequence[str]) -> None:
        """Show warnings in the transcript."""
        from swecli.core.protocol.blocks import TextBlock

        if sentences:
            self.transcript.show(tuple(TextBlock(sentence, "warning") for sentence in sentences))

    def show_status_line(self, text: str | None) -> None:
        """Show a line with colours in place of the status bar; None: the bar again."""
        from swecli.tui.transcript.tool_rows import content_line

        self.status.show_line(None if text is None else content_line(text, self.transcript.page.palette))

    def add_transcript(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.content.mount(transcript)

    def open_list(self, page: ListPage, words: str = "") -> None:
        """Show a list in place of the transcript or the open list, filtered by ``words``."""
        from swecli.tui.screens.list_screen import ListScreen

        self._open(ListScreen(page, words))

    def open_board(self, board: Board) -> None:
        """Show a board in place of the transcript or the open list."""
        self._open(board)

    def _open(self, opened: ListScreen | Board) -> None:
        self.activity.end_flash()
        if self.list_view is not None:
            self._leave(self.list_view)
        self.list_view = opened
        self.activity.cover(True)
        self.transcript.display = False
        self.content.mount(opened)
        self.dock.open_screen(opened.take_focus)

    def _leave(self, closed: ListScreen | Board) -> None:
        """Remove a screen; what was typed behind the key that closed it goes to what is in front from now on."""
        for event in closed.leaving.end(self.app.post_message):
            self.app.post_message(event)
        closed.remove()

    def close_list(self) -> None:
        closed, self.list_view = self.list_view, None
        if closed is not None:
            self._leave(closed)
            self.activity.cover(False)
            self.transcript.display = True
            self.dock.close_screen()
