"""What was said in one entry: in memory as long as the model has it before it, afterwards on the shelf."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from swecli.core.protocol.messages import Part, TextPart, ToolCallPart, ToolResultPart
from swecli.core.shelf import Shelf, Ticket, weight_of

LONG: Final = 1_000
"""Characters from which on a body is put away at all: a shorter one takes about as much as what stands for it."""
AT_ONCE: Final = 4
"""Bodies that are put away in one go, a tenth of a millisecond each."""
IN_MEMORY: Final = 1_000_000
"""Compressed bytes of bodies that were put away which stay in memory."""

Parts = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class _Away:
    outline: Parts
    shelf: Shelf[Parts]
    ticket: Ticket


class Body:
    """The parts of one entry, the same whether they are in memory or not."""

    __slots__ = ("_held",)

    def __init__(self, parts: Parts) -> None:
        self._held: Parts | _Away = parts

    @property
    def parts(self) -> Parts:
        """All of it; read from the shelf where it is there. What can't be read back says so."""
        held = self._held
        if not isinstance(held, _Away):
            return held
        try:
            return held.shelf.get(held.ticket)
        except OSError as error:
            return tuple(_unreadable(part, error) for part in held.outline)

    @property
    def outline(self) -> Parts:
        """The parts, with empty texts where reading them would take the shelf."""
        held = self._held
        return held.outline if isinstance(held, _Away) else held

    def put_away(self, shelf: Shelf[Parts]) -> None:
        """Keep an outline in memory only."""
        held = self._held
        if not isinstance(held, _Away):
            self._held = _Away(tuple(stubbed(part, "") for part in held), shelf, shelf.put(held))

    def bring_back(self) -> None:
        """Have all of it in memory again."""
        held = self._held
        if isinstance(held, _Away):
            self._held = self.parts
            held.shelf.forget(held.ticket)


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
    text = f"this can't be read back ({error}); the record of the session still has it"
    return stubbed(part, json.dumps({"unreadable": text}) if isinstance(part, ToolCallPart) else f"[{text}]")


class Bodies:
    """The long bodies of one conversation, by the ids of their entries."""

    def __init__(self) -> None:
        self._shelf = Shelf[Parts](IN_MEMORY)
        self._here: dict[str, Body] = {}
        self._away: dict[str, Body] = {}
        self._leaving: deque[str] = deque()

    def add(self, entry: str, body: Body) -> None:
        """A body that the model has before it now."""
        if weight_of(body.outline) >= LONG:
            self._here[entry] = body

    def see(self, live: Collection[str]) -> None:
        """The model has these entries before it and no others: what it has not may go, what it has comes back."""
        for entry in [entry for entry in self._away if entry in live]:
            body = self._here[entry] = self._away.pop(entry)
            body.bring_back()
        self._leaving = deque(entry for entry in self._here if entry not in live)

    def put_away(self, most: int = AT_ONCE) -> None:
        """Put some of the bodies away that may go, so that no step takes long."""
        for _ in range(min(most, len(self._leaving))):
            entry = self._leaving.popleft()
            body = self._away[entry] = self._here.pop(entry)
            body.put_away(self._shelf)
