"""What storing the events of a session costs."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from swecli.core.protocol.codec import encode_event
from swecli.core.protocol.events import Event, ItemCheckpointed, ItemCompleted, ItemStarted
from swecli.core.protocol.messages import TextPart
from swecli.core.sessions.database import open_database
from swecli.core.sessions.journal import Journal
from swecli.core.sessions.store import SessionStore

COUNT = 1_000
WORDS = 2_000
PIECES = ((1, "8 words a second"), (25, "50 words a second"), (500, "1,000 words a second"))
"""Words from one checkpoint to the next, and a pace that leads to it. Below 12 words a second, a pause follows each."""


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
    taken = [(f"answer on disk to its text, {pace}", _taken(words), "x") for words, pace in PIECES]
    return [
        *taken,
        ("one fact in one commit", single * 1e3, "ms"),
        ("the same as a ratio to encoding it", single / encoding, "x"),
        ("one fact through the journal, as a ratio to a commit of its own", flow / COUNT / single, "x"),
        ("loading a fact, as a ratio to encoding it", load / loaded / encoding, "x"),
    ]


def _events(session: str, after: int) -> list[Event]:
    body = TextPart("x" * 500)
    return [Event(after + n, 1.0, session, 1, ItemCheckpointed(f"i{n}", body)) for n in range(1, COUNT + 1)]


def _taken(words: int) -> float:
    """How much a database grows by an answer that is stored so many words at a time and then whole, to its text."""
    text = "".join(f"word{number:04} " for number in range(WORDS))
    pieces = [text[begin : begin + 9 * words] for begin in range(0, len(text), 9 * words)]
    bodies = [ItemCheckpointed("a1", TextPart(piece), begins=9 * words * n) for n, piece in enumerate(pieces)]
    with tempfile.TemporaryDirectory() as folder:
        store = SessionStore(open_database(Path(folder) / "sessions.db"))
        session = store.create(folder, "bench/model", "0").id
        before = _bytes(store)
        for seq, body in enumerate(
            [ItemStarted("a1", "text"), *bodies, ItemCompleted("a1", "ok", (TextPart(text),))], 1
        ):
            store.append([Event(seq, 1.0, session, 1, body)])
        grown = _bytes(store) - before
        store.close()
    return grown / len(text)


def _bytes(store: SessionStore) -> int:
    """Bytes of all pages of the database."""
    with store.database.read() as connection:
        ((pages,), (size,)) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
    return pages * size


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
