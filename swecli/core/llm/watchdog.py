"""The watchdog over one answer: it ends a stream in which the model makes no progress."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from swecli.core.llm.transport import HttpResponse, Timeouts
from swecli.core.llm.types import ProviderError

_T = TypeVar("_T")


class Watchdog:
    """Ends a stalled stream. Only time spent waiting for the server counts, and only an event that adds to the answer
    resets it."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._limit = self._left = self._first = timeouts.first
        self._idle = timeouts.idle
        self._grace = timeouts.grace
        self._ends_soon = False
        self.was_enough = False
        """Whether the stream stalled after a complete answer."""
        self._begun = False
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self._waiting: asyncio.Task[Any] | None = None
        """The task that waits, until the deadline."""
        self._fired = False

    async def piece(self, response: HttpResponse) -> bytes | None:
        """The next piece of the body; None at its end, or on a stall after ``end_soon``.

        Raises:
            ProviderError: kind ``stalled``, or the transport's error.
        """
        try:
            return await self.wait(response.read())
        except ProviderError as error:
            if error.kind != "stalled" or not self._ends_soon:
                raise
            self.was_enough = True
            return None

    async def wait(self, answer: Awaitable[_T]) -> _T:
        """The result of ``answer``. One timer serves all waits of a stream, because a long answer has many.

        Raises:
            ProviderError: kind ``stalled``.
        """
        task = asyncio.current_task()
        if self._left is None or task is None:
            return await answer
        start, cancelling = self._loop.time(), task.cancelling()
        self._waiting, self._deadline, self._fired = task, start + self._left, False
        self._set_timer()
        try:
            return await answer
        except asyncio.CancelledError:
            if self._fired and task.uncancel() <= cancelling:
                more = "more " if self._begun else ""
                raise ProviderError("stalled", f"the model sent nothing {more}for {self._limit or 0:g} s") from None
            raise
        finally:
            self._waiting = None
            self._left = max(0.0, self._left - (self._loop.time() - start))

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _set_timer(self) -> None:
        if self._timer is not None and self._timer.when() > self._deadline:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(self._deadline, self._look)

    def _look(self) -> None:
        """End the wait if its time is over; a later one has moved the deadline."""
        self._timer = None
        if self._waiting is not None and self._loop.time() >= self._deadline:
            self._fired = True
            self._waiting.cancel()
        elif self._waiting is not None:
            self._set_timer()

    def progress(self, *, silence: bool) -> None:
        """Reset after an event; ``silence`` is expected next."""
        self._begun, self._ends_soon = True, False
        self._limit = self._left = self._first if silence else self._idle

    def end_soon(self) -> None:
        """Expect only usage and the end of the stream: the model is done."""
        self._ends_soon = True
        self._left = self._grace
