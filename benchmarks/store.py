"""What storing the events of a session costs."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from swecli.core.protocol.codec import encode_event
from swecli.core.protocol.events import Event, ItemCheckpointed
from swecli.core.protocol.messages import TextPart
from swecli.core.sessions.database import open_database
from swecli.core.sessions.journal import Journal
from swecli.core.sessions.store import SessionStore

COUNT = 1_000


def run() -> list[tuple[str, float, str]]:
    """What was measured, the value, its unit."""
    with tempfile.TemporaryDirectory() as folder:
        store = SessionStore(open_database(Path(folder) / "sessions.db"))
        session = store.create(folder, "bench/model", "0").id
        events = _events(session, 0)
        encoding = _time_encoding(events)
        start = time.perf_counter()
        for event in events:
            store.append([event])
        single = (time.perf_counter() - start) / COUNT
        flow = asyncio.run(_through_journal(store, _events(session, COUNT)))
        start = time.perf_counter()
        loaded = len(store.load(session))
        load = time.perf_counter() - start
        store.close()
    return [
        ("one fact in one commit", single * 1e3, "ms"),
        ("the same as a ratio to encoding it", single / encoding, "x"),
        ("one fact through the journal, as a ratio to a commit of its own", flow / COUNT / single, "x"),
        ("loading a fact, as a ratio to encoding it", load / loaded / encoding, "x"),
    ]


def _events(session: str, after: int) -> list[Event]:
    body = TextPart("x" * 500)
    return [Event(after + n, 1.0, session, 1, ItemCheckpointed(f"i{n}", body)) for n in range(1, COUNT + 1)]


def _time_encoding(events: Sequence[Event]) -> float:
    encode_event(events[0])
    start = time.perf_counter()
    for event in events:
        encode_event(event)
    return (time.perf_counter() - start) / len(events)


async def _through_journal(store: SessionStore, events: Sequence[Event]) -> float:
    journal = Journal(store.append, lambda published: None, print)
    start = time.perf_counter()
    for event in events:
        journal.append(event)
    await journal.barrier()
    seconds = time.perf_counter() - start
    await journal.close()
    return seconds
