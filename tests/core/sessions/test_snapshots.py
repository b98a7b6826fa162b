"""The newest snapshot of a session in its database."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from swecli.core.ports import Snapshot, SnapshotError, SnapshotMeasure
from swecli.core.protocol.codec import encode_messages
from swecli.core.protocol.messages import Message, Origin, Response, TextPart, ToolCallPart, ToolResultPart
from swecli.core.sessions.database import Database, open_database
from swecli.core.sessions.schema import MIGRATIONS
from swecli.core.sessions.snapshots import SnapshotStore
from tests.core.sessions.support import fact, open_store

MESSAGES = (
    Message("user", (TextPart("grüß \U0001f600"),), "u1"),
    Message("assistant", (ToolCallPart("c", "peek", "{}"),), "m1", Response(Origin("openai-chat", "p", "m"))),
    Message("tool", (ToolResultPart("c", "peek", "text"),), "m1.results"),
)
SIZES = ((("user", 3),), (("tool calls", 9),), (("tool results", 11),))
SNAPSHOT = Snapshot(MESSAGES, SnapshotMeasure(1_234, 17, "p/m", "HybridCounter", ("a", "b", "c"), SIZES))


def made(path: Path, name: str = "") -> tuple[Database, SnapshotStore]:
    store = open_store(path)
    session = name or store.create("/w", "m", "1").id
    return store.database, SnapshotStore(store.database, session, lambda: 5.0)


def test_what_is_saved_comes_back_and_the_newest_counts(tmp_path: Path) -> None:
    database, store = made(tmp_path / "s.db")
    assert store.get_snapshot() is None
    assert store.save_snapshot(SNAPSHOT) == ""
    assert store.get_snapshot() == SNAPSHOT
    newer = Snapshot(MESSAGES[:1], SnapshotMeasure(20, 30, "p/m", "HybridCounter", ("a",), SIZES[:1]))
    assert store.save_snapshot(newer) == ""
    assert store.get_snapshot() == newer
    assert store.get_measure() == newer.measure
    with database.read() as connection:
        row = connection.execute("SELECT token_count, created_at FROM session_snapshots").fetchall()
    assert row == [(20, 5.0)]


def test_messages_are_compressed_and_those_of_earlier_versions_are_read(tmp_path: Path) -> None:
    database, store = made(tmp_path / "s.db")
    long = Snapshot((Message("user", (TextPart("A line of text.\n" * 1_000),), "u1"),), SNAPSHOT.measure)
    assert store.save_snapshot(long) == ""
    with database.read() as connection:
        ((size,),) = connection.execute("SELECT length(messages) FROM session_snapshots").fetchall()
    assert size < 1_000
    assert store.get_snapshot() == long
    with database.write() as connection:
        connection.execute("UPDATE session_snapshots SET messages = ?", (encode_messages(long.messages),))
    assert store.get_snapshot() == long


def test_a_session_takes_its_snapshot_with_it(tmp_path: Path) -> None:
    database, store = made(tmp_path / "s.db")
    store.save_snapshot(SNAPSHOT)
    with database.write() as connection:
        connection.execute("DELETE FROM sessions")
    assert store.get_snapshot() is None


@pytest.mark.parametrize("column", ["messages", "sizes", "token_count"])
@pytest.mark.parametrize("rubbish", ["[{]", '{"a": 1}', b"\xff\x00"])
def test_a_damaged_one_is_told(tmp_path: Path, column: str, rubbish: str | bytes) -> None:
    database, store = made(tmp_path / "s.db")
    store.save_snapshot(SNAPSHOT)
    with database.write() as connection:
        connection.execute(f"UPDATE session_snapshots SET {column} = ?", (rubbish,))
    with pytest.raises(SnapshotError):
        store.get_snapshot()


def test_a_database_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    database, store = made(tmp_path / "s.db")
    store.save_snapshot(SNAPSHOT)
    with database.write() as connection:
        connection.execute("PRAGMA query_only=ON")
    assert "Cannot store" in store.save_snapshot(SNAPSHOT)
    assert store.get_snapshot() == SNAPSHOT
    database.close()


@pytest.mark.parametrize("with_table", [True, False])
def test_databases_of_before_open(tmp_path: Path, with_table: bool) -> None:
    path = tmp_path / "s.db"
    old = open_database(path, migrations=MIGRATIONS[:1])
    with old.write() as connection:
        if with_table:
            connection.execute(
                "CREATE TABLE session_snapshots (session_id TEXT PRIMARY KEY REFERENCES sessions(id) ON DELETE CASCADE,"
                " messages TEXT NOT NULL, token_count INTEGER NOT NULL, created_at REAL NOT NULL)"
            )
        connection.execute("INSERT INTO sessions VALUES ('x', 't', '/w', 'm', 1, 1, '0', NULL)")
    old.close()
    store = open_store(path)
    assert store.database.durable
    assert [session.id for session in store.list(empty=True)] == ["x"]
    store.append([fact("x", 1)])
    snapshots = SnapshotStore(store.database, "x")
    assert snapshots.save_snapshot(SNAPSHOT) == ""
    assert sqlite3.connect(path).execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
