"""What is kept of the trees between looks and between processes, and what lies beyond the limit of entries."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from swecli.core.checkpoints import shadow
from swecli.core.checkpoints.shadow import is_racy, stamp
from tests.core.checkpoints.support import OPTIONS, Bench
from tests.support.trees import tree

SECOND = 1_000_000_000
FEW = replace(OPTIONS, entries=40)


def fill(folder: Path, count: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        path = folder / f"f{number:03}"
        path.write_text(f"{number}\n")


def settled(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No file is too new to be trusted from here on; the paths that are read anew are in the list."""
    monkeypatch.setattr(shadow, "_RACY_NS", -SECOND)
    bench.history.first_copy()
    read: list[str] = []
    original = shadow.capture

    def counted(path: str, *rest: object, **options: object) -> object:
        read.append(path)
        return original(path, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(shadow, "capture", counted)
    return read


@pytest.mark.parametrize("entries", [OPTIONS.entries, 40])
def test_a_later_process_reads_no_file_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entries: int) -> None:
    bench = Bench(tmp_path, replace(OPTIONS, entries=entries))
    for name in "abc":
        fill(bench.work / name, 30)
    read = settled(bench, monkeypatch)
    left_out = bench.history.not_covered
    bench.again()
    bench.history.first_copy()
    bench.command("true")
    assert read == []
    assert bench.history.not_covered == left_out
    assert bool(left_out) == (entries == 40)


def test_a_change_between_two_processes_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path)
    fill(bench.work, 5)
    read = settled(bench, monkeypatch)
    bench.history.close()
    changed = bench.work / "f001"
    status = changed.stat()
    changed.write_text("x\n")
    os.utime(changed, ns=(status.st_atime_ns, status.st_mtime_ns))  # what looks like the old one
    bench.history = bench.open()
    bench.history.first_copy()
    assert read == [str(changed)]


def test_a_file_that_changed_just_now_is_read_at_the_next_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path)
    fill(bench.work, 3)
    read = settled(bench, monkeypatch)
    monkeypatch.setattr(shadow, "_RACY_NS", 3_600 * SECOND)
    (bench.work / "f000").write_text("new\n")
    bench.history.first_copy()
    bench.again()
    monkeypatch.setattr(shadow, "_RACY_NS", -SECOND)
    bench.history.first_copy()
    bench.history.first_copy()
    assert read.count(str(bench.work / "f000")) == 2


def status(ctime: int, *, mtime: int = 5, size: int = 7) -> os.stat_result:
    return os.stat_result(
        (0o100644, 1, 1, 1, 0, 0, size, 0, 0, 0), {"st_ctime_ns": ctime, "st_mtime_ns": mtime, "st_atime_ns": 0}
    )


@pytest.mark.parametrize(
    ("changed", "racy"),
    [
        (100 * SECOND - 20_000_000, True),
        (100 * SECOND - 60_000_001, False),
        (98 * SECOND, True),  # the file system keeps whole seconds
        (97 * SECOND, False),
        (200 * SECOND, True),  # the clock of another machine
    ],
)
def test_a_time_of_change_counts_once_no_other_change_can_bear_it(changed: int, racy: bool) -> None:
    assert is_racy(status(changed), 100 * SECOND) == racy


def test_each_time_and_the_size_tell_a_change() -> None:
    stamps = {stamp(each) for each in (status(1), status(2), status(1, mtime=6), status(1, size=8))}
    assert len(stamps) == 4
    assert max(stamp(status(2**62)), *stamps) < 2**63


@pytest.mark.parametrize("layout", ["one folder", "folders", "another process"])
def test_what_comes_into_sight_is_not_taken_for_made(tmp_path: Path, layout: str) -> None:
    bench = Bench(tmp_path, FEW)
    for name in "abcd" if layout != "one folder" else "a":
        fill(bench.work / name, 30 if layout != "one folder" else 90)
    bench.history.first_copy()
    if layout == "another process":
        bench.again()
        bench.history.first_copy()
    left_out = {one.path for one in bench.history.not_covered}
    assert left_out
    covered = {path for path in bench.work.rglob("f*") if not left_out & {str(path), str(path.parent)}}
    part = bench.work / "a"
    if str(part) in left_out:  # seen in part: only the record knows which
        covered = set()
    before = tree(bench.work)
    gone = sorted(covered)[:10] or [part / f"f{number:03}" for number in range(60)]
    bench.command(f"rm {' '.join(map(str, gone))}")
    done = bench.undo()
    back = {Path(path.path) for path in done.files}
    assert back
    assert back <= set(gone)  # what came into sight was not removed
    assert not covered or tree(bench.work) == before
    assert before.keys() - {str(path.relative_to(bench.work)) for path in gone} <= tree(bench.work).keys()
