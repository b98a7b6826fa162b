"""Shell commands."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from functools import partial
from typing import Annotated

from msgspec import Meta

from swecli.core.permissions.types import Effects
from swecli.core.protocol.blocks import TerminalBlock
from swecli.core.sandbox.launch import Launch, SandboxError, begun
from swecli.core.tools.base import Params, Preview, SessionTool, Tool, ToolContext, ToolError, ToolOutcome
from swecli.core.tools.bounding import bound
from swecli.core.tools.full_screen import needs_terminal
from swecli.core.workspace.command_output import as_read
from swecli.core.workspace.jobs import JobInfo, JobsError, RunOptions
from swecli.core.workspace.process import MOST_LEFT, CommandSpec, LaunchError, ProcessResult, run_process
from swecli.lazy_pattern import lazy_pattern
from swecli.safe_text import printable_name

MOST_WAIT = 600.0
_JOB_HEAD_BYTES = 200_000
_JOB_TAIL_BYTES = 800_000


class JobParams(Params):
    id: str
    wait: Annotated[float, Meta(ge=0, description="Seconds, at most 600")] = 0
    stop: bool = False


class JobTool(SessionTool[JobParams]):
    """Returns the job's output since the last call."""

    name = "job"
    verb = "Job"
    params = JobParams
    result_kind = "output"

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
            text = await ctx.jobs.new_output(info.id, _JOB_HEAD_BYTES, _JOB_TAIL_BYTES)
            info = ctx.jobs.info(info.id)
        except JobsError as error:
            raise ToolError(str(error)) from error
        state = state_of(info)
        shown = bound(text, _BLOCK_BYTES, _BLOCK_BYTES)
        status = info.exit_status if info.status == "exited" else None
        block = TerminalBlock(info.command, shown.text, status, truncated=bool(shown.omitted_bytes))
        body = as_read(text).removesuffix("\n") or "(no new output)"
        return ToolOutcome(f"{info.id} {state}\n{body}", (block,), state, exit_status=status)


def state_of(info: JobInfo) -> str:
    seconds = (info.ended or time.time()) - info.started
    if info.status == "running":
        first = "" if info.exit_status is None else f"; its first process exited with status {info.exit_status}"
        return f"has been running for {seconds:.0f} s{first}"
    how = "stopped" if info.status == "killed" else f"exit status {info.exit_status}"
    why = f"; {info.note}" if info.note else ""
    return f"{how} after {seconds:.1f} s{why}"


TIMEOUT = 120.0
MAX_TIMEOUT = 600.0
"""Maximum seconds that the model may request, unless the default limit is higher."""
_HEAD_BYTES = 1_000_000
_TAIL_BYTES = 2_000_000
"""Bytes of output that are kept; the rest is only counted."""
_BLOCK_BYTES = 200_000
_NEEDS_TERMINAL = lazy_pattern(
    r"a terminal is required|a password is required|no tty present|not a tty\b|not a terminal|"
    r"could not read (Username|Password)|terminal prompts disabled|/dev/tty: No such device|"
    r"EOF when reading a line|EOF on (stdin|standard input)|Error reading input|stdin is not a|"
    r"Output is not to a terminal|Error opening terminal|TERM environment variable not set|"
    r"Host key verification failed|Inappropriate ioctl for device",
    re.IGNORECASE,
)
_NOT_FOUND = 127
"""Exit status of a shell that did not find the program."""
_MISSING = lazy_pattern(r"^\S*?(?:bash|sh): (?:line \d+: )?([\w-]+): (?:command )?not found", re.MULTILINE)
_TOOLS = (
    "apply_patch",
    "edit_file",
    "list_files",
    "read_file",
    "run_command",
    "update_todos",
    "web_fetch",
    "web_search",
    "write_file",
)
"""Tools that models may mistake for programs."""
_STATE = r"(?:cd|export|source|\.|alias|unset|pushd|popd|umask|set)(?:[ \t][^;&|\n]*)?"
_ONLY_STATE = lazy_pattern(rf"\s*{_STATE}(?:\s*(?:;|&&|\n)\s*{_STATE})*[\s;]*")
"""Commands that change only their own shell."""
_PROMPT = lazy_pattern(
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
"""Programs that only read input when called without arguments."""
_ASK_OUTSIDE = "If it must run unsandboxed, call again with outside: true, which asks the user."


class RunCommandParams(Params):
    command: Annotated[str, Meta(min_length=1)]
    timeout: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="Seconds; also ends leftover processes")
    ] = None
    background: Annotated[bool, Meta(description="As a background job: servers, watchers")] = False
    outside: Annotated[bool, Meta(description="Unsandboxed; asks the user")] = False


class RunCommand(Tool[RunCommandParams]):
    """Runs a command in bash, with a limit of ``seconds`` unless the model requests another."""

    name = "run_command"
    verb = "Run"
    params = RunCommandParams
    result_kind = "output"

    def __init__(self, seconds: float = TIMEOUT) -> None:
        self.seconds = seconds
        """May change during the session; the model sees the initial value."""

    @property
    def _most(self) -> float:
        return max(self.seconds, MAX_TIMEOUT)

    def description(self) -> str:
        return f"{super().description()} timeout: {self.seconds:g} s if unset, at most {self._most:g}."

    def effects(self, params: RunCommandParams, ctx: ToolContext) -> Effects:
        return Effects(command=params.command, outside=params.outside)

    def title(self, params: RunCommandParams, ctx: ToolContext) -> str:
        return params.command

    async def preview(self, params: RunCommandParams, ctx: ToolContext) -> Preview:
        from swecli.core.tools.command_scripts import scripts_state  # with the reader of shell scripts

        if reason := needs_terminal(params.command):
            raise ToolError(reason)
        state = await asyncio.to_thread(scripts_state, params.command, ctx)
        facts = ("Runs as a background job.",) if params.background else ()
        return Preview((TerminalBlock(params.command, "", cwd=str(ctx.cwd)),), f"{ctx.cwd}\n{state}", facts=facts)

    async def run(self, params: RunCommandParams, ctx: ToolContext) -> ToolOutcome:
        timeout = min(params.timeout or self.seconds, self._most)
        if params.background and ctx.jobs is None:
            raise ToolError("Background jobs are not available here. Nothing was started.")
        if reason := needs_terminal(params.command):
            raise ToolError(reason)
        launch = await _launch(ctx)
        detached = False
        """Whether the command, and its launch, continue as a job."""
        try:
            result = await _run(params, timeout, launch, ctx)
            detached = bool(result.job)
            blocked = ""
            if launch is not None and not detached:
                blocked = await asyncio.to_thread(_judged, launch, result.output, result.exit_status, ctx)
        except (LaunchError, JobsError) as error:
            raise ToolError(str(error)) from error
        finally:
            if launch is not None and not detached:
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
        hides = launch is not None and launch.plan.masks_only and bool(launch.plan.mounts)
        which = ctx.read_rules().note.replace("are left out", "could not be read")
        note = f"For this command, {which}." if hides else ""
        return ToolOutcome(
            report(params.command, result, timeout, blocked, self._most, note),
            (block,),
            _detail(result, timeout, blocked),
            is_error=result.ending != "background" and (result.exit_status != 0 or bool(result.ended_left)),
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
    options = RunOptions(
        ctx.item,
        None if params.background else timeout,
        whole=params.timeout is not None,
        background=params.background,
        head=_HEAD_BYTES,
        tail=_TAIL_BYTES,
    )
    return await ctx.jobs.run(spec, options, lambda output, status: _finish(launch, output, status, ctx), ctx.output)


def _finish(launch: Launch | None, output: str, status: int | None, ctx: ToolContext) -> str:
    """Release the sandbox of a job that has ended. Returns what the sandbox blocked."""
    if launch is None:
        return ""
    try:
        blocked = _judged(launch, output, status, ctx)
        return f"probably blocked by the sandbox: {blocked}" if blocked else ""
    except ToolError as error:
        return str(error)
    finally:
        launch.end()


async def _launch(ctx: ToolContext) -> Launch | None:
    """The sandbox launch; None for a command that runs unsandboxed."""
    if ctx.sandbox is None:
        return None
    try:
        if ctx.masked:
            return await begun(partial(ctx.sandbox.begin_masked, ctx.cwd, ctx.read_rules()))
        return await begun(partial(ctx.sandbox.begin, ctx.cwd, full=ctx.contained, rules=ctx.read_rules()))
    except SandboxError as error:
        raise ToolError(f"Not run: {error}. {_ASK_OUTSIDE}") from error


def _judged(launch: Launch, output: str, status: int | None, ctx: ToolContext) -> str:
    """What the sandbox blocked.

    Raises:
        ToolError: the sandbox could not be set up, so nothing ran.
    """
    failure = launch.failure(output, status)
    if failure:
        if ctx.sandbox is not None:
            ctx.sandbox.failed(failure)
        still = ctx.sandbox is not None and ctx.sandbox.state.level != "off"
        then = "Try again." if still else "Calls now ask the user instead."
        raise ToolError(f"Not run: sandbox setup failed ({failure}). {then}")
    return launch.blocked(output, status)


def _detail(result: ProcessResult, timeout: float, blocked: str) -> str:
    if result.ending == "background":
        return f"job {result.job}"
    if result.ending == "processes":
        return "killed, too many processes"
    if result.ending == "terminal":
        return "ended, needs a terminal"
    if result.ending != "exited":
        return f"killed after {timeout:g} s"
    left = f", job {result.job}" if result.job else ", leftovers ended" if result.ended_left else ""
    return f"blocked by sandbox, exit {result.exit_status}" if blocked else f"exit {result.exit_status}{left}"


def report(
    command: str, result: ProcessResult, timeout: float, blocked: str, most: float = MAX_TIMEOUT, note: str = ""
) -> str:
    """The result for the model: how the command ended, a note on what it saw, then its output. ``most`` is the maximum
    ``timeout``."""
    lines = [_ending(result, timeout, most), *([note] if note else [])]
    if blocked:
        lines.append(f"Probably blocked by the sandbox: {blocked}. {_ASK_OUTSIDE}")
    if result.ending == "exited" and result.background:
        names = ", ".join(f"{printable_name(process.name)} (pid {process.pid})" for process in result.background[:8])
        job = f" as job {result.job}" if result.job else ""
        lines.append(f"Still running in the background{job}: {names}")
    if result.ended_left:
        lines.append(
            f"It left {result.ended_left} processes running. More than {MOST_LEFT} do not count as a background "
            "job, so swecli ended them. Use background: true for a long-running program."
        )
    lines += _hints(command, result)
    lines.append(as_read(result.output).removesuffix("\n") or "(no output)")
    return "\n".join(lines)


def _hints(command: str, result: ProcessResult) -> Iterator[str]:
    """What the command lacked or will not do, as far as its words and its output tell."""
    if result.ending == "exited" and wants_input(command, result.output, result.exit_status):
        yield (
            "The command needs input, a terminal or a password, which commands don't have. Use non-interactive "
            "options, give the input in the command (echo y | …, <<EOF), or ask the user to run it."
        )
    if result.ending == "timeout" and (_NEEDS_TERMINAL.search(result.output) or _PROMPT.search(result.output)):
        yield "It waited for input or a terminal, which commands don't have, so more time would not help."
    if result.ending == "exited" and not result.exit_status and _ONLY_STATE.fullmatch(command):
        yield "This has no effect on later commands, each of which runs in a new shell: put both in one command."
    missing = _MISSING.search(result.output) if result.exit_status == _NOT_FOUND else None
    if missing is not None and missing[1] in _TOOLS:
        yield f"{missing[1]} is a tool, not a program: call it as such."


def _ending(result: ProcessResult, timeout: float, most: float) -> str:
    if result.ending == "background":
        return (
            f"Running in the background as job {result.job} for {result.duration:.1f} s. "
            f'job(id="{result.job}") reads its new output; wait=… waits for its end, stop=true ends it. Output so far:'
        )
    if result.ending == "processes":
        return (
            "Killed with all its processes because it exceeded the limit of simultaneous processes (setting "
            "tools.process_limit). Look for a process that restarts itself, or run fewer at once."
        )
    if result.ending == "terminal":
        return (
            f"Ended with all its processes after {result.duration:.1f} s: it fills a screen and waits for keys, and "
            "commands have no terminal. Use a non-interactive option or another tool, or ask the user to run it."
        )
    if result.ending == "timeout":
        larger = f"Set a larger timeout (at most {most:g}), or" if timeout < most else "No timeout can be larger; set"
        return f"Killed with all its processes after {timeout:g} s. {larger} background: true for a server or watcher."
    return f"exit status {result.exit_status} after {result.duration:.1f} s"


def wants_input(command: str, output: str, status: int | None) -> bool:
    """Whether a command probably ended for lack of input, judged by its words and the end of its output."""
    end = output[-4_000:]
    if status and _NEEDS_TERMINAL.search(end):
        return True
    if _PROMPT.search(end):
        return True
    return not output.strip() and command.strip() in _READERS
