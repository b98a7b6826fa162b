"""What a session changed, from its first change to its last."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swecli.core.checkpoints import history as module
from swecli.core.checkpoints.history import RunChanges
from swecli.core.protocol.blocks import DiffBlock
from tests.core.checkpoints.support import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path)
    (made.work / "a").write_text("one\n")
    (made.work / "b").write_text("two\n")
    made.history.first_copy()
    return made


def changed(bench: Bench) -> dict[str, DiffBlock]:
    found = bench.history.difference()
    assert not found.reason
    return {os.path.relpath(block.path, bench.work): block for block in found.files}


def test_several_changes_of_a_file_are_one(bench: Bench) -> None:
    bench.edit("a", b"1\n")
    bench.command("echo 2 > a; rm b; mkdir d; echo new > d/c")
    bench.edit("a", b"3\n")
    found = changed(bench)
    assert {name: (block.old, block.new) for name, block in found.items()} == {
        "a": ("one\n", "3\n"),
        "b": ("two\n", None),
        "d/c": (None, "new\n"),
    }


def test_what_is_as_it_was_or_was_taken_back_is_left_out(bench: Bench) -> None:
    assert changed(bench) == {}
    bench.edit("a", b"1\n")
    bench.edit("a", b"one\n")
    bench.edit("b", b"3\n")
    assert list(changed(bench)) == ["b"]
    bench.undo()
    assert changed(bench) == {}


def test_what_one_run_changed_includes_commands_but_nothing_that_is_as_before(bench: Bench) -> None:
    bench.edit("b", b"of an earlier run\n")
    bench.again()
    assert bench.history.run_changes() == RunChanges({})
    bench.edit("a", b"1\n")
    bench.edit("came", b"1\n")
    bench.command("rm came b; mkdir -p build; echo x > build/out; echo new > c")
    bench.edit("taken-back", b"1\n")
    bench.undo()
    bench.command("echo 3 >> a")
    found = bench.history.run_changes()
    names = {os.path.relpath(path, bench.work): existed for path, existed in found.changed.items()}
    assert list(names.items()) == [("c", False), ("b", True), ("a", True)]
    recorded = {os.path.relpath(path, bench.work) for path in found.recorded}
    assert {"came", "taken-back"} <= recorded - names.keys()


def test_what_is_no_text_is_named(bench: Bench) -> None:
    bench.command("printf 'a\\0b' > a; chmod 755 b; ln -s a link")
    found = changed(bench)
    assert found["a"].note == "binary, 3 bytes"
    assert found["b"].note == "mode 644 -> 755"
    assert "link to a" in found["link"].note


def test_more_than_is_shown_is_counted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FILES", 2)
    monkeypatch.setattr(module, "MOST_BYTES", 10)
    bench.command("seq 20 > a; rm b; echo > c")
    found = bench.history.difference()
    assert (len(found.files), found.more) == (2, 1)
    assert "too large" in found.files[0].note


def test_generated_folders_are_counted_unless_asked_for_or_edited(bench: Bench) -> None:
    bench.command(
        "mkdir -p build/sub cache; seq 3 > build/x; seq 3 > build/sub/y; echo > src.py; echo '/cache' > .gitignore"
    )
    bench.edit("build/by_hand", b"1\n")
    found = bench.history.difference()
    names = [os.path.relpath(block.path, bench.work) for block in found.files]
    assert names == [".gitignore", "build/by_hand", "src.py"]
    assert found.generated.line(bench.work) == "and 2 files in a generated folder (build/); not tracked: cache/"
    below = bench.history.difference(str(bench.work / "build"))
    assert len(below.files) == 3
    assert not below.generated.files


def test_folders_that_are_not_recorded_hold_none_of_the_counted_files(bench: Bench) -> None:
    bench.command("mkdir -p build node_modules/p; seq 3 > build/x; seq 3 > build/y; echo > node_modules/p/index.js")
    found = bench.history.difference()
    assert found.generated.line(bench.work) == "and 2 files in a generated folder (build/); not tracked: node_modules/"
    bench.command("rm -r build")
    found = bench.history.difference()
    assert found.generated.line(bench.work) == "generated, not tracked: node_modules/"


def test_since_a_message_only_files_count_that_a_rewind_could_change(bench: Bench) -> None:
    bench.command("mkdir -p node_modules/p __pycache__; echo > node_modules/p/index.js; echo > __pycache__/m.pyc")
    bench.command("echo new > c; echo passing > d")
    bench.command("mv d e")
    assert bench.history.changed_since([1]) == {1: module.ChangedSince(2, 2, 0)}
    shown = [(os.path.basename(file.path), file.how) for file in bench.history.preview(1).files]
    assert sorted(shown) == [("c", "removed"), ("e", "removed")]
    done = bench.history.rewind(1, "back")
    assert sorted(os.path.basename(file.path) for file in done.files) == ["c", "e"]
    again = bench.history.unwind("back", 1)
    assert sorted(os.path.basename(file.path) for file in again.files) == ["c", "e"]
    assert (bench.work / "e").read_text() == "passing\n"
    assert not (bench.work / "d").exists()
