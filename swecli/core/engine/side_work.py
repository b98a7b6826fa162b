"""Work beside the conversation: a tool for a slash command, a question to the model, the user's own shell."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass

from swecli.core.engine.answer import Call
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.results import Results
from swecli.core.engine.scheduler import Scheduler
from swecli.core.engine.services import Services
from swecli.core.engine.view import ToolRun
from swecli.core.engine.way_out import door_of
from swecli.core.llm.types import Failed, Finished, ModelClient, ModelRequest, SystemBlock
from swecli.core.protocol.blocks import TerminalBlock, TextBlock
from swecli.core.protocol.commands import RunShell
from swecli.core.protocol.events import ItemCheckpointed, ItemCompleted, ItemDelta, ItemStarted, Notice, SideAnswered
from swecli.core.protocol.messages import Message, TextPart, ToolCallPart, ToolResultPart
from swecli.core.tools.base import ToolOutcome
from swecli.core.workspace.jobs import Foreground, Jobs
from swecli.core.workspace.process import CommandSpec, LaunchError


async def run_tool(recorder: Recorder, scheduler: Scheduler, name: str, arguments: Mapping[str, object]) -> ToolRun:
    """One call that belongs to no message: it shows and asks like any other, and the model never sees it."""
    item = recorder.new_item("t")
    part = ToolCallPart(item, name, json.dumps(arguments))
    recorder.emit(ItemStarted(item, "tool", name))
    recorder.emit(ItemCheckpointed(item, part))
    await scheduler.run([Call(item, part)])
    record = recorder.ledger.items[item]
    result = next((part for part in record.parts if isinstance(part, ToolResultPart)), None)
    return ToolRun(result.text if result else "", record.status != "ok")


async def ask_model(
    recorder: Recorder, services: Services, client: ModelClient, system: str, prompt: str, max_output_tokens: int
) -> str | None:
    """The answer's text, or None after a Notice that says why there is none."""
    request = ModelRequest(
        system=(SystemBlock(system),),
        tools=(),
        messages=(Message("user", (TextPart(prompt),), "question"),),
        max_output_tokens=max_output_tokens,
        session=recorder.session,
    )
    async with aclosing(door_of(services, recorder).send(client, request)) as events:
        async for event in events:
            if isinstance(event, Finished):
                usage = event.message.response.usage if event.message.response else None
                cost = services.price(client.info.ref, usage) if usage is not None else None
                recorder.emit(SideAnswered("question", client.info.ref, usage, cost))
                return event.message.text or None
            if isinstance(event, Failed):
                recorder.emit(Notice(f"The model could not be asked: {event.error.message}", "warning", "model"))
                return None
    return None


@dataclass(frozen=True, slots=True)
class _Ran:
    output: str
    exit_status: int | None
    duration: float | None
    exited: bool = True
    job: str = ""
    """Under which id what goes on in the background can be found."""


async def run_shell(recorder: Recorder, services: Services, results: Results, jobs: Jobs, order: RunShell) -> None:
    """The user's ``!command``: it needs no consent, and its output joins the conversation."""
    item = recorder.new_item("u")
    recorder.emit(ItemStarted(item, "user", "shell", order.command))
    try:
        ran = await _run(recorder, services, jobs, order, item)
    except LaunchError as error:
        recorder.emit(ItemCompleted(item, "error", (), (TextBlock(str(error), "error"),), "not started"))
        return
    except asyncio.CancelledError:
        recorder.emit(ItemCompleted(item, "interrupted", (), (), "interrupted"))
        raise
    failed = ran.exit_status not in (0, None)
    outcome = ToolOutcome(ran.output, is_error=failed, exit_status=ran.exit_status)
    try:
        outcome = await results.admit(item, "shell", "output", outcome)
    except asyncio.CancelledError:
        outcome = results.bounded("output", outcome)
        raise
    finally:
        state = f"exit {ran.exit_status}" if ran.exited else f"job {ran.job}"
        ended = f"Exit status: {ran.exit_status}\n" if ran.exited else ""
        job = f"It goes on in the background as job {ran.job}.\n" if ran.job else ""
        text = f"I ran this command myself: {order.command}\n{ended}{job}{outcome.text}"
        block = TerminalBlock(order.command, ran.output, ran.exit_status, duration=ran.duration)
        recorder.emit(ItemCompleted(item, "ok", (TextPart(text),), (block,), state))


async def _run(recorder: Recorder, services: Services, jobs: Jobs, order: RunShell, item: str) -> _Ran:
    if order.output is not None:
        return _Ran(order.output, order.exit_status, order.duration)
    spec = CommandSpec(order.command, services.workspace.cwd, services.workspace.environment)
    result = await jobs.run(spec, Foreground(item), _nothing_more, lambda text: _show(recorder, item, text))
    return _Ran(result.output, result.exit_status, result.duration, result.ending == "exited", result.job)


def _nothing_more(output: str, exit_status: int | None) -> str:
    """The user's own command runs in no sandbox: nothing is to be done when it ends."""
    del output, exit_status
    return ""


def _show(recorder: Recorder, item: str, text: str) -> None:
    if text:
        recorder.emit(ItemDelta(item, text, "output"))
