"""Lines that cannot run during a turn, and those sent after them: they wait for the session, in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from swecli.core.protocol.events import Queued

if TYPE_CHECKING:
    from swecli.tui.prompt.editor import PromptEditor


class Line(Struct, frozen=True):
    """A sent line. ``queued`` is its form beside the session's own waiting messages, ``most`` the share of the window
    above which it asks."""

    queued: Queued
    message: PromptEditor.Submitted
    most: float


class Later:
    """The waiting lines, first in ``lines``, and as they are shown in ``queue``; both are only read outside.
    ``changed`` is called after each change."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._count = 0
        self.lines: tuple[Line, ...] = ()
        self.queue: tuple[Queued, ...] = ()

    def add(self, message: PromptEditor.Submitted, most: float, *, first: bool = False) -> None:
        self._count += 1
        line = Line(Queued(f"later{self._count}", message.text.strip(), images=message.images), message, most)
        self._set((line, *self.lines) if first else (*self.lines, line))

    def next(self) -> Line:
        """Remove the first line and return it."""
        line = self.lines[0]
        self._set(self.lines[1:])
        return line

    def take(self, name: str) -> bool:
        """Remove the line with this id; False if there is none."""
        left = tuple(line for line in self.lines if line.queued.id != name)
        removed = len(left) < len(self.lines)
        if removed:
            self._set(left)
        return removed

    def take_all(self) -> tuple[Queued, ...]:
        queue = self.queue
        if queue:
            self._set(())
        return queue

    def _set(self, lines: tuple[Line, ...]) -> None:
        self.lines = lines
        self.queue = tuple(line.queued for line in lines)
        self._changed()
