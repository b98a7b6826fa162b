"""Running a shell command."""

from __future__ import annotations

import re

from pydantic import Field

from swecli.core.permissions.types import Effects
from swecli.core.protocol.blocks import TerminalBlock
from swecli.core.tools.base import Params, Preview, Tool, ToolContext, ToolError, ToolOutcome
from swecli.core.tools.bounding import bound
from swecli.core.workspace.process import LaunchError, ProcessResult, run_process

MAX_TIMEOUT = 600.0
_HEAD_BYTES = 1_000_000
_TAIL_BYTES = 2_000_000
"""What is kept of the output; the rest is counted only."""
_BLOCK_BYTES = 200_000
_NEEDS_TERMINAL = re.compile(
    r"a terminal is required|a password is required|no tty present|not a tty\b|not a terminal|"
    r"could not read (Username|Password)|terminal prompts disabled|/dev/tty: No such device|"
    r"EOF when reading a line|Host key verification failed|Inappropriate ioctl for device",
    re.IGNORECASE,
)


class RunCommandParams(Params):
    command: str = Field(min_length=1)
    timeout: float = Field(120, gt=0, description="Seconds, default 120, at most 600")


class RunCommand(Tool[RunCommandParams]):
    """Runs a command in bash."""

    name = "run_command"
    verb = "Run"
    params = RunCommandParams
    result_kind = "output"

    def effects(self, params: RunCommandParams, ctx: ToolContext) -> Effects:
        return Effects(command=params.command)

    def title(self, params: RunCommandParams, ctx: ToolContext) -> str:
        return params.command

    async def preview(self, params: RunCommandParams, ctx: ToolContext) -> Preview:
        return Preview((TerminalBlock(params.command, "", cwd=str(ctx.cwd)),), str(ctx.cwd))

    async def run(self, params: RunCommandParams, ctx: ToolContext) -> ToolOutcome:
        timeout = min(params.timeout, MAX_TIMEOUT)
        try:
            result = await run_process(
                params.command,
                cwd=ctx.cwd,
                environment=ctx.environment,
                timeout=timeout,
                output=ctx.output,
                head=_HEAD_BYTES,
                tail=_TAIL_BYTES,
            )
        except LaunchError as error:
            raise ToolError(str(error)) from error
        shown = bound(result.output, _BLOCK_BYTES, _BLOCK_BYTES)
        block = TerminalBlock(
            params.command,
            shown.text,
            result.exit_status,
            str(ctx.cwd),
            result.duration,
            truncated=bool(result.omitted or shown.omitted_bytes),
        )
        failed = result.exit_status != 0
        return ToolOutcome(
            _report(result, timeout),
            (block,),
            f"exit {result.exit_status}" if result.ending == "exited" else f"killed after {timeout:g} s",
            is_error=failed,
            exit_status=result.exit_status,
        )


def _report(result: ProcessResult, timeout: float) -> str:
    """The result as the model reads it: how it ended, then the output."""
    if result.ending == "timeout":
        head = (
            f"Killed with all its processes after {timeout:g} s without an end. Give a larger timeout (at most 600), "
            "or start a server in the background with its output in a file: cmd > log 2>&1 &"
        )
    else:
        head = f"exit status {result.exit_status} after {result.duration:.1f} s"
    lines = [head]
    if result.background:
        names = ", ".join(f"{process.name} (pid {process.pid})" for process in result.background[:8])
        lines.append(f"Still running in the background: {names}")
    if result.exit_status != 0 and _NEEDS_TERMINAL.search(result.output[-4_000:]):
        lines.append(
            "The command wants a terminal or a password. Commands have neither, and no input: use options that "
            "make it non-interactive, or ask the user to run it."
        )
    lines.append(result.output.removesuffix("\n") or "(no output)")
    return "\n".join(lines)
