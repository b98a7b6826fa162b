"""The parts of files that the model has seen, with their state and time."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct

from swecli.core.protocol.events import FileChanged, FileRead

KEPT = 40
"""Newest touches of one file to remember."""


class Touch(Struct, frozen=True):
    """A read or change of a file by the model in item ``item`` at ``at`` (Unix seconds), after which the file's bytes
    had the hash ``sha256``; None = it was gone. Lines ``first`` to ``last`` were shown; both are 0 for a change."""

    item: str
    sha256: str | None
    at: float
    first: int = 0
    last: int = 0

    @property
    def is_read(self) -> bool:
        return self.first > 0


class ReadSet:
    """Every file that the model has read or changed. Items outside ``present`` do not count: the conversation was
    rewound past them."""

    def __init__(self) -> None:
        self.touches: dict[str, list[Touch]] = {}
        """The touches of each file, the newest file and touch last."""

    def read(self, body: FileRead, at: float) -> None:
        self._add(body.path, Touch(body.item, body.sha256, at, body.first, body.last))

    def changed(self, body: FileChanged, at: float) -> None:
        self._add(body.path, Touch(body.item, body.after, at))

    def _add(self, path: str, touch: Touch) -> None:
        touches = self.touches.pop(path, [])  # the newest file is the last one
        touches.append(touch)
        del touches[:-KEPT]
        self.touches[path] = touches

    def last(self, path: str, present: Collection[str]) -> Touch | None:
        """The newest touch of a file; None if the model has never seen it."""
        touches = self.touches.get(path, ())
        return next((touch for touch in reversed(touches) if touch.item in present), None)

    def same_reading(self, path: str, first: int, last: int, sha256: str, live: Collection[str]) -> Touch | None:
        """An earlier read of the same lines of the same bytes that is still in the model's view."""
        for touch in reversed(self.touches.get(path, ())):
            if (
                touch.is_read
                and (touch.first, touch.last, touch.sha256) == (first, last, sha256)
                and touch.item in live
            ):
                return touch
        return None

    def attached(self, path: str, first: int, last: int, sha256: str, items: Collection[str]) -> Touch | None:
        """An attachment in one of these items that includes these lines of these bytes."""
        for touch in reversed(self.touches.get(path, ())):
            inside = touch.is_read and touch.first <= first and last <= touch.last
            if inside and touch.sha256 == sha256 and touch.item in items:
                return touch
        return None

    def last_uses(self) -> dict[str, float]:
        """Time of the last touch of each item's file, by item; Unix seconds."""
        return {touch.item: touches[-1].at for touches in self.touches.values() for touch in touches}

    def outdated(self) -> frozenset[str]:
        """Items with an outdated version of a file: it was read or changed in another form since."""
        return frozenset(
            touch.item
            for touches in self.touches.values()
            for touch in touches
            if touch.is_read and touch.sha256 != touches[-1].sha256
        )

    def visible(self, live: Collection[str], present: Collection[str]) -> Iterator[tuple[str, Touch]]:
        """Files with text still in the model's view, newest first, with their newest touch."""
        for path in reversed(list(self.touches)):
            touch = self.last(path, present)
            if touch is not None and any(earlier.item in live for earlier in self.touches[path]):
                yield path, touch
