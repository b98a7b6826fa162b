"""What entries of the ledger say: in memory while it is short or in sight, else compressed or in the record alone."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.protocol.messages import (
    Part,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from swecli.core.spill import SpillHandle, SpillStore, weight_of

LONG: Final = 1_000
"""Characters from which on a body is evicted at all: a shorter one takes about as much as what stands for it."""
SHORT: Final = 200
"""Characters up to which a body is written down whole: what would stand for it takes as much."""
AT_ONCE: Final = 4
"""Bodies that are evicted in one go, a tenth of a millisecond each."""
IN_MEMORY: Final = 1_000_000
"""Compressed bytes of bodies that were evicted which stay in memory."""

Parts = tuple[Part, ...]


class _Evicted(Struct, frozen=True):
    outline: Parts
    store: SpillStore[Parts]
    handle: SpillHandle

    def get(self) -> Parts:
        return self.store.get(self.handle)

    def forget(self) -> None:
        self.store.forget(self.handle)


class _Recorded(Struct, frozen=True):
    """Parts that the record of the session has, and memory never had in this run."""

    outline: Parts
    read: Callable[[int], Parts]
    seq: int

    def get(self) -> Parts:
        return self.read(self.seq)

    def forget(self) -> None:
        """The record keeps them."""


class EntryBody:
    """The parts of one entry, the same whether they are in memory or not. ``seq`` is the event that has them; 0 where
    none has them as they are, or they are short."""

    __slots__ = ("_held", "seq")

    def __init__(self, parts: Parts, seq: int = 0) -> None:
        self._held: Parts | _Evicted | _Recorded = parts
        self.seq = seq

    @classmethod
    def of_record(cls, outline: Parts, seq: int, read: Callable[[int], Parts]) -> EntryBody:
        """One that is read from the record when it is asked for. ``read`` gives the parts of an event; it raises
        ``OSError`` where it can't."""
        body = cls((), seq)
        body._held = _Recorded(outline, read, seq)
        return body

    @property
    def away(self) -> bool:
        """Whether the parts are not in memory."""
        return isinstance(self._held, _Evicted | _Recorded)

    @property
    def parts(self) -> Parts:
        """All of it; read from the store where it is there. What can't be read back says so."""
        held = self._held
        if isinstance(held, tuple):
            return held
        try:
            return held.get()
        except OSError as error:
            return tuple(_unreadable(part, error) for part in held.outline)

    @property
    def outline(self) -> Parts:
        """The parts, with empty texts where reading them would take the store."""
        held = self._held
        return held if isinstance(held, tuple) else held.outline

    def evict(self, store: SpillStore[Parts]) -> None:
        """Keep an outline in memory only."""
        held = self._held
        if isinstance(held, tuple):
            self._held = _Evicted(tuple(stubbed(part, "") for part in held), store, store.put(held))

    def restore(self) -> None:
        held = self._held
        if not isinstance(held, tuple):
            self._held = self.parts
            held.forget()


def stubbed(part: Part, text: str) -> Part:
    """The part with another text in place of what it says, for a call that of its arguments."""
    match part:
        case ToolResultPart():
            return replace(part, text=text, images=())
        case ToolCallPart():
            return replace(part, arguments=text)
        case _:
            return TextPart(text)


def _unreadable(part: Part, error: OSError) -> Part:
    text = f"cannot read this back ({error}); the session's record still has it"
    return stubbed(part, json.dumps({"unreadable": text}) if isinstance(part, ToolCallPart) else f"[{text}]")


def _length(part: Part) -> int:
    """About how many characters a part has: those of all fields only where one field doesn't tell."""
    match part:
        case TextPart(text=text) | ToolResultPart(text=text, images=()) | ToolCallPart(arguments=text):
            return len(text)
        case _:
            return weight_of(part)


def body_of(parts: Parts, seq: int) -> EntryBody:
    """The body of an entry that event ``seq`` has; a short one is not worth the number."""
    return EntryBody(parts, seq if sum(map(_length, parts)) > SHORT else 0)


class Bodies:
    """The long bodies of one conversation, by the ids of their entries."""

    def __init__(self) -> None:
        self._store = SpillStore[Parts](IN_MEMORY)
        self._here: dict[str, EntryBody] = {}
        self._evicted: dict[str, EntryBody] = {}
        self._leaving: deque[str] = deque()

    def add(self, entry: str, body: EntryBody) -> None:
        if body.away:
            self._evicted[entry] = body
        elif sum(map(_length, body.outline)) >= LONG:
            self._here[entry] = body

    def see(self, live: Collection[str]) -> None:
        """The model has these entries before it and no others: what it has not may go, what it has comes back."""
        for entry in [entry for entry in self._evicted if entry in live]:
            body = self._here[entry] = self._evicted.pop(entry)
            body.restore()
        self._leaving = deque(entry for entry in self._here if entry not in live)

    def evict(self, most: int = AT_ONCE) -> None:
        """Put some of the bodies away that may go, so that no step takes long."""
        for _ in range(min(most, len(self._leaving))):
            entry = self._leaving.popleft()
            body = self._evicted[entry] = self._here.pop(entry)
            body.evict(self._store)
