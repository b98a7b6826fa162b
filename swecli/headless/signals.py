"""Signals that end a run in order."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator

from swecli.exit_codes import ExitCode

_CODES = {
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
    getattr(signal, "SIGHUP", signal.SIGTERM): ExitCode.TERMINATED,
}


@contextlib.contextmanager
def handled(stop: Callable[[ExitCode], None]) -> Iterator[None]:
    """While the block runs, call ``stop`` on the event loop with the exit status that a signal leads to.

    Where the platform has no signal handlers on the loop, signals keep their usual effect.
    """
    loop = asyncio.get_running_loop()
    installed: list[signal.Signals] = []
    for number, code in _CODES.items():
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(number, stop, code)
            installed.append(number)
    try:
        yield
    finally:
        for number in installed:
            loop.remove_signal_handler(number)
