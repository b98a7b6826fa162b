"""Names, forks, deletion and retention of sessions; the health of their database."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from swecli.assembly.session_list import DAY, Retention, expired
from swecli.core.protocol.events import Event, StepEnded
from swecli.core.protocol.messages import Usage
from swecli.core.sessions.health import Recovered, health_of, quarantined, recover, shrink
from swecli.core.sessions.results import ResultStore
from swecli.core.sessions.store import SessionError, SessionInfo, SessionStore
from tests.core.sessions.support import open_store, user_turn

NOW = 1_700_000_000.0


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return open_store(tmp_path / "sessions.db")


def used(store: SessionStore, text: str) -> str:
    session = store.create("/w", "m", "1").id
    store.append([*user_turn(session, 1, text), Event(9, 1.0, session, 1, StepEnded(1, Usage(input_total=7), "0.25"))])
    return session


def test_a_name_finds_a_session_and_belongs_to_one(store: SessionStore) -> None:
    one, two = used(store, "first"), used(store, "second")
    assert store.rename(one, "  The\nlogin  fix ") == "The login fix"
    assert store.get("the LOGIN fix").id == one
    assert store.get("the log").id == one
    assert store.get(one).shown == "The login fix"
    with pytest.raises(SessionError, match="already"):
        store.rename(two, "the login FIX")
    with pytest.raises(SessionError, match="'--fork' would be read as an option"):
        store.rename(one, "--fork")
    store.rename(one, "Ärger")
    with pytest.raises(SessionError, match="already"):
        store.rename(two, "ärger")
    assert store.get("äRGER").id == one
    store.rename(one, "")
    assert store.get(one).shown == "First"
    assert len(store.rename(two, "x" * 500)) == 80
    store.rename(one, one)  # an id always means the session that has it
    assert store.get(one).id == one


def test_a_fork_has_all_and_leaves_its_parent_alone(store: SessionStore) -> None:
    parent = used(store, "first")
    ref = ResultStore(store.database, parent).put("run_command", b"a large result").id
    fork = store.fork(parent, "2")
    assert (fork.parent, fork.turns, fork.tokens, fork.cost, fork.title) == (parent, 1, 7, "0.25", "First")
    assert [event.body for event in store.load(fork.id)] == [event.body for event in store.load(parent)]
    store.append(user_turn(fork.id, 20, "only here"))
    assert store.get(parent).turns == 1
    assert ResultStore(store.database, fork.id).get(ref) == b"a large result"
    for one in (parent, fork.id):
        store.release(one)
    store.delete([parent])
    assert [one.id for one in store.list()] == [one.id for one in store.list(empty=True)] == [fork.id]
    with pytest.raises(SessionError, match="No session"):
        store.get(parent)
    assert ResultStore(store.database, fork.id).get(ref) == b"a large result"
    store.delete([fork.id])
    with store.database.read() as connection:
        assert connection.execute("SELECT count(*) FROM sessions").fetchone()[0] == 0
        assert connection.execute("SELECT count(*) FROM tool_result_blobs").fetchone()[0] == 0


def test_a_fork_of_a_fork_keeps_its_results(store: SessionStore) -> None:
    first = used(store, "first")
    ref = ResultStore(store.database, first).put("run_command", b"a large result").id
    second = store.fork(first, "2").id
    third = store.fork(second, "2").id
    for one in (first, second, third):
        store.release(one)
    store.delete([second])
    assert ResultStore(store.database, third).get(ref) == b"a large result"
    store.delete([first])
    assert ResultStore(store.database, third).get(ref) == b"a large result"
    assert [one.id for one in store.list()] == [third]
    store.delete([third])
    with store.database.read() as connection:
        assert connection.execute("SELECT count(*) FROM sessions").fetchone()[0] == 0


def test_an_open_session_is_not_deleted(store: SessionStore) -> None:
    one, two = used(store, "first"), used(store, "second")
    store.release(one)
    with pytest.raises(SessionError, match=f"{two} is open"):
        store.delete([one, two])
    assert len(store.list()) == 2


def info(number: int, days: float, size: int = 100) -> SessionInfo:
    return SessionInfo(f"s{number}", "t", "/w", "m", 0, NOW - days * DAY, "1", None, 1, size=size)


def test_rules_take_the_oldest_and_nothing_that_is_young_or_open() -> None:
    sessions = [info(1, 400), info(2, 100), info(3, 29.9), info(4, 31), info(5, -50)]

    def gone(rules: Retention, held: tuple[str, ...] = ()) -> list[str]:
        return [one.session.id for one in expired(sessions, rules, NOW, held)]

    assert gone(Retention()) == []
    assert gone(Retention(older_than=90)) == ["s1", "s2"]
    assert gone(Retention(older_than=0)) == ["s1", "s2", "s4"]
    assert gone(Retention(older_than=0, protected=0)) == ["s1", "s2", "s4", "s3"]
    assert gone(Retention(total=350)) == ["s1", "s2"]
    assert gone(Retention(total=0)) == ["s1", "s2", "s4"]
    assert gone(Retention(older_than=90), ("s1",)) == ["s2"]
    sessions[0] = replace(sessions[0], size=10_000)
    assert gone(Retention(total=400)) == ["s1"]


def test_the_health_of_a_database_is_told_and_space_given_back(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(open_store(path)) as store:
        names = [used(store, "x" * 100_000) for _ in range(100)]
        for name in names:
            store.release(name)
        store.delete(names[1:])
    health = health_of(path)
    assert (health.sessions, health.damage, health.trouble, health.wasteful) == (1, "", "", True)
    assert shrink(path) > 8_000_000
    assert not health_of(path).wasteful
    assert open_store(path).list()[0].id == names[0]
    with path.open("r+b") as file:
        file.seek(0)
        file.write(b"nonsense" * 20)
    assert health_of(path).damage
    assert health_of(tmp_path / "missing.db").trouble


def test_a_database_without_tables_holds_no_session(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    for size in (path.stat().st_size, 0):  # a full disk stops a first start before or after this
        os.truncate(path, size)
        health = health_of(path)
        assert (health.sessions, health.damage, health.trouble) == (0, "", "")


def test_what_a_session_did_beside_the_database_is_counted(tmp_path: Path) -> None:
    path, aside = tmp_path / "sessions.db", tmp_path / "sessions.db.corrupt-1"
    with closing(open_store(path)) as store:
        session = used(store, "begun")
    shutil.copy(path, aside)
    with closing(open_store(aside)) as store:
        store.append(user_turn(session, 10, "Go on"))
    assert recover(path, aside) == Recovered(found=1, added=0, grown=1)
    assert recover(path, aside) == Recovered(found=1, added=0)
    with closing(open_store(path)) as store:
        assert max(event.seq for event in store.load(session)) == 12


def test_what_was_put_aside_is_brought_over(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(open_store(path)) as store:
        lost = used(store, "lost")
    os.rename(path, tmp_path / "sessions.db.corrupt-1")
    with closing(open_store(path)) as store:
        kept = used(store, "kept")
    (aside,) = quarantined(path)
    assert recover(path, aside) == Recovered(found=1, added=1)
    assert recover(path, aside) == Recovered(found=1, added=0)
    with closing(open_store(path)) as store:
        assert {one.id for one in store.list()} == {lost, kept}
    assert aside.exists()
    assert not list(tmp_path.glob("*.fresh-*"))


def test_what_a_newer_swecli_wrote_is_neither_shrunk_nor_recovered_into(tmp_path: Path) -> None:
    path, aside = tmp_path / "sessions.db", tmp_path / "sessions.db.corrupt-1"
    with closing(open_store(aside)) as store:
        used(store, "lost")
    open_store(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE later(x); PRAGMA user_version=99")
    with pytest.raises(sqlite3.Error, match="a newer swecli wrote it"):
        shrink(path)
    with pytest.raises(sqlite3.Error, match="a newer swecli wrote it"):
        recover(path, aside)


def test_what_is_missing_after_a_recovery_is_told(tmp_path: Path) -> None:
    path, aside = tmp_path / "sessions.db", tmp_path / "sessions.db.corrupt-1"
    with closing(open_store(path)) as store:
        torn, whole = used(store, "torn"), used(store, "whole")
        with store.database.write() as connection:
            connection.execute("DELETE FROM events WHERE session_id = ? AND seq = 1", (torn,))
    os.rename(path, aside)
    open_store(path).close()
    found = recover(path, aside)
    assert (found.found, found.added, [one.session for one in found.lost]) == (2, 2, [torn])
    with closing(open_store(path)) as store:
        assert {one.id for one in store.list()} == {torn, whole}
    aside.write_bytes(b"nonsense" * 2_000)
    assert recover(path, aside) == Recovered(found=0, added=0)
