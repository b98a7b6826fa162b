"""Texts of ledger entries: in memory while short or in sight, else compressed or only in the record."""

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
"""Least characters of a body worth evicting: a shorter one takes about as much as its outline."""
SHORT: Final = 200
"""Characters up to which a body is stored whole: a reference would take as much."""
AT_ONCE: Final = 4
"""Bodies to evict per step, a tenth of a millisecond each."""
IN_MEMORY: Final = 1_000_000
"""Compressed bytes of evicted bodies to keep in memory."""

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
    """Parts that are in the session's record, and were never in memory in this run."""

    outline: Parts
    read: Callable[[int], Parts]
    seq: int

    def get(self) -> Parts:
        return self.read(self.seq)

    def forget(self) -> None:
        """Nothing to do: the record keeps them."""


class EntryBody:
    """The parts of one entry, whether in memory or not. ``seq`` is the event that has them; 0 if no event has them
    unchanged, or they are short. ``long``: worth moving out of memory."""

    __slots__ = ("_held", "imitates", "long", "seq")

    def __init__(self, parts: Parts, seq: int = 0) -> None:
        length = sum(map(_length, parts))
        self._held: Parts | _Evicted | _Recorded = parts
        self.seq = seq if length > SHORT else 0
        self.long = length >= LONG
        self.imitates: bool | None = None
        """Whether requests escape imitations of this program's notes in its texts; None until a request has them."""

    @classmethod
    def of_record(cls, outline: Parts, seq: int, read: Callable[[int], Parts]) -> EntryBody:
        """A body read from the record on demand. ``read`` gives the parts of an event; it raises ``OSError`` if it
        can't."""
        body = cls(())
        body._held, body.seq, body.long = _Recorded(outline, read, seq), seq, True
        return body

    @property
    def away(self) -> bool:
        """Whether the parts are not in memory."""
        return isinstance(self._held, _Evicted | _Recorded)

    @property
    def parts(self) -> Parts:
        """All parts, read from the store if evicted. Unreadable parts say so."""
        content = self._held
        if isinstance(content, tuple):
            return content
        try:
            return content.get()
        except OSError as error:
            return tuple(_unreadable(part, error) for part in content.outline)

    @property
    def outline(self) -> Parts:
        """The parts, with empty texts in place of evicted ones."""
        content = self._held
        return content if isinstance(content, tuple) else content.outline

    def evict(self, store: SpillStore[Parts]) -> None:
        """Keep an outline in memory only."""
        content = self._held
        if isinstance(content, tuple):
            self._held = _Evicted(tuple(stubbed(part, "") for part in content), store, store.put(content))

    def restore(self) -> None:
        """Take the parts back into memory. Unreadable ones stay where they are, because a later attempt may succeed."""
        content = self._held
        if not isinstance(content, tuple):
            try:
                self._held = content.get()
            except OSError:
                return
            content.forget()


def stubbed(part: Part, text: str) -> Part:
    """The part with ``text`` in place of its content; for a call, of its arguments."""
    match part:
        case ToolResultPart():
            return replace(part, text=text, images=(), documents=())
        case ToolCallPart():
            return replace(part, arguments=text)
        case _:
            return TextPart(text)


def stub_parts(outline: Parts, text: str) -> Parts:
    """The parts of a stub: the text once, however many parts, such as images, it replaces."""
    return tuple(stubbed(part, text) for part in outline[:1])


def _unreadable(part: Part, error: OSError) -> Part:
    text = f"cannot read this back ({error}); the session's record still has it"
    return stubbed(part, json.dumps({"unreadable": text}) if isinstance(part, ToolCallPart) else f"[{text}]")


def _length(part: Part) -> int:
    """Approximate characters of a part: those of all fields only if one field is not enough."""
    match part:
        case TextPart(text=text) | ToolResultPart(text=text, images=(), documents=()) | ToolCallPart(arguments=text):
            return len(text)
        case _:
            return weight_of(part)


class Bodies:
    """The long bodies of one conversation, by the ids of their entries."""

    def __init__(self) -> None:
        self._store = SpillStore[Parts](IN_MEMORY)
        self._here: dict[str, EntryBody] = {}
        self._evicted: dict[str, EntryBody] = {}
        self.leaving: deque[str] = deque()
        """Entries whose bodies may go."""

    def add(self, entry: str, body: EntryBody) -> None:
        """Follow a long body."""
        (self._evicted if body.away else self._here)[entry] = body

    def see(self, live: Collection[str]) -> None:
        """Update visibility: entries outside ``live`` may be evicted, others come back."""
        for entry in [entry for entry in self._evicted if entry in live]:
            body = self._evicted[entry]
            body.restore()
            if not body.away:
                self._here[entry] = self._evicted.pop(entry)
        self.leaving = deque(entry for entry in self._here if entry not in live)

    def evict(self) -> None:
        """Evict some of the bodies that may go, few enough for a quick step."""
        for _ in range(min(AT_ONCE, len(self.leaving))):
            entry = self.leaving.popleft()
            body = self._evicted[entry] = self._here.pop(entry)
            body.evict(self._store)
