"""Running a shell command."""

from __future__ import annotations

import asyncio
import re

from pydantic import Field

from swecli.core.permissions.types import Effects
from swecli.core.protocol.blocks import TerminalBlock
from swecli.core.sandbox.launch import Launch, SandboxError
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
_ASK_OUTSIDE = "If it has to run outside of the sandbox, call again with outside: true, which asks the user."


class RunCommandParams(Params):
    command: str = Field(min_length=1)
    timeout: float = Field(120, gt=0, description="Seconds, default 120, at most 600")
    outside: bool = Field(False, description="Ask the user to leave the sandbox")


class RunCommand(Tool[RunCommandParams]):
    """Runs a command in bash."""

    name = "run_command"
    verb = "Run"
    params = RunCommandParams
    result_kind = "output"

    def effects(self, params: RunCommandParams, ctx: ToolContext) -> Effects:
        return Effects(command=params.command, outside=params.outside)

    def title(self, params: RunCommandParams, ctx: ToolContext) -> str:
        return params.command

    async def preview(self, params: RunCommandParams, ctx: ToolContext) -> Preview:
        return Preview((TerminalBlock(params.command, "", cwd=str(ctx.cwd)),), str(ctx.cwd))

    async def run(self, params: RunCommandParams, ctx: ToolContext) -> ToolOutcome:
        timeout = min(params.timeout, MAX_TIMEOUT)
        launch = await _launch(ctx)
        try:
            result = await run_process(
                params.command,
                cwd=ctx.cwd,
                environment={**ctx.environment, **launch.environment} if launch else ctx.environment,
                timeout=timeout,
                output=ctx.output,
                head=_HEAD_BYTES,
                tail=_TAIL_BYTES,
                prefix=launch.prefix if launch else (),
                inherited=launch.inherited if launch else (),
            )
            blocked = _judged(launch, result, ctx) if launch else ""
        except LaunchError as error:
            raise ToolError(str(error)) from error
        finally:
            if launch is not None:
                await asyncio.shield(asyncio.to_thread(launch.end))
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
            _report(result, timeout, blocked),
            (block,),
            _detail(result, timeout, blocked),
            is_error=failed,
            exit_status=result.exit_status,
            blocked=blocked,
        )


async def _launch(ctx: ToolContext) -> Launch | None:
    """The way into the sandbox; None where the command runs outside."""
    if ctx.sandbox is None:
        return None
    starting = asyncio.ensure_future(asyncio.to_thread(ctx.sandbox.begin, ctx.cwd, full=ctx.contained))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_abandon)
        raise
    except SandboxError as error:
        raise ToolError(f"Not run: {error}. {_ASK_OUTSIDE}") from error


def _abandon(starting: asyncio.Future[Launch]) -> None:
    """Take back what was made for a command that was cancelled before it began."""
    if not starting.cancelled() and starting.exception() is None:
        starting.result().end()


def _judged(launch: Launch, result: ProcessResult, ctx: ToolContext) -> str:
    """What the sandbox stopped.

    Raises:
        ToolError: the sandbox could not be set up, so nothing ran.
    """
    failure = launch.failure(result.output, result.exit_status)
    if failure:
        if ctx.sandbox is not None:
            ctx.sandbox.failed(failure)
        raise ToolError(f"Not run: the sandbox could not be set up ({failure}). Calls now ask the user instead.")
    return launch.blocked(result.output, result.exit_status)


def _detail(result: ProcessResult, timeout: float, blocked: str) -> str:
    if result.ending != "exited":
        return f"killed after {timeout:g} s"
    return f"blocked by sandbox, exit {result.exit_status}" if blocked else f"exit {result.exit_status}"


def _report(result: ProcessResult, timeout: float, blocked: str) -> str:
    """The result as the model reads it: how it ended, then the output."""
    if result.ending == "timeout":
        head = (
            f"Killed with all its processes after {timeout:g} s without an end. Give a larger timeout (at most 600), "
            "or start a server in the background with its output in a file: cmd > log 2>&1 &"
        )
    else:
        head = f"exit status {result.exit_status} after {result.duration:.1f} s"
    lines = [head]
    if blocked:
        lines.append(f"Blocked by the sandbox, as it seems: {blocked}. {_ASK_OUTSIDE}")
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
