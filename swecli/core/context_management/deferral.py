"""Which tools the model sees at once, and which it has to look for."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from msgspec import Struct

from swecli.core.context_management.tool_index import ToolIndex
from swecli.core.llm.types import ToolSchema

THRESHOLD = 0.10
"""Share of the effective window that descriptions of tools may take."""
TARGET = 0.5
"""Share of the threshold that is left once tools are withheld: what is found later joins, and must not pass it at
once."""
FOUND = 5
"""Tools that one search gives."""


class Candidate(Struct, frozen=True):
    """A tool of a source. ``used`` is when it was last called, rising; 0 = never. ``first`` tools are withheld before
    all others: those of servers."""

    schema: ToolSchema
    tokens: int
    used: int = 0
    first: bool = True


class Selection(Struct, frozen=True):
    """The model sees ``active``, in the order in which they came; ``deferred`` are withheld. ``reason`` says why, as a
    clause; empty where none is."""

    active: tuple[ToolSchema, ...]
    deferred: tuple[ToolSchema, ...] = ()
    reason: str = ""


def select_for_context(
    candidates: Sequence[Candidate], told: Iterable[str], fixed: int, effective: int, threshold: float = THRESHOLD
) -> Selection:
    """Withhold tools where all of them would pass the threshold: those of servers first, the least recently used first.

    ``told`` are names that the model knows of already and that stay; ``fixed`` are the tokens of swecli's own tools,
    which count and are never withheld; ``effective`` is the effective window in tokens.
    """
    everything = tuple(one.schema for one in candidates)
    known = set(told)
    total = fixed + sum(one.tokens for one in candidates)
    limit = threshold * effective
    if threshold >= 1 or total <= limit or all(one.name in known for one in everything):
        return Selection(everything)
    room = TARGET * limit - fixed - sum(one.tokens for one in candidates if one.schema.name in known)
    kept = set(known)
    for one in sorted(candidates, key=lambda one: (one.first, -one.used)):
        if one.schema.name not in known and one.tokens <= room and (one.used or not one.first):
            room -= one.tokens
            kept.add(one.schema.name)
    active = tuple(one for one in everything if one.name in kept)
    deferred = tuple(one for one in everything if one.name not in kept)
    reason = f"all tools would take {total:,} tokens, more than {threshold:.0%} of the window"
    return Selection(active, deferred, reason)


class DeferralManager:
    """What is withheld from the model of one session at the moment, and the index to find it."""

    def __init__(self) -> None:
        self.deferred: tuple[ToolSchema, ...] = ()
        self._index: ToolIndex | None = None
        self._building = threading.Lock()

    def select(
        self,
        candidates: Sequence[Candidate],
        told: Iterable[str],
        fixed: int,
        effective: int,
        threshold: float = THRESHOLD,
    ) -> Selection:
        """Decide, and remember what is withheld."""
        selection = select_for_context(candidates, told, fixed, effective, threshold)
        if selection.deferred != self.deferred:
            self.deferred, self._index = selection.deferred, None
        return selection

    def search(self, query: str, limit: int = FOUND) -> tuple[ToolSchema, ...]:
        """Withheld tools that fit the words, best first."""
        return self.prepared().search(query, limit)

    def prepared(self) -> ToolIndex:
        """The index of what is withheld now. Takes a moment the first time; may be called in any thread."""
        with self._building:
            deferred, index = self.deferred, self._index
            if index is None:
                index = ToolIndex(deferred)
                if deferred is self.deferred:
                    self._index = index
            return index

    @property
    def note(self) -> str:
        """One line for the model; empty where nothing is withheld."""
        if not self.deferred:
            return ""
        sources = sorted({tool.source for tool in self.deferred if tool.source})
        named = ", ".join(sources[:5]) + (f" and {len(sources) - 5} more" if len(sources) > 5 else "")
        count = len(self.deferred)
        tools = f"{count} tool{'s' if count > 1 else ''} of {named}"
        return f"[{tools} deferred to save context. Use tool_search to find them.]"
