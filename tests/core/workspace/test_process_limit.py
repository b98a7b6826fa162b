"""A command that starts more and more is ended. What is started here stops by itself, at most 120 processes."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from swecli.core.tools.run_command import report
from swecli.core.workspace import process_limit
from swecli.core.workspace.jobs import JobInfo, Jobs, RunOptions
from swecli.core.workspace.process import MOST_LEFT, CommandSpec, ProcessResult, run_process, scrubbed_environment
from swecli.core.workspace.process_limit import ProcessLimit, pids_folder
from tests.support.processes import ME, running_with
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


async def run(
    command: str, folder: Path, jobs: Jobs, timeout: float = PATIENCE, *, whole: bool = False
) -> ProcessResult:
    spec = CommandSpec(command, folder, scrubbed_environment(os.environ))
    return await jobs.run(spec, RunOptions("t1", timeout, whole=whole), lambda text, status: "")


@pytest.fixture(params=["by the kernel, where it can", "by looking"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who keeps the limit."""
    if request.param == "by looking":
        monkeypatch.setattr(process_limit, "_new_group", lambda most: None)


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("start", ["{sleep} &", "setsid {sleep} &", "(setsid setsid {sleep} &);"])
async def test_a_command_with_too_many_processes_is_ended_with_all_of_them(start: str, tmp_path: Path) -> None:
    jobs = Jobs(lambda info: None, processes=40)
    start = start.format(sleep=f"sleep 7901.{ME}")
    command = f"n=0; while [ $n -lt 120 ]; do n=$((n + 1)); {start} done 2>/dev/null; sleep 600"
    result = await run(command, tmp_path, jobs)
    assert (result.ending, result.exit_status, result.job) == ("processes", None, "")
    assert running_with(f"7901.{ME}") == []
    assert "tools.process_limit" in report(command, result, 60, "")


@pytest.mark.usefixtures("kept")
async def test_what_it_left_in_the_background_is_held_to_the_limit(tmp_path: Path) -> None:
    changes: list[JobInfo] = []
    jobs = Jobs(changes.append, processes=40)
    grow = f"n=0; while [ $n -lt 120 ]; do n=$((n + 1)); sleep 7902.{ME} & done; wait"
    result = await run(f"(while [ ! -e go ]; do sleep 0.02; done; {grow}) 2>/dev/null & echo up", tmp_path, jobs)
    assert (result.ending, result.output, result.job) == ("exited", "up\n", "j1")
    (tmp_path / "go").touch()
    await jobs.wait("j1", PATIENCE)
    assert (changes[-1].status, changes[-1].note) == ("killed", "ended because it exceeded 40 processes")
    assert running_with(f"7902.{ME}") == []


async def test_a_command_within_the_limit_is_left_alone(tmp_path: Path) -> None:
    result = await run("for n in 1 2 3 4 5; do sleep 0.3 & done; wait; echo fine", tmp_path, Jobs(lambda info: None))
    assert (result.ending, result.exit_status, result.output) == ("exited", 0, "fine\n")


@pytest.mark.parametrize("jobs", [True, False])
async def test_dozens_of_leftovers_are_no_background_job(jobs: bool, tmp_path: Path) -> None:
    command = f"for n in $(seq {MOST_LEFT + 3}); do sleep 7903.{ME} & done; echo done"
    if jobs:
        result = await run(command, tmp_path, Jobs(lambda info: None))
    else:
        environment = scrubbed_environment(os.environ)
        result = await run_process(command, cwd=tmp_path, environment=environment, timeout=PATIENCE)
    assert (result.ending, result.exit_status, result.background, result.job) == ("exited", 0, (), "")
    assert result.ended_left == MOST_LEFT + 3
    assert running_with(f"7903.{ME}") == []
    assert f"It left {MOST_LEFT + 3} processes running" in report(command, result, 60, "")


async def test_the_timeout_that_was_asked_for_ends_what_it_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes: list[JobInfo] = []
    jobs = Jobs(changes.append)
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + PATIENCE, time=time.time)
    monkeypatch.setattr("swecli.core.workspace.jobs.time", later)  # so the time is over once it is a job
    result = await run(f"trap '' TERM; setsid sleep 7904.{ME} & echo hi", tmp_path, jobs, timeout=PATIENCE, whole=True)
    assert (result.output, result.job) == ("hi\n", "j1")
    await jobs.wait("j1", PATIENCE)
    assert (changes[-1].status, changes[-1].note) == ("killed", "ended at its command's timeout")
    assert running_with(f"7904.{ME}") == []


def test_processes_that_end_elsewhere_hide_no_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_limit, "_new_group", lambda most: None)
    monkeypatch.setattr(process_limit, "_tasks_of_machine", lambda: 500)
    few, many = ProcessLimit(60), ProcessLimit(40)
    members: list[Any] = [SimpleNamespace(threads=25), SimpleNamespace(threads=25)]
    assert not any(few.reached(lambda: members) for _ in range(20))
    assert sum(many.reached(lambda: members) for _ in range(20)) == 2


def groups() -> list[str]:
    """The cgroups that this process made and that are still there."""
    parent = pids_folder(Path("/proc/self/cgroup").read_text(encoding="utf-8"), Path("/sys/fs/cgroup"))
    return [] if parent is None else [one.name for one in parent.glob(f"swecli-{os.getpid()}-*")]


async def test_limits_leave_nothing_behind(tmp_path: Path) -> None:
    before = groups()
    jobs = Jobs(lambda info: None)
    tasks = len(asyncio.all_tasks())
    for _ in range(5):
        await run("true", tmp_path, jobs)
    await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == tasks
    assert groups() == before


def test_an_ordinary_user_is_bound_by_the_kernel_and_cannot_raise_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource
    import subprocess

    monkeypatch.setattr(process_limit, "_new_group", lambda most: None)
    monkeypatch.setattr(process_limit.os, "geteuid", lambda: 12_345)
    before = resource.getrlimit(resource.RLIMIT_NPROC)
    with ProcessLimit(50).inherited() as bind:
        process = subprocess.Popen(["bash", "-c", "ulimit -Su; read x; ulimit -Hu"], stdin=-1, stdout=-1, text=True)
        bind(process.pid)
    soft, hard = process.communicate("go\n")[0].split()
    assert soft == hard == "66"
    assert resource.getrlimit(resource.RLIMIT_NPROC) == before


def test_a_cgroup_is_made_below_ones_own_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "pids" / "docker" / "x").mkdir(parents=True)
    assert pids_folder("8:pids:/docker/x\n0::/\n", tmp_path) == tmp_path / "pids" / "docker" / "x"
    assert pids_folder("8:cpu,pids:/hidden\n", tmp_path) == tmp_path / "pids"
    own = tmp_path / "user.slice"
    own.mkdir()
    assert pids_folder("0::/user.slice\n", tmp_path) is None
    (own / "cgroup.subtree_control").write_text("memory\n")
    assert pids_folder("0::/user.slice\n", tmp_path) is None
    (own / "cgroup.subtree_control").write_text("memory pids\n")
    assert pids_folder("0::/user.slice\n", tmp_path) == own
    assert pids_folder("", tmp_path) is None
