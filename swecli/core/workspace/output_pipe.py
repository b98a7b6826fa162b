"""The reading end of a command's output on the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable

from swecli.core.workspace.command_output import CommandOutput
from swecli.core.workspace.output_ring import LiveText

_PIECE = 1 << 16
_PIECES = 4
"""Pieces that are read before other work of the event loop gets its turn."""
_LIVE_INTERVAL = 0.05
"""Seconds between two pieces of live text, each of which is at most ``_LIVE_LIMIT`` characters."""
_LIVE_LIMIT = 8_000
_DETACHED_PAUSE = 0.05


class OutputPipe:
    """Reads until the end of the output, or until it is closed. While the disk can't follow, or nobody looks, it reads
    slowly, and the command waits."""

    def __init__(self, descriptor: int, output: CommandOutput, show: Callable[[str], None] | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._output = output
        self._show = show
        self._live = LiveText(_LIVE_LIMIT)
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Future[None] | None = None
        self._detached = False
        self._resting = False
        self._closed = False
        self.ended = asyncio.Event()
        """Set when there is nothing more to read and everything is where it is kept."""
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._read)

    def _read(self) -> None:
        for _ in range(_PIECES):
            try:
                data = os.read(self._descriptor, _PIECE)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                self._end()
                break
            self._output.add(data)
            if self._show is not None:
                self._live.add(data)
        else:
            if self._detached:
                self._rest()
        self._write()
        if self._show is not None and self._live.waiting and self._timer is None:
            self._timer = self._loop.call_later(_LIVE_INTERVAL, self._flush)

    def _rest(self) -> None:
        """A flood in the background must not take the event loop's time."""
        self._resting = True
        self._loop.remove_reader(self._descriptor)
        self._loop.call_later(_DETACHED_PAUSE, self._rested)

    def _rested(self) -> None:
        self._resting = False
        self._resume()

    def _resume(self) -> None:
        if not self._closed and not self._resting and not self._output.full:
            self._loop.add_reader(self._descriptor, self._read)

    def _write(self) -> None:
        if self._writing is None and self._output.wants_writing:
            self._writing = self._loop.run_in_executor(None, self._output.write)
            self._writing.add_done_callback(self._written)
        if self._writing is not None and self._output.full and not self._closed:
            self._loop.remove_reader(self._descriptor)

    def _written(self, writing: asyncio.Future[None]) -> None:
        self._writing = None
        if not writing.cancelled():
            writing.result()
        self._write()
        self._resume()
        if self._closed and self._writing is None:
            self.ended.set()

    def _flush(self) -> None:
        self._timer = None
        if self._show is not None and self._live.waiting:
            self._show(self._live.take())

    def _end(self) -> None:
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
        if self._writing is None:
            self.ended.set()

    async def drained(self, limit: float) -> None:
        """Wait for the end of the output, ``limit`` seconds at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await self.ended.wait()

    def close(self) -> None:
        """Stop reading; whoever still writes gets a broken pipe."""
        self.detach()
        self._end()

    def detach(self) -> None:
        """Show nothing any more, and read a flood slowly: the command goes on in the background."""
        if self._timer is not None:
            self._timer.cancel()
        self._flush()
        self._show = None
        self._detached = True
