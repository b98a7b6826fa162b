"""A command neither holds up, floods nor outlives."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from swecli.core.tools.run_command import report
from swecli.core.workspace import process, process_tree
from swecli.core.workspace.process import (
    CommandSpec,
    LaunchError,
    ProcessResult,
    RunningCommand,
    ended_unless_done,
    fills_screen,
    finished,
    run_process,
    scrubbed_environment,
)
from tests.support.processes import ME, running_with
from tests.support.waiting import PATIENCE, until

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


async def run(
    command: str, folder: Path, *, timeout: float | None = PATIENCE, output: Callable[[str], None] | None = None
) -> ProcessResult:
    return await run_process(
        command, cwd=folder, environment=scrubbed_environment(os.environ), timeout=timeout, output=output
    )


@pytest.fixture(autouse=True)
def _only_our_own_zombies() -> None:
    """Ended children that another test of this process has not collected must not count."""
    for pid in zombies():
        os.waitpid(pid, os.WNOHANG)


def zombies() -> list[int]:
    return [child.pid for child in psutil.Process().children(recursive=True) if child.status() == psutil.STATUS_ZOMBIE]


async def test_output_of_both_streams_status_and_directory(tmp_path: Path) -> None:
    result = await run("pwd; echo oops >&2; exit 3", tmp_path)
    assert result.output.endswith(f"/{tmp_path.name}\noops\n")
    assert (result.exit_status, result.ending, result.background) == (3, "exited", ())


@pytest.mark.parametrize(
    "program",
    [
        "printf '\\033[?1049h\\033[2Jmenu'; exec sleep 600",
        "printf '\\033[?1049hmenu'; while sleep 0.2; do printf '\\033[Hmenu'; done",
        "echo 'Vim: Warning: Output is not to a terminal' >&2; exec sleep 600",
    ],
)
async def test_a_program_that_waits_for_keys_ends_without_its_whole_time(tmp_path: Path, program: str) -> None:
    result = await run(program, tmp_path)
    assert result.ending == "terminal"
    text = report(program, result, PATIENCE, "")
    assert "it fills a screen and waits for keys, and commands have no terminal" in text


@pytest.mark.skipif(shutil.which("vim") is None, reason="vim is not installed")
async def test_vim_ends_without_its_whole_time(tmp_path: Path) -> None:
    assert (await run("vim a", tmp_path)).ending == "terminal"


@pytest.mark.parametrize(
    ("output", "fills"),
    [
        ("\x1b[?1049hmenu", True),
        ("\x1b[?47hmenu\x1b[?47l\x1b[?47h", True),
        ("\x1b[?1049hmenu\x1b[?1049l done", False),
        ("\x1b[31mred\x1b[0m", False),
        ("", False),
    ],
)
def test_a_screen_that_was_left_is_none(output: str, fills: bool) -> None:
    assert fills_screen(output) == fills


async def test_a_command_that_looks_like_an_option_is_a_command(tmp_path: Path) -> None:
    assert (await run("-x", tmp_path)).exit_status == 127


async def test_death_by_signal_is_reported_as_shells_do(tmp_path: Path) -> None:
    assert (await run("kill -9 $$", tmp_path)).exit_status == 137


async def test_input_is_at_its_end_and_there_is_no_terminal(tmp_path: Path) -> None:
    result = await run("cat; read line || echo none; : </dev/tty || echo no tty", tmp_path)
    assert "none" in result.output
    assert "no tty" in result.output


@linux
async def test_background_child_does_not_hold_the_result_up(tmp_path: Path) -> None:
    result = await run(f"sleep 7401.{ME} & echo started", tmp_path)
    assert result.output == "started\n"
    (left,) = result.background
    await until(lambda: left.name == "sleep")  # until then it is the shell's fork
    assert left in process_tree.end_owned()
    await until(lambda: not running_with(f"7401.{ME}"))


@linux
async def test_a_child_that_is_about_to_end_does_not_count_as_left_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "SETTLE", PATIENCE)
    result = await run("sleep 0.3 >/dev/null 2>&1 & echo up", tmp_path)
    assert (result.output, result.background) == ("up\n", ())


@linux
async def test_background_child_that_goes_on_writing_lives(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    script = f"(while [ ! -e stop ]; do echo tick; echo x > {mark}; sleep 0.02; done; echo done > ended) & echo up"
    result = await run(script, tmp_path)
    assert result.background
    await until(mark.exists)
    mark.unlink()
    await until(mark.exists)
    (tmp_path / "stop").touch()
    await until((tmp_path / "ended").exists)


@linux
async def test_timeout_ends_children_with_sessions_of_their_own(tmp_path: Path) -> None:
    nap = f"sleep 7402.{ME}"
    result = await run(
        f"setsid {nap} & (setsid {nap} &) ; ({nap} &) ; {nap}",
        tmp_path,
        timeout=0.3,
    )
    assert (result.exit_status, result.ending) == (None, "timeout")
    assert running_with(f"7402.{ME}") == []
    assert zombies() == []


@linux
async def test_what_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    shown: list[str] = []
    command = f"trap '' TERM; echo ready; while :; do sleep 7403.{ME}; done"
    running = RunningCommand(CommandSpec(command, tmp_path, scrubbed_environment(os.environ)), shown.append)
    await until(lambda: bool(shown))
    assert await finished(running, 0.0) == "timeout"
    assert shown == ["ready\n"]
    running.close()
    running.output.close()
    assert running_with(f"7403.{ME}") == []


@linux
async def test_cancel_kills_the_tree_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swecli.core.workspace.process.GRACE", 3_600.0)  # that of a timeout
    task = asyncio.create_task(run(f"trap '' TERM; setsid sleep 7404.{ME} & sleep 7404.{ME}", tmp_path))
    await until(lambda: len(running_with(f"7404.{ME}")) == 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert running_with(f"7404.{ME}") == []
    assert zombies() == []


@linux
async def test_cancelled_again_while_it_ends_a_command_leaves_nothing_open(tmp_path: Path) -> None:
    running = RunningCommand(CommandSpec(f"trap '' TERM; sleep 7413.{ME}", tmp_path, dict(os.environ)))

    waits = asyncio.Event()

    async def block() -> None:
        async with ended_unless_done(running):
            waits.set()
            await running.wait()

    task = asyncio.create_task(block())
    await waits.wait()
    await until(lambda: bool(running_with(f"7413.{ME}")))
    task.cancel()
    for _ in range(3):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not running.is_held
    assert running_with(f"7413.{ME}") == []


async def test_flood_keeps_head_and_tail_in_bounded_memory_and_the_loop_alive(tmp_path: Path) -> None:
    shown: list[str] = []
    beats = 0

    async def heartbeat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0)
            beats += 1

    beat = asyncio.create_task(heartbeat())
    memory = psutil.Process().memory_info().rss
    result = await run("echo first; head -c 300000000 /dev/zero; echo; echo last", tmp_path, output=shown.append)
    grown = psutil.Process().memory_info().rss - memory
    beat.cancel()
    assert result.size == 300_000_000 + len("first\n\nlast\n")
    assert result.output.startswith("first\n")
    assert result.output.endswith("\nlast\n")
    assert "bytes of output not kept" in result.output
    assert len(result.output) < 450_000
    assert grown < 20_000_000
    assert sum(map(len, shown)) < 9_000 * (result.duration / 0.05 + 2)
    assert beats > result.size / 1_000_000  # between two of them it reads little


async def test_live_output_comes_while_the_command_runs(tmp_path: Path) -> None:
    shown: list[str] = []
    task = asyncio.create_task(
        run("echo one; while [ ! -e go ]; do sleep 0.01; done; printf 'tw\\303\\266'", tmp_path, output=shown.append)
    )
    await until(lambda: "one\n" in shown)
    (tmp_path / "go").touch()
    await task
    assert "".join(shown) == "one\ntwö"


async def test_descriptors_and_zombies_do_not_add_up(tmp_path: Path) -> None:
    await run("true", tmp_path)
    before = psutil.Process().num_fds()
    for _ in range(30):
        await run("true & (true &) ; setsid true", tmp_path)
    assert psutil.Process().num_fds() <= before
    assert [pid for pid in zombies() if psutil.pid_exists(pid)] == []


@linux
async def test_leftovers_of_a_killed_swecli_are_found(tmp_path: Path) -> None:
    script = (
        "import asyncio,os,sys\nfrom pathlib import Path\nfrom swecli.core.workspace.process import run_process\n"
        f"asyncio.run(run_process('sleep 7405.{ME}', cwd=Path('.'), environment=dict(os.environ), timeout=None))\n"
    )
    owner = await asyncio.create_subprocess_exec(sys.executable, "-c", script)
    await until(lambda: bool(running_with(f"7405.{ME}")))
    pids = {process.pid for process in running_with(f"7405.{ME}")}
    assert not pids & {process.pid for process in process_tree.leftovers()}
    owner.kill()
    await owner.wait()
    found = [process for process in process_tree.leftovers() if process.pid in pids]
    assert len(found) == len(pids) == 1
    process_tree.signal_each(found, process_tree.signal.SIGKILL)
    await until(lambda: not running_with(f"7405.{ME}"))


@linux
async def test_only_leftovers_of_the_same_place_are_found(tmp_path: Path) -> None:
    here = str(tmp_path)
    script = (
        "import os,subprocess,sys\nfrom swecli.core.workspace import process_tree as tree\n"
        "marked = {**os.environ, tree.MARK: tree.new_mark(), tree.PLACE: sys.argv[1]}\n"
        f"subprocess.Popen(['sleep', '7407.{ME}'], env=marked, start_new_session=True)\n"
    )
    owner = await asyncio.create_subprocess_exec(sys.executable, "-c", script, here)
    await owner.wait()
    await until(lambda: bool(running_with(f"7407.{ME}")))
    pids = [process.pid for process in running_with(f"7407.{ME}")]
    try:
        assert [process.pid for process in process_tree.leftovers(here)] == pids
        assert not {process.pid for process in process_tree.leftovers("elsewhere")} & set(pids)
    finally:
        for process in running_with(f"7407.{ME}"):
            process.kill()


@linux
async def test_what_a_killed_swecli_ran_for_itself_is_ended(tmp_path: Path) -> None:
    script = (
        "import os,subprocess\nfrom swecli.core.workspace import process_tree as tree\n"
        "marked = {**os.environ, tree.MARK: tree.new_mark(own=True)}\n"
        f"subprocess.run(['sleep', '7406.{ME}'], env=marked, start_new_session=True)\n"
    )
    owner = await asyncio.create_subprocess_exec(sys.executable, "-c", script)
    await until(lambda: bool(running_with(f"7406.{ME}")))
    process_tree.leftovers()
    pids = {process.pid for process in running_with(f"7406.{ME}")}
    assert len(pids) == 1
    owner.kill()
    await owner.wait()
    assert not pids & {process.pid for process in process_tree.leftovers()}
    await until(lambda: not running_with(f"7406.{ME}"))


@pytest.mark.parametrize(
    ("command", "says"),
    [("echo a\0b", "NUL"), ("echo \ud800", "surrogate"), ("x" * 200_000, "script file")],
)
async def test_commands_that_cannot_start_say_why(tmp_path: Path, command: str, says: str) -> None:
    with pytest.raises(LaunchError, match=says):
        await run(command, tmp_path)


async def test_missing_directory_says_so(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="does not exist"):
        await run("true", tmp_path / "gone")


async def test_sh_is_used_where_there_is_no_bash(tmp_path: Path) -> None:
    result = await run_process(
        "echo $0; exit 4", cwd=tmp_path, environment={"PATH": str(tmp_path)}, timeout=PATIENCE, output=None
    )
    assert result.exit_status == 4
    assert "sh" in result.output


def test_a_process_is_the_same_as_long_as_it_has_its_id_and_start() -> None:
    one, later = process_tree.Process(7, "1", parent=1), process_tree.Process(7, "2", parent=1)
    same = process_tree.Process(7, "1", parent=2)
    assert (one == same, one != same, one == later, one != later) == (True, False, False, True)
    assert {one} == {same}


@linux
def test_a_process_is_what_psutil_reads() -> None:
    listed = {pid: process_tree._listed(pid) for pid in psutil.pids()}
    assert listed[os.getpid()] is not None
    for pid, one in listed.items():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            found = psutil.Process(pid)
            here = process_tree._process(found)
            if one is None or not found.is_running() or here.parent != one.process.parent:
                continue  # it ended, or its parent did
            again = process_tree._listed(pid)
            if (
                again is None
                or again.process.group != one.process.group
                or again.process.session != one.process.session
            ):
                continue  # it moved to another group meanwhile
            assert one.process == here
            assert (one.process.group, one.process.session) == (here.group, here.session)
            assert process_tree._mark_of(pid) == process_tree._environment(found).get(process_tree.MARK, "")


@linux
def test_a_zombie_is_no_running_process() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not process_tree.Process(child.pid, "").alive
    child.wait()
