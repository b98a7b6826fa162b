"""Facts come back from the store in pages, those that wait for a failing disk included."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence

from swecli.core.protocol.events import Event, Notice, TurnStarted, Unknown
from swecli.core.sessions.database import open_in_memory
from swecli.core.sessions.journal import Journal
from swecli.core.sessions.store import SessionStore, StoredFacts


def _notice(session: str, seq: int) -> Event:
    return Event(seq, 1.0, session, 1, Notice(f"line {seq}"))


def test_pages_follow_each_other_and_end() -> None:
    store = SessionStore(open_in_memory())
    session = store.create("/w", "m", "0").id
    store.append([_notice(session, seq) for seq in range(2, 22, 2)])
    facts = StoredFacts(store.database, session)
    assert [event.seq for event in facts.read(0, 100, 4)] == [2, 4, 6, 8]
    assert [event.seq for event in facts.read(8, 12, 4)] == [10, 12]
    assert facts.read(12, 12, 4) == []
    assert facts.read(0, 100, 10) == store.load(session)


async def test_the_newest_turns_are_found_stored_or_not() -> None:
    store = SessionStore(open_in_memory())
    session = store.create("/w", "m", "0").id
    turns = [Event(seq, 1.0, session, seq, TurnStarted(f"u{seq}")) for seq in (2, 4, 6, 8, 10)]
    of_agent = Event(7, 1.0, session, 3, TurnStarted("u7"), "agent-1")
    store.append([*turns[:3], of_agent])
    facts = StoredFacts(store.database, session)
    assert [facts.begin_of(count) for count in (1, 2, 3, 4)] == [6, 4, 2, 0]

    def full(events: Sequence[Event]) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    journal = Journal(full, lambda events: None, lambda text: None, read=facts.read, begin_of=facts.begin_of)
    for event in turns[3:]:
        journal.append(event)
    await journal.barrier()
    assert [journal.begin_of(count) for count in (1, 2, 3, 5, 6)] == [10, 8, 6, 2, 0]
    await journal.close()


def test_what_can_not_be_read_keeps_its_place() -> None:
    store = SessionStore(open_in_memory())
    session = store.create("/w", "m", "0").id
    store.append([_notice(session, seq) for seq in (1, 2, 3)])
    with store.database.write() as connection:
        connection.execute("UPDATE events SET body = '{' WHERE seq = 2")
    read = StoredFacts(store.database, session).read(0, 3, 10)
    assert [event.seq for event in read] == [1, 2, 3]
    assert isinstance(read[1].body, Unknown)


async def test_facts_that_wait_for_the_disk_are_given_back_too() -> None:
    store = SessionStore(open_in_memory())
    session = store.create("/w", "m", "0").id
    full = asyncio.Event()
    told: list[str] = []

    def write(events: Sequence[Event]) -> None:
        if full.is_set():
            raise sqlite3.OperationalError("database or disk is full")
        store.append(events)

    def read(after: int, upto: int, limit: int) -> Sequence[Event]:
        return StoredFacts(store.database, session).read(after, upto, limit)

    journal = Journal(write, lambda events: None, told.append, read=read)
    for seq in (1, 2):
        journal.append(_notice(session, seq))
    await journal.barrier()
    full.set()
    for seq in (3, 4, 5):
        journal.append(_notice(session, seq))
    await journal.barrier()
    assert journal.degraded
    assert [event.seq for event in journal.read(0, 4, 10)] == [1, 2, 3, 4]
    assert [event.seq for event in journal.read(0, 5, 3)] == [1, 2, 3]
    assert [event.seq for event in journal.read(3, 5, 3)] == [4, 5]
    full.clear()
    await journal.close()


async def test_a_store_that_can_not_be_read_is_told_of() -> None:
    told: list[str] = []

    def read(after: int, upto: int, limit: int) -> Sequence[Event]:
        raise sqlite3.OperationalError("disk I/O error")

    journal = Journal(lambda events: None, lambda events: None, told.append, read=read)
    assert list(await asyncio.to_thread(journal.read, 0, 5, 3)) == []
    await journal.close()
    assert len(told) == 1
    assert "disk I/O error" in told[0]
