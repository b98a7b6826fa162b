"""Commands in the background: they go on, are found, read, stopped, and end with the session."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest

from swecli.core.workspace import jobs
from swecli.core.workspace.jobs import JobInfo, Jobs, JobsError, RunOptions
from swecli.core.workspace.process import CommandSpec, ProcessResult, scrubbed_environment
from tests.support.processes import ME, lives
from tests.support.waiting import PATIENCE, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


class Bench:
    """Jobs of a test, with what was said of them and what was let go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.changes: list[JobInfo] = []
        self.finished: list[tuple[str, int | None]] = []
        self.jobs = Jobs(self.changes.append, folder / "output")

    async def run(
        self,
        command: str,
        *,
        item: str = "t1",
        timeout: float | None = PATIENCE,
        background: bool = False,
        show: Callable[[str], None] | None = None,
    ) -> ProcessResult:
        spec = CommandSpec(command, self.folder, scrubbed_environment(os.environ))
        return await self.jobs.run(spec, RunOptions(item, timeout, background), self._finish, show)

    def _finish(self, output: str, status: int | None) -> str:
        self.finished.append((output, status))
        return "the reason" if status == 9 else ""


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    yield made
    await made.jobs.close()
    assert made.jobs.running == ()


def alive(pid: int) -> bool:
    try:
        return lives(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


async def test_an_ordinary_command_is_no_job(bench: Bench) -> None:
    result = await bench.run("echo hi; exit 3")
    assert (result.output, result.exit_status, result.ending, result.job) == ("hi\n", 3, "exited", "")
    assert (bench.jobs.all, bench.changes, bench.finished) == ((), [], [])


async def test_what_a_command_leaves_running_becomes_a_job_until_it_ends(bench: Bench) -> None:
    result = await bench.run("(while [ ! -e stop ]; do sleep 0.02; done; echo late) & echo hi")
    assert (result.output, result.exit_status, result.job) == ("hi\n", 0, "j1")
    (info,) = bench.jobs.running
    assert (info.status, info.exit_status, info.item) == ("running", 0, "t1")
    assert bench.finished == []
    (bench.folder / "stop").touch()
    await bench.jobs.wait("j1", PATIENCE)
    assert await bench.jobs.new_output("j1", 1_000, 1_000) == "late\n"
    assert bench.finished == [("hi\nlate\n", 0)]
    assert [change.status for change in bench.changes] == ["running", "exited"]


async def test_a_child_whose_output_goes_elsewhere_is_a_job_too(bench: Bench) -> None:
    result = await bench.run(f"setsid sleep 7501.{ME} >/dev/null 2>&1 & echo up")
    assert result.job == "j1"
    pids = [process.pid for process in result.background]
    stopped = await bench.jobs.stop("j1")
    assert (stopped.status, stopped.exit_status) == ("killed", 0)
    assert not any(alive(pid) for pid in pids)


async def test_started_in_the_background_it_gives_what_it_wrote_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "FIRST_LOOK", 3_600.0)
    shown: list[str] = []
    task = asyncio.create_task(
        bench.run(f"echo ready; sleep 7502.{ME}", background=True, timeout=None, show=shown.append)
    )
    await until(lambda: bool(shown))
    assert bench.jobs.to_background("t1")  # as if the first look were over
    result = await task
    assert (result.output, result.exit_status, result.ending, result.job) == ("ready\n", None, "background", "j1")
    assert bench.jobs.info("j1").unread == 0
    failed = await bench.run("echo no such port; exit 9", background=True, timeout=None)
    assert (failed.exit_status, failed.job) == (9, "")


async def test_a_running_command_is_sent_to_the_background(bench: Bench) -> None:
    shown: list[str] = []
    task = asyncio.create_task(bench.run("echo one; while [ ! -e go ]; do sleep 0.02; done; exit 9", show=shown.append))
    await until(lambda: bool(shown))
    assert not bench.jobs.to_background("t2")
    assert bench.jobs.to_background("t1")
    result = await task
    assert (result.ending, result.output, result.job) == ("background", "one\n", "j1")
    assert not bench.jobs.to_background("t1")
    (bench.folder / "go").touch()
    await bench.jobs.wait("j1", PATIENCE)
    info = bench.jobs.info("j1")
    assert (info.status, info.exit_status, info.note, info.reported) == ("exited", 9, "the reason", False)
    await bench.jobs.new_output("j1", 10, 10)
    assert bench.jobs.info("j1").reported


async def test_cancelling_the_foreground_leaves_jobs_alone(bench: Bench) -> None:
    await bench.run(f"sleep 7503.{ME}", background=True, timeout=None)
    task = asyncio.create_task(bench.run(f"echo on; sleep 7503.{ME}", item="t2"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [info.id for info in bench.jobs.running] == ["j1"]


async def test_reading_gives_each_piece_once_and_both_ends_of_a_flood(bench: Bench) -> None:
    fifo = bench.folder / "go"
    os.mkfifo(fifo)
    await bench.run("exec 3<>go; while read -r n <&3; do seq $n; done", background=True, timeout=None)
    fifo.write_text("3\n")
    await until(lambda: bench.jobs.info("j1").size >= 6)
    assert await bench.jobs.new_output("j1", 100, 100) == "1\n2\n3\n"
    assert await bench.jobs.new_output("j1", 100, 100) == ""
    fifo.write_text("200000\n")
    await until(lambda: bench.jobs.info("j1").size >= 6 + 1_288_895)
    text = await bench.jobs.new_output("j1", 10, 14)
    assert text.startswith("1\n2\n3\n4\n5\n")
    assert text.endswith("199999\n200000\n")
    assert "bytes of output not kept" in text
    assert (await bench.jobs.output("j1", 2_000_000, 0)).count("\n") == 200_003


async def test_what_is_written_while_the_output_is_read_comes_with_the_next_piece(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = await bench.run(f"echo one; sleep 7507.{ME} & wait", background=True, timeout=None)
    await until(lambda: bench.jobs.info(result.job).size == 4)
    await bench.jobs.new_output(result.job, 1_000, 1_000)
    output = bench.jobs._jobs[result.job].running.output
    read = output.text
    output.add(b"two\n")

    def late(*arguments: int) -> tuple[str, int]:
        output.add(b"three\n")
        return read(*arguments)

    monkeypatch.setattr(output, "text", late)
    assert await bench.jobs.new_output(result.job, 1_000, 1_000) == "two\n"
    monkeypatch.setattr(output, "text", read)
    assert await bench.jobs.new_output(result.job, 1_000, 1_000) == "three\n"


async def test_the_end_of_the_session_ends_what_ignores_it(bench: Bench) -> None:
    result = await bench.run(f"trap '' TERM; setsid sleep 7504.{ME} & sleep 7504.{ME}", background=True, timeout=None)
    pids = [bench.jobs.info(result.job).pid, *(process.pid for process in result.background)]
    await bench.jobs.close()
    assert not any(alive(pid) for pid in pids)
    assert bench.changes[-1].status == "killed"
    assert len(bench.finished) == 1


async def test_old_jobs_are_forgotten_and_too_many_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(JobsError, match=r"Unknown job 'j9'\. Jobs: none"):
        bench.jobs.info("j9")
    monkeypatch.setattr(jobs, "FIRST_LOOK", 0.0)
    for number in range(7):
        await bench.run(f"sleep 7505.{ME}; echo {number}", background=True, timeout=None)
        await bench.jobs.stop(f"j{number + 1}")
    assert [info.id for info in bench.jobs.all] == ["j3", "j4", "j5", "j6", "j7"]
    monkeypatch.setattr(jobs, "MOST_RUNNING", 1)
    await bench.run(f"sleep 7505.{ME}", background=True, timeout=None)
    with pytest.raises(JobsError, match="Nothing was started"):
        await bench.run(f"sleep 7505.{ME}", background=True, timeout=None)
    assert (await bench.run(f"sleep 7505.{ME} & echo fine")).job == "j9"


async def test_a_job_that_outlives_later_ones_keeps_its_output_when_it_ends(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "FIRST_LOOK", 0.0)
    await bench.run(f"echo first; sleep 7506.{ME}", background=True, timeout=None)
    for number in range(2, 8):
        await bench.run(f"sleep 7506.{ME}", background=True, timeout=None)
        await bench.jobs.stop(f"j{number}")
    assert (await bench.jobs.stop("j1")).status == "killed"
    assert await bench.jobs.output("j1") == "first\n"
    assert [info.id for info in bench.jobs.all] == ["j1", "j4", "j5", "j6", "j7"]


async def test_the_end_of_a_job_is_judged_by_the_end_of_its_output(bench: Bench) -> None:
    result = await bench.run("(while [ ! -e stop ]; do sleep 0.02; done; echo end) & seq 2000")
    (bench.folder / "stop").touch()
    await bench.jobs.wait(result.job, PATIENCE)
    ((output, _),) = bench.finished
    assert output.endswith("2000\nend\n")
    assert "\n100\n" not in output
