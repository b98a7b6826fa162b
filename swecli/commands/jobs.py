"""/jobs: what runs in the background. A front-end with a screen for it shows that; with a word everything is text."""

from __future__ import annotations

import time

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.view import SessionPort
from swecli.core.protocol.blocks import DisplayBlock, TableBlock, TerminalBlock, TextBlock
from swecli.core.tools.files import readable_size
from swecli.core.workspace.jobs import JobInfo, JobsError, shown_age

USAGE = (
    "/jobs list says what runs in the background; /jobs j1 shows what it wrote, /jobs stop j1 ends it, /jobs stop all."
)
_COMMAND = 60
"""Characters of a command in the list."""
_STOP = ("stop", "kill", "end")


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    words = arguments.split()
    try:
        if not words:
            return CommandResult(screen="jobs", instead=_listed(port))
        if words == ["list"]:
            return CommandResult(_listed(port))
        if words[0] in _STOP and len(words) == 2:
            return await _stopped(port, words[1])
        if len(words) == 1:
            return await _shown(port, words[0])
    except JobsError as error:
        return CommandResult.text(str(error), "error")
    return CommandResult.text(USAGE, "warning")


def _listed(port: SessionPort) -> tuple[DisplayBlock, ...]:
    jobs = port.view.jobs
    if not jobs:
        return (TextBlock("Nothing runs in the background.", "dim"),)
    return (TableBlock(("job", "status", "age", "output", "command"), tuple(_row(job) for job in jobs)),)


def _row(job: JobInfo) -> tuple[str, ...]:
    command = " ".join(job.command.split())
    command = command if len(command) <= _COMMAND else f"{command[: _COMMAND - 1]}…"
    return job.id, status_of(job), shown_age((job.ended or time.time()) - job.started), readable_size(job.size), command


def status_of(job: JobInfo) -> str:
    """What became of a job, in a few words."""
    if job.status == "running":
        return f"running (pid {job.pid})" if job.exit_status is None else "left running"
    return "stopped" if job.status == "killed" else f"exit {job.exit_status}"


async def _shown(port: SessionPort, name: str) -> CommandResult:
    output = await port.job_output(name)
    job = next(job for job in port.view.jobs if job.id == name)
    status = job.exit_status if job.status == "exited" else None
    duration = (job.ended or time.time()) - job.started
    return CommandResult((TerminalBlock(job.command, output, status, duration=duration),))


async def _stopped(port: SessionPort, name: str) -> CommandResult:
    names = [job.id for job in port.view.jobs if job.status == "running"] if name == "all" else [name]
    if not names:
        return CommandResult.text("Nothing runs in the background.", "dim")
    ended = [await port.stop_job(one) for one in names]
    return CommandResult.text("\n".join(f"{job.id} {status_of(job)}: {job.command}" for job in ended))


JOBS = SlashCommand(
    "jobs", "What runs in the background: list it, show its output, stop it", _run, arguments="[list | job | stop job]"
)
