"""Signals that end a program without a screen: in order while that works, and in any case.

The handlers are those of Python, not of an event loop: they run when the loop hangs in a write that nobody reads,
too. What must not wait for the loop is done by a thread.
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

if TYPE_CHECKING:  # this is imported before it is clear what was asked for
    from asyncio import AbstractEventLoop

HARD = 8.0
"""Seconds from the first signal to the hard end. Containers and service managers kill after ten."""
SAME = 0.5
"""Seconds within which a further signal is the same wish: some senders signal a process and then its group."""

_CODES = {
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
    getattr(signal, "SIGHUP", signal.SIGTERM): ExitCode.TERMINATED,
}


class Stopped(SystemExit):
    """A signal came before anything could be stopped in order."""

    def __init__(self, status: ExitCode) -> None:
        super().__init__(int(status))
        self.status = status


@contextlib.contextmanager
def raising() -> Iterator[None]:
    """While the block runs, a signal raises ``Stopped`` in the main thread."""

    def act(number: int, _frame: FrameType | None) -> None:
        raise Stopped(_CODES[signal.Signals(number)])

    with _handlers(act, tuple(_CODES)):
        yield


class Stop:
    """The wish to end, from the first signal on. A second one, or ``HARD`` seconds, end the process at once, with every
    command that it runs."""

    def __init__(self, numbers: tuple[signal.Signals, ...] = tuple(_CODES)) -> None:
        self.code: ExitCode | None = None
        """What the exit status will be; None as long as nobody wants the end."""
        self._numbers = numbers
        self._at = 0.0
        self._act: Callable[[], object] | None = None
        self._loop: AbstractEventLoop | None = None
        self._fallback: threading.Timer | None = None

    @contextlib.contextmanager
    def handled(self) -> Iterator[None]:
        """Take the signals while the block runs. Off the main thread they keep their usual effect."""
        try:
            with _handlers(self._signalled, self._numbers):
                yield
        finally:
            if self._fallback is not None:
                self._fallback.cancel()

    @contextlib.contextmanager
    def calling(self, act: Callable[[], object]) -> Iterator[None]:
        """While the block runs, ``act`` is called on the event loop once the end is wanted; soon, if it is already."""
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
            with contextlib.suppress(RuntimeError):  # its loop is closed: the end is near in any case
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
