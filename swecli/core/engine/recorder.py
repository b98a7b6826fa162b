"""The only place where events are created: numbered, reduced into the state, stored, then published."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, overload, runtime_checkable
from weakref import WeakSet

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.engine.reductions import Before, Reductions
from swecli.core.engine.state import SessionState
from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.events import (
    Body,
    ContextRestored,
    Event,
    ItemDelta,
    Notice,
    TodosChanged,
    TurnStarted,
    Unknown,
    begins_turn,
    is_fact,
)

KEPT = 128
"""Least number of facts kept in memory."""
HELD_TURNS = 60
"""Turns of a resumed session that are read at first: as many as a front-end may show."""
PAGE = 256
"""Facts read back at once."""


@runtime_checkable
class FactReader(Protocol):
    """A log whose stored facts can be read back."""

    def read(self, after: int, upto: int, limit: int) -> Sequence[Event]:
        """At most ``limit`` facts with sequence numbers above ``after`` and up to ``upto``, in order. Blocks on the
        disk: not for the event loop."""
        ...

    def begin_of(self, turns: int) -> int:
        """Sequence number of the event that begins the newest ``turns`` turns; 0 if there are fewer or it can't be
        read. Blocks like ``read``."""
        ...


class Past(Struct, frozen=True):
    """Facts replayed to a new subscriber: those of the log up to ``upto``, then ``newest``; with ``turns`` only those
    of the newest turns. ``todos_before`` maps the message of a turn to the todo list before it."""

    newest: Sequence[Event]
    upto: int = 0
    log: FactReader | None = None
    turns: int | None = None
    todos_before: Mapping[str, tuple[Todo, ...]] = field(default_factory=dict[str, tuple[Todo, ...]])

    def first(self) -> Sequence[Event]:
        """First page of the logged facts. Blocks on the disk."""
        if self.turns is None or self.log is None:
            return self.read(0)
        begin = self.log.begin_of(self.turns)
        page = self.read(max(0, begin - 1))
        todos = _todos_at(page[0], self.todos_before) if begin and page else None
        return page if todos is None else (todos, *page)

    def read(self, after: int) -> Sequence[Event]:
        """Next page of the logged facts; empty at the end."""
        return self.log.read(after, self.upto, PAGE) if self.log is not None and after < self.upto else ()


class Facts(Sequence[Event]):
    """Facts in order, from the session's beginning on.

    Those read at the start stay in memory until their first use or until ``KEPT`` more have been added, so that
    resuming reads a session once. Without a readable log all facts stay in memory.
    """

    def __init__(self, history: Sequence[Event], left: int = 0) -> None:
        """``history`` has the newest facts; ``left`` earlier ones are only in the log."""
        self._held: list[Event] = []
        self._fresh = 0
        """Facts added since some were last dropped."""
        self._left = left
        """Number of facts that only the log has."""
        self._upto = history[0].seq - 1 if left else 0
        """Largest sequence number of a fact that only the log may have."""
        self._log: FactReader | None = None
        self.lost: list[int] = []
        """Positions of events that are unreadable or need a later version, since the context was last restored."""
        for event in history:
            self.add(event)
        self._fresh = 0

    @property
    def held(self) -> Sequence[Event]:
        """Facts in memory: the newest ones."""
        return self._held

    def read_from(self, log: object) -> None:
        """Set the log to read facts back from, if it supports that."""
        self._log = log if isinstance(log, FactReader) else None

    def add(self, event: Event) -> None:
        self._held.append(event)
        if isinstance(event.body, Unknown):
            self.lost.append(event.seq)
        elif isinstance(event.body, ContextRestored):
            self.lost.clear()
        self._fresh += 1
        if self._fresh >= KEPT:
            self._let_go()

    def past(self) -> Past:
        past = Past(self._held, self._upto, self._log if self._left else None)
        self._held = list(self._held)
        self._let_go()
        return past

    def recent(self, turns: int, todos_before: Mapping[str, tuple[Todo, ...]]) -> Past:
        """Facts of the newest turns, with the todo list before their first message; all facts if there are no more
        turns. Searches the log as far as needed."""
        begins = [at for at, event in enumerate(self._held) if begins_turn(event)]
        if len(begins) < turns and self._left:
            return replace(self.past(), turns=turns, todos_before=todos_before)
        if len(begins) < turns or (len(begins) == turns and not self._left):
            return self.past()
        first = begins[-turns]
        todos = _todos_at(self._held[first], todos_before)
        past = Past([*([todos] if todos is not None else []), *self._held[first:]])
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
        # In a thread, facts may have left memory between the two looks at it above.
        yield from (event for event in past.newest if event.seq > after)

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


def _todos_at(begins: Event, todos_before: Mapping[str, tuple[Todo, ...]]) -> Event | None:
    """Event with the todo list at the start of a turn."""
    item = begins.body.item if isinstance(begins.body, TurnStarted) else ""
    todos = todos_before.get(item, ())
    return replace(begins, seq=begins.seq - 1, body=TodosChanged(todos)) if todos else None


class EventLog(Protocol):
    """Storage of facts. Order is kept; everything published has been stored before. Facts in a log that is also a
    ``FactReader`` are not kept in memory."""

    def append(self, event: Event) -> None: ...

    async def barrier(self) -> None: ...

    async def close(self) -> None: ...


LogFactory = Callable[[Callable[[Sequence[Event]], None]], EventLog]
"""Factory of the log. The log calls its argument on the event loop with stored events, in order."""


Watcher = Callable[[Event], None]
"""Callback for an event of the session; it must be quick."""


class Subscription:
    """Iterator over events from the moment of subscription on; it ends when the session is closed."""

    def __init__(self, past: Past | None = None) -> None:
        self.queue: asyncio.Queue[Event | None] = asyncio.Queue()
        """New events; None ends the iteration."""
        self._ended = False
        self._past = past
        self._page: Iterator[Event] = iter(())
        self._begun = False
        """Whether the first page of the past was requested."""
        self._read = 0
        """Sequence number up to which the past was read back."""

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
        event = None if self._ended else await self.queue.get()
        if event is None:
            self._ended = True
            raise StopAsyncIteration
        return event

    async def _next_page(self, past: Past) -> Sequence[Event]:
        """The next page of the past, from the log first, then from memory; returned pages are not kept."""
        page: Sequence[Event] = ()
        if not self._begun:
            self._begun = True
            page = await asyncio.to_thread(past.first) if past.upto else ()
        elif self._read < past.upto:
            page = await asyncio.to_thread(past.read, self._read)
        if page:
            return page
        self._past = None
        return past.newest


class Recorder:
    """Single writer of a session's events. Numbers of events and items begin after ``first``. ``before`` describes the
    events before ``history``, if that begins later or some of it is already reduced."""

    def __init__(
        self,
        session: str,
        history: Sequence[Event],
        make_log: LogFactory,
        clock: Callable[[], float],
        first: tuple[int, int] = (0, 0),
        before: Before | None = None,
    ) -> None:
        reduced = before.reductions if before is not None else Reductions(SessionState(*first))
        known = before.seq if before is not None else 0
        self.reduced = before.facts if before is not None else 0
        """Facts that did not have to be reduced in this run."""
        self.session = session
        self.reductions = reduced
        self.state, self.ledger, self.cache = reduced.state, reduced.ledger, reduced.cache
        self.timeline, self.trend = reduced.timeline, reduced.trend
        self.turn = 0
        self.clock = clock
        """Seconds since the epoch."""
        self._subscribers = WeakSet[Subscription]()
        """Subscriptions still in use."""
        self._watchers: dict[type[Body], list[Watcher]] = {}
        self.facts = Facts(history, before.facts - sum(event.seq <= known for event in history) if before else 0)
        """Published facts from the session's beginning on. Full iteration may read the disk."""
        for event in history:
            if event.seq > known:
                reduced.apply(event)
        self.turn = self.state.turn
        self.published = self.state.seq
        """Sequence number of the newest published event."""
        self.log = make_log(self._publish)
        self.facts.read_from(self.log)

    def emit(self, body: Body) -> Event:
        """Record one event. The state has changed when this returns; storing and publishing follow in order."""
        event = Event(self.state.seq + 1, self.clock(), self.session, self.turn, body)
        self.reductions.apply(event)
        if not isinstance(body, ItemDelta):
            self.ledger.evict()
        self.log.append(event)
        for watch in self._watchers.get(type(body), ()):
            watch(event)
        return event

    def watch(self, kinds: Iterable[type[Body]], watcher: Watcher) -> None:
        """Call ``watcher`` for each event of these types as it is recorded, after those registered before."""
        for kind in kinds:
            self._watchers.setdefault(kind, []).append(watcher)

    def tell_once(self, notice: Notice) -> None:
        """Show a notice unless one of the same ``about`` was shown in this session, in any run of it."""
        if notice.about not in self.state.told:
            self.emit(notice)

    def relay(self, body: Body | Unknown, agent: str, turn: int) -> None:
        """Record an event of a subagent; the conversation and its cache ignore it."""
        event = Event(self.state.seq + 1, self.clock(), self.session, turn, body, agent)
        self.state.apply(event)
        self.log.append(event)

    def new_item(self, prefix: str) -> str:
        return f"{prefix}{self.state.items + 1}"

    def subscribe(self, *, replay: bool, turns: int | None = None) -> Subscription:
        """Published events; with ``replay`` preceded by the published facts of the whole session or of its newest
        ``turns``."""
        past = None if not replay or turns is not None else self.facts.past()
        if replay and turns is not None:
            past = self.facts.recent(turns, self.state.todos_before)
        subscription = Subscription(past)
        self._subscribers.add(subscription)
        return subscription

    def _publish(self, events: Sequence[Event]) -> None:
        for event in events:
            self.published = event.seq
            if is_fact(event.body):
                self.facts.add(event)
            for subscription in self._subscribers:
                subscription.queue.put_nowait(event)

    async def close(self) -> None:
        """Store pending events and end all subscriptions."""
        await self.log.close()
        for subscription in self._subscribers:
            subscription.queue.put_nowait(None)
