"""A store that is removed, replaced or overwritten while a session is open loses nothing of the session."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from swecli.core.protocol.events import Unknown
from swecli.core.sessions.database import open_database, read_only
from swecli.core.sessions.health import quarantined
from swecli.core.sessions.results import ResultStore
from swecli.core.sessions.schema import MIGRATIONS
from swecli.core.sessions.store import SessionStore
from tests.core.sessions.support import fact, open_store, user_turn

SIDES = ("-wal", "-shm")


def removed(path: Path, backup: Path) -> None:
    for suffix in ("", *SIDES):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def moved_alone(path: Path, backup: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def moved_over(path: Path, backup: Path) -> None:
    backup.rename(path)


def copied_over(path: Path, backup: Path) -> None:
    shutil.copyfile(backup, path)


def copied_over_without_log(path: Path, backup: Path) -> None:
    for suffix in SIDES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    shutil.copyfile(backup, path)


def restored_by_sqlite(path: Path, backup: Path) -> None:
    with closing(sqlite3.connect(backup)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)


def log_removed(path: Path, backup: Path) -> None:
    for suffix in SIDES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def log_cut(path: Path, backup: Path) -> None:
    os.truncate(path.with_name(f"{path.name}-wal"), 0)


def log_cut_in_the_middle(path: Path, backup: Path) -> None:
    log = path.with_name(f"{path.name}-wal")
    os.truncate(log, log.stat().st_size // 2)


def torn(path: Path, backup: Path) -> None:
    path.write_bytes(backup.read_bytes()[: 3 * 4096] + b"\xff" * 9_000)


def another_start_mends(path: Path, backup: Path) -> None:
    """Another swecli finds the file damaged, moves it aside and begins a new one."""
    path.write_bytes(b"\xff" * 100 + path.read_bytes()[100:])
    with closing(open_store(path)) as other:
        name = other.create("/w", "fake/m", "1").id
        other.append(user_turn(name, 1, "another"))


CHANGES = (
    removed,
    moved_alone,
    moved_over,
    copied_over,
    copied_over_without_log,
    restored_by_sqlite,
    log_removed,
    log_cut,
    log_cut_in_the_middle,
    torn,
    another_start_mends,
)


def backup_of(path: Path, *, sessions: int = 1) -> Path:
    """A sound database of earlier sessions."""
    with closing(open_store(path)) as store:
        for number in range(sessions):
            name = store.create("/w", "fake/m", "1").id
            store.append(user_turn(name, 1, f"earlier {number}"))
            store.append([fact(name, seq, "e" * 500) for seq in range(4, 40)])
            store.release(name)
    return path


def stored_now(path: Path, session: str) -> list[int]:
    """What a new process reads."""
    with closing(open_store(path)) as store:
        events = store.load(session)
        assert store.loss(session) is None
        assert session in {one.id for one in store.list()}
    with closing(read_only(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return [event.seq for event in events]


@pytest.mark.parametrize(("make", "kind"), [(Path.mkdir, "a folder"), (os.mkfifo, "a named pipe")])
def test_what_is_no_file_in_its_place_is_named_and_kept(
    tmp_path: Path, make: Callable[[Path], None], kind: str
) -> None:
    path, said = tmp_path / "s.db", list[str]()
    with closing(open_store(path)) as store:
        session = store.create("/w", "fake/m", "1").id
        store.append(user_turn(session, 1, "before"))
        store.recovery.report = said.append
        path.rename(tmp_path / "elsewhere")
        make(path)
        store.append([fact(session, 4)])
        assert store.has_all(session) is True
    (text,) = said
    assert f"s.db is {kind}; move it away" in text
    assert not path.is_file()
    (aside,) = tmp_path.glob("s.db.continued-*[0-9]")
    assert str(aside) in text
    assert quarantined(path) == [aside]
    assert not list(tmp_path.glob("*.corrupt-*"))


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("size", [100, 3_000], ids=["small", "large"])
def test_a_session_outlives_its_file(tmp_path: Path, change: Callable[[Path, Path], None], size: int) -> None:
    path = tmp_path / "s.db"
    backup_of(path)
    backup = tmp_path / "backup.db"
    shutil.copyfile(path, backup)
    told: list[str] = []
    with closing(open_store(path)) as store:
        store.recovery.report = told.append
        session = store.create("/w", "fake/m", "1").id
        store.append(user_turn(session, 1, "title"))
        for seq in range(4, 200):
            store.append([fact(session, seq, "x" * size)])
        inode = path.stat().st_ino
        change(path, backup)
        store.append([fact(session, 200)])
        store.append([fact(session, 201)])
        assert store.has_all(session) is True
        if path.stat().st_ino != inode:  # else the log still had everything
            assert "t is complete" in told[0]
        assert [event.seq for event in store.load(session)] == list(range(1, 202))
        assert store.holder(session) is None
        store.release(session)
    assert stored_now(path, session) == list(range(1, 202))
    with closing(open_store(path)) as store:
        info = store.get(session)
        assert (info.title, info.turns) == ("Title", 1)


def folder_is_a_file(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))
    path.parent.write_text("not a folder\n")


def folder_is_a_link_to_nothing(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))
    path.parent.symlink_to("nowhere")


@pytest.mark.parametrize("change", [folder_is_a_file, folder_is_a_link_to_nothing], ids=lambda each: each.__name__)
def test_where_no_store_can_be_made_that_is_an_error_of_the_database(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    path = tmp_path / "data" / "s.db"
    path.parent.mkdir()
    with closing(open_store(path)) as store:
        session = store.create("/w", "fake/m", "1").id
        store.append(user_turn(session, 1, "title"))
        change(path)
        for store_something in (lambda: store.append([fact(session, 4)]), lambda: store.release(session)):
            with pytest.raises(sqlite3.Error, match=r"s\.db was removed while swecli uses it"):
                store_something()
    with closing(open_store(tmp_path / "elsewhere" / "s.db")) as store:
        assert [event.seq for event in store.load(session)] == [1, 2, 3], "what was stored is where the folder is"


def test_a_resumed_session_comes_with_its_beginning_and_results(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with closing(open_store(path)) as store:
        parent = store.create("/w", "fake/m", "1").id
        store.append(user_turn(parent, 1, "title"))
        reference = ResultStore(store.database, parent).put("run_command", b"a large result").id
        session = store.fork(parent, "1").id
        store.release(parent)
        store.release(session)
    with closing(open_store(path)) as store:
        store.lease(session)
        removed(path, path)
        store.append([fact(session, 4)])
        assert ResultStore(store.database, session).get(reference) == b"a large result"
        assert store.has_all(session) is True
    assert stored_now(path, session) == [1, 2, 3, 4]
    with closing(open_store(path)) as store:
        assert [one.id for one in store.list()] == [session]


def test_what_could_not_be_recovered_is_not_called_kept(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    backup = backup_of(tmp_path / "backup.db")
    told: list[str] = []
    with closing(open_store(path)) as store:
        session = store.create("/w", "fake/m", "1").id
        store.append(user_turn(session, 1, "title"))
        store.append([fact(session, 4)])
        store.release(session)
    with closing(open_store(path)) as store:
        store.recovery.report = told.append
        store.lease(session)
        restored_by_sqlite(path, backup)
        store.append([fact(session, 5)])
        assert "4 events of its beginning could not be recovered" in told[0]
        assert store.has_all(session) is False
        assert [event.seq for event in store.load(session) if not isinstance(event.body, Unknown)] == [5]
        assert str(store.loss(session)) == "1 of at least 5 events are left"


def test_the_newest_facts_of_a_continued_session_are_recovered(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    backup = backup_of(tmp_path / "backup.db")
    with closing(open_store(path)) as store:
        session = store.create("/w", "fake/m", "1").id
        store.append(user_turn(session, 1, "title"))
        store.release(session)
    with closing(open_store(path)) as store:
        store.lease(session)
        store.append([fact(session, 4)])
        restored_by_sqlite(path, backup)
        store.append([fact(session, 5)])
        assert store.has_all(session) is True
    assert stored_now(path, session) == [1, 2, 3, 4, 5]


def test_a_newer_version_in_its_place_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    newer = tmp_path / "newer.db"
    open_database(newer, migrations=(*MIGRATIONS, ("CREATE TABLE extra(x)",))).close()
    content = newer.read_bytes()
    told: list[str] = []
    with closing(open_store(path)) as store:
        store.recovery.report = told.append
        session = store.create("/w", "fake/m", "1").id
        store.append(user_turn(session, 1, "title"))
        newer.rename(path)
        store.append([fact(session, 4)])
        aside = store.database.path
        assert aside is not None
        assert aside != path
        assert str(aside) in told[0]
        assert "a newer swecli wrote it" in told[0]
        assert store.has_all(session) is True
    assert path.read_bytes() == content
    assert stored_now(aside, session) == [1, 2, 3, 4]


@pytest.mark.parametrize("change", ["same tables", "a further column"])
def test_a_newer_version_with_the_same_tables_is_not_damaged(tmp_path: Path, change: str) -> None:
    path = tmp_path / "s.db"
    with closing(open_store(path)) as store:
        session = store.create("/w", "fake/m", "1").id
        store.append(user_turn(session, 1, "title"))
        with store.database.alone() as connection:
            if change == "a further column":
                connection.execute("ALTER TABLE sessions ADD COLUMN extra TEXT")
            connection.execute(f"PRAGMA user_version={len(MIGRATIONS) + 1}")
        inode = path.stat().st_ino
        with closing(open_database(path)) as other:
            assert not other.durable
            assert "a newer swecli wrote it" in other.problems[0]
        assert path.stat().st_ino == inode
        store.append([fact(session, 4)])
        assert store.has_all(session) is True
    assert [one.name for one in tmp_path.iterdir() if "corrupt" in one.name] == []


def test_the_log_of_the_new_file_survives_the_end_of_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    first = open_store(path)
    session = first.create("/w", "fake/m", "1").id
    first.append(user_turn(session, 1, "title"))
    another_start_mends(path, path)
    with closing(open_store(path)) as second:
        other = second.create("/w", "fake/m", "1").id
        second.append(user_turn(other, 1, "second"))
        first.append([fact(session, 4)])
        first.close()
        second.append([fact(other, 4)])
        os.stat(f"{path}-wal")
        assert second.has_all(other) is True
    assert stored_now(path, session) == [1, 2, 3, 4]
    assert stored_now(path, other) == [1, 2, 3, 4]


def test_a_disk_that_fails_meanwhile_is_tried_again(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    path = folder / "s.db"
    with closing(open_store(path)) as store:
        session = store.create("/w", "fake/m", "1").id
        store.append(user_turn(session, 1, "title"))
        folder.rename(tmp_path / "away")
        folder.write_text("a file where the folder was")
        with pytest.raises((OSError, sqlite3.Error)):
            store.append([fact(session, 4)])
        folder.unlink()
        store.append([fact(session, 4)])
        assert store.has_all(session) is True
    assert stored_now(path, session) == [1, 2, 3, 4]


def test_a_store_that_another_process_writes_to_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    told: list[str] = []
    with closing(open_store(path)) as first, closing(open_store(path)) as second:
        first.recovery.report = second.recovery.report = told.append
        names = [store.create("/w", "fake/m", "1").id for store in (first, second)]
        for seq in range(1, 60):
            for store, name in zip((first, second), names, strict=True):
                store.append([fact(name, seq, "z" * 50_000)])  # each shortens the log now and then
        assert all(store.has_all(name) for store, name in zip((first, second), names, strict=True))
    assert told == []


def test_a_read_back_of_nothing_is_nothing(tmp_path: Path) -> None:
    store = SessionStore(open_database(tmp_path / "s.db"))
    session = store.create("/w", "fake/m", "1").id
    store.append(user_turn(session, 1, "title"))
    store.close()
    (tmp_path / "s.db").unlink()
    assert store.has_all(session) is None
