"""Keys stay out of what a session stores. What the model sees while it works is not touched: only what goes to disk.

A key is covered by as many stars as it has characters, so that offsets into a stored text stay what they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from swecli.core.ports import BlobRef, BlobStore, Snapshot, SnapshotMeasure, Snapshots
from swecli.core.protocol.events import Event
from swecli.core.protocol.messages import ImagePart, Opaque

Cover = Callable[[str], str]
T = TypeVar("T")
_EXACT = frozenset(
    (
        "type",
        "id",
        "item",
        "job",
        "call_id",
        "message",
        "response_id",
        "request",
        "binding",
        "sha256",
        "before",
        "after",
    )
)
"""Fields that name something and must stay what they are. No text of anybody is in them."""


def masked_events(events: Sequence[Event], cover: Cover) -> list[Event]:
    """The events as they are stored."""
    return [replace(event, body=masked(event.body, cover)) for event in events]


def masked(value: T, cover: Cover) -> T:
    """``value`` with every text in it covered; itself where nothing was to be covered. What a provider wants back byte
    for byte, and images, stay as they are."""
    return cast("T", _masked(value, cover))


def _masked(value: Any, cover: Cover) -> Any:
    if isinstance(value, str):
        return cover(value)
    if isinstance(value, Opaque | ImagePart):
        return value
    if isinstance(value, tuple | list):
        items = cast("Sequence[Any]", value)
        done = [_masked(item, cover) for item in items]
        if all(new is old for new, old in zip(done, items, strict=True)):
            return cast("Any", value)
        return tuple(done) if isinstance(value, tuple) else done
    if isinstance(value, Mapping):
        return {key: _masked(item, cover) for key, item in cast("Mapping[Any, Any]", value).items()}
    if is_dataclass(value) and not isinstance(value, type):
        changes: dict[str, Any] = {}
        for field in fields(value):
            old = getattr(value, field.name)
            new = old if field.name in _EXACT and isinstance(old, str) else _masked(old, cover)
            if new is not old and new != old:
                changes[field.name] = new
        return replace(value, **changes) if changes else value
    return value


class MaskedBlobs:
    """A ``BlobStore`` that keeps no keys."""

    def __init__(self, inner: BlobStore, cover: Cover) -> None:
        self._inner = inner
        self._cover = cover

    def put(self, tool: str, content: bytes) -> BlobRef:
        """Store a result without keys."""
        text = self._cover(content.decode("utf-8", "surrogateescape"))
        return self._inner.put(tool, text.encode("utf-8", "surrogateescape"))

    def get(self, ref: str) -> bytes | None:
        return self._inner.get(ref)


class MaskedSnapshots:
    """``Snapshots`` that keep no keys."""

    def __init__(self, inner: Snapshots, cover: Cover) -> None:
        self._inner = inner
        self._cover = cover

    def save_snapshot(self, snapshot: Snapshot) -> str:
        return self._inner.save_snapshot(replace(snapshot, messages=masked(snapshot.messages, self._cover)))

    def get_snapshot(self) -> Snapshot | None:
        return self._inner.get_snapshot()

    def get_measure(self) -> SnapshotMeasure | None:
        return self._inner.get_measure()
