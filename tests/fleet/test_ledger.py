"""The ledger: one truth in SQLite, files for others, continued after any crash."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from pathlib import Path

import pytest

from swecli.fleet.ledger import PREDICTIONS, RESULTS, SCRATCH, Ledger, LedgerError, file_name, read_ledger
from swecli.fleet.link import Ended
from swecli.fleet.tasks import Task
from swecli.launch import StartError

PASSED = Ended("passed", "", "", patch=b"diff --git a b\n", model="x/y", tokens_in=3)


def tasks(*names: str, prompt: str = "p") -> list[Task]:
    return [Task(name, "/r", prompt) for name in names]


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_tasks_are_taken_in_order_and_end_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "out", resume=False)
    assert ledger.merge(tasks("b", "a")).left == 2
    taken = ledger.next(0.0)
    assert taken is not None
    first, number = taken
    assert (first.id, number) == ("b", 1)
    assert ledger.finish(first, 1, PASSED, b"{}")
    assert not ledger.finish(first, 1, Ended("failed", "check", "again", patch=b"other"), None)
    (line,) = lines(tmp_path / "out" / RESULTS)
    assert (line["id"], line["status"], line["patch"]) == ("b", "passed", "patches/b.diff")
    assert (tmp_path / "out" / "patches" / "b.diff").read_bytes() == PASSED.patch
    assert lines(tmp_path / "out" / PREDICTIONS) == [
        {"instance_id": "b", "model_name_or_path": "swecli+x/y", "model_patch": PASSED.patch.decode()}
    ]
    ledger.close()


def test_a_repeated_task_waits_until_it_is_due(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "out", resume=False)
    ledger.merge(tasks("a"))
    taken = ledger.next(0.0)
    assert taken is not None
    ledger.again(taken[0], 50.0)
    assert ledger.next(49.0) is None
    assert ledger.due() == 50.0
    again = ledger.next(50.0)
    assert again is not None
    assert again[1] == 2
    ledger.close()


def test_resume_runs_what_is_not_finished_and_repairs_the_files(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    ledger = Ledger(folder, resume=False)
    ledger.merge(tasks("a", "b", "c", "d"))
    for ended in (PASSED, Ended("broken", "clone", "x"), Ended("stopped", "budget", "x")):
        taken = ledger.next(0.0)
        assert taken is not None
        ledger.finish(taken[0], 1, ended, None)
    ledger.next(0.0)
    ledger.add_spent("a-1", 10, "0.25")
    ledger.add_spent("a-1", 5, None)
    ledger.close()
    (folder / RESULTS).write_text('{"id": "a", "half')  # a crash in the middle of a line
    (folder / SCRATCH / "d-1").mkdir(parents=True)
    with pytest.raises(StartError, match="a run of 4 tasks, 1 of them finished"):
        Ledger(folder, resume=False)
    ledger = Ledger(folder, resume=True)
    assert ledger.begin() == 3
    assert [line["id"] for line in lines(folder / RESULTS)] == ["a"]
    assert not (folder / SCRATCH).exists()
    assert ledger.spent() == (15, Decimal("0.25"))
    taken = ledger.next(0.0)
    assert taken is not None
    assert (taken[0].id, taken[1]) == ("b", 1)
    ledger.close()


def test_a_changed_list_is_merged_by_id(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "out", resume=False)
    ledger.merge(tasks("a", "b", "c"))
    for _ in range(3):
        taken = ledger.next(0.0)
        assert taken is not None
        ledger.finish(taken[0], 1, PASSED, None)
    merged = ledger.merge([*tasks("new", "a"), *tasks("b", prompt="other")])
    assert (merged.new, merged.changed, merged.gone, merged.left) == (1, 1, 1, 2)
    assert ledger.counts() == {"waiting": 2, "passed": 1}
    assert sorted(str(line["id"]) for line in ledger.results()) == ["a", "c"]
    ledger.close()


def test_a_second_fleet_in_the_folder_is_refused_and_names_the_first(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "out", resume=False)
    with pytest.raises(StartError, match=rf"Another fleet \(process {os.getpid()}\) is working"):
        Ledger(tmp_path / "out", resume=True)
    assert list(read_ledger(tmp_path / "out").results()) == []  # reading is allowed
    ledger.close()
    Ledger(tmp_path / "out", resume=True).close()


def test_a_folder_with_other_files_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StartError, match="files that are not a fleet's"):
        Ledger(tmp_path, resume=False)
    with pytest.raises(StartError, match="is not a fleet's folder"):
        read_ledger(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="cannot be used"):
        Ledger(tmp_path / "file", resume=False)


def test_a_database_of_something_else_is_an_error_not_a_loss(tmp_path: Path) -> None:
    (tmp_path / "fleet.sqlite").write_text("this is no database, but long enough to look like a file of one" * 20)
    with pytest.raises(StartError, match="cannot be used"):
        Ledger(tmp_path, resume=True)
    assert (tmp_path / "fleet.sqlite").read_text().startswith("this is no database")


def test_what_cannot_be_written_is_an_error_and_the_task_is_run_again(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    ledger = Ledger(folder, resume=False)
    ledger.merge(tasks("a"))
    taken = ledger.next(0.0)
    assert taken is not None
    (folder / "patches").rmdir()
    (folder / "patches").write_text("in the way")
    with pytest.raises(LedgerError, match="cannot be written"):
        ledger.finish(taken[0], 1, PASSED, None)
    assert list(ledger.results()) == []
    ledger.close()


@pytest.mark.parametrize("name", ["a/b", "../../etc", ".hidden", "x" * 200, "nul\u202e", "a%b", "tests/a.py::test[1]"])
def test_files_of_any_id_stay_in_their_folder(name: str) -> None:
    found = file_name(name)
    assert "/" not in found
    assert not found.startswith(".")
    assert len(found) <= 120
    assert found != file_name(f"{name}x")
