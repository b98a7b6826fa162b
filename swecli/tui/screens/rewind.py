"""The user's messages to rewind to: what happened since each, and the effect on files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from swecli.commands.rewind import changed_words, preview_blocks, short, since
from swecli.core.engine.rewind import RewindPoint
from swecli.core.engine.session import Session
from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from swecli.tui.greeting import age
from swecli.tui.screens.list_screen import Entry, ListPage, Previews

_TITLE = 160
"""Characters of a message to show if there is room."""


class RewindSource(Protocol):
    """Source of the messages and of the effects of a rewind."""

    async def points(self) -> Sequence[RewindPoint]: ...

    async def preview(self, point: RewindPoint) -> Sequence[DisplayBlock]: ...


class SessionPoints:
    """Implements ``RewindSource`` for an open session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def points(self) -> Sequence[RewindPoint]:
        return await self._session.rewinds.points()

    async def preview(self, point: RewindPoint) -> Sequence[DisplayBlock]:
        files = await self._session.rewinds.preview(point.item)
        return (TextBlock(point.text[:2_000]), *preview_blocks(self._session, point, files))


class RewindPage(ListPage):
    """``chosen`` gets the message to rewind to. ``clock`` is Unix seconds."""

    def __init__(self, source: RewindSource, chosen: Callable[[RewindPoint], None], clock: Callable[[], float]) -> None:
        super().__init__("Rewind to before a message", "type to search your messages")
        self._source = source
        self._chosen = chosen
        self._clock = clock
        self._points: dict[str, RewindPoint] = {}
        self._previews = Previews(self, self._preview)

    def begin(self) -> None:
        self.view.start(self._read)

    async def _read(self) -> None:
        points = await self._source.points()
        self._points = {point.item: point for point in reversed(points)}
        self.entries = entries(list(self._points.values()), self._clock())
        self.view.show()
        if not points:
            self.view.say((TextBlock("Nothing to go back to: no message was sent yet."),))

    def detail(self, entry: Entry | None) -> Sequence[DisplayBlock]:
        return self._previews.of(entry)

    async def _preview(self, name: str) -> Sequence[DisplayBlock]:
        return await self._source.preview(self._points[name])

    def key_note(self, entry: Entry | None) -> str:
        return "enter asks what to restore · ↑↓ move" if entry is not None else ""

    def choose(self, entry: Entry) -> None:
        self._chosen(self._points[entry.name])


_LEAST = 24
"""Cells of a message that are worth more than when it was sent and what it changed."""


def entries(points: Sequence[RewindPoint], now: float) -> list[Entry]:
    """The messages in the order given."""
    return [
        Entry(
            point.item,
            (short(point.text, _TITLE), age(now - point.at), changed_words(point), since(point)),
            words=f"{point.number} {point.text[:500]}",
            least=_LEAST,
        )
        for point in points
    ]
