"""The record of files, opened in a thread when it is first needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from swecli.core.checkpoints.history import FileHistory


class LazyHistory:
    """``make`` is called in a thread, once."""

    def __init__(self, make: Callable[[], FileHistory]) -> None:
        self._make = make
        self._opening: asyncio.Task[FileHistory] | None = None

    @property
    def begun(self) -> bool:
        """Whether it was needed yet."""
        return self._opening is not None

    @property
    def ready(self) -> FileHistory | None:
        """The record, if it is open by now."""
        task = self._opening
        if task is None or not task.done() or task.cancelled() or task.exception() is not None:
            return None
        return task.result()

    async def get(self) -> FileHistory:
        """The record, opened if it is not yet. What opening raised is raised each time."""
        if self._opening is None:
            self._opening = asyncio.create_task(asyncio.to_thread(self._opened))
        return await asyncio.shield(self._opening)

    def _opened(self) -> FileHistory:
        history = self._make()
        history.open()
        return history
