"""Signals that end a program: an orderly end if possible, a hard end otherwise.

The handlers are Python's rather than an event loop's: they also run while the loop hangs in an unread write. They only
note the signal; a thread acts on it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
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

    def again(number: int) -> None:
        time.sleep(_IMPORT)
        os.kill(os.getpid(), number)

    with Watch(again) as watch:

        def act(number: int, frame: FrameType | None) -> None:
            if _imports(frame):
                watch.note(number)
            else:
                raise Stopped(_CODES[signal.Signals(number)])

        with _handlers(act, tuple(_CODES)):
            yield


class Watch:
    """A thread that acts on signals. A handler interrupts the main thread anywhere, also while it holds a lock, so it
    must take none itself: it starts no thread, writes to no stream and calls no event loop."""

    def __init__(self, act: Callable[[int], float | None], late: Callable[[], object] = lambda: None) -> None:
        """``act`` is called with each signal's number. It may return a time of the monotonic clock; ``late`` is called
        at the earliest of them, and ends the watch."""
        self._act = act
        self._late = late
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)

    def note(self, number: int) -> None:
        """Pass a signal to the thread. For signal handlers."""
        with contextlib.suppress(OSError):  # closed, or full of earlier signals
            os.write(self._writing, bytes((number,)))

    def __enter__(self) -> Watch:
        threading.Thread(target=self._run, name="swecli-signals", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        writing, self._writing = self._writing, -1
        os.close(writing)

    def _run(self) -> None:
        deadline: float | None = None
        try:
            while True:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                if not select.select((self._reading,), (), (), left)[0]:
                    self._late()
                    return
                numbers = os.read(self._reading, 1)
                if not numbers:
                    return
                latest = self._act(numbers[0])
                if latest is not None:
                    deadline = latest if deadline is None else min(deadline, latest)
        finally:
            os.close(self._reading)


class Stop:
    """A request to end, from the first signal on. A second one, or ``HARD`` seconds, end the process at once, with
    every command that it runs."""

    def __init__(self, numbers: tuple[signal.Signals, ...] = tuple(_CODES)) -> None:
        self.code: ExitCode | None = None
        """The future exit status; None before a signal."""
        self._numbers = numbers
        self._at: float | None = None
        self._act: Callable[[], object] | None = None
        self._loop: AbstractEventLoop | None = None

    @contextlib.contextmanager
    def handled(self) -> Iterator[None]:
        """Handle the signals while the block runs. Off the main thread they keep their usual effect."""
        with Watch(self._act_on, self._end) as watch:

            def note(number: int, _frame: FrameType | None) -> None:
                if self.code is None:
                    self.code = _CODES[signal.Signals(number)]
                watch.note(number)

            with _handlers(note, self._numbers):
                yield

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

    def _act_on(self, _number: int) -> float | None:
        now = time.monotonic()
        if self._at is not None:
            if now - self._at > SAME:
                self._end()
            return None
        self._at = now
        if self._loop is not None and self._act is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the program is ending anyway
                self._loop.call_soon_threadsafe(self._act)
        return now + HARD

    def _end(self) -> None:
        if self.code is not None:
            hard_end(self.code)


def run_until_stopped(work: Callable[[Stop], Coroutine[object, object, int]]) -> int:
    """Run work on an event loop with a steady clock; the signals reach it through its ``Stop``. Returns its result."""
    stop = Stop()

    async def run() -> int:
        from swecli.steady_clock import keep_steady

        keep_steady(asyncio.get_running_loop())
        return await work(stop)

    with stop.handled():
        import asyncio

        return asyncio.run(run())


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
