"""The real program with output that nobody reads or that can't be written, and signals at every moment."""

from __future__ import annotations

import array
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from swecli.command_line.headless import _headless  # pyright: ignore[reportPrivateUsage]
from swecli.core.llm.scripted import parse_script
from swecli.core.workspace import process_tree as tree
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions
from swecli.stopping import Stop
from tests.support.loopback import LoopbackServer
from tests.support.processes import ME, running_with
from tests.support.program import ROOT, Program
from tests.support.waiting import PATIENCE, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")]
full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")


WORDS = "".join(f"word {number} " for number in range(40_000))
"""More than a pipe takes; an answer that repeats itself would be cut."""


def unread(descriptor: int) -> int:
    """Bytes that wait in a pipe."""
    count = array.array("i", [0])
    fcntl.ioctl(descriptor, termios.FIONREAD, count)
    return count[0]


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether a process has a handler for this signal."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt"))
    return bool(caught >> (number - 1) & 1)


@contextmanager
def scripted(tmp_path: Path, script: str) -> Iterator[subprocess.Popen[bytes]]:
    """A run in stream-json, with nobody who reads it yet."""
    with LoopbackServer(parse_script(f"chunk = 4000\n{script}", python=sys.executable)) as provider:
        program = Program(tmp_path, tmp_path / "home", provider.environment())
        arguments = ["-p", "x", "-m", "openai/m", "--output-format", "stream-json", "--yolo"]
        process = program.start(*arguments, stdin=subprocess.DEVNULL)
        try:
            wait_until(lambda: process.stdout is not None and unread(process.stdout.fileno()) >= 30_000)
            yield process
        finally:
            process.kill()


def ends(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(PATIENCE)
    finally:
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_reader_that_does_not_read_holds_up_no_signal(number: signal.Signals, tmp_path: Path) -> None:
    command = f"echo > begun; exec sleep 7801.{ME}"
    call = f'[[step.call]]\ntool = "run_command"\narguments = {{ command = "{command}" }}\n'
    with scripted(tmp_path, f'[[step]]\ntext = "{WORDS}"\n{call}') as process:
        begun = tmp_path / "begun"
        wait_until(lambda: begun.exists() or process.poll() is not None)  # the work goes on meanwhile
        assert begun.exists()
        process.send_signal(number)
        assert ends(process) == 128 + number
        assert process.stderr is not None
        assert b"the output was not read in time" in process.stderr.read()
    wait_until(lambda: not running_with(f"7801.{ME}"))


def test_a_reader_that_comes_late_gets_everything(tmp_path: Path) -> None:
    with scripted(tmp_path, f'[[step]]\ntext = "{WORDS}"\n') as process:
        assert process.stdout is not None
        lines = process.stdout.read().splitlines()
        assert ends(process) == 0
    assert json.loads(lines[-1])["text"] == WORDS


def test_a_signal_before_there_is_a_run_gives_a_result(tmp_path: Path) -> None:
    process = Program(tmp_path, tmp_path / "home").start("-p", "--output-format", "stream-json")
    wait_until(lambda: catches(process.pid, signal.SIGTERM))  # it waits for its standard input to end
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 143
    result = json.loads(out)
    assert (result["status"], result["exit_code"], result["session"]) == ("interrupted", 143, "")


async def test_a_signal_while_the_session_opens_gives_a_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stop = Stop()
    stop.code = ExitCode.TERMINATED
    code = await _headless(LaunchOptions(cwd=tmp_path, prompt="x", output_format="json", store=False), stop)
    assert code == 143
    assert json.loads(capsys.readouterr().out)["status"] == "interrupted"


def test_the_hard_end_leaves_no_command(tmp_path: Path) -> None:
    script = (
        "import asyncio, os, sys\nfrom pathlib import Path\n"
        "from swecli.core.workspace.process import run_process\nfrom swecli.stopping import Stop\n"
        "async def main():\n"
        f"    command = \"trap '' TERM; setsid sleep 7802.{ME} & echo > begun; sleep 7802.{ME}\"\n"
        "    await run_process(command, cwd=Path('.'), environment=dict(os.environ), timeout=None)\n"
        "stop = Stop()\nwith stop.handled():\n    asyncio.run(main())\n"
    )
    environment = {**Program(tmp_path, tmp_path / "home").environment, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, env=environment)
    wait_until((tmp_path / "begun").exists)
    process.send_signal(signal.SIGTERM)  # nobody acts on it

    def ended() -> bool:
        process.send_signal(signal.SIGTERM)
        return process.poll() is not None

    wait_until(ended, between=0.1)
    assert process.returncode == 143
    wait_until(lambda: not running_with(f"7802.{ME}"))  # killed, they still need the processor for their end


@full
@pytest.mark.parametrize(
    "arguments", [["--version"], ["--help"], ["config"], ["config", "get", "ui.theme"], ["permissions", "list"]]
)
def test_an_answer_that_finds_a_full_disk_is_one_line(arguments: list[str], tmp_path: Path) -> None:
    with open("/dev/full", "wb") as device:
        process = Program(tmp_path, tmp_path / "home").start(*arguments, stdin=subprocess.DEVNULL, stdout=device)
        assert process.stderr is not None
        error = process.stderr.read().decode()
        assert ends(process) == 1
    assert "The output cannot be written: No space left" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["config"]])
def test_an_answer_that_nobody_reads_is_silent(arguments: list[str], tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = Program(tmp_path, tmp_path / "home").start(*arguments, stdin=subprocess.DEVNULL, stdout=writer)
    os.close(writer)
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert ends(process) == 1


def test_processes_that_are_owned_are_killed_whatever_they_start_meanwhile(tmp_path: Path) -> None:
    mark = tree.new_mark()
    loop = f"n=0; while [ $n -lt 200 ]; do n=$((n + 1)); setsid sleep 7803.{ME} & done; wait"
    command = subprocess.Popen(["bash", "-c", loop], env={**os.environ, tree.MARK: mark}, start_new_session=True)
    wait_until(lambda: len(tree.members(command.pid, mark, gone=False)) > 5)
    tree.end_owned()
    command.wait(PATIENCE)
    wait_until(lambda: not tree.members(command.pid, mark, gone=True))
