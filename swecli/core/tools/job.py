"""Reading what a background command wrote, and stopping it."""

from __future__ import annotations

import time

from pydantic import Field

from swecli.core.permissions.types import Effects
from swecli.core.protocol.blocks import TerminalBlock
from swecli.core.tools.base import Params, Tool, ToolContext, ToolError, ToolOutcome
from swecli.core.tools.bounding import bound
from swecli.core.workspace.jobs import JobInfo, JobsError

MOST_WAIT = 600.0
_HEAD_BYTES = 200_000
_TAIL_BYTES = 800_000
_BLOCK_BYTES = 200_000


class JobParams(Params):
    id: str
    wait: float = Field(0, ge=0, description="Seconds to wait for its end, at most 600")
    stop: bool = False


class JobTool(Tool[JobParams]):
    """Gives the output that came since the last look."""

    name = "job"
    verb = "Job"
    params = JobParams
    result_kind = "output"

    def effects(self, params: JobParams, ctx: ToolContext) -> Effects:
        return Effects(internal=True)

    def title(self, params: JobParams, ctx: ToolContext) -> str:
        return f"{params.id}{' stop' if params.stop else ''}"

    async def run(self, params: JobParams, ctx: ToolContext) -> ToolOutcome:
        if ctx.jobs is None:
            raise ToolError("There are no background jobs here.")
        try:
            info = ctx.jobs.info(params.id)
            if params.stop:
                info = await ctx.jobs.stop(info.id)
            elif params.wait:
                await ctx.jobs.wait(info.id, min(params.wait, MOST_WAIT))
            text = await ctx.jobs.news(info.id, _HEAD_BYTES, _TAIL_BYTES)
            info = ctx.jobs.info(info.id)
        except JobsError as error:
            raise ToolError(str(error)) from error
        state = state_of(info)
        shown = bound(text, _BLOCK_BYTES, _BLOCK_BYTES)
        status = info.exit_status if info.status == "exited" else None
        block = TerminalBlock(info.command, shown.text, status, truncated=bool(shown.omitted_bytes))
        body = text.removesuffix("\n") or "(no new output)"
        return ToolOutcome(f"{info.id} {state}\n{body}", (block,), state, exit_status=status)


def state_of(info: JobInfo) -> str:
    """What a job does, as a clause."""
    seconds = (info.ended or time.time()) - info.started
    if info.status == "running":
        first = "" if info.exit_status is None else f"; its first process ended with exit status {info.exit_status}"
        return f"runs since {seconds:.0f} s{first}"
    how = "stopped" if info.status == "killed" else f"exit status {info.exit_status}"
    why = f"; {info.note}" if info.note else ""
    return f"{how} after {seconds:.1f} s{why}"
