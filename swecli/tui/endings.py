"""How the program ends: the user leaves, a signal comes, or something is broken."""

from __future__ import annotations

import asyncio

from textual.worker import WorkerFailed

from swecli.tui import compat
from swecli.tui.handlers import Handlers
from swecli.tui.link import CLOSE_TIME, SessionNotOpened

SIGNAL_TIME = 0.5
"""Seconds for a session to end in order after a signal."""


class Endings(Handlers, inherit_bindings=True):
    """Each ending closes the session first, in the time that there is."""

    failure: SessionNotOpened | None = None
    """Why there was no session, if there was none."""
    defect: BaseException | None = None
    """The exception that ended the program, if one did."""
    event_loop: asyncio.AbstractEventLoop | None = None

    def leave(self) -> None:
        self.activity.flash("Closing the session…")
        self.run_worker(self._end(0, CLOSE_TIME), group="end")

    async def _end(self, code: int, timeout: float) -> None:
        self.prompt.save()
        if self.furnished:
            await self.outside.close()
            await self.stage.close(timeout)
        self.exit(return_code=code)

    def end_soon(self, code: int) -> None:
        """End with this exit code in the time that a signal leaves. For signal handlers."""
        if self.event_loop is not None:
            end = self._end(code, SIGNAL_TIME)
            self.event_loop.call_soon_threadsafe(lambda: self.run_worker(end, group="end"))

    def cancel_soon(self) -> None:
        """What Ctrl+C does. For signal handlers."""
        if self.event_loop is not None and self.furnished:
            self.event_loop.call_soon_threadsafe(self.action_cancel)

    def _handle_exception(self, error: Exception) -> None:
        self.defect = self.defect or (error.error if isinstance(error, WorkerFailed) else error)
        compat.stop_after_defect(self, self.defect)
