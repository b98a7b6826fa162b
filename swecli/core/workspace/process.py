"""Running one shell command: nothing it does holds up, floods or outlives swecli unnoticed.

The command gets a session of its own, no input, and one pipe for both outputs. The end of the *command* is
waited for, never the end of its output: a background child may hold the pipe open for hours. Output is read in
bounded pieces on the event loop, and kept in bounded memory and, where it is long, in a file.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from swecli.core.workspace import process_tree as tree
from swecli.core.workspace.command_output import CommandOutput
from swecli.core.workspace.output_pipe import OutputPipe
from swecli.core.workspace.output_ring import HEAD, TAIL

Ending = Literal["exited", "timeout", "background"]
GRACE = 2.0
"""Seconds from SIGTERM to SIGKILL after a timeout."""
CANCEL_GRACE = 0.3
"""The same when the user cancelled."""
DRAIN = 0.2
"""Seconds to go on reading after the command ended."""


class LaunchError(Exception):
    """The command could not be started; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """What to run, in bash (sh where there is none), without start-up files. ``prefix`` is a program with its arguments
    that starts the shell (a sandbox), ``inherited`` are descriptors that stay open in it."""

    command: str
    cwd: Path
    environment: Mapping[str, str]
    prefix: Sequence[str] = ()
    inherited: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """What became of a command. ``exit_status`` is None when it was killed at its timeout or goes on; a command that
    died of a signal has 128 + its number, as shells report it. ``duration`` is seconds, sizes are bytes."""

    output: str
    exit_status: int | None
    ending: Ending
    duration: float
    size: int
    omitted: int
    background: tuple[tree.Running, ...] = ()
    """Processes that the command left running."""
    job: str = ""
    """Under which id what still runs can be found; empty where nothing does, or nobody looks after it."""


class RunningCommand:
    """A command that was started: its processes and its output. ``started`` is seconds of the monotonic clock."""

    def __init__(self, spec: CommandSpec, show: Callable[[str], None] | None = None, spill: Path | None = None) -> None:
        """Start it. ``show`` gets text as it comes, at a bounded rate; ``spill`` is the folder for long output.

        Raises:
            LaunchError: it could not be started.
        """
        self.started = time.monotonic()
        self.mark = tree.new_mark()
        reader, writer = os.pipe()
        try:
            self._process = _start(spec, {**spec.environment, tree.MARK: self.mark}, writer)
        except BaseException:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        self.output = CommandOutput(spill)
        self._pipe = OutputPipe(reader, self.output, show)
        self._ended = _watch(self._process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """As shells report it; None while it runs."""
        if not self._ended.is_set():
            return None
        status = self._process.wait()
        return status if status >= 0 else 128 - status

    async def wait(self, timeout: float | None = None, wish: asyncio.Event | None = None) -> bool:
        """Wait for the end of the command, ``timeout`` seconds at most, or until the ``wish``. Whether it ended."""
        waits = [asyncio.ensure_future(event.wait()) for event in (self._ended, wish) if event is not None]
        try:
            await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
        return self._ended.is_set()

    async def drained(self, limit: float = DRAIN) -> None:
        """Wait for the end of the output, ``limit`` seconds at most."""
        await self._pipe.drained(limit)

    def detach(self) -> None:
        """It goes on in the background: nothing is shown any more."""
        self._pipe.detach()

    async def members(self) -> tuple[tree.Running, ...]:
        """Its live processes besides the first one."""
        gone = self._process.returncode is not None
        return tuple(await asyncio.to_thread(tree.members, self.pid, self.mark, gone=gone))

    async def end(self, grace: float = CANCEL_GRACE) -> None:
        """End every process of it: SIGTERM, ``grace`` seconds, SIGKILL. Cancelling does not stop that."""
        await _end_tree(self._process, self._ended, self.mark, grace)

    def close(self) -> None:
        """Read no more; whoever still writes gets a broken pipe."""
        self._pipe.close()

    async def result(
        self, ending: Ending, head: int = HEAD, tail: int = TAIL, background: Sequence[tree.Running] = (), job: str = ""
    ) -> ProcessResult:
        """What is known of it now, with so many bytes of both ends of its output."""
        size = self.output.total
        text, omitted = await asyncio.to_thread(self.output.text, head, tail)
        return ProcessResult(
            output=text,
            exit_status=self.exit_status if ending == "exited" else None,
            ending=ending,
            duration=time.monotonic() - self.started,
            size=size,
            omitted=omitted,
            background=tuple(background),
            job=job,
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
    """Run a command to its end, or to its timeout (seconds, None for no limit). What it leaves running goes on, its
    output unread. Cancelling ends every process of the command before the cancellation goes on.

    Raises:
        LaunchError: it could not be started.
    """
    running = RunningCommand(CommandSpec(command, cwd, environment, prefix, inherited), output)
    async with ended_when_cancelled(running):
        ending = await finished(running, timeout)
        background = await running.members() if ending == "exited" else ()
        running.detach() if background else running.close()
        result = await running.result(ending, head, tail, background)
    running.output.close()
    return result


async def finished(running: RunningCommand, timeout: float | None, wish: asyncio.Event | None = None) -> Ending:
    """Wait for the end of a command in the foreground. At its timeout all of it is ended; by the ``wish`` it goes on in
    the background."""
    ended = await running.wait(timeout, wish)
    if not ended and wish is not None and wish.is_set():
        return "background"
    if not ended:
        await running.end(GRACE)
    await running.drained()
    return "exited" if ended else "timeout"


@asynccontextmanager
async def ended_when_cancelled(running: RunningCommand) -> AsyncGenerator[None]:
    """Nothing of the command is left when the block is cancelled."""
    try:
        yield
    except asyncio.CancelledError:
        await running.end(CANCEL_GRACE)
        running.close()
        running.output.close()
        raise


def _start(spec: CommandSpec, environment: Mapping[str, str], writer: int) -> subprocess.Popen[bytes]:
    bash = shutil.which("bash", path=environment.get("PATH") or os.defpath)
    shell = [bash, "--norc", "--noprofile", "-c"] if bash else ["/bin/sh", "-c"]
    try:
        return subprocess.Popen(
            [*spec.prefix, *shell, "--", spec.command],
            cwd=spec.cwd,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=writer,
            start_new_session=True,
            pass_fds=spec.inherited,
        )
    except FileNotFoundError as error:
        missing = spec.cwd if not spec.cwd.is_dir() else [*spec.prefix, *shell][0]
        raise LaunchError(f"The command could not be started: {missing} does not exist.") from error
    except ValueError as error:
        raise LaunchError("The command could not be started: it has a NUL or an unpaired surrogate.") from error
    except OSError as error:
        hint = " Write it to a script file and run that." if error.errno == 7 else ""
        raise LaunchError(f"The command could not be started: {error.strerror}.{hint}") from error


def _watch(process: subprocess.Popen[bytes]) -> asyncio.Event:
    """An event for the end of ``process``; its exit status is left to be taken, so its id stays taken too."""
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
    with contextlib.suppress(RuntimeError):  # the loop may be closed by now
        loop.call_soon_threadsafe(ended.set)


async def _end_tree(process: subprocess.Popen[bytes], ended: asyncio.Event, mark: str, grace: float) -> None:
    """SIGTERM, up to ``grace`` seconds, SIGKILL, for the group and all that left it. Leaves no zombie."""
    tree.adopt_orphans(True)
    known = _members(process, mark)
    try:
        _signal_group(process, known, signal.SIGTERM)
        tree.signal_each(known, signal.SIGTERM)
        deadline = time.monotonic() + grace
        while time.monotonic() < deadline:
            tree.collect(known)
            if ended.is_set() and not any(process.alive for process in known):
                break
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.02):
                    await (asyncio.sleep(0.02) if ended.is_set() else ended.wait())
    finally:
        _kill_tree(process, mark, known)
        tree.adopt_orphans(False)


def _kill_tree(process: subprocess.Popen[bytes], mark: str, known: list[tree.Running]) -> None:
    """SIGKILL until nothing is left; bounded, because a process in uninterruptible sleep does not die."""
    seen = {one.pid: one for one in known}
    _signal_group(process, known, signal.SIGKILL)
    for _ in range(20):
        tree.signal_each(known, signal.SIGKILL)
        tree.collect(known)
        known = _members(process, mark)
        if not known:
            break
        seen.update((one.pid, one) for one in known)
        time.sleep(0.005)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=0.2)
    for _ in range(20):  # what was killed last may take a moment until it can be collected
        tree.collect(list(seen.values()))
        tree.collect_session(process.pid)
        if not any(tree.is_ours(pid) for pid in seen):
            break
        time.sleep(0.005)


def _members(process: subprocess.Popen[bytes], mark: str) -> list[tree.Running]:
    return tree.members(process.pid, mark, gone=process.returncode is not None)


def _signal_group(process: subprocess.Popen[bytes], known: list[tree.Running], number: signal.Signals) -> None:
    """Signal the command's group, unless its id may be that of another by now."""
    if process.returncode is None or any(one.group == process.pid for one in known):
        tree.signal_group(process.pid, number)
