"""A damaged file never locks its folder out: it is named, and what can be read of it goes on."""

from __future__ import annotations

import errno
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from swecli.core.atomic_text import name_aside
from swecli.core.protocol.events import Unknown
from swecli.core.sessions.damage import is_damage, require_no_disk_error
from swecli.core.sessions.database import open_database, read_only
from swecli.core.sessions.losses import losses
from swecli.core.sessions.rescue import rows
from swecli.core.sessions.results import ResultStore
from swecli.core.sessions.schema import MIGRATIONS
from swecli.core.sessions.store import UNREADABLE, SessionStore
from swecli.core.workspace.process_tree import Process
from tests.core.sessions.support import fact, open_store, user_turn

PAGE = 4096
EXAMPLES = int(os.environ.get("SWECLI_EXAMPLES", "25"))
"""From 500 on (``make soak``) every bit of the first page is flipped, else a sample."""
LENGTH = 59


def written(path: Path, sessions: int = 3) -> list[str]:
    """Closed sessions of ``LENGTH`` facts each, some of them longer than a page."""
    store = open_store(path)
    names: list[str] = []
    for number in range(sessions):
        name = store.create("/w", "fake/m", "1").id
        store.append(user_turn(name, 1, f"title {number}"))
        store.append([fact(name, seq, "x" * (9_000 if seq % 20 == 0 else 30)) for seq in range(4, LENGTH + 1)])
        store.release(name)
        names.append(name)
    store.close()
    return names


def read(path: Path) -> tuple[tuple[str, ...], dict[str, int]]:
    """What a start says, and how many events of each session it lists can be read; one of them is taken, and a new one
    is written."""
    database = open_database(path)
    with closing(SessionStore(database)) as store:
        found = {
            session.id: sum(event.body != Unknown(UNREADABLE, {"type": UNREADABLE}) for event in store.load(session.id))
            for session in store.list()
        }
        newest = store.latest()
        if newest is not None:
            store.lease(newest.id)
        new = store.create("/w", "fake/m", "1").id
        store.append(user_turn(new, 1, "new"))
        assert database.durable, database.problems
    return database.problems, found


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def sweep(folder: Path, bits: list[int]) -> list[tuple[int, dict[str, int], tuple[str, ...]]]:
    """Every start after one bit was flipped."""
    written(folder / "sound.db")
    sound = (folder / "sound.db").read_bytes()
    ends: list[tuple[int, dict[str, int], tuple[str, ...]]] = []
    for bit in bits:
        place = folder / "one"
        place.mkdir()
        (place / "s.db").write_bytes(flipped(sound, bit))
        problems, found = read(place / "s.db")
        ends.append((bit, found, problems))
        shutil.rmtree(place)
    return ends


def test_no_bit_of_the_first_page_locks_the_folder_out(tmp_path: Path) -> None:
    source = random.Random(7)
    tail = range(100 * 8, PAGE * 8)
    header = [source.randrange(8) + 8 * byte for byte in range(100)]
    bits = list(range(PAGE * 8)) if EXAMPLES >= 500 else [*header[::4], 18 * 8 + 3, *source.sample(tail, 25)]
    bits = [bit for bit in bits if not 62 * 8 <= bit < 64 * 8]  # a few of the version look like a later one
    ends = sweep(tmp_path, bits)
    assert len(ends) == len(bits)
    assert [end for end in ends if list(end[1].values()) != [LENGTH] * 3] == []
    assert any(problems for _, _, problems in ends)
    assert [p for _, _, (p, *_) in (end for end in ends if end[2]) if "3 sessions with 177 events" not in p] == []


def test_bits_of_other_pages_cost_at_most_what_they_held(tmp_path: Path) -> None:
    source = random.Random()
    size = 20 * PAGE * 8
    ends = sweep(tmp_path, [source.randrange(PAGE * 8, size) for _ in range(20 if EXAMPLES < 500 else 2_000)])
    assert [end for end in ends if sum(end[1].values()) < LENGTH * 2] == []


def test_sessions_that_lost_events_are_named_with_how_many_are_left(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    names = written(path, 5)
    with closing(open_store(path)) as store:
        assert [store.loss(name) for name in names] == [None] * 5
        with store.database.write() as connection:
            connection.execute("DELETE FROM events WHERE session_id = ? AND seq BETWEEN 10 AND 19", (names[0],))
            connection.execute("DELETE FROM events WHERE session_id = ? AND seq > 40", (names[1],))
            connection.execute("DELETE FROM events WHERE session_id = ?", (names[2],))
    path.write_bytes(b"\xff" * 100 + path.read_bytes()[100:])
    database = open_database(path)
    with closing(SessionStore(database)) as store:
        (problem,) = database.problems
        assert f"{names[0]} (Title 0): 49 of at least 59 events are left" in problem
        assert f"{names[1]} (Title 1): 40 events are left of an unknown number" in problem
        assert f"{names[2]} (Title 2): no events are left" in problem
        assert names[3] not in problem
        assert names[4] not in problem
        assert str(store.loss(names[0])) == "49 of at least 59 events are left"
        assert store.loss(names[3]) is None
        with store.database.read() as connection:
            assert {one.session for one in losses(connection)} == set(names[:2])


def test_a_read_error_of_the_disk_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.db"
    names = written(path)
    damaged = bytearray(path.read_bytes())
    damaged[100:200] = bytes(100)  # SQLite calls a page malformed that it could not read
    path.write_bytes(damaged)

    def failing(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr("swecli.core.sessions.database._require_readable", failing)
        database = open_database(path)
        assert not database.durable
        database.close()
    (problem,) = database.problems
    assert "Input/output error; check the disk; the file is unchanged" in problem
    assert path.read_bytes() == damaged
    assert [file.name for file in tmp_path.iterdir()] == ["s.db"]
    assert read(path)[1].keys() == set(names)


def test_a_page_that_the_disk_did_not_give_is_told_from_a_damaged_one() -> None:
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        require_no_disk_error("*** in database main ***\nPage 7: unable to get the page. error code=8458")
    assert require_no_disk_error("*** in database main ***\nPage 7: never used. error code=11") is None
    assert is_damage(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"))


def test_what_another_process_mended_meanwhile_is_used(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    names = written(path)
    path.write_bytes(flipped(path.read_bytes(), 0))
    assert read(path)[1].keys() == set(names)
    problems, found = read(path)
    assert problems == ()
    assert len(found) == len(names) + 1


def rewritten(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize("table", ["events", "sessions", "leases", "tool_result_blobs"])
def test_a_missing_table_is_named_and_the_rest_is_kept(tmp_path: Path, table: str) -> None:
    path = tmp_path / "s.db"
    names = written(path)
    rewritten(path, f"DELETE FROM sqlite_master WHERE tbl_name = '{table}'")
    problems, found = read(path)
    assert f"(the table {table} is missing)" in problems[0]
    assert found == dict.fromkeys(reversed(names), LENGTH)


def test_sessions_without_their_rows_are_made_again_from_their_events(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    names = written(path)
    rewritten(path, "PRAGMA foreign_keys=OFF", "DELETE FROM sessions", "DROP TABLE leases")
    assert read(path)[1] == dict.fromkeys(reversed(names), LENGTH)
    with closing(open_store(path)) as store:
        assert store.get(names[1]).title == "Title 1"


@pytest.mark.parametrize("moved", [("",), ("", "-wal"), ("", "-wal", "-shm")])
def test_a_repair_that_a_kill_ended_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: tuple[str, ...]
) -> None:
    path = tmp_path / "s.db"
    names = written(path)
    content = path.read_bytes()
    path.write_bytes(content[:60] + bytes(4) + content[64:])

    def killed(path: Path) -> Path:
        target = name_aside(path)
        for suffix in ("-wal", "-shm"):
            Path(f"{path}{suffix}").write_bytes(b"of the damaged one")
        for suffix in moved:
            Path(f"{path}{suffix}").rename(f"{target}{suffix}")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("swecli.core.sessions.database._move_aside", killed)
        with pytest.raises(KeyboardInterrupt):
            open_database(path)
    assert not path.exists()
    (aside,) = (one for one in tmp_path.glob("s.db.corrupt-*") if not one.name.endswith(("-wal", "-shm")))
    problems, found = read(path)
    assert found == dict.fromkeys(names, LENGTH)
    assert str(aside) in problems[0]
    assert "complete now" in problems[0]
    assert not [*tmp_path.glob("s.db.fresh-*")]
    assert read(path)[0] == ()


def test_the_results_of_a_deleted_session_are_kept_for_its_fork(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = open_store(path)
    first = store.create("/w", "fake/m", "1").id
    store.append(user_turn(first, 1, "title"))
    ref = ResultStore(store.database, first).put("run_command", b"a large result").id
    second = store.fork(first, "2").id
    third = store.fork(second, "2").id
    for one in (first, second, third):
        store.release(one)
    store.delete([first, second])
    store.close()
    content = path.read_bytes()
    path.write_bytes(content[:60] + bytes(4) + content[64:])
    database = open_database(path)
    assert "1 session with 3 events" in database.problems[0]
    with closing(SessionStore(database)) as store:
        assert [one.id for one in store.list()] == [third]
        assert ResultStore(database, third).get(ref) == b"a large result"


def test_rows_that_are_only_in_the_log_are_read(tmp_path: Path) -> None:
    live = open_store(tmp_path / "live.db")
    name = live.create("/w", "m", "1").id
    live.append(user_turn(name, 1, "title"))
    live.append([fact(name, seq, "y" * 6_000) for seq in range(4, 30)])
    path = tmp_path / "s.db"
    shutil.copy(tmp_path / "live.db-wal", tmp_path / "s.db-wal")
    path.write_bytes(b"\xff" * 100 + (tmp_path / "live.db").read_bytes()[100:])
    with live.database.read() as connection:
        stored = connection.execute("SELECT seq, body FROM events ORDER BY seq").fetchall()
    live.close()
    found = {row.values[1]: row.values[7] for row in rows(path) if row.values[0] == name and len(row.values) == 9}
    assert sorted(found.items()) == stored
    assert len(stored) == 29


def test_a_version_that_its_tables_do_not_have_is_damage(tmp_path: Path) -> None:
    for version in (0, 2**20):
        path = tmp_path / f"{version}.db"
        names = written(path, 1)
        rewritten(path, f"PRAGMA user_version={version}")
        problems, found = read(path)
        assert "version" in problems[0]
        assert found == {names[0]: LENGTH}


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE sessions SET title = CAST(x'66ff78' AS TEXT), updated = 9e300, created = 'x'",
        "UPDATE leases SET pid = 'x'; INSERT OR REPLACE INTO leases SELECT id, 'x', '', 1 FROM sessions",
        "UPDATE events SET type = 'hologram' WHERE type = 'turn_started'",
        "UPDATE events SET body = '{\"type\":\"hologram\"}' WHERE type = 'turn_started'",
        "UPDATE events SET turn = 'x', agent = CAST(x'ff' AS TEXT) WHERE seq = 2",
        "UPDATE sessions SET title = ''",
    ],
)
def test_one_bad_row_hides_no_session(tmp_path: Path, change: str) -> None:
    path = tmp_path / "s.db"
    names = written(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(change)
    problems, found = read(path)
    assert problems == ()
    assert found.keys() == set(names)
    assert min(found.values()) >= LENGTH - 1


def test_a_gap_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    (name,) = written(path, 1)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM events WHERE seq IN (1, 20, 21, 22)")
    told: list[str] = []
    with closing(open_store(path)) as store:
        events = store.load(name, told.append)
        store.append([fact(name, LENGTH + 5)])  # deltas came in between: no gap
        again: list[str] = []
        assert len(store.load(name, again.append)) == len(events) + 1
    assert "1 missing after event 0; 3 missing after event 19" in told[0]
    assert again == told
    assert [event.seq for event in events if isinstance(event.body, Unknown)] == [1, 22]


def test_facts_of_an_older_version_have_no_gap(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with closing(SessionStore(open_database(path, migrations=MIGRATIONS[:2]))) as store, store.database.write() as old:
        old.execute("INSERT INTO sessions(id, cwd, model, created, updated, swecli) VALUES ('a', '', '', 1, 1, '')")
        for seq in (1, 5, 9):
            row = ("a", seq, 1.0, 1, "main", 1, "x", '{"type":"x"}')
            old.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    with closing(open_store(path)) as store:
        store.append([fact("a", 12), fact("a", 15)])
        told: list[str] = []
        assert [event.seq for event in store.load("a", told.append)] == [1, 5, 9, 12, 15]
    assert told == []


Connect = Callable[..., sqlite3.Connection]


def without_locks(connect: Connect) -> Connect:
    """A file system that has no file locks."""

    def connected(where: str, **options: object) -> sqlite3.Connection:
        if "vfs=" not in where and "mode=memory" not in where and where != ":memory:":
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error
        return connect(where, **options)

    return connected


def without_shared_memory(connect: Connect) -> Connect:
    """A file system that has file locks but no shared memory: the write-ahead log can't be switched on."""

    def connected(where: str, **options: object) -> sqlite3.Connection:
        return connect(where if where == ":memory:" else f"{where}?vfs=unix-dotfile", **options)

    return connected


def test_without_shared_memory_sessions_are_stored_and_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "connect", without_shared_memory(sqlite3.connect))
    path = tmp_path / "s.db"
    names = written(path)
    with closing(open_store(path)) as one, closing(open_store(path, process=Process(1, "x"))) as other:
        assert one.database.durable
        assert one.database.problems == other.database.problems == ()
        with one.database.read() as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        new = other.create("/w", "m", "1").id
        other.append(user_turn(new, 1, "other"))
        assert {session.id for session in one.list()} == {new, *names}
    assert not (tmp_path / "s.db-shm").exists()


def test_without_file_locks_a_folder_is_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.db"
    names = written(path)  # on a system that has all
    monkeypatch.setattr(sqlite3, "connect", without_locks(sqlite3.connect))

    def no_lock(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.lockf", no_lock)
    problems, found = read(path)
    assert problems == ()
    assert found.keys() == set(names)
    lock = tmp_path / "s.db.lock"
    assert not lock.exists()
    lock.mkdir()
    os.utime(lock, (1, 1))  # of a process that was killed long ago
    assert len(read(path)[1]) == len(names) + 1


class OnFullDisk(sqlite3.Connection):
    """SQLite's side files can't grow, so a database with a write-ahead log can't be read in place."""

    def execute(self, sql: str, *rest: object) -> sqlite3.Cursor:  # pyright: ignore[reportIncompatibleMethodOverride]
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
        raise error


@pytest.mark.parametrize("space", [True, False], ids=["elsewhere", "nowhere"])
def test_on_a_full_disk_sessions_are_still_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, space: bool) -> None:
    path = tmp_path / "s.db"
    names = written(path)
    connect: Connect = sqlite3.connect

    def connected(where: str | Path, **options: object) -> sqlite3.Connection:
        in_place = str(path) in str(where) and "immutable" not in str(where)
        return connect(where, **options, **({"factory": OnFullDisk} if in_place else {}))

    monkeypatch.setattr(sqlite3, "connect", connected)
    if not space:

        def no_folder(**_: object) -> None:
            raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

        monkeypatch.setattr("tempfile.TemporaryDirectory", no_folder)
    with closing(read_only(path)) as found:
        assert {row[0] for row in found.execute("SELECT id FROM sessions")} == set(names)
