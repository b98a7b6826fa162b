from __future__ import annotations

import os
import random
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from swecli.core.sessions.database import Database, open_database, read_only
from swecli.core.sessions.schema import APPLICATION_ID, MIGRATIONS
from swecli.core.sessions.store import SessionStore
from tests.core.sessions.support import fact, open_store, user_turn
from tests.support.closed import closed


def pragma(database: Database, name: str) -> object:
    with database.write() as connection:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]


def filled(path: Path, count: int = 20) -> str:
    """A closed database with one session of ``count`` facts; returns its id."""
    store = open_store(path)
    session = store.create("/w", "fake/model", "1").id
    store.append([fact(session, seq, "x" * 50) for seq in range(1, count + 1)])
    store.close()
    return session


def quarantined(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if ".corrupt-" in p.name and not p.name.endswith(("-wal", "-shm")))


def test_a_new_database_is_safe_private_and_marked(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "folder" / "sessions.db"
    database = open_database(path)
    assert database.durable
    assert database.problems == ()
    assert pragma(database, "journal_mode") == "wal"
    assert pragma(database, "synchronous") == 1
    assert pragma(database, "busy_timeout") == 5000
    assert pragma(database, "foreign_keys") == 1
    assert pragma(database, "application_id") == APPLICATION_ID
    assert pragma(database, "user_version") == len(MIGRATIONS)
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    database.close()


def test_a_failing_block_writes_nothing(tmp_path: Path) -> None:
    database = open_database(tmp_path / "s.db")
    insert = "INSERT INTO sessions(id,cwd,model,created,updated,swecli) VALUES ('a','','',1,1,'')"

    def fail() -> None:
        with database.write() as connection:
            connection.execute(insert)
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    with database.read() as connection:
        assert connection.execute("SELECT count(*) FROM sessions").fetchone() == (0,)
    with database.write(power_safe=True) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert pragma(database, "synchronous") == 1
    database.close()


@pytest.mark.parametrize(
    "content",
    [b"this is no database at all" * 50, b"SQLite format 3\x00", b"\x00" * 8192, None],
    ids=["text", "cut header", "zeros", "cut file"],
)
def test_a_damaged_file_is_kept_aside_and_a_new_one_started(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "sessions.db"
    filled(path, 400)
    damaged = path.read_bytes()[:5000] if content is None else content
    path.write_bytes(damaged)
    database = open_database(path)
    assert database.durable
    (kept,) = quarantined(tmp_path)
    assert kept.read_bytes() == damaged
    assert str(kept) in database.problems[0]
    assert SessionStore(database).list(empty=True) == []
    database.close()
    again = open_database(path)
    assert again.problems == ()
    again.close()


def test_a_damaged_page_is_found(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    filled(path, 400)
    content = bytearray(path.read_bytes())
    for page in range(4096, len(content), 4096):
        content[page : page + 16] = os.urandom(16)
    path.write_bytes(content)
    database = open_database(path)
    assert len(quarantined(tmp_path)) == 1
    assert "damaged" in database.problems[0]
    database.close()


def test_an_empty_file_with_a_log_beside_it_is_no_new_database(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    path.write_bytes(b"")
    tmp_path.joinpath("sessions.db-wal").write_bytes(b"frames of earlier sessions")
    database = open_database(path)
    (kept,) = quarantined(tmp_path)
    assert kept.with_name(kept.name + "-wal").read_bytes() == b"frames of earlier sessions"
    assert database.durable
    database.close()


def test_an_empty_file_alone_is_a_new_database(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    path.touch()
    database = open_database(path)
    assert database.problems == ()
    assert quarantined(tmp_path) == []
    database.close()


def test_the_database_of_another_program_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE recipes(name)")
    other.commit()
    other.close()
    before = path.read_bytes()
    database = open_database(path)
    (kept,) = quarantined(tmp_path)
    assert kept.read_bytes() == before
    database.close()


@pytest.mark.parametrize("where", ["file as folder", "no rights at all", "a folder at its place"])
def test_without_a_place_to_write_it_lives_in_memory(tmp_path: Path, where: str) -> None:
    if where == "file as folder":
        tmp_path.joinpath("data").write_text("a file")
        path = tmp_path / "data" / "sessions.db"
    elif where == "no rights at all":
        path = Path("/proc/swecli/sessions.db")
    else:
        path = tmp_path / "sessions.db"
        path.mkdir()
    database = open_database(path)
    assert not database.durable
    assert "memory" in database.problems[0]
    assert str(path) in database.problems[0]
    store = SessionStore(database)
    session = store.create("/w", "m", "1").id
    store.append(user_turn(session, 1, "hello"))
    assert len(store.load(session)) == 3
    assert [s.id for s in store.list()] == [session]
    store.close()


@pytest.mark.parametrize("below", ["sessions.db", "share/swecli/sessions.db"])
def test_a_file_where_a_folder_should_be_is_named(below: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("not a folder")
    (problem,) = open_database(home / below).problems
    assert f"({home} is not a folder; move it away)" in problem


@pytest.mark.parametrize("files", [0o400, 0o600])
def test_what_can_only_be_read_goes_on_in_memory(tmp_path: Path, files: int) -> None:
    path = tmp_path / "data" / "sessions.db"
    path.parent.mkdir()
    session = filled(path)
    before = path.read_bytes()
    with closed(path.parent, files):
        database = open_database(path)
        assert not database.durable
        assert database.copied
        assert "is read-only" in database.problems[0]
        assert "lost when swecli ends" in database.problems[0]
        store = SessionStore(database)
        assert len(store.load(session)) == 20
        store.append([fact(session, 21)])
        assert len(store.load(session)) == 21
        database.close()
    assert path.read_bytes() == before
    with closed(path.parent, 0o000):
        database = open_database(path)
        assert not database.copied
        assert "can't be used" in database.problems[0]
        database.close()


def test_a_migration_keeps_everything_and_leaves_a_copy(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    session = filled(path)
    longer = (*MIGRATIONS, ("ALTER TABLE sessions ADD COLUMN colour TEXT", "CREATE TABLE extra(x)"))
    database = open_database(path, migrations=longer)
    assert database.durable
    assert pragma(database, "user_version") == len(longer)
    assert len(SessionStore(database).load(session)) == 20
    database.close()
    copy = tmp_path / f"sessions.db.before-v{len(longer)}"
    assert str(copy) in database.problems[0]
    old = sqlite3.connect(copy)
    assert old.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    assert old.execute("SELECT count(*) FROM events").fetchone() == (20,)
    old.close()


def test_a_failing_migration_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    session = filled(path)
    broken = (*MIGRATIONS, ("CREATE TABLE extra(x)", "INSERT INTO sessions SELECT * FROM sessions"))
    database = open_database(path, migrations=broken)
    assert not database.durable
    database.close()
    again = open_database(path)
    assert again.durable
    assert pragma(again, "user_version") == len(MIGRATIONS)
    with again.read() as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name='extra'").fetchone() == (0,)
    assert len(SessionStore(again).load(session)) == 20
    again.close()


def test_a_new_database_is_never_seen_half_made(tmp_path: Path) -> None:
    """A program that starts meanwhile would take it for an old one, copy it and say so."""
    path = tmp_path / "sessions.db"
    with pytest.raises(Exception, match="migrating it from version 0"):
        open_database(path, migrations=(*MIGRATIONS, ("INSERT INTO absent VALUES (1)",)))
    with closing(sqlite3.connect(path)) as seen:
        assert seen.execute("PRAGMA user_version").fetchone() == (0,)
        assert seen.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


def test_a_database_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    filled(path)
    newer = open_database(path, migrations=(*MIGRATIONS, ("CREATE TABLE extra(x)",)))
    newer.close()
    before = path.read_bytes()
    database = open_database(path)
    assert not database.durable
    assert "newer swecli" in database.problems[0]
    database.close()
    assert path.read_bytes() == before


def test_a_log_cut_anywhere_gives_the_events_before_the_cut(tmp_path: Path) -> None:
    live = tmp_path / "live"
    store = open_store(live / "sessions.db")
    session = store.create("/w", "m", "1").id
    for seq in range(1, 41):
        store.append([fact(session, seq, "x" * 300)])
    log = (live / "sessions.db-wal").read_bytes()
    source = random.Random(5)
    counts: set[int] = set()
    for number, cut in enumerate([0, 1, len(log) - 1, *(source.randrange(len(log)) for _ in range(25))]):
        folder = tmp_path / str(number)
        folder.mkdir()
        shutil.copy(live / "sessions.db", folder)
        folder.joinpath("sessions.db-wal").write_bytes(log[:cut])
        opened = open_store(folder / "sessions.db")
        assert opened.database.durable
        with opened.database.read() as connection:
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        assert tables > 0
        events = opened.load(session)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        counts.add(len(events))
        opened.close()
    store.close()
    assert len(counts) > 5


def test_what_is_written_after_the_file_was_removed_fails_and_succeeds_once_it_is_back(tmp_path: Path) -> None:
    path = tmp_path / "s.db"

    def add(database: Database, name: str) -> None:
        with database.write() as connection:
            connection.execute(
                "INSERT INTO sessions(id, cwd, model, created, updated, swecli) VALUES (?, '/', 'm', 0, 0, '1')",
                (name,),
            )

    with closing(open_database(path)) as database:
        add(database, "before")
        path.rename(tmp_path / "away")
        with pytest.raises(sqlite3.OperationalError, match="was removed"):
            add(database, "lost")
        path.write_bytes(b"")  # another swecli begins a new one
        with pytest.raises(sqlite3.OperationalError, match="was replaced"):
            add(database, "lost")
        (tmp_path / "away").rename(path)
        add(database, "after")
        with database.read() as connection:
            assert {row[0] for row in connection.execute("SELECT id FROM sessions")} == {"before", "after"}


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (Path.mkdir, "a folder"),
        (os.mkfifo, "a named pipe"),
        (lambda path: path.symlink_to(path.with_name("gone")), "a broken link"),
    ],
    ids=["folder", "pipe", "link"],
)
def test_what_is_no_file_is_named_and_kept_instead_of_waited_for(
    tmp_path: Path, suffix: str, make: Callable[[Path], None], kind: str
) -> None:
    path = tmp_path / "s.db"
    if suffix:
        open_database(path).close()
    place = tmp_path / f"s.db{suffix}"
    make(place)
    with closing(open_database(path)) as database:
        assert not database.durable
        assert database.problems == (
            f"The session database {path} can't be used ({place.name} is {kind}; move it away). "
            "This session is kept in memory only and is lost when swecli ends.",
        )
    with pytest.raises(sqlite3.Error, match=f"is {kind}"):
        read_only(path)
    assert os.path.lexists(place)
    assert not quarantined(tmp_path)
