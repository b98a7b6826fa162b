"""Running one shell command: nothing it does holds up, floods or outlives swecli unnoticed.

The command gets a session of its own, no input, and one pipe for both outputs. The end of the *command* is
waited for, never the end of its output: a background child may hold the pipe open for hours. Output is read in
bounded pieces on the event loop and kept in bounded memory.
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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from swecli.core.workspace import process_tree as tree
from swecli.core.workspace.output_pipe import OutputPipe
from swecli.core.workspace.output_ring import HEAD, TAIL, OutputRing

Ending = Literal["exited", "timeout"]
GRACE = 2.0
"""Seconds from SIGTERM to SIGKILL after a timeout."""
CANCEL_GRACE = 0.3
"""The same when the user cancelled."""
DRAIN = 0.2
"""Seconds to go on reading after the command ended."""


class LaunchError(Exception):
    """The command could not be started; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """A finished command. ``exit_status`` is None when it was killed at its timeout; a command that died of a
    signal has 128 + its number, as shells report it. ``duration`` is seconds, sizes are bytes."""

    output: str
    exit_status: int | None
    ending: Ending
    duration: float
    size: int
    omitted: int
    background: tuple[tree.Running, ...] = ()
    """Processes that the command left running."""


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
    """Run ``command`` in bash (sh where there is none), without start-up files.

    ``prefix`` is a program with its arguments that starts the shell (a sandbox), ``inherited`` are descriptors that
    stay open in it. ``output`` gets text as it comes, at a bounded rate. ``timeout`` is seconds, None for no limit.
    Cancelling ends every process of the command before the cancellation goes on.

    Raises:
        LaunchError: it could not be started.
    """
    started = time.monotonic()
    mark = tree.new_mark()
    reader, writer = os.pipe()
    try:
        process = _start(command, cwd, {**environment, tree.MARK: mark}, writer, prefix, inherited)
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    ring = OutputRing(head, tail)
    pipe = OutputPipe(reader, ring, output)
    ended = _watch(process)
    ending: Ending = "exited"
    try:
        try:
            async with asyncio.timeout(timeout):
                await ended.wait()
        except TimeoutError:
            ending = "timeout"
            await _end_tree(process, ended, mark, GRACE)
        await pipe.drained(DRAIN)
    except asyncio.CancelledError:
        await _end_tree(process, ended, mark, CANCEL_GRACE)
        pipe.close()
        raise
    status = process.wait()
    background = tuple(tree.members(process.pid, mark)) if ending == "exited" else ()
    pipe.detach() if background else pipe.close()
    return ProcessResult(
        output=ring.text(),
        exit_status=None if ending == "timeout" else status if status >= 0 else 128 - status,
        ending=ending,
        duration=time.monotonic() - started,
        size=ring.total,
        omitted=ring.omitted,
        background=background,
    )


def _start(
    command: str,
    cwd: Path,
    environment: Mapping[str, str],
    writer: int,
    prefix: Sequence[str],
    inherited: Sequence[int],
) -> subprocess.Popen[bytes]:
    bash = shutil.which("bash", path=environment.get("PATH") or os.defpath)
    shell = [bash, "--norc", "--noprofile", "-c"] if bash else ["/bin/sh", "-c"]
    try:
        return subprocess.Popen(
            [*prefix, *shell, "--", command],
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=writer,
            start_new_session=True,
            pass_fds=inherited,
        )
    except FileNotFoundError as error:
        missing = cwd if not cwd.is_dir() else [*prefix, *shell][0]
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
    known = tree.members(process.pid, mark)
    try:
        tree.signal_group(process.pid, signal.SIGTERM)
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
    tree.signal_group(process.pid, signal.SIGKILL)
    for _ in range(20):
        tree.signal_each(known, signal.SIGKILL)
        tree.collect(known)
        fresh = tree.members(process.pid, mark)
        if not fresh:
            break
        known = fresh
        time.sleep(0.005)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=0.2)
    tree.collect(known)
    tree.collect_session(process.pid)
