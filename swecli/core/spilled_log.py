"""The log of a session that is stored on no disk beyond the process."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import itemgetter

from swecli.core.protocol.events import Event, begins_turn, is_fact
from swecli.core.spill import SpillHandle, SpillStore

_PAGE = 64
"""Facts per spilled page."""


class SpilledLog:
    """Publishes events, and keeps the facts among them in a spill store: on no disk beyond the process."""

    def __init__(self, publish: Callable[[Sequence[Event]], None]) -> None:
        self._publish = publish
        self._spill = SpillStore[tuple[Event, ...]]()
        self._pages: list[tuple[int, SpillHandle]] = []
        """The newest sequence number of each spilled page."""
        self._newest: list[Event] = []
        self._turns: list[int] = []
        """Sequence numbers at which turns begin."""

    def append(self, event: Event) -> None:
        if is_fact(event.body):
            self._newest.append(event)
            self._turns += [event.seq] if begins_turn(event) else []
            if len(self._newest) >= _PAGE:
                self._pages.append((event.seq, self._spill.put(tuple(self._newest))))
                self._newest = []
        asyncio.get_running_loop().call_soon(self._publish, (event,))

    def read(self, after: int, upto: int, limit: int) -> Sequence[Event]:
        """Facts above ``after`` and up to ``upto``, in order, ``limit`` at most. For a thread of its own."""
        newest, pages = self._newest, self._pages  # in this order: a page may be spilled in between
        events: list[Event] = []
        for _, ticket in pages[bisect_right(pages, after, key=itemgetter(0)) :]:
            if len(events) >= limit or (events and events[-1].seq >= upto):
                break
            events += [event for event in self._spill.get(ticket) if after < event.seq <= upto]
        else:
            known = events[-1].seq if events else after
            events += [event for event in newest if known < event.seq <= upto]
        return events[:limit]

    def begin_of(self, turns: int) -> int:
        """Beginning of the newest ``turns`` turns; 0 if there are fewer."""
        return self._turns[-turns] if turns <= len(self._turns) else 0

    async def barrier(self) -> None:
        await asyncio.sleep(0)

    async def close(self) -> None:
        await asyncio.sleep(0)
        self._spill.close()
