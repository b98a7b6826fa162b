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
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyte

from tests.support.preloaded import InTerminal
from tests.support.program import PYTHONPATH
from tests.support.waiting import Condition, Waiting, wait_until

_UNKNOWN = re.compile(rb"\x1b\[[<>=][0-9;]*[a-zA-Z]|\x1b\[\?[0-9;]*\$p|\x1b\[\?2026[hl]")
_SCREENS = re.compile(rb"(\x1b\[\?1049[hl])")
_CUT = re.compile(rb"\x1b(?:\[[0-9;?<>=$]*)?\Z")
"""A sequence of which the rest is still to come."""
_FRAME_BEGINS, _FRAME_ENDS = b"\x1b[?2026h", b"\x1b[?2026l"
_ASKS_FOR_FRAMES, _HAS_FRAMES = b"\x1b[?2026$p", b"\x1b[?2026;2$y"
"""The question whether whole frames are shown at once, and that they are."""

_OF_PYTHON = re.compile("PYTHON(?!PATH)|LC_|LANG")
"""Variables that Python obeys as it starts."""

LAST_WORDS = 5.0
"""Seconds in which nothing comes after which a terminal that somebody keeps open is taken to be at its end."""


def _python_file(command: Sequence[str]) -> list[str]:
    """The Python file that the command runs, with its arguments; empty where it is something else."""
    arguments = list(command[1:] if command[0] == sys.executable else command)
    own = arguments and (arguments[0].endswith(".py") or Path(arguments[0]) == Path(sys.executable).with_name("swecli"))
    return arguments if own else []


GRACE = 0.4
"""Seconds, more than those in which a question ignores keys."""
CLOSING = "esc "
"""The key that every question names."""


def is_bold(screen: pyte.Screen, text: str) -> bool:
    """Whether a line of the screen has this text in bold."""
    starts = ((number, line.find(text)) for number, line in enumerate(screen.display))
    return any(start >= 0 and screen.buffer[number][start].bold for number, start in starts)


def takes_keys(until: Callable[[Condition, str], None], screen: Callable[[], pyte.Screen]) -> None:
    """Wait until the question on the screen takes keys. The time is one that it needs at least, however slow all is: it
    is drawn in full for a moment before it turns pale."""
    least = time.monotonic() + GRACE
    until(lambda: time.monotonic() > least and is_bold(screen(), CLOSING), "waiting for a question that takes keys")


class Terminal:
    """Runs a command. A Python file runs in a fork of a process that has loaded the program's modules, unless
    ``fresh``.

    Where the terminal ``has_frames`` it says so when it is asked. Then conditions see each frame of the program once
    it is whole: never one that is half drawn, and also one that the next has replaced already.
    """

    has_frames = True

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
        """What the screen has been given."""
        self._unseen: deque[bytes] = deque()
        self._cut = b""
        self._text: str | None = None
        self._drawing = False
        self.status: int | None = None
        self._stopped = False
        keep = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8", "COLORTERM": "truecolor"}
        self._forked: InTerminal | None = None
        file = _python_file(command)
        if fresh or not file or any(_OF_PYTHON.match(name) for name in environment):
            self.pid, self._fd = pty.fork()
            if self.pid == 0:  # pragma: no cover - the child
                os.chdir(cwd)
                signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it
                os.execve(command[0], list(command), {"PYTHONPATH": PYTHONPATH, **keep, **environment})
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
        data = memoryview(text.encode())
        while data:
            while self._read(0.0):
                pass
            data = data[os.write(self._fd, data[:1000]) :]

    def resize(self, columns: int, rows: int, *, tell: bool = True) -> None:
        """Change the size of the window."""
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if tell:
            self._screen.resize(max(1, rows), max(1, columns))
            self._text = None
            os.kill(self.pid, signal.SIGWINCH)

    def kill(self, number: int) -> None:
        os.kill(self.pid, number)

    # --- output ---

    @property
    def text(self) -> str:
        """The screen, line by line."""
        if self._text is None:
            self._text = "\n".join(line.rstrip() for line in self._screen.display)
        return self._text

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

    def takes_keys(self) -> None:
        """Wait until the question on the screen takes keys: it ignores those that come before it can be read, and is
        pale until then."""
        takes_keys(self.until, lambda: self._screen)

    def shows(self, *texts: str, without: str | None = None) -> None:
        """Wait until all texts are on the screen at the same time, and ``without`` is not."""

        def shown() -> bool:
            screen = self.text
            return all(text in screen for text in texts) and (without is None or without not in screen)

        self.until(shown, f"waiting for {texts}{'' if without is None else f' without {without!r}'}")

    def hides(self, text: str) -> None:
        self.until(lambda: text not in self.text, f"waiting until {text!r} is gone")

    def until(self, condition: Condition, about: str = "") -> None:
        """Wait for a condition of what is on the screen."""
        waiting = Waiting(lambda: f"{about}\n{self.text}\nstatus {self.status}")
        while self._drawing or not condition():
            waiting.go_on()
            if not self._read(0.02) and self._drawing:
                self._drawing = not (self._ended() or self._stopped)

    def wait(self) -> int:
        """The exit code, or 128 + the signal that ended it."""
        waiting = Waiting(lambda: f"waiting for the end\n{self.text}")
        while not self._ended():
            waiting.go_on()
            self._read(0.02)
        while self._read(LAST_WORDS):
            pass
        self._drawing = False
        assert self.status is not None
        return self.status

    def wait_unread(self) -> None:
        """Wait for the end without reading what the program draws."""
        wait_until(self._ended, lambda: "waiting for the end")

    def wait_stopped(self) -> None:
        """Wait until the program is suspended."""
        self.until(lambda: self._ended() or self._stopped, "waiting for the stop")

    def hang_up(self) -> None:
        """The window is closed, or the line breaks."""
        gone, self._fd = self._fd, os.open(os.devnull, os.O_RDWR)
        os.close(gone)

    def damage(self) -> None:
        """Another program has written over the screen."""
        self._screen.erase_in_display(2)
        self._text = None

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
        """Show what comes next, up to the end of a frame. Whether something came within so many seconds."""
        if not self._unseen:
            self._unseen.extend(self._arrived(timeout))
        if not self._unseen:
            return False
        part = self._unseen.popleft()
        self.raw += part
        self._feed(part)
        if _FRAME_BEGINS in part or _FRAME_ENDS in part:
            self._drawing = part.rfind(_FRAME_BEGINS) > part.rfind(_FRAME_ENDS)
        if self.has_frames and _ASKS_FOR_FRAMES in part:
            os.write(self._fd, _HAS_FRAMES)
        return True

    def _arrived(self, timeout: float) -> list[bytes]:
        if not select.select([self._fd], [], [], timeout)[0]:
            return []
        try:
            data = self._cut + os.read(self._fd, 65536)
        except OSError:  # nobody has it open any more
            select.select([], [], [], min(timeout, 0.02))
            data, self._cut = self._cut, b""
            return [data] if data else []
        cut = _CUT.search(data)
        data, self._cut = (data[: cut.start()], cut.group()) if cut else (data, b"")
        *frames, rest = data.split(_FRAME_ENDS)
        return [*(frame + _FRAME_ENDS for frame in frames), *([rest] if rest else [])]

    def _feed(self, data: bytes) -> None:
        """What the emulator does not know is taken out; the other screen begins empty."""
        self._text = None
        for part in _SCREENS.split(_UNKNOWN.sub(b"", data)):
            if _SCREENS.fullmatch(part):
                self._screen.reset()
            else:
                self._stream.feed(part)
