"""A worker: loads swecli once, then forks a process for each attempt, whose words go to the fleet.

The worker itself has no thread and no event loop, so that forking is safe. ``python -m swecli.fleet.worker`` reads
orders from standard input and answers on standard output; ``IDLE`` says that it takes the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import signal
import sys
from pathlib import Path

import msgspec

from swecli.defect_log import append_defect, trace_of
from swecli.fleet.link import Ask, Ended, FromWorker, Halt, Order, Permit, encoded, to_worker
from swecli.own_files import REPLACED, replaced

IDLE = b'{"type":"idle","status":%d}\n'
"""A line of the worker: the process of the attempt has ended with this status, negative for a signal's number."""
_READ = 1 << 16
LIMIT = 1 << 28
"""Bytes of the longest line: patches and outputs are inside."""


def main() -> int:
    """Serve until standard input ends. Whatever is printed goes to standard error."""
    out = os.dup(1)
    os.dup2(2, 1)
    with contextlib.suppress(KeyboardInterrupt):
        _preload()
        _serve(out)
    return 0


def _preload() -> None:
    """Load what every attempt needs, and keep it out of the collector's way, so that the processes share it."""
    import swecli.app
    import swecli.commands.registry
    import swecli.core.llm.transport
    import swecli.core.sessions.portable
    import swecli.fleet.attempt  # noqa: F401

    gc.collect()
    gc.freeze()


def _serve(out: int) -> None:
    rest = b""
    _write(out, IDLE % 0)
    while True:
        while b"\n" not in rest:
            data = os.read(0, _READ)
            if not data:
                return
            rest += data
        line, _, rest = rest.partition(b"\n")
        message = to_worker(line)
        if not isinstance(message, Order):  # an answer to an attempt that has ended
            continue
        child = os.fork()
        if child == 0:
            os._exit(_attempt(message, out, rest))
        rest = b""
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        _write(out, IDLE % status)


def _attempt(order: Order, out: int, rest: bytes) -> int:
    """The process of one attempt. Returns its exit status."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        _limit(order)
        ended = asyncio.run(_linked(order, Link(out, rest)))
    except MemoryError:
        ended = Ended("failed", "memory", "the attempt needed more memory than --memory allows")
    except OSError as error:
        ended = Ended("broken", "system", f"{error.strerror or error}", again=True)
    except Exception as error:  # noqa: BLE001 - the process ends, and the fleet must know why
        append_defect(trace_of(error, ()), _state())
        cause = f"swecli failed: {REPLACED}" if replaced() else f"internal error: {type(error).__name__}: {error}"
        ended = Ended("broken", "defect", cause[:500], again=True)
    _write(out, encoded(ended))
    sys.stderr.flush()
    return 0


def _state() -> Path:
    from swecli.core.config.paths import user_paths

    return user_paths(os.environ).state


def _limit(order: Order) -> None:
    for which, limit in ((resource.RLIMIT_AS, order.memory), (resource.RLIMIT_CPU, order.processor)):
        if limit is not None:
            resource.setrlimit(which, (limit, limit))


async def _linked(order: Order, link: Link) -> Ended:
    from swecli.fleet.attempt import Attempt
    from swecli.steady_clock import keep_steady

    keep_steady(asyncio.get_running_loop())
    link.listen()
    running = asyncio.ensure_future(Attempt(order, link.send, link.ask).run())
    halted = asyncio.ensure_future(link.halted.wait())
    await asyncio.wait((running, halted), return_when=asyncio.FIRST_COMPLETED)
    if not running.done():
        running.cancel()
        await asyncio.wait((running,))
        if running.cancelled():
            return Ended("stopped", "stopped", "the fleet was stopped")
    halted.cancel()
    return running.result()


class Link:
    """The attempt's end of the pipes. ``halted`` is set when the fleet wants it to end, or has itself ended."""

    def __init__(self, out: int, rest: bytes = b"") -> None:
        self.halted = asyncio.Event()
        self._out = out
        self._rest = rest
        self._asked: dict[int, asyncio.Future[str]] = {}
        self._number = 0

    def listen(self) -> None:
        """Begin to take the fleet's messages."""
        asyncio.get_running_loop().add_reader(0, self._arrived)
        self._take()

    def send(self, message: FromWorker) -> None:
        try:
            _write(self._out, encoded(message))
        except OSError:
            self.halted.set()

    async def ask(self, message: Ask) -> str:
        """Why no request may be sent; empty to send it."""
        self._number += 1
        number = self._number
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        self.send(msgspec.structs.replace(message, number=number))
        try:
            return await answer
        finally:
            del self._asked[number]

    def _arrived(self) -> None:
        data = os.read(0, _READ)
        if not data:
            asyncio.get_running_loop().remove_reader(0)
            self.halted.set()
            return
        self._rest += data
        self._take()

    def _take(self) -> None:
        while b"\n" in self._rest:
            line, _, self._rest = self._rest.partition(b"\n")
            match to_worker(line):
                case Permit(number=number, refusal=refusal):
                    if number in self._asked and not self._asked[number].done():
                        self._asked[number].set_result(refusal)
                case Halt():
                    self.halted.set()
                case Order():
                    raise RuntimeError("an order arrived during an attempt")


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


class Idle(msgspec.Struct, frozen=True, tag="idle"):
    """``IDLE`` as read by the fleet."""

    status: int


if __name__ == "__main__":
    sys.exit(main())
