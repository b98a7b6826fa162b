"""The session's todo list as tools see it."""

from __future__ import annotations

from collections.abc import Sequence

from swecli.core.engine.recorder import Recorder
from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.events import TodosChanged


class SessionTodos:
    """Reads the list from the session's state and changes it by an event."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    @property
    def todos(self) -> tuple[Todo, ...]:
        return self._recorder.state.todos

    def replace(self, todos: Sequence[Todo]) -> None:
        """Set the whole list."""
        self._recorder.emit(TodosChanged(tuple(todos)))
