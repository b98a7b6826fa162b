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
from swecli.core.workspace.jobs import Foreground, JobsError
from swecli.core.workspace.process import CommandSpec, LaunchError, ProcessResult, run_process

MAX_TIMEOUT = 600.0
_HEAD_BYTES = 1_000_000
_TAIL_BYTES = 2_000_000
"""What is kept of the output; the rest is counted only."""
_BLOCK_BYTES = 200_000
_NEEDS_TERMINAL = re.compile(
    r"a terminal is required|a password is required|no tty present|not a tty\b|not a terminal|"
    r"could not read (Username|Password)|terminal prompts disabled|/dev/tty: No such device|"
    r"EOF when reading a line|EOF on (stdin|standard input)|Error reading input|stdin is not a|"
    r"Host key verification failed|Inappropriate ioctl for device",
    re.IGNORECASE,
)
_PROMPT = re.compile(
    r"(\[y(es)?/n(o)?\]|\(y(es)?/n(o)?(/\[fingerprint\])?\)|\bpassword( for [^:\n]*)?:|\bpassphrase[^\n]*:|"
    r"press (any key|enter|return)[^\n]*)[ ?:]*\Z",
    re.IGNORECASE,
)
"""A question at the very end of the output."""
_READERS = frozenset(
    (
        "bash",
        "bc",
        "cat",
        "ftp",
        "ghci",
        "head",
        "irb",
        "less",
        "more",
        "node",
        "psql",
        "python",
        "python3",
        "sh",
        "sort",
    )
)
"""Programs that, called by their name alone, do nothing but read input."""
_ASK_OUTSIDE = "If it has to run outside of the sandbox, call again with outside: true, which asks the user."


class RunCommandParams(Params):
    command: str = Field(min_length=1)
    timeout: float = Field(120, gt=0, description="Seconds, default 120, at most 600")
    background: bool = Field(False, description="Go on as a job, for servers and watchers")
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
        if params.background and ctx.jobs is None:
            raise ToolError("Nothing can run in the background here. Nothing was started.")
        launch = await _launch(ctx)
        kept = False
        """Whether the command goes on, and the launch with it."""
        try:
            result = await _run(params, timeout, launch, ctx)
            kept = bool(result.job)
            blocked = _judged(launch, result.output, result.exit_status, ctx) if launch and not kept else ""
        except (LaunchError, JobsError) as error:
            raise ToolError(str(error)) from error
        finally:
            if launch is not None and not kept:
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
        return ToolOutcome(
            report(params.command, result, timeout, blocked),
            (block,),
            _detail(result, timeout, blocked),
            is_error=result.ending != "background" and result.exit_status != 0,
            exit_status=result.exit_status,
            blocked=blocked,
        )


async def _run(params: RunCommandParams, timeout: float, launch: Launch | None, ctx: ToolContext) -> ProcessResult:
    spec = CommandSpec(
        params.command,
        ctx.cwd,
        {**ctx.environment, **launch.environment} if launch else ctx.environment,
        launch.prefix if launch else (),
        launch.inherited if launch else (),
    )
    if ctx.jobs is None:
        return await run_process(
            spec.command,
            cwd=spec.cwd,
            environment=spec.environment,
            timeout=timeout,
            output=ctx.output,
            head=_HEAD_BYTES,
            tail=_TAIL_BYTES,
            prefix=spec.prefix,
            inherited=spec.inherited,
        )
    how = Foreground(ctx.item, None if params.background else timeout, params.background, _HEAD_BYTES, _TAIL_BYTES)
    return await ctx.jobs.run(spec, how, lambda output, status: _finish(launch, output, status, ctx), ctx.output)


def _finish(launch: Launch | None, output: str, status: int | None, ctx: ToolContext) -> str:
    """Nothing of a job runs any more: let the sandbox go. Returns what the sandbox stopped."""
    if launch is None:
        return ""
    try:
        blocked = _judged(launch, output, status, ctx)
        return f"blocked by the sandbox, as it seems: {blocked}" if blocked else ""
    except ToolError as error:
        return str(error)
    finally:
        launch.end()


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


def _judged(launch: Launch, output: str, status: int | None, ctx: ToolContext) -> str:
    """What the sandbox stopped.

    Raises:
        ToolError: the sandbox could not be set up, so nothing ran.
    """
    failure = launch.failure(output, status)
    if failure:
        if ctx.sandbox is not None:
            ctx.sandbox.failed(failure)
        raise ToolError(f"Not run: the sandbox could not be set up ({failure}). Calls now ask the user instead.")
    return launch.blocked(output, status)


def _detail(result: ProcessResult, timeout: float, blocked: str) -> str:
    if result.ending == "background":
        return f"job {result.job}"
    if result.ending != "exited":
        return f"killed after {timeout:g} s"
    left = f", job {result.job}" if result.job else ""
    return f"blocked by sandbox, exit {result.exit_status}" if blocked else f"exit {result.exit_status}{left}"


def report(command: str, result: ProcessResult, timeout: float, blocked: str) -> str:
    """The result as the model reads it: how it ended, then the output."""
    lines = [_ending(result, timeout)]
    if blocked:
        lines.append(f"Blocked by the sandbox, as it seems: {blocked}. {_ASK_OUTSIDE}")
    if result.ending == "exited" and result.background:
        names = ", ".join(f"{process.name} (pid {process.pid})" for process in result.background[:8])
        job = f" as job {result.job}" if result.job else ""
        lines.append(f"Still running in the background{job}: {names}")
    if result.ending == "exited" and wants_input(command, result.output, result.exit_status):
        lines.append(
            "The command wants input, a terminal or a password. Commands have none: use options that make it "
            "non-interactive, give the input in the command (echo y | …, <<EOF), or ask the user to run it."
        )
    lines.append(result.output.removesuffix("\n") or "(no output)")
    return "\n".join(lines)


def _ending(result: ProcessResult, timeout: float) -> str:
    if result.ending == "background":
        return (
            f"Runs in the background as job {result.job}, since {result.duration:.1f} s. "
            f'job(id="{result.job}") reads its new output; wait=… waits for its end, stop=true ends it. Output so far:'
        )
    if result.ending == "timeout":
        return (
            f"Killed with all its processes after {timeout:g} s without an end. Give a larger timeout (at most 600), "
            "or background: true for what goes on, such as a server."
        )
    return f"exit status {result.exit_status} after {result.duration:.1f} s"


def wants_input(command: str, output: str, status: int | None) -> bool:
    """Whether a command ended because it found no input where it wanted some. A guess by its words and by what it wrote
    last."""
    end = output[-4_000:]
    if status and _NEEDS_TERMINAL.search(end):
        return True
    if _PROMPT.search(end):
        return True
    return not output.strip() and command.strip() in _READERS
