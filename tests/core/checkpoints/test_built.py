"""Folders of build results that nobody ignores, and commands that change more than a turn may cost."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from swecli.core.checkpoints import built, shadow
from swecli.core.checkpoints.built import BUILT
from swecli.core.checkpoints.checkpoints import UntrackedPaths
from swecli.core.checkpoints.history import FORGOTTEN
from tests.core.checkpoints.support import OPTIONS, Bench

BUILD = "mkdir -p out/a out/b; for n in $(seq 20); do head -c 2000 /dev/urandom > out/a/$n.o; done; echo two > src"
"""Binary results, and one source that is changed, too."""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(built, "HEAVY_BYTES", 10_000)
    made = Bench(tmp_path)
    (made.work / "src").write_text("one\n")
    made.history.first_copy()
    return made


def stored(bench: Bench) -> int:
    """Bytes of stored contents."""
    with bench.history._rows.read() as connection:
        ((size,),) = connection.execute("SELECT coalesce(sum(size), 0) FROM blobs").fetchall()
    return int(size)


def left_out(bench: Bench) -> dict[str, str]:
    return {os.path.relpath(one.path, bench.work): one.why for one in bench.history.not_covered}


def test_a_folder_of_results_is_recognised_and_left_alone(bench: Bench) -> None:
    changes = bench.command(BUILD)
    assert left_out(bench) == {"out/a": BUILT}
    assert {os.path.relpath(one.path, bench.work) for one in changes} == {"src", "out", "out/a", "out/b"}
    before = stored(bench)
    assert bench.command(BUILD.replace("two", "three")) != ()
    bench.again()
    assert bench.command("rm out/a/1.o") == ()
    assert left_out(bench) == {"out/a": BUILT}
    assert stored(bench) <= before + 20
    bench.undo()
    assert (bench.work / "src").read_text() == "two\n"


def test_it_is_told_once(bench: Bench) -> None:
    bench.command(BUILD)
    notice = UntrackedPaths(str(bench.work), (str(bench.work),), str(bench.base)).notice(bench.history.newly_left_out())
    assert notice == "Not tracked (generated): out/a/. /undo can't revert changes by commands there."
    bench.command(BUILD)
    assert bench.history.newly_left_out() == []


def test_texts_without_a_repository_are_no_results(bench: Bench) -> None:
    bench.command("mkdir notes; for n in $(seq 20); do yes $n | head -c 2000 > notes/$n.txt; done")
    assert left_out(bench) == {}
    bench.command("rm -r notes")
    bench.undo()
    assert len(list((bench.work / "notes").iterdir())) == 20


@pytest.mark.parametrize("tracked", [True, False])
def test_in_a_repository_only_untracked_folders_are_results(bench: Bench, tracked: bool) -> None:
    make = "mkdir -p gen; for n in $(seq 20); do yes $n$X | head -c 2000 > gen/$n.txt; done"
    subprocess.run(["git", "init", "-q"], cwd=bench.work, check=True)
    if tracked:
        subprocess.run(["bash", "-c", f"{make}; git add gen"], cwd=bench.work, check=True)
    bench.command(f"X=new; {make}")
    assert left_out(bench) == {".git": "git's own data", **({} if tracked else {"gen": BUILT})}


def test_a_scan_reads_only_so_much(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(built, "HEAVY_BYTES", 1_000_000)
    monkeypatch.setattr(shadow, "MOST_BYTES", 10_000)
    bench.command("for n in $(seq 20); do yes $n | head -c 2000 > $n.txt; done")
    unread = [name for name, why in left_out(bench).items() if why == shadow.TOO_MUCH]
    assert len(unread) == 15
    assert bench.command("true") == ()


def test_a_file_read_one_scan_later_is_no_change_of_that_command(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(built, "HEAVY_BYTES", 1_000_000)
    monkeypatch.setattr(shadow, "MOST_BYTES", 10_000)
    monkeypatch.setattr(shadow, "is_racy", lambda status, now: True)  # each scan looks at all files anew
    bench.command("for n in $(seq 20); do yes $n | head -c 2000 > $n.txt; done")
    assert shadow.TOO_MUCH in left_out(bench).values()
    monkeypatch.setattr(shadow, "MOST_BYTES", 1_000_000)
    changes = bench.command("echo more >> 20.txt; chmod 600 19.txt")
    assert {os.path.basename(one.path) for one in changes} == {"19.txt", "20.txt"}
    assert left_out(bench) == {}


def test_a_full_store_forgets_the_oldest_changes(tmp_path: Path) -> None:
    bench = Bench(tmp_path, replace(OPTIONS, total=40_000))
    for number in range(12):
        bench.command(f"head -c 6000 /dev/urandom > data; echo {number} > count")
    assert left_out(bench) == {}
    bench.undo()
    assert (bench.work / "count").read_text() == "10\n"
    assert FORGOTTEN in bench.history.problems
