"""Running one shell command so that it can neither block, flood nor outlive swecli unnoticed.

The command gets its own session, no input, and one pipe for both outputs. swecli waits for the end of the *command*,
never for the end of its output: a background child may hold the pipe open for hours. Output is read in bounded pieces
on the event loop, and kept in bounded memory and, if long, in a file.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from msgspec import Struct

from swecli.core.workspace import process_tree as tree
from swecli.core.workspace.command_output import HEAD, TAIL, CommandOutput, OutputPipe
from swecli.core.workspace.process_limit import LOOK, PROCESSES, ProcessLimit
from swecli.lazy_pattern import lazy_pattern

_SECRET = lazy_pattern(
    r".*_(KEY|TOKEN|SECRET|PAT|PASSPHRASE|AUTH)S?|.*(PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|SECRET_|_TOKEN_|_KEY_).*"
    r"|.*(APIKEY|ACCESSKEY|SECRETKEY|AUTHTOKEN)",
    re.IGNORECASE,
)
_PROVIDER_KEYS = frozenset(("APIKEY", "API_KEY", "TOKEN", "SECRET", "AWS_ACCESS_KEY_ID", "DATABASE_URL", "MYSQL_PWD"))
_NAMES = frozenset(
    (
        "BASH_ENV",
        "ENV",
        "NODE_OPTIONS",
        "RUBYOPT",
        "RUBYLIB",
        "RIPGREP_CONFIG_PATH",
        "LESSOPEN",
        "LESSCLOSE",
        "LESSKEYIN",
        "LESSKEY",
        "EDITOR",
        "VISUAL",
        "BROWSER",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "MAKEFLAGS",
        "GLOBIGNORE",
        "IFS",
        "PS4",
        "PROMPT_COMMAND",
        "SHELLOPTS",
        "BASHOPTS",
        "FORCE_COLOR",
        "CLICOLOR_FORCE",
        "CDPATH",
        "OLDPWD",
        "SWECLI_JOB",
        "SWECLI_PLACE",
    )
)
_PREFIXES = ("LD_", "DYLD_", "PYTHON", "PERL5", "GIT_", "BASH_FUNC_", "TEXTUAL_")
_SET = {
    "SWECLI": "1",
    "AGENT": "swecli",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",  # an editor would wait for keys that can't be pressed
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_OPTIONAL_LOCKS": "0",  # git status must not write the index: it counts as read-only
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",  # and pip list must not use the network, nor npm ls
    "NPM_CONFIG_UPDATE_NOTIFIER": "false",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
}


def scrubbed_environment(environment: Mapping[str, str], *, keys: Collection[str] = ()) -> dict[str, str]:
    """``environment`` for child processes.

    It omits names of secrets (``*_KEY``, ``*_TOKEN``, ``*_SECRET``, ``*PASSWORD*``, ``*CREDENTIAL*``) and variables
    that inject a start-up file, a library or an option into every program; and ``keys``, names known to hold secrets.
    """
    variables = {name: value for name, value in environment.items() if not is_withheld(name) and name not in keys}
    return {**variables, **_SET}


def secret_values(environment: Mapping[str, str], keys: Collection[str] = ()) -> frozenset[str]:
    """The values of variables that hold secrets, judging by their names, and of ``keys``."""
    names = (
        name
        for name in environment
        if name in keys or _SECRET.fullmatch(name.upper()) or name.upper() in _PROVIDER_KEYS
    )
    return frozenset(value.strip() for name in names if (value := environment[name]).strip())


def is_withheld(name: str) -> bool:
    upper = name.upper()
    return (
        upper in _NAMES
        or upper in _PROVIDER_KEYS
        or upper.startswith(_PREFIXES)
        or _SECRET.fullmatch(upper) is not None
    )


Ending = Literal["exited", "timeout", "background", "processes", "terminal"]
"""``processes``: it was ended because it had too many."""
GRACE = 2.0
"""Seconds from SIGTERM to SIGKILL after a timeout."""
CANCEL_GRACE = 0.3
"""Seconds from SIGTERM to SIGKILL after a cancellation."""
DRAIN = 0.2
"""Seconds to continue reading after the command ended."""
SETTLE = 0.15
"""Seconds that processes may take to end after the command before they count as left running."""
MOST_LEFT = 32
"""Processes that a command may leave running. More than dozens is not a server but a runaway command."""
_POLLS_WHILE_DETACHED = 50
"""Checks of the processes a command left running before a full search for them."""


class LaunchError(Exception):
    """The command could not be started; the message says why and what to do."""


class CommandSpec(Struct, frozen=True):
    """What to run, in bash (else sh), without start-up files. ``prefix`` is a program with arguments that starts the
    shell (a sandbox), ``inherited`` are descriptors that stay open in it. ``processes`` limits its simultaneous
    processes and threads. ``stdin`` and ``errors`` are descriptors; by default there is no input, and errors join the
    output. ``shell`` is the path of another shell that takes ``-c``."""

    command: str
    cwd: Path
    environment: Mapping[str, str]
    prefix: Sequence[str] = ()
    inherited: Sequence[int] = ()
    processes: int = PROCESSES
    stdin: int | None = None
    errors: int | None = None
    shell: str = ""


class ProcessResult(Struct, frozen=True):
    """Outcome of a command. ``exit_status`` is None if swecli killed it or it still runs; death by a signal gives 128 +
    its number, as in shells. ``duration`` is seconds, sizes are bytes."""

    output: str
    exit_status: int | None
    ending: Ending
    duration: float
    size: int
    omitted: int
    background: tuple[tree.Process, ...] = ()
    """Processes that the command left running."""
    ended_left: int = 0
    """How many processes it left running that were ended because there were too many."""
    job: str = ""
    """Job id of the processes that still run; empty if there are none or they are not managed."""


class RunningCommand:
    """A started command: its processes and its output. ``started`` is seconds of the monotonic clock."""

    def __init__(self, spec: CommandSpec, show: Callable[[str], None] | None = None, spill: Path | None = None) -> None:
        """Start the command. ``show`` gets text as it arrives, at a bounded rate; ``spill`` is the folder for long
        output.

        Raises:
            LaunchError: it could not be started.
        """
        self.started = time.monotonic()
        self.mark = tree.new_mark()
        self.exceeded = False
        """Whether it was ended because it had too many processes."""
        self._limit = ProcessLimit(spec.processes)
        reader, writer = os.pipe()
        try:
            self._process = _start(spec, {**spec.environment, tree.MARK: self.mark}, writer, self._limit)
        except BaseException:
            os.close(reader)
            self._limit.close()
            raise
        finally:
            os.close(writer)
        self.output = CommandOutput(spill)
        self._pipe = OutputPipe(reader, self.output, show)
        self._ended = _watch(self._process)
        self._guard = asyncio.create_task(self._keep_limit())

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """Status as shells report it; None while it runs."""
        if not self._ended.is_set():
            return None
        status = self._process.wait()
        return status if status >= 0 else 128 - status

    async def wait(
        self,
        timeout: float | None = None,
        detach_event: asyncio.Event | None = None,
        until: asyncio.Task[None] | None = None,
    ) -> bool:
        """Wait for the end, at most ``timeout`` seconds, or until ``detach_event`` or ``until`` is done. Returns
        whether it ended."""
        waits = [asyncio.ensure_future(event.wait()) for event in (self._ended, detach_event) if event is not None]
        try:
            others = [until] if until is not None else []
            await asyncio.wait([*waits, *others], timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiter in waits:
                waiter.cancel()
        return self._ended.is_set()

    async def drained(self) -> None:
        await self._pipe.drained(DRAIN)

    @property
    def is_held(self) -> bool:
        """Whether some process still has its output open."""
        return not self._pipe.ended.is_set()

    def detach(self) -> None:
        self._pipe.detach()

    async def members(self) -> tuple[tree.Process, ...]:
        return tuple(await asyncio.to_thread(self._members))

    def _members(self) -> list[tree.Process]:
        age = time.monotonic() - self.started
        processes = tree.members(self.pid, self.mark, gone=self._process.returncode is not None, seconds=age)
        known = {process.pid for process in processes}
        return [
            *processes,
            *(process for process in self._limit.members() if process.pid != self.pid and process.pid not in known),
        ]

    async def end(self, grace: float = CANCEL_GRACE) -> None:
        """End all its processes: SIGTERM, ``grace`` seconds, SIGKILL. Cancellation does not stop that."""
        await _end_tree(self._process, self._ended, self._members, grace, self._limit.shut)

    async def _keep_limit(self) -> None:
        """End it if it has too many processes. Starts no thread, because there may be no room for one."""
        looks = 0
        while True:
            await asyncio.sleep(LOOK)
            if self._limit.reached(self._members):
                self.exceeded = True
                await self.end(0)
                return
            looks += self._ended.is_set()
            if looks >= _POLLS_WHILE_DETACHED and not self._members():
                return
            looks %= _POLLS_WHILE_DETACHED

    async def ended_by_limit(self) -> bool:
        """Whether the process limit ended it; waits until that is done."""
        if self.exceeded:
            await asyncio.wait((self._guard,))
        return self.exceeded

    def close(self) -> None:
        """Stop reading; a program that still writes gets a broken pipe."""
        self._guard.cancel()
        self._pipe.close()
        self._limit.close()

    async def result(
        self,
        ending: Ending,
        head: int = HEAD,
        tail: int = TAIL,
        background: Sequence[tree.Process] = (),
        ended_left: int = 0,
    ) -> ProcessResult:
        """The current result, with ``head`` and ``tail`` bytes of its output."""
        size = self.output.total
        text, omitted = await asyncio.to_thread(self.output.text, head, tail, 0, size)
        return ProcessResult(
            output=text,
            exit_status=self.exit_status if ending == "exited" else None,
            ending=ending,
            duration=time.monotonic() - self.started,
            size=size,
            omitted=omitted,
            background=tuple(background),
            ended_left=ended_left,
        )


async def run_process(
    command: str,
    *,
    cwd: Path,
    environment: Mapping[str, str],
    timeout: float | None,
    output: Callable[[str], None] | None = None,
    head: int = HEAD,
    tail: int = TAIL,
    prefix: Sequence[str] = (),
    inherited: Sequence[int] = (),
) -> ProcessResult:
    """Run a command to its end or its timeout (seconds, None for no limit). Processes it leaves running continue, their
    output unread. Cancelling first ends every process of the command.

    Raises:
        LaunchError: it could not be started.
    """
    running = RunningCommand(CommandSpec(command, cwd, environment, prefix, inherited), output)
    async with ended_unless_done(running):
        ending = await finished(running, timeout)
        background, ended_left = await left_running(running) if ending == "exited" else ((), 0)
        running.detach() if background else running.close()
        result = await running.result(ending, head, tail, background, ended_left)
    running.output.close()
    return result


async def finished(running: RunningCommand, timeout: float | None, detach_event: asyncio.Event | None = None) -> Ending:
    """Wait for the end of a foreground command. A timeout ends all its processes, as does a program that waits for keys
    at a terminal; after ``detach_event`` it continues in the background."""
    screen = asyncio.create_task(_drew_a_screen(running))
    try:
        ended = await running.wait(timeout, detach_event, screen)
    finally:
        screen.cancel()
    if not ended and detach_event is not None and detach_event.is_set():
        return "background"
    if not ended:
        await running.end(GRACE)
    exceeded = await running.ended_by_limit()
    await running.drained()
    if exceeded:
        return "processes"
    if ended:
        return "exited"
    return "terminal" if screen.done() and not screen.cancelled() else "timeout"


_SCREEN_LOOK = 0.5
"""Seconds between two looks at the output."""
_SCREEN_STANDS = 2.0
"""Seconds for which a screen must stand, or a program that complained about the missing terminal must be silent."""
_SCREEN_SEEN = 65_536
"""Bytes of output in which a program draws its first screen; longer output is that of another kind of program."""
_SCREEN = lazy_pattern(r"\x1b\[\?(?:1049|1047|47)([hl])")
"""To the terminal's other screen, for programs that fill it, and back
(https://invisible-island.net/xterm/ctlseqs/ctlseqs.html)."""
_NO_TERMINAL = lazy_pattern(
    r"(?:in|out)put is not (?:to|from) a terminal|(?:stdin|stdout) is not a t(?:erminal|ty)", re.IGNORECASE
)


async def _drew_a_screen(running: RunningCommand) -> None:
    """Return once a command fills the screen that it does not have, or has complained about that and fallen silent:
    it waits for keys that nobody can press."""
    loop = asyncio.get_running_loop()
    text, seen, since, drawn = "", 0, loop.time(), 0.0
    while True:
        await asyncio.sleep(_SCREEN_LOOK)
        now, total = loop.time(), running.output.total
        if total > _SCREEN_SEEN:
            drawn, seen = 0.0, total
            continue
        if total != seen:
            text, _ = await asyncio.to_thread(running.output.text, _SCREEN_SEEN, 0)
            seen, since = total, now
        drawn = (drawn or now) if fills_screen(text) else 0.0
        silent = now - since >= _SCREEN_STANDS and _NO_TERMINAL.search(text) is not None
        if silent or (drawn and now - drawn >= _SCREEN_STANDS):
            return


def fills_screen(text: str) -> bool:
    """Whether the output of a program ends on the terminal's other screen."""
    switches = _SCREEN.findall(text)
    return bool(switches) and switches[-1] == "h"


async def left_running(running: RunningCommand) -> tuple[tuple[tree.Process, ...], int]:
    """Processes that continue after a command. Too many are ended, and the number says how many."""
    left = await running.members()
    if left:  # often they are about to end, as the writer of `yes | head` is
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(tree.all_ended(left), SETTLE)
        left = await running.members()
    if len(left) <= MOST_LEFT:
        return left, 0
    await running.end(CANCEL_GRACE)
    return (), len(left)


def user_shell(environment: Mapping[str, str]) -> str:
    """Path of the user's own shell; empty if there is none."""
    named = environment.get("SHELL", "")
    return named if os.path.isabs(named) and os.access(named, os.X_OK) else ""


@asynccontextmanager
async def ended_unless_done(running: RunningCommand) -> AsyncGenerator[None]:
    """End every process of the command if the block is cancelled, even twice, or fails."""
    try:
        yield
    except BaseException:
        try:
            await running.end(CANCEL_GRACE)
        finally:
            running.close()
            running.output.close()
        raise


def _start(
    spec: CommandSpec, environment: Mapping[str, str], writer: int, limit: ProcessLimit
) -> subprocess.Popen[bytes]:
    bash = None if spec.shell else shutil.which("bash", path=environment.get("PATH") or os.defpath)
    shell = [bash, "--norc", "--noprofile", "-c", "--"] if bash else [spec.shell or "/bin/sh", "-c"]
    try:
        with limit.inherited() as bind:
            process = subprocess.Popen(
                [*limit.prefix, *spec.prefix, *shell, spec.command],
                cwd=spec.cwd,
                env=dict(environment),
                stdin=subprocess.DEVNULL if spec.stdin is None else spec.stdin,
                stdout=writer,
                stderr=writer if spec.errors is None else spec.errors,
                start_new_session=True,
                pass_fds=spec.inherited,
            )
            bind(process.pid)
        return process
    except FileNotFoundError as error:
        missing = spec.cwd if not spec.cwd.is_dir() else [*spec.prefix, *shell][0]
        raise LaunchError(f"Could not start the command: {missing} does not exist.") from error
    except ValueError as error:
        raise LaunchError("Could not start the command: it contains a NUL or an unpaired surrogate.") from error
    except OSError as error:
        hint = " Write it to a script file and run that." if error.errno == 7 else ""
        raise LaunchError(f"Could not start the command: {error.strerror}.{hint}") from error


def _watch(process: subprocess.Popen[bytes]) -> asyncio.Event:
    """An event for the end of ``process``; its exit status is not collected, so its id stays reserved."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        threading.Thread(target=_wait_in_thread, args=(process, loop, ended), daemon=True).start()
        return ended

    def on_end() -> None:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        ended.set()

    loop.add_reader(descriptor, on_end)
    return ended


def _wait_in_thread(process: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    process.wait()
    with contextlib.suppress(RuntimeError):  # the loop may already be closed
        loop.call_soon_threadsafe(ended.set)


async def _end_tree(
    process: subprocess.Popen[bytes],
    ended: asyncio.Event,
    members: Callable[[], list[tree.Process]],
    grace: float,
    shut: Callable[[], None],
) -> None:
    """End the group and processes that left it: SIGTERM, up to ``grace`` seconds, SIGKILL; without grace only SIGKILL.
    ``shut`` prevents new processes before the last step. Leaves no zombie."""
    tree.adopt_orphans(True)
    known: list[tree.Process] = []
    try:
        if grace > 0:
            known = members()
            _signal_group(process, known, signal.SIGTERM)
            tree.signal_each(known, signal.SIGTERM)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace
        while loop.time() < deadline:
            tree.collect(known)
            if ended.is_set() and not any(process.alive for process in known):
                break
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.02):
                    await (asyncio.sleep(0.02) if ended.is_set() else ended.wait())
    finally:
        shut()
        _kill_tree(process, members, known)
        tree.adopt_orphans(False)


def _kill_tree(
    process: subprocess.Popen[bytes], members: Callable[[], list[tree.Process]], known: list[tree.Process]
) -> None:
    """Stop all processes, so that none starts another, then SIGKILL until none is left; bounded, because a process in
    uninterruptible sleep does not die."""
    seen = {member.pid: member for member in known}
    _signal_group(process, known, signal.SIGSTOP)
    known = tree.stopped(members)
    seen.update((member.pid, member) for member in known)
    _signal_group(process, known, signal.SIGKILL)
    for _ in range(20):
        tree.signal_each(known, signal.SIGKILL)
        tree.collect(known)
        known = members()
        if not known:
            break
        seen.update((member.pid, member) for member in known)
        time.sleep(0.005)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=0.2)
    for _ in range(20):  # processes killed last may take a moment to become collectable
        tree.collect(list(seen.values()))
        tree.collect_session(process.pid)
        if not any(tree.is_ours(pid) for pid in seen):
            break
        time.sleep(0.005)


def _signal_group(process: subprocess.Popen[bytes], known: list[tree.Process], number: signal.Signals) -> None:
    """Signal the command's group, unless its id may belong to another by now."""
    if process.returncode is None or any(member.group == process.pid for member in known):
        tree.signal_group(process.pid, number)
