"""Time limits of the requests to one server: restarted by each sign of progress, suspended while the user answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager


class TimeLimits:
    """The limits of running requests. None runs out while the server waits for the user, who may think as long as they
    like, whatever progress it reports meanwhile."""

    def __init__(self) -> None:
        self._running: dict[asyncio.Timeout, float] = {}
        """With their seconds."""
        self._questions = 0
        """Number of questions that the user has not answered yet."""

    def __bool__(self) -> bool:
        """Whether any request is running."""
        return bool(self._running)

    @asynccontextmanager
    async def within(self, seconds: float) -> AsyncGenerator[Callable[[], None]]:
        """Limit the block; yields a function to call at each sign of progress.

        Raises:
            TimeoutError: there was none for as many seconds.
        """
        async with asyncio.timeout(None) as limit:
            self._running[limit] = seconds
            self._restart(limit)
            try:
                yield lambda: self._restart(limit)
            finally:
                del self._running[limit]

    @contextmanager
    def suspended(self) -> Generator[None]:
        """Suspend all limits for the duration of a question; they restart after the last one."""
        self._questions += 1
        self._restart(*self._running)
        try:
            yield
        finally:
            self._questions -= 1
            self._restart(*self._running)

    def _restart(self, *limits: asyncio.Timeout) -> None:
        now = asyncio.get_running_loop().time()
        for limit in limits:
            if limit in self._running and not limit.expired():  # a late sign of progress changes nothing
                limit.reschedule(None if self._questions else now + self._running[limit])
