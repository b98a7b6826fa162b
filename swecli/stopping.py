"""Signals that end a program without a screen: an orderly end if possible, a hard end otherwise.

The handlers are Python's rather than an event loop's: they also run while the loop hangs in an unread write. A thread
does the work that must not wait for the loop.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING

from swecli.exit_codes import ExitCode

if TYPE_CHECKING:  # imported before the arguments are known
    from asyncio import AbstractEventLoop

HARD = 8.0
"""Seconds from the first signal to the hard end. Containers and service managers kill after ten."""
SAME = 0.5
"""Seconds within which a further signal counts as the same one: some senders signal a process and then its group."""

_CODES = {
    getattr(signal, "SIGHUP", signal.SIGTERM): ExitCode.HANGUP,
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
}


_IMPORT = 0.02
"""Seconds after which a signal that interrupted an import is sent again."""


def _imports(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


class Stopped(SystemExit):
    """A signal arrived before there was anything to stop in order."""

    def __init__(self, status: ExitCode) -> None:
        super().__init__(int(status))
        self.status = status


@contextlib.contextmanager
def raising() -> Iterator[None]:
    """While the block runs, a signal raises ``Stopped`` in the main thread. An import is completed first: a module that
    is half imported can't be imported again."""

    def act(number: int, frame: FrameType | None) -> None:
        if _imports(frame):
            again = threading.Timer(_IMPORT, os.kill, (os.getpid(), number))
            again.daemon = True
            again.start()
            return
        raise Stopped(_CODES[signal.Signals(number)])

    with _handlers(act, tuple(_CODES)):
        yield


class Stop:
    """A request to end, from the first signal on. A second one, or ``HARD`` seconds, end the process at once, with
    every command that it runs."""

    def __init__(self, numbers: tuple[signal.Signals, ...] = tuple(_CODES)) -> None:
        self.code: ExitCode | None = None
        """The future exit status; None before a signal."""
        self._numbers = numbers
        self._at = 0.0
        self._act: Callable[[], object] | None = None
        self._loop: AbstractEventLoop | None = None
        self._fallback: threading.Timer | None = None

    @contextlib.contextmanager
    def handled(self) -> Iterator[None]:
        """Handle the signals while the block runs. Off the main thread they keep their usual effect."""
        try:
            with _handlers(self._signalled, self._numbers):
                yield
        finally:
            if self._fallback is not None:
                self._fallback.cancel()

    @contextlib.contextmanager
    def calling(self, act: Callable[[], object]) -> Iterator[None]:
        """While the block runs, call ``act`` on the event loop at the first signal; soon, if it has already arrived."""
        from asyncio import get_running_loop

        self._loop, self._act = get_running_loop(), act
        if self.code is not None:
            self._loop.call_soon(act)
        try:
            yield
        finally:
            self._act = None

    def _signalled(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.code is not None:
            if now - self._at > SAME:
                hard_end(self.code)
            return
        self.code, self._at = _CODES[signal.Signals(number)], now
        self._fallback = threading.Timer(HARD, hard_end, (self.code,))
        self._fallback.daemon = True
        self._fallback.start()
        if self._loop is not None and self._act is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the program is ending anyway
                self._loop.call_soon_threadsafe(self._act)


def hard_end(code: int) -> None:
    """End this process at once, and every command that it runs."""
    from swecli.core.workspace.process_tree import end_owned

    try:
        end_owned()
    finally:
        os._exit(code)


@contextlib.contextmanager
def _handlers(act: Callable[[int, FrameType | None], None], numbers: tuple[signal.Signals, ...]) -> Iterator[None]:
    before: dict[signal.Signals, object] = {}
    try:
        for number in numbers:
            with contextlib.suppress(ValueError):  # not the main thread
                before[number] = signal.signal(number, act)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)  # pyright: ignore[reportArgumentType] - what signal() itself returned
