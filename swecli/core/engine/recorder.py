"""The one place where events come into being: numbered, reduced into the state, stored, then published."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, overload, runtime_checkable

from swecli.core.context_management.cache import CacheHistory
from swecli.core.context_management.ledger import Ledger
from swecli.core.engine.state import SessionState
from swecli.core.protocol.events import MAIN, Body, Event, Unknown, is_fact

KEPT = 128
"""Facts that stay in memory at least."""
PAGE = 256
"""Facts that are read back at once."""


@runtime_checkable
class FactReader(Protocol):
    """A log that gives back what it has taken."""

    def read(self, after: int, upto: int, limit: int) -> Sequence[Event]:
        """Facts with a sequence number above ``after`` and not above ``upto``, in order, ``limit`` at most. May take
        the time of a disk: not for the event loop."""
        ...


@dataclass(frozen=True, slots=True)
class Past:
    """What a subscriber is shown first: facts of the log up to ``upto``, then ``newest``."""

    newest: Sequence[Event]
    upto: int = 0
    log: FactReader | None = None

    def read(self, after: int) -> Sequence[Event]:
        """The next page of what is in the log; empty at its end."""
        return self.log.read(after, self.upto, PAGE) if self.log is not None and after < self.upto else ()


class Facts(Sequence[Event]):
    """Facts in order, from the session's beginning on.

    What was there at the start stays in memory until somebody has looked at it or ``KEPT`` more have come, so that
    going on with a session reads it once. Without a log that can be read all of them stay.
    """

    def __init__(self, history: Sequence[Event]) -> None:
        self._held = list(history)
        self._fresh = 0
        """Facts that have come since some were let go."""
        self._left = 0
        """Facts that only the log has."""
        self._upto = 0
        """Sequence number of the newest of them."""
        self._log: FactReader | None = None

    @property
    def held(self) -> int:
        return len(self._held)

    def read_from(self, log: object) -> None:
        """Where facts are read back from, if it can do that."""
        self._log = log if isinstance(log, FactReader) else None

    def add(self, event: Event) -> None:
        self._held.append(event)
        self._fresh += 1
        if self._fresh >= KEPT:
            self._let_go()

    def past(self) -> Past:
        past = Past(self._held, self._upto, self._log if self._left else None)
        self._held = list(self._held)
        self._let_go()
        return past

    def _let_go(self) -> None:
        self._fresh = 0
        gone = len(self._held) - KEPT
        if self._log is None or gone <= 0:
            return
        self._left += gone
        self._upto = self._held[gone - 1].seq
        del self._held[:gone]

    def __len__(self) -> int:
        return self._left + len(self._held)

    def __iter__(self) -> Iterator[Event]:
        past, after = Past(tuple(self._held), self._upto, self._log), 0
        while page := past.read(after):
            yield from page
            after = page[-1].seq
        yield from past.newest

    def __reversed__(self) -> Iterator[Event]:
        return reversed([*self])

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        if isinstance(index, int) and -len(self._held) <= index < 0:
            return self._held[index]
        return [*self][index]


class EventLog(Protocol):
    """Where facts are stored. Order is kept; what is published has been stored before. Facts of a log that is a
    ``FactReader`` besides are not kept in memory."""

    def append(self, event: Event) -> None: ...

    async def barrier(self) -> None: ...

    async def close(self) -> None: ...


LogFactory = Callable[[Callable[[Sequence[Event]], None]], EventLog]
"""Makes the log; its argument is what the log calls, on the event loop, with stored events in order."""


class Subscription:
    """An iterator over events from the moment of subscription on; it ends when the session is closed."""

    def __init__(self, past: Past | None = None) -> None:
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._ended = False
        self._past = past
        self._page: Iterator[Event] = iter(())
        self._read = 0
        """Sequence number up to which the past was read back."""

    def put(self, event: Event | None) -> None:
        """Hand over an event; None ends the iteration."""
        self._queue.put_nowait(event)

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Event:
        while True:
            event = next(self._page, None)
            if event is not None:
                self._read = event.seq
                return event
            if self._past is None:
                break
            self._page = iter(await self._next_page(self._past))
        event = None if self._ended else await self._queue.get()
        if event is None:
            self._ended = True
            raise StopAsyncIteration
        return event

    async def _next_page(self, past: Past) -> Sequence[Event]:
        """More of the past: what the log has, then what is in memory; nothing of it is held once it was given."""
        page = await asyncio.to_thread(past.read, self._read) if self._read < past.upto else ()
        if page:
            return page
        self._past = None
        return past.newest


class Recorder:
    """Single writer of a session's events. ``first`` is what numbers of events and items begin after."""

    def __init__(
        self,
        session: str,
        history: Sequence[Event],
        make_log: LogFactory,
        clock: Callable[[], float],
        first: tuple[int, int] = (0, 0),
    ) -> None:
        self.session = session
        self.state = SessionState(*first)
        self.ledger = Ledger()
        self.cache = CacheHistory()
        self.turn = 0
        self._clock = clock
        self._subscribers: list[Subscription] = []
        self.facts = Facts(history)
        """What is published, from the session's beginning on. Looking at all of it may read the disk."""
        for event in history:
            self.state.apply(event)
            if event.agent == MAIN:
                self.ledger.apply(event)
                self.cache.apply(event)
        self.turn = self.state.turn
        self._log = make_log(self._publish)
        self.facts.read_from(self._log)

    def emit(self, body: Body) -> Event:
        """Record one event. The state has changed when this returns; storing and publishing follow in order."""
        event = Event(self.state.seq + 1, self._clock(), self.session, self.turn, body)
        self.state.apply(event)
        self.ledger.apply(event)
        self.ledger.evict()
        self.cache.apply(event)
        self._log.append(event)
        return event

    def relay(self, body: Body | Unknown, agent: str, turn: int) -> None:
        """Record an event of a subagent: the conversation and its cache are not about it."""
        event = Event(self.state.seq + 1, self._clock(), self.session, turn, body, agent)
        self.state.apply(event)
        self._log.append(event)

    def new_item(self, prefix: str) -> str:
        return f"{prefix}{self.state.items + 1}"

    async def barrier(self) -> None:
        await self._log.barrier()

    def subscribe(self, *, replay: bool) -> Subscription:
        """Published events; with ``replay`` the published facts of the whole session first."""
        subscription = Subscription(self.facts.past() if replay else None)
        self._subscribers.append(subscription)
        return subscription

    def _publish(self, events: Sequence[Event]) -> None:
        for event in events:
            if is_fact(event.body):
                self.facts.add(event)
            for subscription in self._subscribers:
                subscription.put(event)

    async def close(self) -> None:
        """Store what is left and end all subscriptions."""
        await self._log.close()
        for subscription in self._subscribers:
            subscription.put(None)
