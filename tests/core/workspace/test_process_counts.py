"""Nothing adds up over many commands. ``SWECLI_TIMEOUTS`` and ``SWECLI_COMMANDS`` say how many; soak sets both high."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from swecli.core.workspace import process_tree
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


async def test_only_processes_that_may_belong_to_a_command_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: dict[str, list[int]] = {"_listed": [], "_mark_of": []}

    def noted(name: str) -> Callable[[int], object]:
        function: Callable[[int], object] = getattr(process_tree, name)
        return lambda pid: (read[name].append(pid), function(pid))[1]

    for name in read:
        monkeypatch.setattr(process_tree, name, noted(name))
    bystander = await asyncio.create_subprocess_exec("sleep", f"7701.{ME}")
    await run(f"(sleep 7701.{ME} &)", tmp_path, PATIENCE)
    survivor, other = sorted(left(), key=lambda process: process.pid == bystander.pid)
    bystander.kill()
    survivor.kill()
    await bystander.wait()
    assert survivor.pid in read["_mark_of"]
    assert other.pid not in read["_mark_of"] + read["_listed"]
    begun = process_tree.Process.current().started
    stamps = [one.process.started for pid in read["_mark_of"] if (one := process_tree._listed(pid)) is not None]
    assert all(int(stamp) >= int(begun) for stamp in stamps)


@pytest.mark.parametrize(
    ("leader", "newest", "seconds", "possible"),
    [
        (300, 500, 0.1, [300, 400, 500]),
        (500, 200, 0.1, [100, 200, 500, 600]),  # ids began again
        (300, 500, 10.0, [100, 200, 300, 400, 500, 600]),  # they may have been given twice
    ],
)
def test_ids_are_given_in_order(
    leader: int, newest: int, seconds: float, possible: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"/proc/sys/kernel/pid_max": b"32768\n", "/proc/loadavg": f"0.1 0.2 0.3 1/600 {newest}\n".encode()}
    monkeypatch.setattr(os, "listdir", lambda path: ["100", "200", "300", "400", "500", "600", "self"])
    monkeypatch.setattr(Path, "read_bytes", lambda path: files[str(path)])
    assert process_tree._younger(leader, seconds) == possible
