"""Checkpoints off the event loop: large workspaces, cancellation, closing in the middle, failing stores."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from swecli.core.checkpoints.checkpoints import Checkpoints
from swecli.core.checkpoints.history import FileHistory, Running
from swecli.core.checkpoints.journal import Origin
from swecli.core.checkpoints.restore import Target
from swecli.core.permissions.types import Effects
from swecli.core.protocol.events import FilesRestored
from tests.core.checkpoints.support import Bench
from tests.support.waiting import PATIENCE

COMMAND = Effects(command="echo > a")
NOT_COVERED = "/undo can't revert changes by commands to: {} (may hold secrets, judging by its name)."


def over(bench: Bench, history: FileHistory, wait: float = 30) -> Checkpoints:
    return Checkpoints(lambda: history, str(bench.work), (str(bench.work),), "/nowhere", wait=wait)


async def test_a_command_does_not_wait_for_ever_for_the_first_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)
    release = threading.Event()
    monkeypatch.setattr(bench.history, "first_copy", lambda: release.wait(PATIENCE))
    checkpoints = over(bench, bench.history, wait=0)
    told: list[str] = []
    checkpoints.tell = told.append
    async with checkpoints.around("s1", 1, "t1", "echo", COMMAND):
        (bench.work / "a").write_text("x")
    assert "still copying this large workspace" in told[0]
    release.set()
    async with checkpoints.around("s1", 1, "t2", "Edit b", Effects(writes=(str(bench.work / "b"),))):
        (bench.work / "b").write_text("x")
    done = await checkpoints.undo(Target())
    assert [Path(path.path).name for path in done.files] == ["b"]
    assert (await checkpoints.undo(Target())).files == ()
    await checkpoints.close()


async def test_what_only_reads_is_not_held_up_and_all_commands_wait_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)
    release = threading.Event()
    monkeypatch.setattr(bench.history, "first_copy", lambda: release.wait(PATIENCE))
    checkpoints = over(bench, bench.history, wait=0.05)
    checkpoints.start()
    async with checkpoints.around("s1", 1, "t1", "ls", COMMAND, reads_only=True):
        pass
    assert checkpoints.delays(COMMAND)
    assert not checkpoints.delays(Effects(writes=(str(bench.work / "b"),)))
    await checkpoints.ready()
    assert not checkpoints.delays(COMMAND)
    release.set()
    await checkpoints.close()


async def test_a_call_that_is_cancelled_is_recorded_as_far_as_it_came(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    checkpoints = over(bench, bench.history)

    async def call() -> None:
        async with checkpoints.around("s1", 1, "t1", "echo", COMMAND):
            (bench.work / "a").write_text("x")
            await asyncio.Event().wait()

    task = asyncio.create_task(call())
    while not (bench.work / "a").exists():  # noqa: ASYNC110
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    done = await checkpoints.undo(Target())
    assert [path.how for path in done.files] == ["removed"]
    await checkpoints.close()


async def test_cancelled_before_it_ran_leaves_nothing_open(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    checkpoints = over(bench, bench.history)
    for turns in range(6):

        async def call() -> None:
            async with checkpoints.around("s1", 1, "t1", "echo", COMMAND):
                await asyncio.Event().wait()

        task = asyncio.create_task(call())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await checkpoints.close()
    with sqlite3.connect(bench.base / "state" / "checkpoints.db") as database:
        assert database.execute("SELECT count(*) FROM operations").fetchone() == (0,)


async def test_a_call_that_is_cancelled_twice_is_recorded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path)
    checkpoints = over(bench, bench.history)
    looking, release = threading.Event(), threading.Event()
    running = asyncio.Event()
    preview = bench.history.preview

    def slow(turn: int) -> FilesRestored:
        looking.set()
        release.wait(PATIENCE)
        return preview(turn)

    monkeypatch.setattr(bench.history, "preview", slow)

    async def call() -> None:
        async with checkpoints.around("s1", 1, "t1", "echo", COMMAND):
            (bench.work / "a").write_text("x")
            running.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(call())
    await running.wait()
    look = asyncio.create_task(checkpoints.preview(1))  # the call's end has to wait for it
    await asyncio.to_thread(looking.wait, PATIENCE)
    for _ in range(2):
        task.cancel()
        for _ in range(6):
            await asyncio.sleep(0)
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    await look
    done = await checkpoints.undo(Target())
    assert [path.how for path in done.files] == ["removed"]
    await checkpoints.close()


async def test_cancelled_twice_while_it_begins_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)
    checkpoints = over(bench, bench.history)
    beginning, release = threading.Event(), threading.Event()
    begin = bench.history.begin

    def slow(origin: Origin, paths: Iterable[str], *, watch: bool, note: str = "") -> Running:
        beginning.set()
        release.wait(PATIENCE)
        return begin(origin, paths, watch=watch, note=note)

    monkeypatch.setattr(bench.history, "begin", slow)

    async def call() -> None:
        async with checkpoints.around("s1", 1, "t1", "Edit a", Effects(writes=(str(bench.work / "a"),))):
            raise AssertionError("it must not run")

    task = asyncio.create_task(call())
    await asyncio.to_thread(beginning.wait, PATIENCE)
    for _ in range(2):
        task.cancel()
        for _ in range(6):
            await asyncio.sleep(0)
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    await checkpoints.close()
    with sqlite3.connect(bench.base / "state" / "checkpoints.db") as database:
        assert database.execute("SELECT count(*) FROM operations").fetchone() == (0,)


async def test_reads_are_not_recorded_and_open_no_store(tmp_path: Path) -> None:
    def never() -> FileHistory:
        raise AssertionError

    checkpoints = Checkpoints(never, str(tmp_path), (str(tmp_path),), "/nowhere")
    async with checkpoints.around("s", 1, "t1", "Read a", Effects(reads=(str(tmp_path / "a"),))):
        pass
    await checkpoints.close()


async def test_a_store_that_breaks_on_the_way_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path)
    checkpoints = over(bench, bench.history)
    told: list[str] = []
    checkpoints.tell = told.append

    def full(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(bench.history, "end", full)
    for number in range(3):
        async with checkpoints.around("s1", 1, f"t{number}", "echo", COMMAND):
            (bench.work / "a").write_text(str(number))
    assert (bench.work / "a").read_text() == "2"
    assert len(told) == 1
    assert "disk is full" in told[0]
    assert "disk is full" in (await checkpoints.undo(Target())).reason
    assert "disk is full" in (await checkpoints.recent()).reason
    await checkpoints.close()


async def test_what_is_not_covered_is_told_once_and_in_no_later_session(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    (bench.work / "key.pem").write_text("secret\n")

    async def told(session: str) -> list[str]:
        bench.again()
        checkpoints = over(bench, bench.history)
        said: list[str] = []
        checkpoints.tell = said.append
        for item in ("t1", "t2"):
            async with checkpoints.around(session, 1, item, "echo", COMMAND):
                (bench.work / "a").write_text(item)
        assert checkpoints.warning(Effects(command="rm key.pem")) == (
            "/undo would not restore: key.pem (may hold secrets, judging by its name)"
        )
        await checkpoints.close()
        return said

    assert await told("s1") == [
        "/undo can't revert changes by commands to: key.pem (may hold secrets, judging by its name)."
    ]
    assert await told("s2") == []
    (bench.work / "other.pem").write_text("secret\n")
    assert await told("s3") == [
        "/undo can't revert changes by commands to: other.pem (may hold secrets, judging by its name)."
    ]


async def test_it_knows_which_files_it_could_restore_after_a_command(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    work = bench.work
    (work / "node_modules").mkdir()
    (work / ".git").mkdir(exist_ok=True)
    for name in ("a", "grown", "key.pem", "node_modules/x", ".git/description", "../outside"):
        (work / name).write_text("text\n")
    checkpoints = over(bench, bench.history)
    assert not checkpoints.restores((str(work / "a"),), "cp b a")  # before the first copy
    async with checkpoints.around("s1", 1, "t1", "echo", COMMAND):
        (work / "b").write_text("new\n")
    (work / "grown").write_bytes(bytes(2_000_001))
    outside = str(work.parent / "outside")
    names = [str(work / name) for name in ("a", "b", "grown", "key.pem", "node_modules/x", ".git/description")]
    assert [checkpoints.restores((name,), f"cp x {name}") for name in names] == [True, True, False, False, False, False]
    assert checkpoints.unrestorable((names[2],), "") == "grown (larger than 2 MB)"
    assert checkpoints.restores((outside,), f"cp x {outside}")
    assert not checkpoints.restores((outside,), "cp x $FILE")
    await checkpoints.close()


async def test_a_store_that_can_not_be_opened_is_told_and_explains_why_nothing_is_undone(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.edit("a", b"one")
    bench.history.close()
    (bench.base / "state" / "checkpoints.db").write_bytes(b"no database" * 1_000)
    told: list[str] = []
    checkpoints = Checkpoints(bench.open, str(bench.work), (str(bench.work),), str(tmp_path))
    checkpoints.tell = told.append
    done = [await checkpoints.undo(Target()), await checkpoints.undo(Target()), await checkpoints.redo()]
    await checkpoints.close()
    assert len(told) == 1
    assert "checkpoints.db" in told[0]
    assert all(told[0] in one.reason for one in done)
