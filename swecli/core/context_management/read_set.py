"""What the model has seen of files: which parts, in which state, when."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from swecli.core.protocol.events import (
    FileChanged,
    FileRead,
)

KEPT = 40
"""Touches of one file that are remembered; the newest."""


class Touch(Struct, frozen=True):
    """The model read or changed a file in item ``item`` at ``at`` (Unix seconds), after which the file's bytes had
    the hash ``sha256``; None = it was gone. Lines ``first`` to ``last`` were shown; both are 0 for a change."""

    item: str
    sha256: str | None
    at: float
    first: int = 0
    last: int = 0

    @property
    def is_read(self) -> bool:
        return self.first > 0


class ReadSet:
    """Every file that the model has read or changed. Items that are not in ``present`` do not count: the model does
    not know of them any more, because the conversation was rewound."""

    def __init__(self) -> None:
        self._touches: dict[str, list[Touch]] = {}

    def read(self, body: FileRead, at: float) -> None:
        self._add(body.path, Touch(body.item, body.sha256, at, body.first, body.last))

    def changed(self, body: FileChanged, at: float) -> None:
        self._add(body.path, Touch(body.item, body.after, at))

    def _add(self, path: str, touch: Touch) -> None:
        touches = self._touches.pop(path, [])  # the newest file is the last one
        touches.append(touch)
        del touches[:-KEPT]
        self._touches[path] = touches

    def paths(self) -> frozenset[str]:
        """All files that were ever read or changed."""
        return frozenset(self._touches)

    def last(self, path: str, present: Collection[str]) -> Touch | None:
        """The newest touch of a file; None when the model has never seen it."""
        touches = self._touches.get(path, ())
        return next((touch for touch in reversed(touches) if touch.item in present), None)

    def same_reading(self, path: str, first: int, last: int, sha256: str, live: Collection[str]) -> Touch | None:
        """An earlier read of the same lines of the same bytes whose text the model still has before it."""
        for touch in reversed(self._touches.get(path, ())):
            if (
                touch.is_read
                and (touch.first, touch.last, touch.sha256) == (first, last, sha256)
                and touch.item in live
            ):
                return touch
        return None

    def attached(self, path: str, first: int, last: int, sha256: str, items: Collection[str]) -> Touch | None:
        """Where these lines of these bytes were shown as a part of more, in one of these items."""
        for touch in reversed(self._touches.get(path, ())):
            inside = touch.is_read and touch.first <= first and last <= touch.last
            if inside and touch.sha256 == sha256 and touch.item in items:
                return touch
        return None

    def touches(self) -> Mapping[str, Sequence[Touch]]:
        """The touches of each file, the newest file and touch last. Not to be changed."""
        return self._touches

    def last_uses(self) -> dict[str, float]:
        """When the file that an item shows was touched last, by item; Unix seconds."""
        return {touch.item: touches[-1].at for touches in self._touches.values() for touch in touches}

    def outdated(self) -> frozenset[str]:
        """Items that show a file as it is no longer: it was read or changed in another form since."""
        return frozenset(
            touch.item
            for touches in self._touches.values()
            for touch in touches
            if touch.is_read and touch.sha256 != touches[-1].sha256
        )

    def visible(self, live: Collection[str], present: Collection[str]) -> Iterator[tuple[str, Touch]]:
        """Files of which the model still has text before it, newest first, with their newest touch."""
        for path in reversed(list(self._touches)):
            touch = self.last(path, present)
            if touch is not None and any(one.item in live for one in self._touches[path]):
                yield path, touch
