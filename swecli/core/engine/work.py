"""The one piece of work that a session does at a time: a turn, or a tool for a slash command."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine


class Work:
    """A slot for one task. ``ended`` is called on the event loop after each task, with its defect if it had
    one; an interrupt is no defect."""

    def __init__(self, ended: Callable[[BaseException | None], None]) -> None:
        self._ended = ended
        self._task: asyncio.Task[None] | None = None
        self.interrupted = False
        """Whether the newest task was interrupted by the user."""

    @property
    def busy(self) -> bool:
        return self._task is not None

    def begin(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Start; only when nothing runs."""
        assert self._task is None
        self.interrupted = False
        self._task = asyncio.create_task(work)
        self._task.add_done_callback(self._done)
        return self._task

    def interrupt(self) -> None:
        """Cancel what runs, if anything."""
        if self._task is not None:
            self.interrupted = True
            # A task that is cancelled before its first step runs nothing, not even its end. That step is
            # already scheduled, so the cancellation goes after it.
            asyncio.get_running_loop().call_soon(self._task.cancel)

    async def stop(self) -> None:
        """Cancel and wait until it has ended."""
        task = self._task
        if task is not None:
            self.interrupt()
            await asyncio.gather(task, return_exceptions=True)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        self._ended(None if task.cancelled() else task.exception())
