"""Signals of job control, and those at the very start, in a real terminal."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.support.terminal import Terminal
from tests.support.thorough import examples
from tests.support.waiting import PATIENCE

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see that a process is stopped"),
]

SWECLI = str(Path(sys.executable).with_name("swecli"))
PROGRAM = str(Path(__file__).with_name("prepared_session.py"))
ROOT = str(Path(__file__).parents[2])
READY = "Ask for a change"
CYCLES = examples(8, 500)
STARTS = examples(4, 300)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    environment = {"SWECLI_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "PYTHONPATH": ROOT}
    opened = Terminal([sys.executable, PROGRAM, "keys"], cwd=tmp_path, environment=environment)
    yield opened
    opened.close()


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_stops_while_the_screen_is_drawn_lead_back_to_it(terminal: Terminal) -> None:
    source = random.Random()
    terminal.shows(READY)
    terminal.send("go\r")
    terminal.shows("answer line 120")
    for cycle in range(CYCLES):
        terminal.send("\x0f" * source.randrange(1, 9))  # each draws the whole transcript in another form
        time.sleep(source.random() * 0.05)
        terminal.kill(signal.SIGTSTP)
        terminal.until(lambda: is_stopped(terminal.pid), f"waiting for stop {cycle}")
        terminal.kill(signal.SIGCONT)
        terminal.until(lambda: terminal.alternate and "answer line" in terminal.text, f"waiting for return {cycle}")
    terminal.send(f"word{CYCLES}")
    terminal.shows(f"› word{CYCLES}")


def test_a_stop_that_no_handler_sees_leaves_one_reader_of_the_keys(terminal: Terminal) -> None:
    terminal.shows(READY)
    threads = Path(f"/proc/{terminal.pid}/task")
    before = len(list(threads.iterdir()))
    for _ in range(3):
        terminal.kill(signal.SIGSTOP)
        terminal.until(lambda: is_stopped(terminal.pid), "waiting for the stop")
        terminal.raw.clear()
        terminal.kill(signal.SIGCONT)
        terminal.until(lambda: terminal.alternate and READY in terminal.text, "waiting for the screen")
    terminal.until(lambda: len(list(threads.iterdir())) <= before, "waiting for the end of the former threads")


@pytest.mark.parametrize(
    ("name", "ends"),
    [("/usr/bin/swecli", True), (r"C:\\bin\\swecli.exe", True), ("/home/me/program.py", False), ("", False)],
)
def test_the_program_ends_by_an_interrupt_from_its_first_import_on(name: str, ends: bool) -> None:
    """A program that uses the library keeps Python's own handler."""
    code = (
        f"import sys, _signal; sys.argv = ['{name}']; import swecli; "
        "print(_signal.getsignal(_signal.SIGINT) is _signal.default_int_handler)"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout == f"{not ends}\n"
    by_module = subprocess.run(
        [sys.executable, "-m", "swecli.cli", "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert by_module.stdout.startswith("swecli ")


COMMANDS = (
    *(("-p", "hi"), ("sessions", "list"), (), ("--help",), ("--version",), ("context",), ("doctor",), ("models",)),
    *(("mcp", "list"), ("mcp", "serve"), ("acp",), ("config",), ("permissions", "check", "--", "ls"), ("lab",)),
    *(("retrieve", "x"), ("completion", "bash"), ("worktree", "list"), ("logs",), ("sessions", "search", "x")),
)


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_an_interrupt_at_the_start_prints_no_traceback(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """From the first statement of the package on: what comes earlier belongs to Python."""
    program = Program(tmp_path, tmp_path / "home")
    begins = (
        "import sys; sys.argv[0] = 'swecli'; import swecli; print(file=sys.stderr); "
        "from swecli import cli; sys.exit(cli.main())"
    )
    for start in range(STARTS):
        process = subprocess.Popen(
            [sys.executable, "-c", begins, *arguments],
            cwd=tmp_path,
            env={**program.environment, "PYTHONPATH": ROOT},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stderr is not None
        process.stderr.readline()
        time.sleep(0.1 * start / STARTS)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
        for sign in (b"Traceback", b"KeyboardInterrupt", b"Exception ignored", b"RuntimeWarning"):
            assert sign not in errors, errors.decode()


def test_an_interrupt_while_the_screen_is_loading_gives_the_terminal_back(tmp_path: Path) -> None:
    source = random.Random()
    environment = {"SWECLI_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "PYTHONPATH": ROOT}
    for _ in range(examples(4, 100)):
        terminal = Terminal([SWECLI], cwd=tmp_path, environment=environment, fresh=True)
        try:
            interrupt(terminal, source.random() * 0.3)
        finally:
            terminal.close()


def interrupt(terminal: Terminal, after: float) -> None:
    terminal.until(lambda: terminal.alternate, "waiting for the first paint")
    time.sleep(after)
    while not terminal._ended():  # pyright: ignore[reportPrivateUsage]
        terminal.kill(signal.SIGINT)
        terminal._read(0.1)  # pyright: ignore[reportPrivateUsage]
    terminal.wait()
    assert b"Traceback" not in terminal.raw
    assert not terminal.alternate
    assert terminal.settings == terminal.before
