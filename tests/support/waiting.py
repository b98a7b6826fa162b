"""Waiting for a condition, however slow the machine is: the one place that knows when a test gives up.

A condition is asked again and again while what it looks at is half made, so it must be total: an answer for every
state, no exception, and never true before the state that it stands for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

PATIENCE = 300.0
"""Seconds until a test gives up. Nothing that works comes near it, even where each step takes fifty times as long; it
is only there so that a test that waits in vain says for what."""

Condition = Callable[[], object]


class Waiting:
    """How long is waited already."""

    def __init__(self, about: Callable[[], str]) -> None:
        self._about = about
        self._end = time.monotonic() + PATIENCE

    def go_on(self) -> None:
        """To be called before each pause.

        Raises:
            AssertionError: the patience is at its end.
        """
        assert time.monotonic() < self._end, f"waited in vain\n{self._about()}"


def wait_until(condition: Condition, about: Callable[[], str] = lambda: "", *, between: float = 0.01) -> None:
    """Wait in a thread; ``between`` is the pause between two looks, ``about`` what is said in the end."""
    waiting = Waiting(about)
    while not condition():
        waiting.go_on()
        time.sleep(between)


async def until(condition: Condition, about: Callable[[], str] = lambda: "", *, between: float = 0.005) -> None:
    """The same in an event loop, which goes on meanwhile."""
    waiting = Waiting(about)
    while not condition():
        waiting.go_on()
        await asyncio.sleep(between)


async def at_some_pace(attempt: Callable[[float], Awaitable[object]], seconds: float) -> None:
    """For what has to get somewhere within a time limit that it then exceeds. ``attempt`` is given the limit: so many
    seconds, and where a busy machine does not get there in time, which an assertion says, ten and a hundred times as
    many."""
    for factor in (1, 10, 100):
        try:
            await attempt(seconds * factor)
        except AssertionError:
            if factor == 100:
                raise
        else:
            return
