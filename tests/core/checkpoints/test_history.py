"""The record of changes: limits, links, other sessions, what was cut off, and what is told of it."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from swecli.core.checkpoints import history as history_module
from swecli.core.checkpoints import journal
from swecli.core.checkpoints import restore as restore_module
from swecli.core.checkpoints.history import FileHistory
from swecli.core.checkpoints.restore import Content, Step, Target
from swecli.core.protocol.events import LeftFile
from swecli.core.workspace.atomic_write import PREFIX
from tests.core.checkpoints.support import OPTIONS, Bench
from tests.support.trees import tree


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path)
    (made.work / "a").write_text("one\n")
    (made.work / "d").mkdir()
    (made.work / "d" / "b").write_text("two\n")
    return made


def names(bench: Bench, listed: tuple[LeftFile, ...]) -> dict[str, str]:
    return {os.path.relpath(one.path, bench.work): one.why for one in listed}


def test_ignored_files_are_covered_and_ignored_folders_are_not(bench: Bench) -> None:
    (bench.work / ".gitignore").write_text("*.log\nbuild/\n")
    (bench.work / "x.log").write_text("log\n")
    for folder in ("build", "node_modules", ".git"):
        (bench.work / folder).mkdir()
        (bench.work / folder / "f").write_text("f\n")
    bench.history.first_copy()
    assert names(bench, bench.history.not_covered) == {
        ".git": "git's own data",
        "build": "ignored folder",
        "node_modules": "generated folder",
    }
    bench.command("rm -r x.log build; echo >> node_modules/f; echo x > .git/f")
    done = bench.undo()
    assert names(bench, done.not_covered) == {"build": "ignored folder"}
    assert (bench.work / "x.log").read_text() == "log\n"
    assert not (bench.work / "build").exists()
    assert (bench.work / ".git" / "f").read_text() == "x\n"


def test_a_folder_that_becomes_ignored_is_not_taken_for_removed(bench: Bench) -> None:
    bench.command("echo d/ > .gitignore")
    bench.command("echo 2 > a")
    done = bench.undo()
    assert [os.path.basename(path.path) for path in done.files] == ["a"]
    bench.command("echo > .gitignore; echo 3 > a")
    assert {os.path.basename(path.path) for path in bench.undo().files} == {"a", ".gitignore"}
    assert (bench.work / "d" / "b").read_text() == "two\n"


def test_limits_of_size_are_exceptions_that_are_listed_before(tmp_path: Path) -> None:
    bench = Bench(tmp_path, replace(OPTIONS, file=1_000, total=40_000))
    (bench.work / "large").write_bytes(bytes(1_001))
    for number in range(100):
        (bench.work / f"r{number}").write_bytes(os.urandom(900))
    bench.history.first_copy()
    listed = names(bench, bench.history.not_covered)
    assert listed["large"] == "larger than 0.001 MB"
    full = [name for name, why in listed.items() if why.startswith("no space left")]
    assert 30 < len(full) < 80
    bench.command("rm r*; chmod 600 large")
    done = bench.undo()
    assert names(bench, done.not_covered).keys() == set(full)
    assert len(done.files) == 100 - len(full) + 1
    bench.edit("a", b"edits are always covered")
    assert len(bench.undo().files) == 1


def test_what_is_too_old_goes_and_the_oldest_sessions_make_room(tmp_path: Path) -> None:
    now = time.time()
    bench = Bench(tmp_path)
    bench.edit("a", os.urandom(5_000))
    bench.edit("a", None)
    bench.history.close()

    def later(days: float, total: int = OPTIONS.total) -> tuple[int, int]:
        """Changes and contents that are left when another session begins."""
        options = replace(OPTIONS, total=total)
        history = FileHistory(bench.rows(), "s2", (str(bench.work),), options, clock=lambda: now + days * 86_400)
        history.open()
        history.first_copy()
        history.close()
        with sqlite3.connect(bench.base / "state" / "checkpoints.db") as database:
            (changes,) = database.execute("SELECT count(*) FROM changes").fetchone()
            (contents,) = database.execute("SELECT count(*) FROM blobs").fetchone()
        return changes, contents

    assert later(29) == (2, 1)
    assert later(29, total=5_000) == (0, 0)
    bench.session = "s3"
    bench.history = bench.open()
    bench.edit("a", b"x")
    bench.history.close()
    assert later(31)[0] == 0


def test_a_start_with_a_clock_far_ahead_forgets_nothing(tmp_path: Path) -> None:
    now = time.time()
    bench = Bench(tmp_path)
    bench.edit("a", b"two\n")
    bench.history.close()

    def start(days: float) -> None:
        history = FileHistory(bench.rows(), "s2", (str(bench.work),), OPTIONS, clock=lambda: now + days * 86_400)
        history.open()
        history.first_copy()
        history.close()

    for days in (1, 1_000, 1_000, 2):
        start(days)
    bench.history = bench.open()
    assert len(bench.undo().files) == 1
    bench.history.close()
    for days in (60, 61):
        start(days)
    bench.history = bench.open()
    assert bench.undo().reason


def test_nothing_is_done_through_a_link_that_was_put_into_the_path(bench: Bench) -> None:
    other = bench.base / "other"
    other.mkdir()
    (other / "b").write_text("two\n")
    (other / "new").write_text("agent\n")
    bench.command("rm d/b; echo agent > d/new")
    os.rename(bench.work / "d", bench.base / "was")
    (bench.work / "d").symlink_to(other)
    before = tree(other)
    done = bench.undo()
    assert names(bench, done.conflicts).keys() == {"d/b", "d/new"}
    assert tree(other) == before


def test_a_file_that_became_a_link_is_replaced_and_not_followed(bench: Bench) -> None:
    outside = bench.base / "outside"
    outside.write_text("mine\n")
    bench.command(f"ln -sf {outside} a")
    assert len(bench.undo().files) == 1
    assert (bench.work / "a").read_text() == "one\n"
    assert not (bench.work / "a").is_symlink()
    assert outside.read_text() == "mine\n"


def test_changes_of_the_user_between_commands_are_the_users(bench: Bench) -> None:
    bench.command("echo 1 > a")
    (bench.work / "a").write_text("mine\n")
    (bench.work / "own").write_text("own\n")
    bench.command("echo 2 >> a")
    assert bench.undo().conflicts == ()
    assert (bench.work / "a").read_text() == "mine\n"
    done = bench.undo()
    assert names(bench, done.conflicts) == {"a": "changed since"}
    assert (bench.work / "own").exists()


def test_a_change_within_the_same_moment_and_of_the_same_size_is_seen(bench: Bench) -> None:
    for number in range(20):
        bench.command(f"printf {number:02} > a")
    for number in range(18, -1, -1):
        assert len(bench.undo().files) == 1
        assert (bench.work / "a").read_text() == f"{number:02}"


def test_a_store_that_fails_meanwhile_does_not_deny_what_was_restored(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.edit("a", b"two")

    def locked(*_: object) -> None:
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr(history_module.journal, "end", locked)
    done = bench.undo()
    monkeypatch.undo()
    assert (bench.work / "a").read_text() == "one\n"
    assert [os.path.basename(file.path) for file in done.files] == ["a"]
    assert "database is locked" in done.reason
    bench.again()
    assert [os.path.basename(file.path) for file in bench.redo().files] == ["a"]


class Killed(BaseException):
    """In the place of SIGKILL: nothing that follows in the program runs."""


@pytest.mark.parametrize("direction", ["undo", "redo"])
@pytest.mark.parametrize("steps", range(7))
def test_a_kill_in_an_undo_leaves_all_of_it_or_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, direction: str, steps: int
) -> None:
    first = tree(bench.work)
    bench.command("echo new > a; rm d/b; mkdir -p e/f; echo g > e/f/g; ln -s a l; chmod 700 d")
    changed = tree(bench.work)
    if direction == "redo":
        bench.undo()
    count = 0

    def one_step(step: Step, content: Content) -> None:
        nonlocal count
        if count == steps:
            raise Killed
        count += 1
        done(step, content)

    done = restore_module._do  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(restore_module, "_do", one_step)
    killed = False
    try:
        bench.undo() if direction == "undo" else bench.redo()
    except Killed:
        killed = True
    monkeypatch.undo()
    bench.again()
    before, after = (changed, first) if direction == "undo" else (first, changed)
    assert tree(bench.work) == (before if killed else after)
    told = "swecli was killed during" in " ".join(bench.history.problems)
    assert told == (killed and steps > 0)
    again = bench.undo() if direction == "undo" else bench.redo()
    assert bool(again.files) == killed
    assert tree(bench.work) == after


def test_an_edit_that_was_cut_off_is_found_and_needs_its_name(bench: Bench) -> None:
    running = bench.history.begin(bench.origin("edit", "a"), [str(bench.work / "a")], watch=False)
    (bench.work / "a").write_text("agent\n")
    assert running.id
    bench.again()
    assert "swecli was killed while t1 ran" in bench.undo().conflicts[0].why
    assert (bench.work / "a").read_text() == "agent\n"
    assert len(bench.undo(Target("call", name="t1")).files) == 1
    assert (bench.work / "a").read_text() == "one\n"


def test_what_was_put_back_by_hand_is_passed_over(bench: Bench) -> None:
    bench.command("echo 1 > d/b")
    bench.command("echo 1 > a")
    (bench.work / "a").write_text("one\n")
    done = bench.undo()
    assert [os.path.basename(path.path) for path in done.files] == ["b"]


def test_names_that_are_no_unicode(bench: Bench) -> None:
    before = tree(bench.work)
    bench.command(r"printf x > $'bad\xff'; ln -s $'to\xfe' $'l\xfd'; printf y > $'new\nline'")
    assert len(bench.undo().files) == 3
    assert tree(bench.work) == before
    assert len(bench.redo().files) == 3


def test_temporary_files_of_killed_writers_go_and_are_never_recorded(bench: Bench) -> None:
    left = bench.work / "d" / f"{PREFIX}99999999-aa"
    left.write_bytes(b"half")
    os.utime(left, (0, 0))
    bench.command("true")
    bench.again()
    bench.history.first_copy()
    assert not left.exists()


def test_a_damaged_store_gives_nothing_back_and_says_so(bench: Bench) -> None:
    bench.edit("a", b"two")
    bench.history.close()
    with sqlite3.connect(bench.base / "state" / "checkpoints.db") as database:
        database.execute("UPDATE blobs SET data = zeroblob(9)")
    bench.history = bench.open()
    done = bench.undo()
    assert done.conflicts[0].why == "its stored content is missing or damaged"
    assert (bench.work / "a").read_bytes() == b"two"


def test_what_a_test_run_leaves_behind_is_no_last_change_while_there_is_another(bench: Bench) -> None:
    bench.command("mkdir docs")
    bench.edit("a.py", b"1")
    bench.command("mkdir .benchmarks; mkdir -p build && echo x > build/out")
    done = bench.undo()
    assert [Path(file.path).name for file in done.files] == ["a.py"]
    assert bench.redo().files
    assert [Path(file.path).name for file in bench.undo().files] == ["a.py"]
    assert [Path(file.path).name for file in bench.undo().files] == ["docs"]
    assert ".benchmarks" in [Path(file.path).name for file in bench.undo().files]


def test_what_another_session_changed_while_a_command_ran_is_left_alone(tmp_path: Path) -> None:
    mine, other = Bench(tmp_path), Bench(tmp_path, session="s2")
    (mine.work / "log").write_text("0\n")
    running = mine.history.begin(mine.origin("command", "make"), (), watch=True)
    (mine.work / "made").write_text("mine")
    other.edit("new", b"by the other")
    (mine.work / "log").write_text("0\nmine\n")
    other.edit("log", b"0\nmine\nother\n")
    mine.history.end(running)
    done = mine.undo()
    assert [file.path for file in done.files] == [str(mine.work / "made")]
    assert {left.path for left in done.conflicts} == {str(mine.work / "new"), str(mine.work / "log")}
    assert {left.why for left in done.conflicts} == {
        "another session changed it while t1 ran; /undo t1 reverts both changes"
    }
    assert (mine.work / "log").read_text() == "0\nmine\nother\n"
    assert [file.path for file in other.undo(Target("turn")).files] == [str(mine.work / "log"), str(mine.work / "new")]
    assert (mine.work / "log").read_text() == "0\nmine\n"
    assert names(mine, mine.undo(Target("call", name="t1")).conflicts) == {"log": "changed since"}
    assert os.listdir(mine.work) == ["log"]


def test_two_commands_at_the_same_time_revert_nothing_of_each_other(tmp_path: Path) -> None:
    mine, other = Bench(tmp_path), Bench(tmp_path, session="s2")
    first = mine.history.begin(mine.origin("command", "one"), (), watch=True)
    second = other.history.begin(other.origin("command", "two"), (), watch=True)
    (mine.work / "a").write_text("by one of them")
    mine.history.end(first)
    other.history.end(second)
    for bench in (mine, other):
        done = bench.undo()
        assert (done.files, [left.path for left in done.conflicts]) == ((), [str(mine.work / "a")])
        assert (mine.work / "a").read_text() == "by one of them"
    assert len(mine.undo(Target("call", name="t1")).files) == 1
    assert os.listdir(mine.work) == []


def test_a_server_of_another_session_claims_nothing_of_a_command(tmp_path: Path) -> None:
    mine, other = Bench(tmp_path), Bench(tmp_path, session="s2")
    server = other.history.begin(other.origin("command", "npm run dev"), (), watch=True)
    mine.command("echo a > a")
    other.history.end(server)
    assert other.undo().files == ()
    assert [file.path for file in mine.undo().files] == [str(mine.work / "a")]
    assert os.listdir(mine.work) == []


def test_a_fork_is_not_another_session(tmp_path: Path) -> None:
    mine = Bench(tmp_path)
    running = mine.history.begin(mine.origin("command", "sleep"), (), watch=True)
    mine.edit("a", b"1")
    (mine.work / "b").write_text("2")
    mine.history.end(running)
    with mine.rows().write() as connection:
        journal.inherit(connection, "s1", "s2")
    fork = Bench(tmp_path, session="s2")
    assert len(fork.undo(Target("turn")).files) == 2
    assert os.listdir(mine.work) == []


def test_a_file_that_swecli_writes_by_itself_is_not_a_commands(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "kept").write_text("1")
    bench = Bench(tmp_path, own=("notes", "kept"))
    running = bench.history.begin(bench.origin("command", "make"), (), watch=True)
    for name in ("notes", "kept", "made"):
        (bench.work / name).write_text("22")
    changes = bench.history.end(running)
    assert [os.path.basename(change.path) for change in changes] == ["made"]
    assert names(bench, bench.history.not_covered) == {"notes": "swecli's own data", "kept": "swecli's own data"}
    bench.again()
    assert [os.path.basename(file.path) for file in bench.undo().files] == ["made"]
    assert (bench.work / "notes").read_text() == "22"
    bench.command("rm notes")
    assert names(bench, bench.undo().not_covered) == {"notes": "swecli's own data"}


def test_a_copy_of_before_such_files_were_left_out_shows_no_change(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.command("echo 1 > notes")
    bench.own = (str(bench.work / "notes"),)
    bench.again()
    assert bench.command("echo 22 > notes") == ()
