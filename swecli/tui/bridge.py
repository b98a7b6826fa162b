"""From the session's events to the screen: gathered, merged, and handed over once per frame."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace

from swecli.core.protocol.events import Event, ItemDelta

FRAME = 1 / 30
"""Seconds between two updates of the screen at most."""

BACK_PRESSURE = 0.010
"""Seconds between two looks at an output queue that the terminal has not emptied yet."""

MAX_BATCH = 4000
"""Events of one update at most, so that a long replay does not hold up a key press."""


def merge(events: Sequence[Event]) -> list[Event]:
    """The same stream with fewer deltas: consecutive ones of an item and channel become one. Deltas of
    different items may change places with each other, never with any other event."""
    merged: list[Event] = []
    texts: dict[int, list[str]] = {}
    open_at: dict[tuple[str, str], int] = {}
    for event in events:
        body = event.body
        if not isinstance(body, ItemDelta):
            open_at.clear()
            merged.append(event)
            continue
        key = (body.item, body.channel)
        index = open_at.get(key)
        if index is None:
            open_at[key] = len(merged)
            merged.append(event)
        else:
            first = merged[index].body
            assert isinstance(first, ItemDelta)
            texts.setdefault(index, [first.text]).append(body.text)
    for index, parts in texts.items():
        event = merged[index]
        assert isinstance(event.body, ItemDelta)
        merged[index] = replace(event, body=replace(event.body, text="".join(parts)))
    return merged


class Bridge:
    """Takes events as they come and passes them on in batches.

    ``apply`` is called with the merged events of one frame. ``waiting`` says how many writes the terminal
    has not taken yet: nothing is drawn on top of them, which is what keeps the keyboard alive on a slow link.
    """

    def __init__(
        self,
        apply: Callable[[Sequence[Event]], None],
        *,
        waiting: Callable[[], int] = lambda: 0,
        interval: Callable[[], float] = lambda: FRAME,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._apply = apply
        self._waiting = waiting
        self._interval = interval
        self._sleep = sleep
        self._pending: list[Event] = []
        self._dirty = asyncio.Event()
        self._ended = False

    def push(self, event: Event) -> None:
        """Take one event. Never blocks."""
        self._pending.append(event)
        self._dirty.set()

    async def pump(self, events: AsyncIterator[Event]) -> None:
        """Take a whole stream until it ends, then pass on what is left."""
        taken = 0
        async for event in events:
            self.push(event)
            taken += 1
            if taken % MAX_BATCH == 0:  # a replay that is ready at once must let the keyboard in
                await asyncio.sleep(0)
        self._ended = True
        self._dirty.set()

    async def run(self) -> None:
        """Pass on batches until the stream has ended."""
        while True:
            await self._dirty.wait()
            while self._waiting() > 0:
                await self._sleep(BACK_PRESSURE)
            batch, self._pending = self._pending[:MAX_BATCH], self._pending[MAX_BATCH:]
            if not self._pending and not self._ended:
                self._dirty.clear()
            if batch:
                self._apply(merge(batch))
            elif self._ended:
                return
            await self._sleep(0 if self._pending else self._interval())
