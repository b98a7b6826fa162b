from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest

from swecli.core.protocol.events import CompactionCompleted, Event, ItemCompleted, StepEnded, Unknown
from swecli.core.protocol.messages import TextPart, Usage
from swecli.core.sessions.store import UNREADABLE, SessionError, SessionStore, new_session_id
from swecli.core.sessions.titles import TITLE_LENGTH
from swecli.core.workspace.process_tree import Process
from tests.core.sessions.support import delta, fact, open_store, user_turn

DEAD = Process(2**22 + 17, "1")


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return open_store(tmp_path / "sessions.db")


def test_ids_sort_by_time_and_differ() -> None:
    now = datetime(2025, 10, 7, 14, 30, 45)
    source = random.Random(1)
    ids = {new_session_id(now, source) for _ in range(100)}
    assert len(ids) > 95
    assert all(re.fullmatch(r"2025-10-07-14-30-45-[0-9a-z]{4}", name) for name in ids)


def test_two_sessions_of_one_second_get_two_ids(tmp_path: Path) -> None:
    class Stuck(random.Random):
        answers = iter(["aaaa", "aaaa", "bbbb"])

        def choices(self, *args: object, **kwargs: object) -> list[str]:  # type: ignore[override]
            return list(next(self.answers))

    database = open_store(tmp_path / "s.db").database
    store = SessionStore(database, clock=lambda: 1.0, random=Stuck())
    assert store.create("/w", "m", "1").id.endswith("aaaa")
    assert store.create("/w", "m", "1").id.endswith("bbbb")


def test_what_was_appended_is_loaded(store: SessionStore) -> None:
    session = store.create("/w", "fake/m", "1.0")
    events = [*user_turn(session.id, 1, "Fix  the\nbug \udcff please"), fact(session.id, 7, "später \u2028 \x00 text")]
    store.append(events)
    loaded = store.load(session.id)
    assert loaded[0] == events[0]
    assert loaded[1].body == ItemCompleted("u1", "ok", (TextPart("Fix  the\nbug \ufffd please"),))
    assert loaded[2:] == events[2:]
    assert store.last_seq(session.id) == 7
    assert store.get(session.id).title == "Fix the bug ? please"
    assert store.get(session.id).turns == 1
    assert store.load("nothing") == []
    assert store.last_seq("nothing") == 0


def test_the_first_message_is_the_title(store: SessionStore) -> None:
    session = store.create("/w", "m", "1").id
    store.append(user_turn(session, 1, "first " * 40))
    store.append(user_turn(session, 4, "second"))
    title = store.get(session).title
    assert title.startswith("First first")
    assert title.endswith("first…")
    assert len(title) <= TITLE_LENGTH
    assert store.get(session).first.startswith("first first")


def test_events_of_a_later_version_survive(store: SessionStore) -> None:
    session = store.create("/w", "m", "1").id
    later = Event(1, 5.0, session, 2, Unknown("hologram", {"type": "hologram", "depth": [1, {"x": None}]}), "sub-1", 9)
    store.append([later])
    assert store.load(session) == [later]


def test_unreadable_rows_keep_their_place_and_are_named(store: SessionStore) -> None:
    session = store.create("/w", "m", "1").id
    store.append([fact(session, seq) for seq in range(1, 7)])
    with store.database.write() as connection:
        for seq, body in ((2, "{"), (3, '{"type":"notice"}'), (4, b"\xff\xfe{"), (5, '{"no":"type"}')):
            connection.execute(
                "UPDATE events SET body = CAST(? AS TEXT) WHERE session_id = ? AND seq = ?", (body, session, seq)
            )
    reports: list[str] = []
    loaded = store.load(session, reports.append)
    assert [event.seq for event in loaded] == [1, 2, 3, 4, 5, 6]
    assert [event.seq for event in loaded if event.body == Unknown(UNREADABLE, {"type": UNREADABLE})] == [2, 3, 4, 5]
    (report,) = reports
    assert session in report
    assert "event 2" in report
    assert "1 more" in report


def test_storing_the_same_again_is_nothing_and_another_content_is_refused(store: SessionStore) -> None:
    session = store.create("/w", "m", "1").id
    store.append([fact(session, 1, "a"), fact(session, 2, "b")])
    store.append([fact(session, 1, "a"), fact(session, 2, "b"), fact(session, 3, "c")])
    assert store.last_seq(session) == 3
    with pytest.raises(SessionError, match="other content"):
        store.append([fact(session, 4, "d"), fact(session, 1, "other")])
    assert store.last_seq(session) == 3


def test_facts_that_matter_after_a_power_cut_are_stored_like_others(store: SessionStore) -> None:
    session = store.create("/w", "m", "1").id
    body = CompactionCompleted("c", (), 10, 5, 4, 2, ("clear",))
    store.append([Event(1, 1.0, session, 1, body)])
    assert store.load(session)[0].body == body


def test_sessions_are_listed_newest_first_and_empty_ones_are_not(store: SessionStore) -> None:
    ids = [store.create("/w", "m", "1").id for _ in range(3)]
    now = store.get(ids[0]).updated
    store.append(user_turn(ids[0], 1, "old", ts=now + 10))
    store.append(user_turn(ids[1], 1, "new", ts=now + 20))
    assert [s.id for s in store.list()] == [ids[1], ids[0]]
    assert [s.id for s in store.list(limit=1)] == [ids[1]]
    assert {s.id for s in store.list(empty=True)} == set(ids)
    store.append([fact(ids[0], 9, ts=now + 30)])
    assert store.list()[0].id == ids[0]


def test_a_session_from_the_future_is_not_the_newest(store: SessionStore) -> None:
    ids = [store.create("/w", "m", "1").id for _ in range(2)]
    now = time.time()
    store.append(user_turn(ids[0], 1, "while the clock was wrong", ts=now + 864_000))
    store.append(user_turn(ids[1], 1, "the next day", ts=now))
    assert [s.id for s in store.list()] == [ids[1], ids[0]]
    newest = store.latest()
    assert newest is not None
    assert newest.id == ids[1]
    store.append([fact(ids[0], 9, ts=now + 5)])
    assert [s.id for s in store.list()] == ids
    assert store.list()[0].updated == pytest.approx(now + 5)


def test_a_session_is_found_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s.db")
    a, b = (SessionStore(store.database, clock=lambda at=at: at).create("/w", "m", "1").id for at in (1e9, 1.1e9))
    assert store.get(a[:8]).id == a
    assert store.get(b).id == b
    with pytest.raises(SessionError, match=rf"^Ambiguous id '20' \({b}, {a}\): add more characters\.$"):
        store.get("20")
    for name in ("1999", "", "%", "20%", a + "x", "\udcff"):
        with pytest.raises(SessionError, match="No session"):
            store.get(name)


def test_a_session_is_open_in_one_process_only(tmp_path: Path) -> None:
    mine = open_store(tmp_path / "s.db")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        other_process = Process(child.pid, Process(child.pid, "").started)
        other = open_store(tmp_path / "s.db", other_process)
        session = mine.create("/w", "m", "1").id
        mine.append(user_turn(session, 1, "hello"))
        with pytest.raises(SessionError, match=str(os.getpid())):
            other.lease(session)
        assert other.latest() is None
        latest = mine.latest()
        assert latest is not None
        assert latest.id == session
        mine.lease(session)
        mine.release(session)
        other.lease(session)
        mine.release(session)
        with pytest.raises(SessionError, match="open in another"):
            mine.lease(session)
        child.kill()
        child.wait()
    mine.lease(session)
    assert mine.holder(session) is None
    with pytest.raises(SessionError, match="No session"):
        mine.lease("missing")


def test_the_lease_of_a_dead_or_reused_process_is_void(tmp_path: Path) -> None:
    reused = Process(os.getpid(), "long ago")
    for number, ghost in enumerate((DEAD, reused)):
        dead = open_store(tmp_path / f"{number}.db", ghost)
        session = dead.create("/w", "m", "1").id
        dead.append(user_turn(session, 1, "hello"))
        mine = open_store(tmp_path / f"{number}.db")
        assert mine.holder(session) is None
        latest = mine.latest()
        assert latest is not None
        assert latest.id == session
        mine.lease(session)
        with pytest.raises(SessionError):
            open_store(tmp_path / f"{number}.db", DEAD).lease(session)


def test_a_process_knows_itself() -> None:
    me = Process.current()
    assert me.alive
    assert me == Process.current()
    assert not DEAD.alive
    assert not Process(2**70, "").alive


def test_deltas_are_events_like_others_for_the_codec(store: SessionStore) -> None:
    session = store.create("/w", "m", "1").id
    store.append([delta(session, 1)])
    assert store.load(session) == [delta(session, 1)]


def test_sums_beyond_what_the_database_can_hold_do_not_prevent_storing(store: SessionStore) -> None:
    session = store.create("/x", "p/m", "1").id
    usage = Usage(input_total=10**25, output_total=1)
    store.append([*user_turn(session, 1, "text"), Event(4, 1.0, session, 1, StepEnded(1, usage))])
    stored = store.load(session)[-1].body
    assert isinstance(stored, StepEnded)
    assert stored.usage == usage
    assert store.get(session).tokens == 0
