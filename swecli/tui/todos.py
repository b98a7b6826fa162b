"""The plan's panel: at most a few lines, the step at work always among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.content import Content
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from swecli.safe_text import safe_line

if TYPE_CHECKING:
    from swecli.core.protocol.blocks import Todo

MARKS = {"pending": "☐", "in_progress": "▸", "completed": "☑"}
MOST = 8


def visible(todos: Sequence[Todo], lines: int) -> tuple[int, int]:
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
        """Replace the todos."""
        if todos != self._todos:
            taller = len(todos) != len(self._todos)
            self._todos = todos
            self.refresh(layout=taller)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return 1 + min(len(self._todos), MOST, max(1, viewport.height // 4))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y == 0:
            done = sum(todo.status == "completed" for todo in self._todos)
            line = Content(f"Todos {done}/{len(self._todos)}").stylize("bold")
        else:
            start, end = visible(self._todos, max(1, self.size.height - 1))
            if start + y > end:
                return Strip.blank(width, self.rich_style)
            todo = self._todos[start + y - 1]
            line = Content(f"{MARKS[todo.status]} {safe_line(todo.text)}")
            if todo.status != "pending":
                name = "todo--done" if todo.status == "completed" else "todo--now"
                line = line.stylize(self.get_visual_style(name, partial=True))
        line = line.truncate(width, ellipsis=True, pad=True)
        return Strip(list(line.render_segments(self.visual_style)), width)
