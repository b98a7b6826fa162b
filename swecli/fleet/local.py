"""Attempts on this machine: worker processes, each for one attempt at a time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from swecli.figures import duration
from swecli.fleet.link import Ask, Ended, FromWorker, Halt, Order, Permit, encoded, from_worker

HALT_SECONDS = 8.0
"""Seconds in which a halted attempt may end in order."""
OVERTIME = 900.0
"""Seconds beyond the limits of its phases after which a silent attempt is killed."""
LOG = "workers.log"
_LIMIT = 1 << 28
_IDLE = b'{"type":"idle"'

Heard = Callable[[FromWorker], None]
Permission = Callable[[Ask], Awaitable[str]]
"""Why a request may not be sent, empty to send it; may take its time."""


class Returned(Struct, frozen=True):
    """The end of an attempt, and the session's file if there is one."""

    ended: Ended
    transcript: bytes | None = None


class Runner(Protocol):
    """Where attempts run."""

    size: int
    """How many run at once."""

    async def attempt(self, order: Order, heard: Heard, permission: Permission) -> Returned:
        """Run one attempt; whatever happens to it is its end. Raises only cancellation."""
        ...

    def halt(self) -> None:
        """End all running attempts at once, and every later one."""
        ...

    async def close(self) -> None: ...


class LocalRunner:
    """Keeps ``size`` workers, and starts a new one for each that dies. ``log`` gets their standard error."""

    def __init__(self, size: int, log: Path) -> None:
        self.size = size
        self._log = log
        self._idle: asyncio.LifoQueue[_Worker | None] = asyncio.LifoQueue()
        for _ in range(size):
            self._idle.put_nowait(None)
        self._workers: set[_Worker] = set()
        self._halted = False

    async def attempt(self, order: Order, heard: Heard, permission: Permission) -> Returned:
        worker = await self._idle.get()
        try:
            if self._halted:
                return Returned(_STOPPED)
            if worker is None:
                try:
                    worker = await _Worker.start(self._log)
                except OSError as error:
                    reason = f"cannot start a worker: {error.strerror or error}"
                    return Returned(Ended("broken", "worker", reason, again=True))
                self._workers.add(worker)
            ended = await worker.run(order, heard, permission)
            return await asyncio.to_thread(_collected, order, ended, worker.gone or ended.kind == "worker")
        finally:
            if worker is not None and worker.gone:
                self._workers.discard(worker)
                worker = None
            self._idle.put_nowait(worker)

    def halt(self) -> None:
        self._halted = True
        for worker in self._workers:
            worker.halt()

    async def close(self) -> None:
        self.halt()
        await asyncio.gather(*(worker.close() for worker in self._workers))


_STOPPED = Ended("stopped", "stopped", "the fleet was stopped")


class _Worker:
    """One worker process, which leads a process group of its own: keys at the terminal do not reach it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._in, self._out = process.stdin, process.stdout
        self._answers: set[asyncio.Task[None]] = set()
        self._ready = False
        self._killing: asyncio.TimerHandle | None = None
        self._busy = False
        self.gone = False

    @classmethod
    async def start(cls, log: Path) -> _Worker:
        """Raises ``OSError`` if it can't be started."""
        errors = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "swecli.fleet.worker"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
                limit=_LIMIT,
            )
        finally:
            os.close(errors)
        return cls(process)

    async def run(self, order: Order, heard: Heard, permission: Permission) -> Ended:
        """Let it run an attempt to its end."""
        self._busy = True
        limit = 4 * order.task.timeout + OVERTIME
        try:
            async with asyncio.timeout(limit):
                ended = await self._ran(order, heard, permission)
            return _STOPPED if ended.kind == "worker" and self._killing is not None else ended
        except TimeoutError:
            self._kill()
            return Ended("failed", "timeout", f"the attempt was silent or hung for {duration(limit)}")
        except asyncio.CancelledError:
            self._kill()
            raise
        finally:
            self._busy = False
            for answer in self._answers:
                answer.cancel()

    async def _ran(self, order: Order, heard: Heard, permission: Permission) -> Ended:
        ended: Ended | None = None
        if not self._ready and await self._line() is None:
            return await self._dead()
        self._ready = True
        self._write(encoded(order))
        while True:
            line = await self._line()
            if line is None:
                dead = await self._dead()
                return ended or dead
            if line.startswith(_IDLE):
                status: int = msgspec.json.decode(line)["status"]
                return ended or _without_words(status)
            try:
                message = from_worker(line)
            except msgspec.DecodeError:
                self._kill()
                return Ended("broken", "worker", "the worker wrote something else than its messages", again=True)
            if isinstance(message, Ended):
                ended = message
            elif isinstance(message, Ask):
                task = asyncio.ensure_future(self._answer(message, permission))
                self._answers.add(task)
                task.add_done_callback(self._answers.discard)
            else:
                heard(message)

    async def _answer(self, ask: Ask, permission: Permission) -> None:
        self._write(encoded(Permit(ask.number, await permission(ask))))

    async def _line(self) -> bytes | None:
        """The worker's next line; None at its end."""
        try:
            line = await self._out.readline()
        except ValueError:  # longer than the limit
            self._kill()
            return None
        return line if line.endswith(b"\n") else None

    def _write(self, data: bytes) -> None:
        with contextlib.suppress(OSError, RuntimeError):  # it has gone, which its output shows
            self._in.write(data)

    async def _dead(self) -> Ended:
        self._kill()
        return _without_words(await self._process.wait())

    def halt(self) -> None:
        """End the running attempt in order, and by force if that takes too long."""
        if self._busy and self._killing is None:
            self._write(encoded(Halt()))
            self._killing = asyncio.get_running_loop().call_later(HALT_SECONDS, self._kill)

    def _kill(self) -> None:
        self.gone = True
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def close(self) -> None:
        """End it: without input it ends by itself."""
        if self._killing is not None:
            self._killing.cancel()
        with contextlib.suppress(OSError, RuntimeError):
            self._in.close()
        try:
            async with asyncio.timeout(HALT_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._kill()
            await self._process.wait()


def _without_words(status: int) -> Ended:
    """The end of an attempt whose process did not tell it."""
    if status < 0:
        name = signal.Signals(-status).name if -status in signal.Signals._value2member_map_ else f"signal {-status}"
        if -status == signal.SIGXCPU:
            return Ended("failed", "processor", "the attempt needed more processor time than --processor allows")
        return Ended("broken", "worker", f"the worker was killed by {name}", again=True)
    return Ended("broken", "worker", f"the worker ended with status {status}", again=True)


def _collected(order: Order, ended: Ended, killed: bool) -> Returned:
    """The attempt's end with its session's file; its folder, and the commands of a killed one, are gone then."""
    transcript = None
    if ended.transcript:
        with contextlib.suppress(OSError):
            transcript = Path(ended.transcript).read_bytes()
    if killed:
        end_processes(Path(order.scratch))
    shutil.rmtree(order.scratch, ignore_errors=True)
    return Returned(ended, transcript)


def end_processes(folder: Path) -> None:
    """Kill the commands of an attempt whose process was killed: those that work in its folder."""
    import psutil  # only after a kill

    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if Path(process.cwd()).is_relative_to(folder):
                process.kill()
