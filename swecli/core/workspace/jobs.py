"""Background jobs: commands started or moved there, and processes that a command left running.

A job belongs to the session, not to its turn: an interrupt does not affect it, the session's end does.
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
    ended_unless_done,
    finished,
    left_running,
)
from swecli.core.workspace.process_limit import PROCESSES

Status = Literal["running", "exited", "killed"]
Finish = Callable[[str, int | None], str]
"""Called once, in a thread, with the output's end and the exit status, after the last process of a command has ended.
Returns a clause about what stopped it; empty if nothing did."""

FIRST_LOOK = 0.5
"""Seconds for which a new background command is watched: many failures are immediate."""
MOST_RUNNING = 20
KEPT = 5
"""Number of ended jobs whose output is kept: those that ended last."""
GRACE = 2.0
"""Seconds from SIGTERM to SIGKILL when a job is stopped."""
EXIT_GRACE = 0.5
"""Seconds from SIGTERM to SIGKILL when the session ends."""
_END = 4_000
"""Bytes of the output's end used to judge an ending."""


class JobsError(Exception):
    """The job can't be started, read or stopped; the message says why and what to do."""


class JobInfo(Struct, frozen=True):
    """Snapshot of a job. Times are Unix seconds, sizes are bytes of output. ``status`` stays "running" as long as any
    of its processes lives; ``exit_status`` is that of its first process. ``note`` says what stopped it."""

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
    """Bytes not yet shown to the model."""
    reported: bool = False
    """Whether the model has seen that it ended."""
    tokens: int | None = None
    """Tokens used by a subagent; None for a command."""


class _Job(Struct):
    info: JobInfo
    running: RunningCommand
    finish: Finish
    seen: int
    """Bytes of the output already shown to the model."""
    deadline: float | None = None
    """When all its processes are ended, in seconds of the event loop's clock; None for never."""
    reported: bool = False
    stopped: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)
    watcher: asyncio.Task[None] | None = None


class RunOptions(Struct, frozen=True):
    """Settings of a run: the item it belongs to, its timeout (seconds; None for no limit), and how much output the
    result keeps (bytes). ``whole``: the timeout also covers processes it leaves running. ``background``: it is a job
    from the start."""

    item: str
    timeout: float | None = None
    background: bool = False
    head: int = HEAD
    tail: int = TAIL
    whole: bool = False


class Jobs:
    """The commands of a session. ``changed`` is called on the event loop when a job begins or ends; ``folder``
    stores long output; ``first`` is the number of the first job; ``processes`` limits the processes and threads of
    a command."""

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
        self._over: list[_Job] = []
        """Ended jobs whose output is kept, in the order of their ends."""
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
        """Run a command in the foreground until it ends or is sent to the background. If any process continues, the
        result names the job. ``finish`` is then called when that ends; otherwise the caller must call it.

        Raises:
            LaunchError: it could not be started.
            JobsError: too many jobs run.
        """
        if options.background and len(self.running) >= MOST_RUNNING:
            raise JobsError(f"{MOST_RUNNING} jobs are already running; stop one first. Nothing was started.")
        command = RunningCommand(replace(spec, processes=self.processes), show, self._folder)
        detach_event = self._detach_events[options.item] = asyncio.Event()
        try:
            async with ended_unless_done(command):
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
        """Let the command of this item continue as a job. False if it does not run in the foreground."""
        detach_event = self._detach_events.get(item)
        if detach_event is not None:
            detach_event.set()
        return detach_event is not None

    def _adopt(
        self, command: RunningCommand, text: str, item: str, finish: Finish, seen: int, seconds: float | None
    ) -> str:
        """Take over a command after ``seen`` bytes of its output were shown; ``seconds`` limits its total run time.
        Returns the job's id."""
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
        """Handle the end of a job; ``why`` is swecli's reason if it ended the job itself."""
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
        self._over.append(job)
        for old in self._over[:-KEPT]:
            old.running.output.close()
            del self._jobs[old.info.id]
        del self._over[:-KEPT]

    # --- inspecting and stopping --------------------------------------------------------------------------------------

    def info(self, job_id: str) -> JobInfo:
        """One job's current state.

        Raises:
            JobsError: the id is unknown.
        """
        return _now(self._job(job_id))

    async def wait(self, job_id: str, seconds: float) -> None:
        """Wait until a job has ended, at most ``seconds``."""
        over = self._job(job_id).over
        try:
            async with asyncio.timeout(seconds):
                await over.wait()
        except TimeoutError:
            return

    async def new_output(self, job_id: str, head: int, tail: int) -> str:
        """A job's output since the previous call: whole, or both ends of it."""
        job = self._job(job_id)
        start, job.seen, job.reported = job.seen, job.running.output.total, job.over.is_set()
        return (await asyncio.to_thread(job.running.output.text, head, tail, start, job.seen))[0]

    async def output(self, job_id: str, head: int = HEAD, tail: int = TAIL) -> str:
        return (await asyncio.to_thread(self._job(job_id).running.output.text, head, tail))[0]

    async def stop(self, job_id: str, grace: float = GRACE) -> JobInfo:
        job = self._job(job_id)
        if not job.over.is_set():
            job.stopped = True
            await job.running.end(grace)
            job.running.close()
            await job.over.wait()
        return _now(job)

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
    """A duration for people: "12 s", "3 min", "2 h 5 min"."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
