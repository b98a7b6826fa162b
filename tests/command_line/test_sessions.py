"""`swecli sessions`: listed, shown, searched, renamed, deleted, purged, moved to where their folder is now."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from swecli.assembly.checkpoints import FILE as CHECKPOINTS
from swecli.assembly.health import repair
from swecli.assembly.session_list import DAY
from swecli.command_line.dispatch import dispatch
from swecli.command_line.sessions import ACTIONS
from swecli.core.checkpoints.journal import Change, Origin, begin, record
from swecli.core.checkpoints.store import ABSENT, SCHEMA, Blobs, Image
from swecli.core.config.paths import user_paths
from swecli.core.sessions.database import open_database
from swecli.core.sessions.health import size_of
from tests.core.sessions.support import fact, open_store, user_turn
from tests.support.closed import closed

Run = Callable[..., tuple[int, str, str]]


class Place:
    def __init__(self, home: Path, folder: Path) -> None:
        self.home = home
        self.folder = folder
        folder.mkdir(parents=True)

    def database(self, folder: Path | None = None) -> Path:
        data = user_paths({"SWECLI_HOME": str(self.home)}).workspace_data(folder or self.folder)
        data.mkdir(parents=True, exist_ok=True)
        return data / "sessions.db"

    def session(self, text: str, *, days: float = 0, folder: Path | None = None) -> str:
        now = time.time() - days * DAY
        with closing(open_store(self.database(folder), clock=lambda: now)) as store:
            name = store.create(str(folder or self.folder), "a/b", "1").id
            store.append(user_turn(name, 1, text, ts=now))
            store.release(name)
            return name

    def ids(self) -> list[str]:
        with closing(open_store(self.database())) as store:
            return [one.id for one in store.list()]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    made = Place(tmp_path / "home", tmp_path / "work")
    monkeypatch.chdir(made.folder)
    return made


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def called(*words: str) -> tuple[int, str, str]:
        code = dispatch(["sessions", *words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return called


def test_sessions_are_listed_shown_and_found(place: Place, run: Run, tmp_path: Path) -> None:
    one, two = place.session("fix the login \x1b[31mbug", days=2), place.session("write docs")
    far = place.session("login elsewhere", folder=tmp_path / "other")
    _, out, _ = run()
    assert [line.split()[0] for line in out.splitlines()[1:]] == [two, one]
    assert "\x1b" not in out
    code, out, _ = run("list", "--json")
    listed = [json.loads(line) for line in out.splitlines()]
    assert [(one["id"], one["turns"], one["open"], one["cwd"]) for one in listed] == [
        (two, 1, False, str(place.folder)),
        (one, 1, False, str(place.folder)),
    ]
    _, out, _ = run("list", "--all")
    assert f"{tmp_path / 'other'} (gone)" in out
    with closing(open_store(place.database())) as store:
        store.create(str(place.folder), "fake/m", "1")  # newer, with no message: not listed, and not counted
    assert [line.split()[0] for line in run("list", "-n", "1")[1].splitlines()[1:]] == [two]
    _, out, _ = run("show", one[:19])
    assert "fix the login" in out
    code, out, _ = run("search", "login")
    assert (code, one in out, far in out) == (0, True, False)
    assert far in run("search", "login", "--all")[1]
    assert run("search", "nowhere")[0] == 1
    with closing(open_store(place.database())) as store, store.database.write() as connection:
        connection.execute("UPDATE sessions SET title = '' WHERE id = ?", (one,))
    assert "(no message)" in run("search", "login")[1]


def test_a_session_is_renamed_and_deleted(place: Place, run: Run) -> None:
    one, two = place.session("first"), place.session("second")
    assert "'mine'" in run("rename", one, "mine")[1]
    assert run("rename", two, "mine")[0] == 42
    code, out, _ = run("delete", "mine", "--dry-run")
    assert (code, "would be deleted" in out, len(place.ids())) == (0, True, 2)
    log = place.folder / ".swecli" / "logs" / f"{one}.log"
    log.parent.mkdir(parents=True)
    log.write_text("{}\n")
    assert json.loads(run("delete", "mine", "--json")[1])["deleted"] is True
    assert place.ids() == [two]
    assert not log.exists()
    with closing(open_store(place.database())) as store:
        store.lease(two)
        code, _, err = run("delete", two)
    assert (code, "is open" in err, place.ids()) == (42, True, [two])


def test_old_sessions_are_purged_as_asked_or_as_the_settings_say(place: Place, run: Run) -> None:
    place.session("old", days=100)
    young = place.session("young", days=3)
    assert "no limit" in run("purge")[2]
    assert len(place.ids()) == 2
    (place.home / "config.toml").write_text("[sessions]\ndelete_after_days = 1\n")
    assert "1 session would be deleted" in run("purge", "--dry-run")[1]
    assert "1 session deleted" in run("purge")[1]
    assert place.ids() == [young]  # nothing younger than 30 days goes by a rule
    assert "1 session deleted" in run("purge", "--older-than", "2")[1]
    assert place.ids() == []
    place.session("large")
    assert run("purge", "--max-size", "many")[0] == 2
    assert "1 session would be deleted" in run("purge", "--max-size", "1 B", "--dry-run")[1]
    assert "0 sessions would be deleted" in run("purge", "--older-than", "12h", "--dry-run")[1]
    assert "0 sessions would be deleted" in run("purge", "--older-than", "2w", "--dry-run")[1]
    assert "1 session deleted" in run("purge", "--max-size", "0")[1]


def test_what_can_not_be_written_is_listed_and_searched_and_nothing_is_said_to_be_deleted(
    place: Place, run: Run
) -> None:
    kept = place.session("some words", days=3)
    with closing(sqlite3.connect(place.database())) as connection:
        connection.execute("PRAGMA user_version = 9999")  # of a later version, so that it is not for writing
        connection.execute("CREATE TABLE extra(x)")
    place.database().with_name("search.db").mkdir()
    code, out, err = run("purge", "--older-than", "2")
    assert (code, "deleted," in out, "Nothing was deleted" in err) == (42, False, True)
    code, out, err = run("search", "words")
    assert (code, out.startswith(kept), "It was not changed" in err) == (0, True, True)
    assert kept in run("list")[1]
    code, _, err = run("show", kept)
    assert (code, err.count("can't be used"), "warning" in err) == (42, 1, False)


def test_a_folder_that_moved_gets_its_sessions_back(place: Place, run: Run, tmp_path: Path) -> None:
    old = tmp_path / "before"
    old.mkdir()
    moved = place.session("there", folder=old)
    here = place.session("here")
    shutil.rmtree(old)
    assert "moved 1 session" in run("relink", str(old), "--dry-run")[1].replace("would move", "moved")
    assert place.ids() == [here]
    code, out, _ = run("relink", str(old))
    assert (code, "moved 1 session" in out) == (0, True)
    assert set(place.ids()) == {moved, here}
    with closing(open_store(place.database())) as store:
        assert store.get(moved).cwd == str(place.folder)
        assert len(store.load(moved)) == 3
    code, _, err = run("relink", str(tmp_path / "never"))
    assert (code, "No sessions are stored for" in err) == (42, True)
    assert run("relink", str(place.folder))[0] == 42


def test_a_folder_without_sessions_leads_to_the_others(place: Place, run: Run) -> None:
    for words in (["list"], ["show", "x"], ["export", "x"]):
        assert "swecli sessions list --all shows others" in run(*words)[2]


def test_what_makes_no_sense_is_refused_in_one_line(place: Place, run: Run) -> None:
    for words in (
        ["nothing"],
        ["show"],
        ["show", "x"],
        ["delete", "x"],
        ["rename", "x", "y"],
        ["purge", "--older-than=-1"],
        ["purge", "--older-than", "soon"],
        ["purge", "--max-size", "1X"],
        ["list", "-n", "x"],
    ):
        code, out, err = run(*words)
        assert code in (2, 42)
        assert out == ""
        assert len(err.splitlines()) == 1
    place.database().write_bytes(b"nonsense" * 1000)
    code, _, err = run()
    assert code == 0
    assert "damaged" in err


def test_a_database_that_can_not_be_written_loses_nothing(place: Place, run: Run) -> None:
    one = place.session("kept")
    with closed(place.database().parent):
        for words in (["delete", one], ["rename", one, "new"], ["purge", "--older-than", "0"]):
            code, out, err = run(*words)
            assert (code, out) == (42, ""), words
            assert "is read-only" in err
            assert "make the folder writable" in err
    assert place.ids() == [one]


@pytest.mark.parametrize("killed", [False, True], ids=["closed in order", "with a log beside it"])
def test_sessions_of_a_folder_that_can_only_be_read_are_shown(
    place: Place, run: Run, tmp_path: Path, killed: bool
) -> None:
    one, file = place.session("kept"), place.database()
    if killed:  # what a process that was killed had not folded into the file
        with closing(open_store(file)) as store:
            store.rename(one, "called so")
            for suffix in ("", "-wal"):
                shutil.copy(f"{file}{suffix}", tmp_path / f"left{suffix}")
        for suffix in ("", "-wal"):
            shutil.move(tmp_path / f"left{suffix}", f"{file}{suffix}")
    before = sorted(path.name for path in file.parent.iterdir())
    with closed(file.parent):
        for words in (["show", one], ["list"], ["search", "kept"], ["export", one]):
            code, out, err = run(*words)
            assert (code, err) == (0, ""), words
            assert "kept" in out.lower() or "called so" in out
        assert ("called so" in run("show", one)[1]) == killed
    assert sorted(path.name for path in file.parent.iterdir()) == before


def test_the_help_names_every_word(run: Run) -> None:
    _, told, _ = run("--help")
    assert [word for word in ACTIONS if f" {word}" not in told.replace("[", "")] == []


@pytest.mark.parametrize(
    "words",
    [("logs", "export"), ("lab", "replay"), ("lab", "tune"), ("sessions", "export", "x"), ("sessions", "show", "x")],
)
def test_every_command_says_why_a_database_can_not_be_used(
    place: Place, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    place.session("hello")
    with closing(sqlite3.connect(place.database())) as connection:
        connection.executescript("CREATE TABLE later(x); PRAGMA user_version=99")
    assert dispatch(words) == 42
    told = capsys.readouterr().err
    assert "can't be used (a newer swecli wrote it; upgrade swecli" in told
    assert told.count("\n") == 1


def test_the_way_to_an_imported_session_is_one_that_a_shell_takes(place: Place, run: Run, tmp_path: Path) -> None:
    (tmp_path / "my folder").mkdir()
    line = {"type": "user", "message": {"role": "user", "content": "hello"}, "timestamp": "2026-02-03T04:05:06"}
    (tmp_path / "chat.jsonl").write_text(json.dumps(line))
    code, out, _ = run("import", str(tmp_path / "chat.jsonl"), "-C", str(tmp_path / "my folder"))
    assert code == 0
    assert f"Continue with: swecli -C '{tmp_path}/my folder' -r 2026-02-03" in out


def test_an_export_of_a_log_says_if_several_sessions_are_meant(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = place.session("one"), place.session("two")
    assert dispatch(["logs", "export", one[:4]]) == 42
    told = capsys.readouterr().err
    assert "Ambiguous id" in told
    assert one in told
    assert two in told


@pytest.mark.parametrize("how", ["purge", "vacuum"])
def test_the_space_of_deleted_sessions_goes_back_to_the_disk(place: Place, run: Run, how: str) -> None:
    old, new = place.session("old", days=9), place.session("new")
    database = place.database()
    paths = user_paths(os.environ)
    copies = paths.state / "checkpoints" / database.parent.name / CHECKPOINTS
    with closing(open_store(database)) as store:
        store.append([fact(old, seq, os.urandom(2_000).hex()) for seq in range(10, 510)])
    copies.parent.mkdir(parents=True)
    with closing(open_database(copies, migrations=SCHEMA)) as rows, rows.write() as connection:
        operation = begin(connection, Origin(old, 1, "t1", "edit", "a.bin"), 1.0)
        for number in range(20):
            content = os.urandom(100_000)
            digest = sha256(content).hexdigest()
            assert Blobs(1 << 30).keep(connection, content, digest)
            record(connection, [Change(operation, f"/w/{number}", ABSENT, Image("file", 0o600, digest))])
    before = size_of(database), size_of(copies)
    with closing(open_store(database)) as store, store.database.write() as connection:
        connection.execute("UPDATE sessions SET updated = 1 WHERE id = ?", (old,))
    if how == "purge":
        assert "1 session deleted" in run("purge", "--older-than", "2")[1]
    else:
        assert run("delete", old)[0] == 0
        assert size_of(copies) > before[1] // 2
        out = repair("vacuum", paths, place.folder).text
        assert "Returned 4." in out or "Returned 3." in out, out
    assert place.ids() == [new]
    assert size_of(database) < before[0] // 4
    assert size_of(copies) < before[1] // 4
