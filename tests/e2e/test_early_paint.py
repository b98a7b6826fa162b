"""The first paint, before anything is known to be right: it is cheap, and every way out gives the terminal back."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.terminal import Terminal

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]

AT_FIRST_PAINT = """
import sys
before = set(sys.modules)
import swecli.tui.boot as boot
from swecli.cli import main
def write(terminal, text):
    with open(sys.argv[1], "w") as file:
        file.write("\\n".join(sorted(set(sys.modules) - before)))
    sys.exit(0)
boot.Terminal.write = write
main([])
"""

STUCK = """
import os, time
import swecli.command_line.dispatch as dispatch
from swecli.cli import main
def stuck(arguments, terminal):
    os.write(1, b"written meanwhile\\n")
    terminal.write("stuck now")
    time.sleep(3600)
dispatch.dispatch = stuck
main([])
"""

AT_A_LINE = """
import os, signal, sys
import swecli.command_line.dispatch as dispatch
import swecli.tui.boot as boot
from swecli.cli import main
lines = int(sys.argv[1])
def called(frame, event, argument):
    return reached if frame.f_code is boot.Terminal.take.__func__.__code__ else None
def reached(frame, event, argument):
    global lines
    lines -= event == "line"
    if event == "line" and lines == 0:
        os.kill(os.getpid(), signal.SIGINT)
    return reached
dispatch.dispatch = lambda arguments, terminal: sys.settrace(None) or 99
sys.argv = ["swecli"]
sys.settrace(called)
sys.exit(main())
"""


def started(tmp_path: Path, *command: str, type_ahead: str = "") -> Terminal:
    environment = {"SWECLI_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    return Terminal(command, cwd=tmp_path, environment=environment, type_ahead=type_ahead)


def test_the_first_paint_needs_next_to_nothing(tmp_path: Path) -> None:
    out = tmp_path / "modules"
    terminal = started(tmp_path, sys.executable, "-c", AT_FIRST_PAINT, str(out))
    terminal.wait()
    terminal.close()
    ours = {
        "swecli",
        "swecli.cli",
        "swecli.command_line",
        "swecli.tui",
        "swecli.tui.boot",
    }
    assert set(out.read_text().split()) <= ours | {"__future__", "fcntl", "gc", "io", "termios"}


@pytest.mark.parametrize("arguments", [("-C", "nowhere"), ("-m", "/x"), ("-c", "--no-session"), ("a b", "-C", "x")])
def test_an_error_afterwards_is_told_on_the_normal_screen(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "swecli.cli", *arguments],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "SWECLI_HOME": str(tmp_path / "home")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    terminal = started(tmp_path, sys.executable, "-m", "swecli.cli", *arguments)
    assert terminal.wait() == told.returncode == 2
    raw = terminal.raw.decode()
    assert "starting" in raw
    assert raw.rpartition("\x1b[?25h")[2].replace("\r\n", "\n") == told.stderr
    assert not terminal.alternate
    assert terminal.settings == terminal.before
    terminal.close()


def test_what_was_typed_stays_for_the_shell(tmp_path: Path) -> None:
    script = f"sleep 0.2; {sys.executable} -m swecli.cli -C nowhere; read line; echo got:$line"
    terminal = started(tmp_path, "/bin/sh", "-c", script, type_ahead="typed early\n")
    terminal.shows("no such directory", "got:typed early")
    assert terminal.wait() == 0
    terminal.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_before_the_interface_gives_the_terminal_back(tmp_path: Path, number: signal.Signals) -> None:
    terminal = started(tmp_path, sys.executable, "-c", STUCK)
    terminal.shows("stuck now")
    assert terminal.alternate
    terminal.kill(number)
    assert terminal.wait() == 128 + number
    assert not terminal.alternate
    assert terminal.settings == terminal.before
    after = terminal.raw.decode().rpartition("\x1b[?25h")[2]
    assert ("written meanwhile" in after) == (number == signal.SIGINT), json.dumps(after)
    terminal.close()


def test_an_interrupt_at_any_moment_of_the_take_over_gives_the_terminal_back(tmp_path: Path) -> None:
    for line in itertools.count(1):
        terminal = started(tmp_path, sys.executable, "-c", AT_A_LINE, str(line))
        status = terminal.wait()
        assert not terminal.alternate, line
        assert terminal.settings == terminal.before, line
        assert "Traceback" not in terminal.raw.decode(), line
        terminal.close()
        if status == 99:  # there are no more lines
            break
        assert status == 128 + signal.SIGINT, line
    assert line > 10
