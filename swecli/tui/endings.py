"""How the program ends: the user leaves, a signal comes, or something is broken."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual.worker import WorkerFailed

from swecli.safe_text import safe_line
from swecli.tui import compat
from swecli.tui.handlers import Handlers
from swecli.tui.link import CLOSE_TIME, SessionNotOpened

if TYPE_CHECKING:
    from swecli.tui.dock.picker import Picker

SIGNAL_TIME = 0.5
"""Seconds for a session to end in order after a signal."""


class Endings(Handlers, inherit_bindings=True):
    """Each ending closes the session first, in the time that there is."""

    failure: SessionNotOpened | None = None
    """Why there was no session, if there was none."""
    defect: BaseException | None = None
    """The exception that ended the program, if one did."""
    leaving: Picker | None = None
    """The question whether to quit, once it was asked."""
    event_loop: asyncio.AbstractEventLoop | None = None

    def leave(self) -> None:
        """Quit. Where that ends jobs, only once the user has said so, or has pressed the key again."""
        view = self.stage.link.view if self.furnished else None
        running = [job for job in view.jobs if job.status == "running"] if view is not None else []
        asked = self.leaving is not None and self.slot.panel is self.leaving
        if running and not asked:
            self._ask_to_leave([f"{job.id} {job.command}" for job in running])
        else:
            self._leave()

    def _leave(self) -> None:
        self.activity.flash("Closing the session…")
        self.run_worker(self._end(0, CLOSE_TIME), group="end")

    def _ask_to_leave(self, jobs: list[str]) -> None:
        from swecli.tui.dock.picker import Choice, Picker

        named = safe_line(", ".join(jobs[:3]) + (f" and {len(jobs) - 3} more" if len(jobs) > 3 else ""))
        choices = [Choice("end", "End them and quit", named), Choice("stay", "Stay", "nothing is ended")]
        title = f"{'A job runs' if len(jobs) == 1 else f'{len(jobs)} jobs run'} in the background"

        def picked(value: str) -> None:
            if value == "end":
                self._leave()

        self.leaving = Picker(title, choices, picked, end=self._leave)
        self.slot.show(self.leaving)
        if self.slot.panel is not self.leaving:
            self.activity.flash("Jobs run in the background; answer this first")

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
