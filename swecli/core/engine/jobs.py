"""Background jobs of a session: recorded when they begin and end, and reported to the model."""

from __future__ import annotations

import asyncio

from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Services
from swecli.core.protocol.events import JobChanged, Notice
from swecli.core.workspace.jobs import JobInfo, Jobs, JobsError, shown_age

_SHOWN = 120
"""Characters of a command in a note."""
_NAMED = 8
"""Jobs that are named in a note, the newest."""


class JobWatch:
    """Makes the jobs of a session and follows them."""

    def __init__(self, services: Services, recorder: Recorder) -> None:
        self._recorder = recorder
        self._clock = services.clock
        known = recorder.state.jobs
        self.jobs = Jobs(self._changed, services.output_folder, len(known) + 1, services.process_limit)
        self._lost = [job for job in known.values() if job.status == "running"]
        """Ran when swecli was stopped, the last time."""
        self._stopping: set[asyncio.Task[None]] = set()
        self._reported: dict[str, int] = {}
        """The turn in which the model was first told that a job had ended."""

    def _changed(self, info: JobInfo) -> None:
        self._recorder.emit(
            JobChanged(info.id, info.command, info.status, info.exit_status, size=info.size, note=info.note)
        )

    def note(self) -> str:
        """What the next request tells the model: what runs, and what ended since it looked. Empty without jobs."""
        turn = self._recorder.turn
        lines = [
            f"{job.job} `{_short(job.command)}` ended when swecli was stopped."
            for job in self._lost
            if self._reported.setdefault(job.job, turn) == turn
        ]
        for info in self.jobs.all:
            if info.status == "running":
                lines.append(self._running(info))
            elif not info.reported and turn <= self._reported.setdefault(info.id, turn) + 1:
                lines.append(_ended(info))
        return "\n".join(["Background jobs (the tool job reads or stops one):", *lines[-_NAMED:]]) if lines else ""

    def _running(self, info: JobInfo) -> str:
        age = shown_age(self._clock() - info.started)
        news = f", {info.unread:,} bytes of unread output" if info.unread else ""
        return f"{info.id} `{_short(info.command)}` has been running for {age}{news}."

    def stop_soon(self, job: str) -> None:
        """End a job; that it ended comes as an event."""
        stopping = asyncio.create_task(self._stop(job))
        self._stopping.add(stopping)
        stopping.add_done_callback(self._stopping.discard)

    async def _stop(self, job: str) -> None:
        try:
            await self.jobs.stop(job)
        except JobsError as error:
            self._recorder.emit(Notice(str(error), "warning", "jobs"))

    async def close(self) -> None:
        await self.jobs.close()
        await asyncio.gather(*self._stopping)


def _ended(info: JobInfo) -> str:
    how = "was stopped" if info.status == "killed" else f"ended with exit status {info.exit_status}"
    why = f" ({info.note})" if info.note else ""
    return f"{info.id} `{_short(info.command)}` {how}{why}, {info.unread:,} bytes of unread output."


def _short(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
