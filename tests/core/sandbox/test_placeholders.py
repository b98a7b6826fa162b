from __future__ import annotations

import os
from pathlib import Path

import pytest

from swecli.core.sandbox.bubblewrap import PlaceholderError, Placeholders
from swecli.core.sandbox.plan import Placeholder


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return Path(os.path.realpath(tmp_path / "work"))


def wanted(work: Path) -> list[Placeholder]:
    return [Placeholder(str(work / "a")), Placeholder(str(work / "a" / "b"), b""), Placeholder(str(work / "c"), b".\n")]


def test_names_appear_and_disappear(work: Path) -> None:
    names = Placeholders(work.parent / "state")
    lock = names.hold(wanted(work))
    assert (work / "a").is_dir()
    assert (work / "c").read_bytes() == b".\n"
    assert names.release(lock)
    assert not list(work.iterdir())


def test_nothing_is_removed_while_another_command_runs(work: Path) -> None:
    one, other = Placeholders(work.parent / "state"), Placeholders(work.parent / "state")
    first, second = one.hold(wanted(work)), other.hold(wanted(work))
    assert not one.release(first, seconds=0)
    assert (work / "a" / "b").exists()
    assert other.release(second)
    assert not list(work.iterdir())


def test_a_later_run_removes_what_a_crash_left(work: Path) -> None:
    lock = Placeholders(work.parent / "state").hold(wanted(work))
    os.close(lock)  # as the end of a killed process does
    assert (work / "c").exists()
    assert Placeholders(work.parent / "state").sweep()
    assert not list(work.iterdir())


def test_a_torn_record_is_no_obstacle(work: Path) -> None:
    lock = Placeholders(work.parent / "state").hold(wanted(work))
    os.close(lock)
    with (work.parent / "state" / "placeholders").open("a") as record:
        record.write('["/torn')
    assert Placeholders(work.parent / "state").sweep()
    assert not list(work.iterdir())


def test_what_somebody_used_meanwhile_is_kept(work: Path) -> None:
    names = Placeholders(work.parent / "state")
    lock = names.hold(wanted(work))
    (work / "a" / "mine").write_text("kept")
    (work / "c").write_text("other")
    assert names.release(lock)
    assert sorted(path.name for path in work.rglob("*")) == ["a", "c", "mine"]


def test_what_was_there_before_is_neither_made_nor_removed(work: Path) -> None:
    (work / "a").mkdir()
    (work / "c").write_bytes(b".\n")
    names = Placeholders(work.parent / "state")
    assert names.release(names.hold(wanted(work)))
    assert (work / "a").is_dir()
    assert (work / "c").exists()


def test_links_that_were_put_in_the_way_are_not_followed(work: Path) -> None:
    target = work.parent / "target"
    (target / "b").mkdir(parents=True)
    names = Placeholders(work.parent / "state")
    lock = names.hold([Placeholder(str(work / "a")), Placeholder(str(work / "a" / "b"))])
    os.rmdir(work / "a" / "b")
    os.rmdir(work / "a")
    os.symlink(target, work / "a")
    assert names.release(lock)
    assert (target / "b").is_dir()
    assert (work / "a").is_symlink()


def test_a_name_that_can_not_be_made_is_an_error(work: Path) -> None:
    names = Placeholders(work.parent / "state")
    with pytest.raises(PlaceholderError, match="cannot block"):
        names.hold([Placeholder(str(work / "missing" / "x"))])
    assert names.sweep()
