"""What became of the context, turn by turn: sizes, cache shares, compactions, misses. A reduction of events."""

from __future__ import annotations

from collections import deque
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.protocol.events import (
    CacheBreak,
    CompactionCompleted,
    CompactionRedone,
    CompactionStarted,
    CompactionUndone,
    ContextEdited,
    Event,
    ModelResponded,
)
from swecli.core.protocol.messages import Usage

KEPT = 400
"""Turns, marks and compactions that are remembered, the newest ones."""


class TurnPoint(Struct, frozen=True):
    """The newest request of a turn: its tokens, and those that came from the provider's cache; None: not told."""

    turn: int
    tokens: int
    cached: int | None


class Mark(Struct, frozen=True):
    """Something that rewrote the context, or missed the cache; ``text`` is a clause."""

    turn: int
    kind: Literal["compaction", "miss", "edit"]
    text: str


class CompactionRecord(Struct, frozen=True):
    """One compaction that was made. ``at`` is Unix seconds; ``in_force`` is False while it is undone. ``anchors`` of
    what it replaced had to be kept, ``kept`` of them are in what it left, ``written`` of these in the model's own
    words, which are the ``summary``."""

    item: str
    turn: int
    at: float
    trigger: str
    strategies: tuple[str, ...]
    before: int
    after: int
    cost: str | None = None
    in_force: bool = True
    anchors: int = 0
    kept: int = 0
    written: int = 0
    summary: str = ""


class Timeline:
    """Oldest first."""

    def __init__(self) -> None:
        self._points: deque[TurnPoint] = deque(maxlen=KEPT)
        self._marks: deque[Mark] = deque(maxlen=KEPT)
        self._compactions: dict[str, CompactionRecord] = {}
        self._triggers: dict[str, str] = {}

    @property
    def points(self) -> tuple[TurnPoint, ...]:
        return tuple(self._points)

    @property
    def marks(self) -> tuple[Mark, ...]:
        return tuple(self._marks)

    @property
    def compactions(self) -> tuple[CompactionRecord, ...]:
        return tuple(self._compactions.values())

    def apply(self, event: Event) -> None:
        match event.body:
            case ModelResponded(usage=Usage() as usage) if usage.input_total:
                if self._points and self._points[-1].turn == event.turn:
                    self._points.pop()
                self._points.append(TurnPoint(event.turn, usage.input_total, usage.cache_read))
            case CacheBreak(cause=cause):
                self._marks.append(Mark(event.turn, "miss", cause))
            case CompactionStarted(item=item, trigger=trigger):
                self._triggers[item] = trigger
            case CompactionCompleted() as body:
                self._compacted(body, event)
            case CompactionUndone(item=item):
                self._set(item, in_force=False)
            case CompactionRedone(item=item):
                self._set(item, in_force=True)
            case ContextEdited(changes=changes):
                count = len(changes)
                self._marks.append(Mark(event.turn, "edit", f"you changed {count} item{'s' if count > 1 else ''}"))
            case _:
                pass

    def _compacted(self, body: CompactionCompleted, event: Event) -> None:
        trigger = self._triggers.pop(body.item, "")
        self._compactions[body.item] = CompactionRecord(
            body.item,
            event.turn,
            event.ts,
            trigger,
            body.strategies,
            body.tokens_before,
            body.tokens_after,
            body.cost,
            True,
            body.anchors,
            body.anchors_kept,
            body.anchors_written,
            body.summary,
        )
        if len(self._compactions) > KEPT:
            del self._compactions[next(iter(self._compactions))]
        verb = "cleared" if body.strategies == ("clearing",) else "compacted"
        self._marks.append(Mark(event.turn, "compaction", f"{verb} {body.tokens_before:,} to {body.tokens_after:,}"))

    def _set(self, item: str, *, in_force: bool) -> None:
        known = self._compactions.get(item)
        if known is not None:
            self._compactions[item] = replace(known, in_force=in_force)
