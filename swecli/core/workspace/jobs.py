"""Commands that run in the background: started there, moved there, or what a command left running.

A job belongs to the session, not to the turn that made it: an interrupt does not touch it, the session's end ends it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.workspace import process_tree as tree
from swecli.core.workspace.command_output import HEAD, TAIL
from swecli.core.workspace.process import (
    CommandSpec,
    ProcessResult,
    RunningCommand,
    ended_when_cancelled,
    finished,
    left_running,
)
from swecli.core.workspace.process_limit import PROCESSES

Status = Literal["running", "exited", "killed"]
Finish = Callable[[str, int | None], str]
"""Called once, in a thread, with the output's end and the exit status, when nothing of a command runs any more. Returns
a clause about what stopped it; empty where nothing did."""

FIRST_LOOK = 0.5
"""Seconds for which a command that is started in the background is watched: many that fail, fail at once."""
MOST_RUNNING = 20
KEPT = 5
"""Ended jobs whose output is kept, the newest."""
GRACE = 2.0
"""Seconds from SIGTERM to SIGKILL when a job is stopped."""
EXIT_GRACE = 0.5
"""The same when the session ends."""
_END = 4_000
"""Bytes of the output's end by which an ending is judged."""


class JobsError(Exception):
    """The job can't be started, read or stopped; the message says why and what to do."""


class JobInfo(Struct, frozen=True):
    """A job as it is now. Times are Unix seconds, sizes are bytes of output. ``status`` stays "running" as long as any
    process of it lives; ``exit_status`` is that of its first process. ``note`` says what stopped it."""

    id: str
    command: str
    item: str
    pid: int
    started: float
    status: Status = "running"
    exit_status: int | None = None
    ended: float | None = None
    size: int = 0
    note: str = ""
    unread: int = 0
    """Bytes that the model was not shown."""
    reported: bool = False
    """Whether the model was shown that it ended."""
    tokens: int | None = None
    """What a subagent used; None of a command."""


class _Job(Struct):
    info: JobInfo
    running: RunningCommand
    finish: Finish
    seen: int
    """Bytes of the output that the model was shown."""
    deadline: float | None = None
    """When all of it is ended, in seconds of the event loop's clock; None for never."""
    reported: bool = False
    stopped: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)
    watcher: asyncio.Task[None] | None = None


class RunOptions(Struct, frozen=True):
    """How a command is run: for whom (``item``), for how long (seconds; None without end), and what is kept of its
    output in the result (bytes). ``whole``: the timeout is that of what it leaves running, too. ``background``: it is a
    job from the start."""

    item: str
    timeout: float | None = None
    background: bool = False
    head: int = HEAD
    tail: int = TAIL
    whole: bool = False


class Jobs:
    """The commands of a session. ``changed`` is called on the event loop when a job begins and when it ends; ``folder``
    is where long output is kept; ``first`` is the number of the first job; ``processes`` is how many processes and
    threads a command may have."""

    def __init__(
        self,
        changed: Callable[[JobInfo], None],
        folder: Path | None = None,
        first: int = 1,
        processes: int = PROCESSES,
    ) -> None:
        self.processes = processes
        self._changed = changed
        self._folder = folder
        self._number = first
        self._jobs: dict[str, _Job] = {}
        self._detach_events: dict[str, asyncio.Event] = {}

    @property
    def all(self) -> tuple[JobInfo, ...]:
        return tuple(_now(job) for job in self._jobs.values())

    @property
    def running(self) -> tuple[JobInfo, ...]:
        return tuple(info for info in self.all if info.status == "running")

    # --- running ------------------------------------------------------------------------------------------------------

    async def run(
        self, spec: CommandSpec, options: RunOptions, finish: Finish, show: Callable[[str], None] | None = None
    ) -> ProcessResult:
        """Run a command in the foreground, until it ends or somebody sends it to the background. Where something of it
        goes on, the result names the job. ``finish`` is then called when that ends; else it is the caller's.

        Raises:
            LaunchError: it could not be started.
            JobsError: too many jobs run.
        """
        if options.background and len(self.running) >= MOST_RUNNING:
            raise JobsError(f"{MOST_RUNNING} jobs are already running; stop one first. Nothing was started.")
        command = RunningCommand(replace(spec, processes=self.processes), show, self._folder)
        detach_event = self._detach_events[options.item] = asyncio.Event()
        try:
            async with ended_when_cancelled(command):
                if options.background:
                    asyncio.get_running_loop().call_later(FIRST_LOOK, detach_event.set)
                ending = await finished(command, options.timeout, detach_event)
                left, ended_left = ((), 0)
                if ending == "exited":
                    left, ended_left = await left_running(command)
                elif ending == "background":
                    left = await command.members()
                result = await command.result(ending, options.head, options.tail, left, ended_left)
        finally:
            self._detach_events.pop(options.item, None)
        if ending == "background" or left:
            seconds = options.timeout if options.whole and ending == "exited" else None
            return replace(result, job=self._adopt(command, spec.command, options.item, finish, result.size, seconds))
        command.close()
        command.output.close()
        return result

    def to_background(self, item: str) -> bool:
        """Let the command of this item go on as a job. False when it does not run in the foreground."""
        detach_event = self._detach_events.get(item)
        if detach_event is not None:
            detach_event.set()
        return detach_event is not None

    def _adopt(
        self, command: RunningCommand, text: str, item: str, finish: Finish, seen: int, seconds: float | None
    ) -> str:
        """Look after a command from now on, of whose output so many bytes were shown, and which may take so many
        ``seconds`` in all. Returns the job's id."""
        command.detach()
        age = time.monotonic() - command.started
        deadline = None if seconds is None else asyncio.get_running_loop().time() + seconds - age
        info = JobInfo(f"j{self._number}", text, item, command.pid, time.time() - age, exit_status=command.exit_status)
        self._number += 1
        job = self._jobs[info.id] = _Job(info, command, finish, seen, deadline)
        job.watcher = asyncio.create_task(self._watch(job))
        self._changed(info)
        return info.id

    async def _watch(self, job: _Job) -> None:
        await job.running.wait()
        job.info = replace(job.info, exit_status=job.running.exit_status)
        late = False
        try:
            async with asyncio.timeout_at(job.deadline):
                while left := await job.running.members():
                    await tree.all_ended(left)
        except TimeoutError:
            late = True
            await job.running.end(GRACE)
        why = "ended at its command's timeout" if late else ""
        if await job.running.ended_by_limit():
            why = f"ended because it exceeded {self.processes:,} processes"
        await job.running.drained()
        job.running.close()
        await self._ended(job, why)

    async def _ended(self, job: _Job, why: str) -> None:
        """``why`` swecli ended it by itself, if it did."""
        end = await asyncio.to_thread(job.running.output.text, 0, _END)
        note = await asyncio.to_thread(job.finish, end[0], job.info.exit_status)
        job.info = replace(
            job.info,
            status="killed" if job.stopped or why else "exited",
            ended=time.time(),
            note="" if job.stopped else why or note,
        )
        job.over.set()
        self._changed(job.info)
        over = [other for other in self._jobs.values() if other.over.is_set()]
        for old in over[:-KEPT]:
            old.running.output.close()
            del self._jobs[old.info.id]

    # --- looking and stopping -----------------------------------------------------------------------------------------

    def info(self, job_id: str) -> JobInfo:
        """One job as it is now.

        Raises:
            JobsError: there is none of this id.
        """
        return _now(self._job(job_id))

    async def wait(self, job_id: str, seconds: float) -> None:
        """Wait until a job has ended, ``seconds`` at most."""
        over = self._job(job_id).over
        try:
            async with asyncio.timeout(seconds):
                await over.wait()
        except TimeoutError:
            return

    async def new_output(self, job_id: str, head: int, tail: int) -> str:
        """What a job wrote since this was asked last: whole, or both ends of it."""
        job = self._job(job_id)
        start, job.seen, job.reported = job.seen, job.running.output.total, job.over.is_set()
        return (await asyncio.to_thread(job.running.output.text, head, tail, start))[0]

    async def output(self, job_id: str, head: int = HEAD, tail: int = TAIL) -> str:
        return (await asyncio.to_thread(self._job(job_id).running.output.text, head, tail))[0]

    async def stop(self, job_id: str, grace: float = GRACE) -> JobInfo:
        job = self._job(job_id)
        if not job.over.is_set():
            job.stopped = True
            await job.running.end(grace)
            job.running.close()
            await job.over.wait()
        return self.info(job_id)

    async def close(self) -> None:
        await asyncio.gather(*(self.stop(info.id, EXIT_GRACE) for info in self.running))
        for job in self._jobs.values():
            job.running.output.close()

    def _job(self, job_id: str) -> _Job:
        job = self._jobs.get(job_id.strip())
        if job is None:
            known = ", ".join(self._jobs) or "none"
            raise JobsError(f"Unknown job {job_id.strip()!r}. Jobs: {known}.")
        return job


def _now(job: _Job) -> JobInfo:
    size = job.running.output.total
    return replace(job.info, size=size, unread=size - job.seen, reported=job.reported)


def shown_age(seconds: float) -> str:
    """How long something takes, for people: "12 s", "3 min", "2 h 5 min"."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
