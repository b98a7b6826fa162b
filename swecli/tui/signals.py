"""Signals while the interface runs: end in order, restore the terminal, and never take longer than promised."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

GRACE = 0.8
"""Seconds from a signal to the hard end, whatever the event loop is doing."""


def exit_code(number: int) -> int:
    """The shell's exit code for an end by this signal."""
    return 128 + number


@contextlib.contextmanager
def handled(
    end: Callable[[int], None], interrupt: Callable[[], None], restore: Callable[[], None], *, grace: float = GRACE
) -> Iterator[None]:
    """Route signals while the block runs.

    ``end`` is called with the exit code at SIGTERM, SIGHUP and SIGQUIT and starts an orderly shutdown; when
    that takes longer than ``grace`` seconds, ``restore`` is called and the process ends at once.
    ``interrupt`` is called at SIGINT. Both run in the main thread between two steps of the program, so they
    must only hand over to the event loop.
    """

    def hard_end(code: int) -> None:
        restore()
        os._exit(code)

    def on_end(number: int, frame: FrameType | None) -> None:
        code = exit_code(number)
        timer = threading.Timer(grace, hard_end, (code,))
        timer.daemon = True
        timer.start()
        end(code)

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        interrupt()

    before = {number: signal.signal(number, on_end) for number in ENDING}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
