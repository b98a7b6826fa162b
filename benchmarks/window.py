"""A terminal with a program in it that is typed at and watched from outside: a bare one, or one inside of tmux."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import shlex
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.terminal import ROOT, cpu_seconds

COLUMNS, ROWS = 120, 40
SYNC_QUERY, SYNC_ANSWER = b"\x1b[?2026$p", b"\x1b[?2026;2$y"
FRAME = b"\x1b[?2026h"
"""Begins a frame where the terminal takes frames whole."""
DEADLINE, RESTLESS = 60.0, 5.0


class Window:
    """Runs ``command``. Times are seconds of the monotonic clock."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        tmux: bool,
        variables: Mapping[str, str] | None = None,
        cwd: Path = ROOT,
        size: tuple[int, int] = (COLUMNS, ROWS),
    ) -> None:
        """``size`` is columns and rows."""
        drop = ("TMUX", "TMUX_PANE", "NO_COLOR", "SSH_CONNECTION", "SSH_TTY", "COLUMNS", "LINES")
        kept = {name: value for name, value in os.environ.items() if name not in drop}
        self._environment = {**kept, "TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONPATH": str(ROOT)}
        self._environment.update(variables or {})
        self._master, self._slave = pty.openpty()
        self._size(*size)
        quiet = termios.tcgetattr(self._slave)
        quiet[3] &= ~termios.ECHO
        termios.tcsetattr(self._slave, termios.TCSANOW, quiet)
        self._socket = f"swecli-bench-{os.getpid()}-{time.monotonic_ns()}" if tmux else ""
        self._cwd = cwd
        self.log: list[tuple[float, bytes]] = []
        """What the program has painted, and when it was seen."""
        self.started = time.monotonic()
        if tmux:
            self._in_tmux(command, *size)
        else:
            self._process = self._spawn(command)
            self.pid = self._process.pid

    def _spawn(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command, stdin=self._slave, stdout=self._slave, stderr=self._slave, cwd=self._cwd,
            env=self._environment, preexec_fn=self._own_terminal,
        )  # fmt: skip

    def _own_terminal(self) -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def _in_tmux(self, command: Sequence[str], columns: int, rows: int) -> None:
        options = (
            "set -g status off ; set -g focus-events on ; set -s escape-time 0 ; set -g default-terminal tmux-256color"
        )
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), "sleep 1000")
        self._tmux(*options.split(" "))
        self._process = self._spawn(["tmux", "-u", "-L", self._socket, "attach"])
        self.settle()
        names = ("PYTHONPATH", "SWECLI_HOME", "HOME", "COLORTERM", "OPENAI_API_KEY")
        given = [
            part for name in names if name in self._environment for part in ("-e", f"{name}={self._environment[name]}")
        ]
        self.log.clear()
        self.started = time.monotonic()
        self._tmux("respawn-window", "-k", "-c", str(self._cwd), *given, f"exec {shlex.join(command)}")
        self.pid = int(self._tmux("display-message", "-p", "#{pane_pid}"))

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-u", "-L", self._socket, *arguments]
        return subprocess.run(command, env=self._environment, check=True, capture_output=True, text=True).stdout

    def _size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    # --- doing ---

    def send(self, text: str) -> float:
        """Type. Returns when."""
        os.write(self._master, text.encode())
        return time.monotonic()

    def resize(self, columns: int, rows: int) -> float:
        self._size(columns, rows)
        return time.monotonic()

    # --- seeing ---

    def cpu(self) -> float:
        """Processor seconds of the program so far."""
        return cpu_seconds(self.pid)

    def read(self, timeout: float) -> bytes:
        """What comes next, or nothing."""
        if not select.select([self._master], [], [], max(0.0, timeout))[0]:
            return b""
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:
            return b""
        self.log.append((time.monotonic(), data))
        if SYNC_QUERY in data and not self._socket:
            os.write(self._master, SYNC_ANSWER)
        return data

    def until(self, marker: str, deadline: float = DEADLINE) -> float:
        """Wait until the marker is painted. Returns when it was seen.

        Raises:
            RuntimeError: it never was.
        """
        wanted, end, tail = marker.encode(), time.monotonic() + deadline, b""
        while time.monotonic() < end:
            data = tail + self.read(1.0)
            if wanted in data:
                return self.log[-1][0]
            tail = data[-len(wanted) :]
        raise RuntimeError(f"{marker!r} was never painted")

    def burst(self, quiet: float, patience: float = 2.0) -> float:
        """Wait for something to be painted and for ``quiet`` seconds of silence after it. Returns when the last of it
        was seen, or now when there was nothing. What never stops is given up on after ``RESTLESS`` seconds."""
        last, wait = time.monotonic(), patience
        end = last + patience + RESTLESS
        while self.read(wait) and last < end:
            last, wait = self.log[-1][0], quiet
        return last

    def settle(self, quiet: float = 0.4) -> None:
        """Wait until nothing has been painted for a while."""
        self.burst(quiet, quiet)

    def painted(self, since: float) -> bytes:
        """Everything that was seen since then."""
        return b"".join(data for at, data in self.log if at >= since)

    def close(self) -> None:
        """End the program, whatever it does."""
        left = None
        if self._socket:
            with contextlib.suppress(subprocess.CalledProcessError):
                left = Path(self._tmux("display-message", "-p", "#{socket_path}").strip())
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        if left is not None:
            with contextlib.suppress(subprocess.CalledProcessError):
                self._tmux("kill-server")
            left.unlink(missing_ok=True)
        self._process.kill()
        self._process.wait()
        os.close(self._master)
        os.close(self._slave)
