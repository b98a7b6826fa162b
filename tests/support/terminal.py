"""A program in a real terminal: a pseudo-terminal, and an emulator that reads its screen."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyte

from tests.support.preloaded import InTerminal

_UNKNOWN = re.compile(rb"\x1b\[[<>=][0-9;]*[a-zA-Z]|\x1b\[\?[0-9;]*\$p")
_SCREENS = re.compile(rb"(\x1b\[\?1049[hl])")

_OF_PYTHON = re.compile("PYTHON(?!PATH)|LC_|LANG")
"""Variables that Python obeys as it starts."""

PATIENCE = 60.0
"""Seconds until a test gives up; a loaded machine is slow."""


def _python_file(command: Sequence[str]) -> list[str]:
    """The Python file that the command runs, with its arguments; empty where it is something else."""
    arguments = list(command[1:] if command[0] == sys.executable else command)
    own = arguments and (arguments[0].endswith(".py") or Path(arguments[0]) == Path(sys.executable).with_name("swecli"))
    return arguments if own else []


class Terminal:
    """Runs a command. The terminal answers what a modern one answers when it is asked for synchronised output.
    A Python file runs in a fork of a process that has loaded the program's modules, unless ``fresh``."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        columns: int = 80,
        rows: int = 24,
        type_ahead: str = "",
        fresh: bool = False,
    ) -> None:
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = bytearray()
        self.status: int | None = None
        self._stopped = False
        keep = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8", "COLORTERM": "truecolor"}
        self._forked: InTerminal | None = None
        file = _python_file(command)
        if fresh or not file or any(_OF_PYTHON.match(name) for name in environment):
            self.pid, self._fd = pty.fork()
            if self.pid == 0:  # pragma: no cover - the child
                os.chdir(cwd)
                os.execve(command[0], list(command), {**keep, **environment})
            self.resize(columns, rows, tell=False)
            self.before = termios.tcgetattr(self._fd)
        else:
            self._fd, inner = pty.openpty()
            self.resize(columns, rows, tell=False)
            self.before = termios.tcgetattr(self._fd)
            self._forked = InTerminal(file, cwd=cwd, env={**keep, **environment}, terminal=inner)
            os.close(inner)
            self.pid = self._forked.pid
        if type_ahead:
            self.send(type_ahead)

    # --- input ---

    def send(self, text: str) -> None:
        """Type."""
        data = text.encode()
        while data:
            self._read(0.0)
            data = data[os.write(self._fd, data[:1000]) :]

    def resize(self, columns: int, rows: int, *, tell: bool = True) -> None:
        """Change the size of the window."""
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if tell:
            self._screen.resize(max(1, rows), max(1, columns))
            os.kill(self.pid, signal.SIGWINCH)

    def kill(self, number: int) -> None:
        os.kill(self.pid, number)

    # --- output ---

    @property
    def text(self) -> str:
        """The screen, line by line."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    @property
    def colours(self) -> str:
        """Which part of the screen has which colours, or is reversed, as a text to compare."""
        rows = (self._screen.buffer[number] for number in range(self._screen.lines))
        return "\n".join(
            " ".join(f"{row[n].fg}/{row[n].bg}/{row[n].reverse:d}" for n in range(self._screen.columns)) for row in rows
        )

    @property
    def alternate(self) -> bool:
        """Whether the program is on the alternate screen."""
        return self.raw.rfind(b"\x1b[?1049h") > self.raw.rfind(b"\x1b[?1049l")

    @property
    def settings(self) -> list[object]:
        """Line settings, as ``termios.tcgetattr`` gives them."""
        return termios.tcgetattr(self._fd)

    def shows(self, *texts: str) -> None:
        """Wait until all texts are on the screen."""
        self.until(lambda: all(text in self.text for text in texts), f"waiting for {texts}")

    def hides(self, text: str) -> None:
        self.until(lambda: text not in self.text, f"waiting until {text!r} is gone")

    def until(self, condition: Callable[[], object], about: str = "") -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f"{about}\n{self.text}\nstatus {self.status}"
            self._read(0.02)

    def wait(self) -> int:
        """The exit code, or 128 + the signal that ended it."""
        self.until(lambda: self._ended(), "waiting for the end")
        while self._read(0.05):
            pass
        assert self.status is not None
        return self.status

    def wait_stopped(self) -> None:
        """Wait until the program is suspended."""
        self.until(lambda: self._ended() or self._stopped, "waiting for the stop")
        while self._read(0.05):
            pass

    def damage(self) -> None:
        """Another program has written over the screen."""
        self._screen.erase_in_display(2)

    def close(self) -> None:
        """End the program, whatever it does."""
        if self._forked is not None:
            self._forked.close(kill=self.status is None)
        elif self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._fd)

    def _ended(self) -> bool:
        if self.status is None:
            if self._forked is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
                status = status if pid else None
            else:
                status = self._forked.poll()
            if status is not None and os.WIFSTOPPED(status):
                self._stopped = True
            elif status is not None:
                self.status = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
        return self.status is not None

    def _read(self, timeout: float) -> bool:
        if not select.select([self._fd], [], [], timeout)[0]:
            return False
        try:
            data = os.read(self._fd, 65536)
        except OSError:
            return False
        self.raw += data
        self._feed(data)
        return bool(data)

    def _feed(self, data: bytes) -> None:
        """What the emulator does not know is taken out; the other screen begins empty."""
        for part in _SCREENS.split(_UNKNOWN.sub(b"", data)):
            if _SCREENS.fullmatch(part):
                self._screen.reset()
            else:
                self._stream.feed(part)
