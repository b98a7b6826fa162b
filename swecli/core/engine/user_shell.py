"""Commands that the user runs with ``!``: outside of turns, without the model; their output joins the conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct

from swecli.core.context_management.prompts import harmless
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.results import Results
from swecli.core.engine.services import Services
from swecli.core.engine.tool_calls import LiveOutput
from swecli.core.protocol.blocks import TerminalBlock, TextBlock
from swecli.core.protocol.commands import RunShell
from swecli.core.protocol.events import (
    ItemCompleted,
    ItemDelta,
    ItemStarted,
)
from swecli.core.protocol.messages import TextPart
from swecli.core.tools.base import ToolOutcome
from swecli.core.workspace.command_output import as_read
from swecli.core.workspace.jobs import Jobs, RunOptions
from swecli.core.workspace.process import CommandSpec, LaunchError, user_shell


class _Ran(Struct, frozen=True):
    output: str
    exit_status: int | None
    duration: float | None
    exited: bool = True
    job: str = ""
    """Id of the job, if the command continues in the background."""


async def run_shell(recorder: Recorder, services: Services, results: Results, jobs: Jobs, order: RunShell) -> None:
    """The user's ``!command``: it needs no consent, and its output joins the conversation."""
    item = recorder.new_item("u")
    recorder.emit(ItemStarted(item, "user", "shell", order.command))
    written = LiveOutput()

    def show(text: str) -> None:
        if text:
            written.add(item, text)
            recorder.emit(ItemDelta(item, text, "output"))

    try:
        ran = await _run(services, jobs, order, item, show)
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
    """The end of a command that the user interrupted, with the end of what it wrote until then."""
    said = harmless(as_read(output)) if output else "It wrote nothing until then."
    part = TextPart(f"I ran this command myself and interrupted it: {command}\n{said}")
    block = TerminalBlock(command, output, None, truncated=cut)
    return ItemCompleted(item, "interrupted", (part,), (block,), "interrupted")


async def _run(services: Services, jobs: Jobs, order: RunShell, item: str, show: Callable[[str], None]) -> _Ran:
    if order.output is not None:
        return _Ran(order.output, order.exit_status, order.duration)
    environment = services.workspace.environment
    spec = CommandSpec(order.command, services.workspace.cwd, environment, shell=user_shell(environment))
    result = await jobs.run(spec, RunOptions(item), _nothing_more, show)
    return _Ran(result.output, result.exit_status, result.duration, result.ending == "exited", result.job)


def _nothing_more(output: str, exit_status: int | None) -> str:
    """The user's own command runs in no sandbox: nothing is to be done when it ends."""
    del output, exit_status
    return ""
