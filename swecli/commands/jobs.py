"""The command /jobs."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult, SlashCommand, Word
from swecli.core.protocol.blocks import DisplayBlock, TableBlock, TerminalBlock, TextBlock
from swecli.core.tools.base import readable_size
from swecli.core.workspace.jobs import JobInfo, JobsError, shown_age
from swecli.figures import cut_line

if TYPE_CHECKING:
    from swecli.core.engine.session import Session


JOBS_USAGE = (
    "/jobs list shows background jobs; /jobs j1 shows a job's output, /jobs stop j1 stops it; also /jobs stop all."
)


_COMMAND = 60
"""Characters of a command in the list."""
_STOP = ("stop", "kill", "end")


async def _run_jobs(session: Session, arguments: str) -> CommandResult:
    words = arguments.split()
    try:
        if not words:
            return CommandResult(screen="jobs", instead=_listed(session))
        if words == ["list"]:
            return CommandResult(_listed(session))
        if words[0] in _STOP and len(words) == 2:
            return await _stopped(session, words[1])
        if len(words) == 1 and words[0] not in _STOP:
            return await _shown(session, words[0])
    except JobsError as error:
        return CommandResult.text(str(error), "error")
    return CommandResult.text(JOBS_USAGE, "warning")


def _listed(session: Session) -> tuple[DisplayBlock, ...]:
    jobs = session.view.jobs
    if not jobs:
        return (TextBlock("No background jobs.", "dim"),)
    return (TableBlock(("Job", "Status", "Age", "Output", "Command"), tuple(_row(job) for job in jobs)),)


def _row(job: JobInfo) -> tuple[str, ...]:
    command = cut_line(job.command, _COMMAND)
    size = readable_size(job.size) if job.tokens is None else f"{job.tokens:,} tokens"
    return job.id, status_of(job), shown_age((job.ended or time.time()) - job.started), size, command


def status_of(job: JobInfo) -> str:
    if job.status == "running":
        if not job.pid:  # a subagent
            return "running"
        return f"running (pid {job.pid})" if job.exit_status is None else "left running"
    if job.tokens is not None and job.status != "killed":
        return "done"
    return "stopped" if job.status == "killed" else f"exit {job.exit_status}"


async def _shown(session: Session, name: str) -> CommandResult:
    output = await session.job_output(name)
    job = next(job for job in session.view.jobs if job.id == name)
    if job.tokens is not None:
        facts = f"{job.id} · {job.command} · {status_of(job)} · {job.tokens:,} tokens"
        return CommandResult((TextBlock(facts, "dim"), TextBlock(output)))
    status = job.exit_status if job.status == "exited" else None
    duration = (job.ended or time.time()) - job.started
    return CommandResult((TerminalBlock(job.command, output, status, duration=duration),))


async def _stopped(session: Session, name: str) -> CommandResult:
    names = [job.id for job in session.view.jobs if job.status == "running"] if name == "all" else [name]
    if not names:
        return CommandResult.text("No background jobs.", "dim")
    ended = [await session.stop_job(one) for one in names]
    return CommandResult.text("\n".join(f"{job.id} {status_of(job)}: {job.command}" for job in ended))


def _job_words(session: Session) -> Iterable[Word]:
    for job in session.view.jobs:
        yield Word(job.id, job.command)
        if job.status == "running":
            yield Word(f"stop {job.id}", job.command)


JOBS = SlashCommand(
    "jobs",
    "List background jobs, show their output, stop them",
    _run_jobs,
    arguments="[list | job | stop job]",
    words=_job_words,
)
