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
    """The waiting lines. ``changed`` is called after each change."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._lines: list[Line] = []
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._lines)

    @property
    def queue(self) -> tuple[Queued, ...]:
        return tuple(line.queued for line in self._lines)

    def add(self, message: PromptEditor.Submitted, most: float, *, first: bool = False) -> None:
        self._count += 1
        line = Line(Queued(f"later{self._count}", message.text.strip(), images=message.images), message, most)
        self._lines.insert(0 if first else len(self._lines), line)
        self._changed()

    def next(self) -> Line:
        """Remove the first line and return it."""
        line = self._lines.pop(0)
        self._changed()
        return line

    def take(self, name: str) -> bool:
        """Remove the line with this id; False if there is none."""
        found = [line for line in self._lines if line.queued.id == name]
        for line in found:
            self._lines.remove(line)
            self._changed()
        return bool(found)

    def take_all(self) -> tuple[Queued, ...]:
        queue, self._lines = self.queue, []
        if queue:
            self._changed()
        return queue
