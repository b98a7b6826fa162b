"""Commands outside the model's calls: background jobs, recorded and reported, and the user's ``!`` commands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from msgspec import Struct

from swecli.core.context_management.note_topics import JOBS
from swecli.core.context_management.prompts import harmless
from swecli.core.engine.companion import Companion
from swecli.core.engine.notes import Notes, Statement
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.results import Results
from swecli.core.engine.services import Workspace
from swecli.core.engine.state import AgentRecord
from swecli.core.engine.tool_calls import LiveOutput
from swecli.core.engine.transcripts import agent_transcript
from swecli.core.engine.work import Work
from swecli.core.protocol.blocks import TerminalBlock, TextBlock
from swecli.core.protocol.commands import RunShell
from swecli.core.protocol.events import (
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    JobChanged,
    Notice,
)
from swecli.core.protocol.messages import TextPart
from swecli.core.tools.base import ToolOutcome
from swecli.core.workspace.command_output import as_read
from swecli.core.workspace.jobs import JobInfo, Jobs, JobsError, RunOptions
from swecli.core.workspace.process import CommandSpec, LaunchError, user_shell

_SHOWN = 120
"""Most characters of a command in a note."""
_NAMED = 8
"""Most jobs named in a note, newest first."""


class JobWatch(Companion):
    """Creates and follows the jobs of a session."""

    def __init__(self, workspace: Workspace, processes: int, recorder: Recorder, notes: Notes, work: Work) -> None:
        self._recorder = recorder
        self._notes = notes
        self._work = work
        known = recorder.state.jobs
        self.jobs = Jobs(self._changed, workspace.output_folder, len(known) + 1, processes)
        self._lost = [job for job in known.values() if job.status == "running"]
        """Jobs that were running when swecli last stopped."""
        self._stopping: set[asyncio.Task[None]] = set()
        self._reported: dict[str, int] = {}
        """Turn in which the model first learned that a job had ended."""

    def _changed(self, info: JobInfo) -> None:
        self._recorder.emit(
            JobChanged(info.id, info.command, info.status, info.exit_status, size=info.size, note=info.note)
        )

    async def before_request(self) -> None:
        """Tell the model of jobs that ended, and of running ones whose start it no longer sees."""
        if not self._recorder.state.jobs:
            return
        turn = self._recorder.turn
        for job in self._lost:
            if self._reported.setdefault(job.job, turn) == turn:
                text = f"The background job {job.job} `{_short(job.command)}` ended when swecli stopped."
                self._notes.state(Statement(f"{JOBS} {job.job}", f"{job.job} ended", text))
        for info in self.jobs.all:
            if info.status != "running" and not info.reported and turn <= self._reported.setdefault(info.id, turn) + 1:
                self._notes.state(Statement(f"{JOBS} {info.id}", f"{info.id} ended", _ended(info)))
        self._notes.state(Statement(JOBS, "Background jobs", self._running()))

    def _running(self) -> str:
        running = [info for info in self.jobs.all if info.status == "running"]
        if not running:
            return ""
        live = self._recorder.ledger.live_items()
        if all(info.item in live for info in running):
            return ""
        lines = [f"{info.id} `{_short(info.command)}` is running." for info in running]
        return "\n".join(["Background jobs (the tool job reads or stops one):", *lines[-_NAMED:]])

    async def output(self, job: str) -> str:
        """Output of a job, with the middle of long output removed; of a subagent its transcript.

        Raises:
            JobsError: no such job exists.
        """
        transcript = await asyncio.to_thread(agent_transcript, self._recorder, job)
        return transcript if transcript is not None else await self.jobs.output(job)

    async def stop(self, job: str) -> JobInfo:
        """End all processes of a job, or a subagent, and return its final state.

        Raises:
            JobsError: no such job exists.
        """
        await self._work.beside_ended(job)
        agents = agent_jobs(self._recorder.state.agents.values())
        return next((agent for agent in agents if agent.id == job), None) or await self.jobs.stop(job)

    def stop_soon(self, job: str) -> None:
        """Stop a job or a subagent; an event reports its end."""
        if not self._work.stop_beside(job):
            stopping = asyncio.create_task(self._stopped(job))
            self._stopping.add(stopping)
            stopping.add_done_callback(self._stopping.discard)

    async def _stopped(self, job: str) -> None:
        try:
            await self.jobs.stop(job)
        except JobsError as error:
            self._recorder.emit(Notice(str(error), "warning", "jobs"))

    async def end(self) -> None:
        """End all jobs. Apart from the companions' close, because it happens even if that is cut off."""
        await self.jobs.close()
        await asyncio.gather(*self._stopping)


def _ended(info: JobInfo) -> str:
    how = "was stopped" if info.status == "killed" else f"ended with exit status {info.exit_status}"
    why = f" ({info.note})" if info.note else ""
    unread = f"{info.unread:,} bytes of unread output (the tool job reads it)" if info.unread else "no unread output"
    return f"The background job {info.id} `{_short(info.command)}` {how}{why}, with {unread}."


def _short(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


# The user's ``!`` commands: outside turns, without the model; their output joins the conversation.


class _Ran(Struct, frozen=True):
    output: str
    exit_status: int | None
    duration: float | None
    exited: bool = True
    job: str = ""
    """Id of the job, if the command continues in the background."""


async def run_shell(recorder: Recorder, workspace: Workspace, results: Results, jobs: Jobs, order: RunShell) -> None:
    """Run the user's ``!command`` without approval; its output joins the conversation."""
    item = recorder.new_item("u")
    recorder.emit(ItemStarted(item, "user", "shell", order.command))
    written = LiveOutput()

    def show(text: str) -> None:
        if text:
            written.add(item, text)
            recorder.emit(ItemDelta(item, text, "output"))

    try:
        ran = await _run(workspace, jobs, order, item, show)
    except LaunchError as error:
        recorder.emit(ItemCompleted(item, "error", (), (TextBlock(str(error), "error"),), "not started"))
        return
    except asyncio.CancelledError:
        recorder.emit(_interrupted(item, order.command, *written.of(item)))
        raise
    failed = ran.exit_status not in (0, None)
    outcome = ToolOutcome(as_read(ran.output), is_error=failed, exit_status=ran.exit_status)
    try:
        outcome = await results.admit(item, "shell", "output", outcome)
    except asyncio.CancelledError:
        outcome = results.bounded("output", outcome)
        raise
    finally:
        state = f"exit {ran.exit_status}" if ran.exited else f"job {ran.job}"
        ended = f"Exit status: {ran.exit_status}\n" if ran.exited else ""
        job = f"It continues in the background as job {ran.job}.\n" if ran.job else ""
        text = f"I ran this command myself: {order.command}\n{ended}{job}{harmless(outcome.text)}"
        block = TerminalBlock(order.command, ran.output, ran.exit_status, duration=ran.duration)
        recorder.emit(ItemCompleted(item, "ok", (TextPart(text),), (block,), state))


def _interrupted(item: str, command: str, output: str, cut: bool) -> ItemCompleted:
    """Terminal item of a command that the user interrupted, with the end of its output."""
    said = harmless(as_read(output)) if output else "It wrote nothing before that."
    part = TextPart(f"I ran this command myself and interrupted it: {command}\n{said}")
    block = TerminalBlock(command, output, None, truncated=cut)
    return ItemCompleted(item, "interrupted", (part,), (block,), "interrupted")


async def _run(workspace: Workspace, jobs: Jobs, order: RunShell, item: str, show: Callable[[str], None]) -> _Ran:
    if order.output is not None:
        return _Ran(order.output, order.exit_status, order.duration)
    environment = workspace.environment
    spec = CommandSpec(order.command, workspace.cwd, environment, shell=user_shell(environment))
    result = await jobs.run(spec, RunOptions(item), _no_completion_note, show)
    return _Ran(result.output, result.exit_status, result.duration, result.ending == "exited", result.job)


def _no_completion_note(output: str, exit_status: int | None) -> str:
    """No completion message: the user's own command runs outside the sandbox and needs none."""
    return ""


def agent_jobs(agents: Iterable[AgentRecord]) -> tuple[JobInfo, ...]:
    """Background subagents as jobs."""
    return tuple(
        JobInfo(
            record.id,
            f"{record.started.profile}: {record.started.title}",
            record.started.item,
            0,
            record.began,
            "running" if record.outcome is None else "exited" if record.outcome == "done" else "killed",
            None if record.outcome is None else 0 if record.outcome == "done" else 1,
            record.ended,
            note=record.reason,
            reported=record.outcome is not None,
            tokens=record.tokens,
        )
        for record in agents
        if record.started.background
    )
