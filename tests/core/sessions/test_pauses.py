"""The pauses between the turns of stored sessions."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from swecli.core.protocol.events import Event, TurnEnded
from swecli.core.sessions.pauses import read_pauses
from tests.core.sessions.support import open_store, user_turn


def test_pauses_are_those_between_two_turns_of_a_session(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(open_store(path)) as store:
        for start in (0.0, 50_000.0):
            session = store.create("/p", "m", "1").id
            store.append(
                [
                    *user_turn(session, 1, "one", ts=start + 100),
                    Event(4, start + 160, session, 1, TurnEnded("done")),
                    *user_turn(session, 5, "two", ts=start + 500),
                    Event(8, start + 520, session, 2, TurnEnded("done")),
                    *user_turn(session, 9, "three", ts=start + 4520),
                ]
            )
    assert sorted(read_pauses([path])) == [340.0, 340.0, 4000.0, 4000.0]


def test_what_can_not_be_read_counts_as_empty(tmp_path: Path) -> None:
    (tmp_path / "broken.db").write_bytes(b"no database, but long enough to be looked at" * 50)
    assert read_pauses([tmp_path / "broken.db", tmp_path / "missing.db"]) == []
    assert not (tmp_path / "missing.db").exists()
