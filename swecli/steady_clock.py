"""A monotonic clock that never jumps: waits and time limits outlast a machine whose clock leaps.

``time.monotonic`` may leap by days where a virtual machine is restored or moved, or where a system counts the time of a
suspension, and a faulty one even goes back. A limit that leaps by thus ends work that has hardly begun; a wait from
before never ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

MOST = 60.0
"""Seconds that one step of the clock counts at most. Shorter than the time limits of requests and commands."""
TICK = 20.0
"""Seconds after which an event loop looks at its clock at the latest: so no honest step is longer than ``MOST``."""


class SteadyClock:
    """Seconds, in step with its source until that jumps. Of a step back nothing counts, of a long one ``MOST``: whoever
    waits longer must read it in between."""

    def __init__(self, source: Callable[[], float] | None = None) -> None:
        """``source`` is a clock in seconds, by default that of the system as it is then."""
        self._source = source
        self._last: float | None = None
        self._now = 0.0

    def __call__(self) -> float:
        read = self._source() if self._source is not None else time.monotonic()
        if self._last is None:
            self._now = read
        else:
            self._now += min(max(0.0, read - self._last), MOST)
        self._last = read
        return self._now


def keep_steady(loop: AbstractEventLoop) -> None:
    """Give a running event loop a steady clock, for all that waits in it."""
    loop.time = SteadyClock(loop.time)

    def tick() -> None:
        loop.call_later(TICK, tick)

    tick()
