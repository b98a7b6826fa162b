"""Nothing adds up over many commands. ``SWECLI_TIMEOUTS`` and ``SWECLI_COMMANDS`` say how many; soak sets both high."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil
import pytest

from swecli.core.workspace.process import run_process
from tests.support.processes import ME, running_with
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

TIMEOUTS = int(os.environ.get("SWECLI_TIMEOUTS", "5"))
COMMANDS = int(os.environ.get("SWECLI_COMMANDS", "50"))
SURVIVORS = (
    f"setsid sleep 7701.{ME} & sleep 7701.{ME}",
    f"trap '' TERM; (setsid bash -c 'trap \"\" TERM; sleep 7701.{ME}' &); sleep 7701.{ME}",
    f"(setsid setsid sleep 7701.{ME} >/dev/null 2>&1 &) ; (sleep 7701.{ME} &) ; sleep 7701.{ME}",
    f"nohup sleep 7701.{ME} & for i in 1 2 3; do setsid -f sleep 7701.{ME}; done; sleep 7701.{ME}",
)


def left() -> list[psutil.Process]:
    return running_with(f"7701.{ME}")


def zombies() -> list[int]:
    me = psutil.Process()
    return [child.pid for child in me.children(recursive=True) if child.status() == psutil.STATUS_ZOMBIE]


async def run(command: str, folder: Path, timeout: float) -> None:
    await run_process(command, cwd=folder, environment={"PATH": os.environ["PATH"]}, timeout=timeout)


async def test_timeouts_leave_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swecli.core.workspace.process.GRACE", 0.1)
    for number in range(TIMEOUTS):
        await run(SURVIVORS[number % len(SURVIVORS)], tmp_path, 0.05 + 0.01 * (number % 7))
        assert left() == [], f"round {number}"
    assert zombies() == []


async def test_short_commands_leave_no_zombie_and_no_open_file(tmp_path: Path) -> None:
    await run("true", tmp_path, PATIENCE)
    before = psutil.Process().num_fds()
    for number in range(COMMANDS):
        await run(("true", "echo x", "exit 3", "cat")[number % 4], tmp_path, PATIENCE)
    assert psutil.Process().num_fds() <= before
    assert zombies() == []


async def test_processes_that_are_older_than_swecli_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[psutil.Process] = []
    environ = psutil.Process.environ

    def noted(process: psutil.Process) -> dict[str, str]:
        read.append(process)
        return environ(process)

    monkeypatch.setattr(psutil.Process, "environ", noted)
    await run(f"(sleep 7701.{ME} &)", tmp_path, PATIENCE)
    (survivor,) = left()
    survivor.kill()
    begun = psutil.Process().create_time()
    assert survivor in read
    assert [process for process in read if process.create_time() < begun] == []
