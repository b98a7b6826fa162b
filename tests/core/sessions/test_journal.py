from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from swecli.core.protocol.events import Event, TurnEnded, is_fact
from swecli.core.sessions.journal import Journal
from tests.core.sessions.support import delta, fact, open_store
from tests.support.waiting import PATIENCE, until, wait_until


class Disk:
    """A store that can fail, or hold its writer up."""

    def __init__(self) -> None:
        self.stored: list[Event] = []
        self.calls: list[int] = []
        self.error: Exception | None = None
        self.open = threading.Event()
        self.open.set()

    def write(self, events: Sequence[Event]) -> None:
        self.open.wait(PATIENCE)
        self.calls.append(len(events))
        if self.error is not None:
            raise self.error
        self.stored.extend(events)


class Screen:
    """What was published and told, and what was on disk at that moment."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.events: list[Event] = []
        self.unstored: list[int] = []
        self.troubles: list[str] = []
        self.recoveries: list[str] = []

    def publish(self, events: Sequence[Event]) -> None:
        self.events.extend(events)
        stored = {event.seq for event in self.disk.stored}
        self.unstored.extend(event.seq for event in events if is_fact(event.body) and event.seq not in stored)

    def journal(self, **options: tuple[float, float]) -> Journal:
        return Journal(
            self.disk.write, self.publish, self.troubles.append, on_recovery=self.recoveries.append, **options
        )


def mixed(count: int, first: int = 1) -> list[Event]:
    return [fact("s", seq) if seq % 3 else delta("s", seq) for seq in range(first, first + count)]


async def test_facts_are_stored_before_anything_is_published_in_order() -> None:
    disk = Disk()
    screen = Screen(disk)
    journal = screen.journal()
    events = mixed(300)
    for number, event in enumerate(events):
        journal.append(event)
        if number % 40 == 0:
            await asyncio.sleep(0)
    await journal.barrier()
    assert not journal.degraded
    assert screen.events == events
    assert screen.unstored == []
    assert disk.stored == [event for event in events if is_fact(event.body)]
    await journal.close()
    assert not journal.degraded
    assert screen.troubles == []


async def test_what_waits_is_stored_in_one_transaction() -> None:
    disk = Disk()
    disk.open.clear()
    screen = Screen(disk)
    journal = screen.journal()
    journal.append(fact("s", 1))
    for event in mixed(99, first=2):
        journal.append(event)
    disk.open.set()
    await journal.close()
    assert len(disk.calls) <= 3
    assert len(screen.events) == 100


@pytest.mark.parametrize("awaited", ["barrier", "end of a turn"])
async def test_facts_gather_for_one_transaction_until_somebody_waits(
    awaited: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swecli.core.sessions.journal.GATHER_SECONDS", PATIENCE)
    disk = Disk()
    screen = Screen(disk)
    journal = screen.journal()
    for seq in (1, 2, 3):
        journal.append(fact("s", seq))
        for _ in range(20):  # a tool call or a request would wait here
            await asyncio.sleep(0)
    assert screen.events == []
    if awaited == "barrier":
        await journal.barrier()
    else:
        journal.append(Event(4, 4.0, "s", 1, TurnEnded("done")))
        await until(lambda: len(screen.events) == 4)
    assert disk.calls == [len(screen.events)]
    await journal.close()


async def test_a_slow_disk_does_not_hold_up_the_event_loop() -> None:
    disk = Disk()
    disk.open.clear()
    screen = Screen(disk)
    journal = screen.journal()
    journal.append(fact("s", 1))
    barrier = asyncio.ensure_future(journal.barrier())
    for _ in range(20):
        await asyncio.sleep(0)
    assert not barrier.done()
    assert screen.events == []
    disk.open.set()
    await barrier
    assert len(screen.events) == 1
    await journal.close()


async def test_a_full_disk_is_told_once_and_nothing_is_lost() -> None:
    disk = Disk()
    disk.error = sqlite3.OperationalError("database or disk is full")
    screen = Screen(disk)
    journal = screen.journal(retry_seconds=(0.001, 0.004))
    events = mixed(30)
    for event in events[:20]:
        journal.append(event)
        await asyncio.sleep(0)
    await journal.barrier()
    assert journal.degraded
    await until(lambda: len(disk.calls) > 4)
    assert screen.events == events[:20]
    assert len(screen.troubles) == 1
    assert "disk is full" in screen.troubles[0]
    assert "Free some disk space" in screen.troubles[0]
    disk.error = None
    await until(lambda: bool(screen.recoveries))
    for event in events[20:]:
        journal.append(event)
    await journal.barrier()
    assert not journal.degraded
    assert disk.stored == [event for event in events if is_fact(event.body)]
    disk.error = OSError("gone again")
    journal.append(fact("s", 31))
    await journal.barrier()
    assert len(screen.troubles) == 2
    disk.error = None
    await journal.close()
    assert not journal.degraded
    assert disk.stored[-1].seq == 31


async def test_closing_tries_once_more_and_says_whether_all_is_stored() -> None:
    disk = Disk()
    disk.error = OSError("no")
    screen = Screen(disk)
    journal = screen.journal(retry_seconds=(60, 60))
    journal.append(fact("s", 1))
    await journal.barrier()
    assert journal.degraded
    await journal.close()
    assert journal.degraded
    await journal.close()
    assert journal.degraded
    await journal.barrier()
    assert journal.degraded
    journal.append(fact("s", 2))
    assert len(disk.calls) == 2
    assert [event.seq for event in screen.events] == [1]


def test_it_stores_although_the_event_loop_is_gone() -> None:
    disk = Disk()
    disk.open.clear()
    screen = Screen(disk)

    async def begin() -> Journal:
        journal = screen.journal()
        journal.append(fact("s", 1))
        return journal

    journal = asyncio.run(begin())
    disk.open.set()
    wait_until(lambda: disk.stored)
    assert len(disk.stored) == 1
    assert not journal.degraded


async def test_a_real_database_that_is_full_and_then_is_not(tmp_path: Path) -> None:
    store = open_store(tmp_path / "sessions.db")
    session = store.create("/w", "m", "1").id
    with store.database.write() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={pages + 4}")
    troubles: list[str] = []
    shown: list[Event] = []
    journal = Journal(store.append, shown.extend, troubles.append, retry_seconds=(0.001, 0.01))
    for seq in range(1, 41):
        journal.append(fact(session, seq, "x" * 1000))
        await asyncio.sleep(0)
    await journal.barrier()
    assert journal.degraded
    assert len(shown) == 40
    assert len(troubles) == 1
    seqs = [event.seq for event in store.load(session)]
    assert seqs == list(range(1, len(seqs) + 1))
    with store.database.write() as connection:
        connection.execute("PRAGMA max_page_count=1000000")
    await journal.close()
    assert not journal.degraded
    assert [event.seq for event in store.load(session)] == list(range(1, 41))
    store.close()


async def test_two_writers_at_one_session_are_told_so(tmp_path: Path) -> None:
    store = open_store(tmp_path / "sessions.db")
    session = store.create("/w", "m", "1").id
    store.append([fact(session, 1, "theirs")])
    troubles: list[str] = []
    journal = Journal(store.append, lambda events: None, troubles.append)
    journal.append(fact(session, 1, "mine"))
    await journal.barrier()
    assert journal.degraded
    assert "two writers" in troubles[0]
    assert "new session" in troubles[0]
    await journal.close()
    store.close()


async def test_a_value_that_no_json_can_hold_is_told(tmp_path: Path) -> None:
    from swecli.core.protocol.events import Unknown

    store = open_store(tmp_path / "sessions.db")
    session = store.create("/w", "m", "1").id
    troubles: list[str] = []
    journal = Journal(store.append, lambda events: None, troubles.append)
    journal.append(Event(1, 1.0, session, 1, Unknown("odd", {"type": "odd", "value": object()})))
    await journal.barrier()
    assert journal.degraded
    assert len(troubles) == 1
    await journal.close()
    store.close()


async def test_a_value_that_the_database_cannot_hold_is_told_too() -> None:
    disk = Disk()
    disk.error = OverflowError("Python int too large to convert to SQLite INTEGER")
    screen = Screen(disk)
    journal = screen.journal(retry_seconds=(0.001, 0.004))
    journal.append(fact("s", 1))
    await asyncio.wait_for(journal.barrier(), PATIENCE)
    assert len(screen.troubles) == 1
    disk.error = None
    await until(lambda: bool(screen.recoveries))
    await journal.close()
    assert disk.stored == [fact("s", 1)]


async def test_what_is_not_stored_does_not_go_through_the_thread_and_keeps_its_place() -> None:
    disk = Disk()
    screen = Screen(disk)
    journal = screen.journal()
    disk.open.clear()
    for event in (delta("s", 1), delta("s", 2)):
        journal.append(event)
    await asyncio.sleep(0)
    assert [event.seq for event in screen.events] == [1, 2]
    for event in (delta("s", 3), fact("s", 4), delta("s", 5)):
        journal.append(event)
    await asyncio.sleep(0)
    assert [event.seq for event in screen.events] == [1, 2, 3]  # what follows a fact waits with it
    disk.open.set()
    await journal.barrier()
    assert [event.seq for event in screen.events] == [1, 2, 3, 4, 5]
    assert screen.unstored == []
    await journal.close()


async def test_a_cancelled_close_still_releases_what_it_holds() -> None:
    disk, released = Disk(), threading.Event()
    journal = Journal(disk.write, lambda events: None, lambda text: None, on_close=released.set)
    disk.open.clear()
    journal.append(fact("s", 1))
    closing = asyncio.create_task(journal.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert not released.is_set()
    disk.open.set()
    assert await asyncio.to_thread(released.wait, PATIENCE)
    assert [event.seq for event in disk.stored] == [1]


async def test_a_failure_to_release_is_raised_by_close() -> None:
    def fail() -> None:
        raise OSError("gone")

    journal = Journal(Disk().write, lambda events: None, lambda text: None, on_close=fail)
    with pytest.raises(OSError, match="gone"):
        await journal.close()
