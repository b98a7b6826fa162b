"""The index over what was said in all sessions."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from swecli.core.protocol.events import Event, ItemCheckpointed, ItemCompleted, ItemStarted
from swecli.core.protocol.messages import ToolCallPart, ToolResultPart
from swecli.core.sessions import search
from swecli.core.sessions.search import FILE, BackgroundIndex, SearchIndex, refresh, searched
from swecli.core.sessions.store import SessionStore
from tests.core.sessions.support import open_store, user_turn
from tests.support.waiting import wait_until


def said(store: SessionStore, text: str, at: int = 1) -> str:
    session = store.create("/w", "m", "1").id
    store.append(user_turn(session, at, text))
    return session


def ids(path: Path, words: str) -> set[str]:
    return {one.session for one in searched(path, words)}


def test_sessions_are_found_by_words_beginnings_and_signs(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(open_store(path)) as store:
        login = said(store, "Fix the Login of the café in auth_view.py")
        other = said(store, "日本語のログインを修正")
        store.append(
            [
                Event(9, 1.0, other, 1, ItemStarted("t1", "tool", "run_command")),
                Event(
                    10, 1.0, other, 1, ItemCheckpointed("t1", ToolCallPart("t1", "run_command", '{"command":"make"}'))
                ),
                Event(
                    11, 1.0, other, 1, ItemCompleted("t1", "ok", (ToolResultPart("t1", "run_command", "done well"),))
                ),
            ]
        )
        assert ids(path, "login caf") == {login}
        assert ids(path, "cafe") == {login}
        assert ids(path, "auth_view.py") == {login}
        assert ids(path, "ログイン") == {other}
        assert ids(path, "make") == ids(path, "well") == {other}
        assert ids(path, "login nothing") == set()
        for odd in ("", '"', "* OR (", "a AND NOT b", "\x00", "\udcff"):
            searched(path, odd)
        (found,) = searched(path, "login café")
        assert "Login of the café" in found.text


def test_it_follows_what_is_added_and_deleted(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(open_store(path)) as store:
        first, second = said(store, "alpha"), said(store, "alpha too")
        assert ids(path, "alpha") == {first, second}
        store.append(user_turn(first, 20, "omega"))
        assert ids(path, "omega") == {first}
        store.release(first)
        store.delete([first])
        assert ids(path, "alpha") == {second}


def test_a_damaged_one_is_made_anew_and_none_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(open_store(path)) as store:
        session = said(store, "alpha")
        refresh(path)
        index = path.with_name(FILE)
        assert index.stat().st_mode & 0o777 == 0o600
        assert SearchIndex.sound(index)
        for damage in (b"nonsense" * 1000, b"", index.read_bytes()[:5000]):
            index.write_bytes(damage)
            assert ids(path, "alpha") == {session}
        index.unlink()
        index.mkdir()  # where it can't be written, one in memory does
        assert ids(path, "alpha") == {session}


def test_what_is_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(open_store(path)) as store:
        session = store.create("/w", "m", "1").id
        for number in range(300):
            store.append(user_turn(session, 1 + 3 * number, f"word{number}"))
    refresh(path, lambda: True)
    refresh(path, iter([False, True]).__next__)
    with closing(sqlite3.connect(path.with_name(FILE))) as connection:
        count = connection.execute("SELECT count(*) FROM said").fetchone()[0]
    assert 0 < count < 300
    assert ids(path, "word299") == {session}
    with closing(sqlite3.connect(path.with_name(FILE))) as connection:
        assert connection.execute("SELECT count(*) FROM said").fetchone()[0] == 300


def test_the_shown_part_is_around_the_word_whatever_letters_precede_it(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(open_store(path)) as store:
        said(store, "İstanbul " * 400 + "then the Needle " + "and more " * 400)
        (found,) = searched(path, "needle")
        assert "the Needle and" in found.text


def reached(path: Path) -> int:
    """How many sessions the index has."""
    with closing(SearchIndex(path.with_name(FILE))) as index:
        return len(index._connection.execute("SELECT session FROM reached").fetchall())


def test_a_session_indexes_the_others_beside_its_work(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(open_store(path)) as store:
        for number in range(30):
            said(store, f"word{number}", at=number)
        beside = BackgroundIndex(path, first=0.0, pause=0.0)
        wait_until(lambda: reached(path) == 30, lambda: "waiting for the index")
        said(store, "while it runs")
        beside.end()
        assert len(ids(path, "word7")) == 1


def test_it_tries_again_after_another_process_was_at_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sessions.db"
    attempts = 0
    prepared = SearchIndex._prepared

    def busy_at_first(index: SearchIndex) -> sqlite3.Connection:
        nonlocal attempts
        attempts += 1
        if attempts < 3:
            raise sqlite3.OperationalError("database is locked")
        return prepared(index)

    with closing(open_store(path)) as store:
        said(store, "word")
        monkeypatch.setattr(search, "_AGAIN", (0.0, 0.0))
        monkeypatch.setattr(SearchIndex, "_prepared", busy_at_first)
        beside = BackgroundIndex(path, first=0.0, pause=0.0)
        wait_until(lambda: not beside._thread.is_alive())
        assert attempts == 3
        assert reached(path) == 1


def test_its_end_waits_for_no_pause(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(open_store(path)) as store:
        for number in range(30):
            said(store, f"word{number}", at=number)
        waiting = BackgroundIndex(path)
        waiting.end()
        assert not path.with_name(FILE).exists()
        pausing = BackgroundIndex(path, first=0.0, pause=1e6)
        wait_until(lambda: path.with_name(FILE).exists(), lambda: "waiting for the first portion")
        pausing.end()
        assert reached(path) < 30
        pausing.end()
