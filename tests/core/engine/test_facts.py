"""Facts that left memory are read back, in order and none twice."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator, Sequence
from weakref import ref

from swecli.core.engine.recorder import KEPT, PAGE, Facts, Recorder, Subscription
from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.events import (
    Body,
    Event,
    ItemDelta,
    Notice,
    TodosChanged,
    TurnEnded,
    TurnStarted,
    begins_turn,
)
from tests.support.waiting import PATIENCE


def _events(first: int, last: int) -> list[Event]:
    return [Event(seq, 0.0, "s", 1, Notice(f"line {seq}")) for seq in range(first, last + 1)]


class _Log:
    """A log that publishes at once and can be read."""

    def __init__(self, stored: Sequence[Event], publish: Callable[[Sequence[Event]], None]) -> None:
        self.stored = list(stored)
        self.reads = 0
        self._publish = publish

    def append(self, event: Event) -> None:
        if not isinstance(event.body, ItemDelta):
            self.stored.append(event)
        self._publish([event])

    def read(self, after: int, upto: int, limit: int) -> Sequence[Event]:
        self.reads += 1
        return [event for event in self.stored if after < event.seq <= upto][:limit]

    def begin_of(self, turns: int) -> int:
        begins = [event.seq for event in self.stored if begins_turn(event)]
        return begins[-turns] if turns <= len(begins) else 0

    async def barrier(self) -> None:
        pass

    async def close(self) -> None:
        pass


async def _taken(subscription: Subscription, count: int) -> list[int]:
    return [(await asyncio.wait_for(anext(subscription), PATIENCE)).seq for _ in range(count)]


async def test_a_later_subscriber_is_shown_all_from_the_store_and_then_what_is_new() -> None:
    history = _events(1, 3 * PAGE)
    logs: list[_Log] = []

    def make_log(publish: Callable[[Sequence[Event]], None]) -> _Log:
        logs.append(_Log(history, publish))
        return logs[0]

    recorder = Recorder("s", history, make_log, lambda: 0.0)
    first = recorder.subscribe(replay=True)
    assert logs[0].reads == 0, "what was loaded is not read a second time"
    assert len(recorder.facts.held) <= KEPT
    total = 3 * PAGE + 2 * KEPT + 5
    for _ in range(2 * KEPT):
        recorder.emit(Notice("new"))
    second = recorder.subscribe(replay=True)
    for _ in range(5):
        recorder.emit(Notice("newer"))
    assert await _taken(second, total) == list(range(1, total + 1))
    assert await _taken(first, total) == list(range(1, total + 1))
    assert len(recorder.facts) == total
    assert [event.seq for event in recorder.facts] == list(range(1, total + 1))
    assert [event.seq for event in reversed(recorder.facts)] == list(range(total, 0, -1))
    assert recorder.facts[-1].seq == total
    assert recorder.facts[0].seq == 1


async def test_memory_does_not_grow_with_the_session() -> None:
    recorder = Recorder("s", (), lambda publish: _Log((), publish), lambda: 0.0)
    for number in range(20 * KEPT):
        recorder.emit(Notice(f"{number}"))
        assert len(recorder.facts.held) <= 2 * KEPT


async def test_nothing_is_kept_for_a_subscriber_that_left() -> None:
    recorder = Recorder("s", (), lambda publish: _Log((), publish), lambda: 0.0)
    stays, leaves = recorder.subscribe(replay=True), recorder.subscribe(replay=True)
    gone = ref(leaves)
    del leaves
    gc.collect()
    assert gone() is None
    recorder.emit(Notice("new"))
    assert await _taken(stays, 1) == [1]


def test_a_log_that_gives_nothing_back_lets_nothing_go() -> None:
    facts = Facts(_events(1, 5))
    facts.read_from(object())
    for event in _events(6, 5 * KEPT):
        facts.add(event)
    assert len(facts.held) == 5 * KEPT
    past = facts.past()
    assert [event.seq for event in past.newest] == list(range(1, 5 * KEPT + 1))
    assert past.read(0) == ()


async def test_the_newest_turns_can_be_shown_alone() -> None:
    todos = (Todo("look", "pending"),)
    bodies: list[Body] = [TodosChanged(todos)]
    for turn in range(1, 6):
        bodies += [TurnStarted(f"u{turn}"), TurnEnded("done")]
    history = [Event(number, 1.0, "s", 1, body) for number, body in enumerate(bodies, 1)]
    recent = Facts(history).recent(2, {"u4": todos})
    assert [event.seq for event in recent.newest] == [7, 8, 9, 10, 11]
    assert recent.newest[0].body == TodosChanged(todos)
    assert [event.seq for event in Facts(history).recent(2, {}).newest] == [8, 9, 10, 11]
    assert [event.seq for event in Facts(history).recent(5, {}).newest] == list(range(1, 12))
    assert [event.seq for event in Facts([]).recent(5, {}).newest] == []


async def test_a_history_without_its_beginning_shows_its_turns_without_the_log() -> None:
    bodies: list[Body] = []
    for turn in range(1, 6):
        bodies += [TurnStarted(f"u{turn}"), TurnEnded("done")]
    history = [Event(number, 1.0, "s", 1, body) for number, body in enumerate(bodies, 1)]
    facts = Facts(history[4:], left=4)
    facts.read_from(log := _Log(history, lambda events: None))
    assert [event.seq for event in facts.recent(3, {}).newest] == [5, 6, 7, 8, 9, 10]
    assert log.reads == 0
    assert len(facts) == 10
    assert [event.seq for event in reversed(facts)] == list(range(10, 0, -1))
    assert await _taken(Subscription(facts.recent(9, {})), 10) == list(range(1, 11))


async def test_turns_that_the_log_alone_has_are_read_from_where_they_begin() -> None:
    todos = (Todo("look", "pending"),)
    bodies: list[Body] = [TodosChanged(todos)]
    for turn in range(1, 2 * PAGE):
        bodies += [TurnStarted(f"u{turn}"), TurnEnded("done")]
    history = [Event(number, 1.0, "s", 1, body) for number, body in enumerate(bodies, 1)]
    facts = Facts(history[-8:], left=len(history) - 8)
    facts.read_from(log := _Log(history, lambda events: None))
    begin = len(history) - 2 * PAGE + 1  # of the newest 256 turns, two pages
    subscription = Subscription(facts.recent(PAGE, {history[begin - 1].body.item: todos}))  # type: ignore[union-attr]
    assert await _taken(subscription, 2 * PAGE + 1) == [begin - 1, *range(begin, len(history) + 1)]
    assert log.reads == 2
    assert await _taken(Subscription(facts.recent(3, {})), 6) == list(range(len(history) - 5, len(history) + 1))
    assert log.reads == 2, "what is in memory is not read"


def test_facts_that_leave_memory_while_they_are_listed_come_once() -> None:
    """Facts are listed in a thread, while the event loop adds more."""
    events = _events(1, 3 * KEPT)
    facts = Facts(events)
    facts.read_from(_Log(events, lambda published: None))

    class Held(list[Event]):
        def __iter__(self) -> Iterator[Event]:
            held = [*super().__iter__()]
            facts._let_go()
            return iter(held)

    facts._held = Held(events)
    assert [event.seq for event in facts] == [event.seq for event in events]
