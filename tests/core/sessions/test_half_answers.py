"""Half answers take little room, are whole wherever they are read, and go once the answer is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.context_management.ledger import Ledger
from swecli.core.protocol.codec import encode_body
from swecli.core.protocol.events import Event, ItemCheckpointed, ItemCompleted, ItemStarted, Notice
from swecli.core.protocol.messages import ReasoningPart, TextPart
from swecli.core.sessions.half_answers import LIMIT, HalfAnswers
from swecli.core.sessions.store import SessionStore
from tests.core.sessions.support import open_store

WORDS = [f"word{number:04} " for number in range(1_500)]
TEXT = "".join(WORDS)


def checkpoints(first: int, words: list[str], agent: str = "main") -> list[Event]:
    """The answer's item and its text, a word each time."""
    bodies: list[ItemStarted | ItemCheckpointed] = [ItemStarted("a1", "text")]
    length = 0
    for word in words:
        bodies.append(ItemCheckpointed("a1", TextPart(word), begins=length))
        length += len(word)
    return [Event(seq, 1.0, "s", 1, body, agent) for seq, body in enumerate(bodies, first)]


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return open_store(tmp_path / "sessions.db")


def begin(store: SessionStore) -> str:
    return store.create("/p", "a/m", "0").id


def told(events: list[Event], session: str) -> list[Event]:
    return [Event(event.seq, event.ts, session, event.turn, event.body, event.agent) for event in events]


def half_text(events: list[Event]) -> str:
    """What a resumed session knows of the open answer."""
    ledger = Ledger()
    for event in events:
        ledger.apply(event)
    part = ledger.open["a1"].part
    return part.text if isinstance(part, TextPart) else ""


def rows(store: SessionStore, session: str) -> list[int]:
    """Characters of the text in each checkpoint that is stored."""
    bodies = [event.body for event in store.load(session) if isinstance(event.body, ItemCheckpointed)]
    return [len(body.part.text) for body in bodies if isinstance(body.part, TextPart | ReasoningPart)]


def bytes_of(store: SessionStore) -> int:
    with store.database.read() as connection:
        pages, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    return pages * size


def test_an_answer_takes_at_most_twice_its_text_whatever_its_pace(store: SessionStore) -> None:
    session = begin(store)
    before = bytes_of(store)
    events = told(checkpoints(1, WORDS), session)
    for event in events:
        store.append([event])
        if event.seq in (2, 700, len(events)):
            assert half_text(store.load(session)) == "".join(WORDS[: event.seq - 1])
    assert len(rows(store, session)) <= 1 + len(TEXT) // (LIMIT - len(WORDS[0]))
    store.append([Event(len(events) + 1, 2.0, session, 1, ItemCompleted("a1", "ok", (TextPart(TEXT),)))])
    assert bytes_of(store) - before <= 2 * len(TEXT)
    assert not any(rows(store, session))
    reports: list[str] = []
    last = store.load(session, reports.append)[-1].body
    assert isinstance(last, ItemCompleted)
    assert last.parts == (TextPart(TEXT),)
    assert not reports
    assert store.loss(session) is None


@pytest.mark.parametrize("before", [0, 1, 10])
def test_events_that_are_stored_again_after_a_failure_change_nothing(store: SessionStore, before: int) -> None:
    session = begin(store)
    events = told(checkpoints(1, WORDS[:40]), session)
    notice = Event(60, 1.0, session, 1, Notice("between"))
    rest = [Event(61 + n, 1.0, session, 1, event.body) for n, event in enumerate(events[20:])]
    whole = Event(99, 1.0, session, 1, ItemCompleted("a1", "ok", (TextPart("".join(WORDS[:40])),)))
    store.append(events[:before])
    for batch in ([*events[before:20], notice, *rest], [*rest[15:], whole]):
        known = store._halves.get(session, HalfAnswers()).copy()
        for _ in range(3):  # the commit was reported as failed, but was none
            store._halves[session] = known.copy()
            store.append(batch)
        reports: list[str] = []
        stored = store.load(session, reports.append)
        assert len(stored) <= 5
        assert not reports
        assert store.loss(session) is None
    assert sum(rows(store, session)) == 0


def test_another_event_ends_a_row_and_what_was_written_elsewhere_is_kept(store: SessionStore) -> None:
    session = begin(store)
    events = told(checkpoints(1, WORDS[:4]), session)
    notice = Event(100, 1.0, session, 1, Notice("something"))
    rest = [Event(101 + n, 1.0, session, 1, event.body) for n, event in enumerate(events[3:])]
    store.append([*events[:3], notice, *rest])
    assert rows(store, session) == [18, 18]
    store.append([Event(200, 1.0, session, 1, ItemCompleted("a1", "interrupted"))])
    assert rows(store, session) == [18, 18], "an answer without its text leaves what there is of it"
    reports: list[str] = []
    assert [event.seq for event in store.load(session, reports.append)] == [1, 2, 100, 101, 200]
    assert not reports


def test_a_text_that_ends_otherwise_keeps_its_rows(store: SessionStore) -> None:
    session = begin(store)
    store.append(told(checkpoints(1, WORDS[:4]), session))
    store.append([Event(50, 1.0, session, 1, ItemCompleted("a1", "error", (TextPart("other"),)))])
    assert rows(store, session) == [36]


def test_a_grown_row_comes_back_into_a_store_that_was_replaced(store: SessionStore, tmp_path: Path) -> None:
    session = begin(store)
    events = told(checkpoints(1, WORDS[:30]), session)
    store.append([*events[:20], Event(50, 1.0, session, 1, Notice("between"))])
    with store.database.write() as connection:  # as another program might
        connection.execute("DELETE FROM events WHERE seq = 50")
        shorter = encode_body(events[1].body)
        connection.execute("UPDATE events SET body = ? WHERE type = 'item_checkpointed'", (shorter,))
    store.append([Event(51 + n, 1.0, session, 1, event.body) for n, event in enumerate(events[20:])])
    assert half_text(store.load(session)) == "".join(WORDS[:30])
