"""Running a helper program of ours and taking its output, bounded in bytes and time, gone when cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_ERROR_BYTES = 16_384
_END_SECONDS = 2.0
"""For the end of a program that was killed."""


@dataclass(frozen=True, slots=True)
class Captured:
    """``status`` is None when the program was stopped: at its time limit or because it wrote too much."""

    status: int | None
    output: bytes
    errors: bytes
    timed_out: bool = False
    overflowed: bool = False


async def capture(
    argv: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    timeout: float,
    limit: int,
    stdin: bytes = b"",
) -> Captured:
    """Run ``argv`` to its end, ``timeout`` seconds or ``limit`` bytes of output, whichever comes first.

    Raises:
        OSError: it can't be started.
    """
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        env=dict(environment),
        stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=os.name == "posix",
    )
    assert process.stdout is not None
    assert process.stderr is not None
    output, errors = bytearray(), bytearray()
    tasks = (
        asyncio.ensure_future(_read(process.stdout, output, limit)),
        asyncio.ensure_future(_read(process.stderr, errors, _ERROR_BYTES)),
    )
    timed_out = overflowed = False
    try:
        async with asyncio.timeout(timeout):
            if process.stdin is not None:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    process.stdin.write(stdin)
                    await process.stdin.drain()
                process.stdin.close()
            overflowed = not await tasks[0]
            if not overflowed:
                await tasks[1]
                await process.wait()
    except TimeoutError:
        timed_out = True
    finally:
        for task in tasks:
            task.cancel()
        stopped = process.returncode is None
        if stopped:
            _kill(process)
            await asyncio.gather(*tasks, return_exceptions=True)
            await _gone(process)
    return Captured(None if stopped else process.returncode, bytes(output), bytes(errors), timed_out, overflowed)


async def _gone(process: asyncio.subprocess.Process) -> None:
    """Wait for the end of a program that was killed. What it still had written is read: with a full pipe that nobody
    reads the event loop never hears of the end. One that lives on elsewhere and holds the pipe is not waited for."""
    streams = [stream for stream in (process.stdout, process.stderr) if stream is not None]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_END_SECONDS):
            await asyncio.gather(*map(_discard, streams))
            await process.wait()


async def _discard(stream: asyncio.StreamReader) -> None:
    while await stream.read(65_536):
        pass


def _kill(process: asyncio.subprocess.Process) -> None:
    """End the program, and on POSIX what it has started as well."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


async def _read(stream: asyncio.StreamReader, into: bytearray, limit: int) -> bool:
    """True at the end of the stream, False when ``limit`` was reached before."""
    while piece := await stream.read(65_536):
        into += piece[: max(0, limit - len(into))]
        if len(into) >= limit:
            return False
    return True
