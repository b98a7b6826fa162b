"""The reading end of a command's output on the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable

from swecli.core.workspace.output_ring import LiveText, OutputRing

_PIECE = 1 << 16
_PIECES = 4
"""Pieces that are read before other work of the event loop gets its turn."""
_LIVE_INTERVAL = 0.05
"""Seconds between two pieces of live text, each of which is at most ``_LIVE_LIMIT`` characters."""
_LIVE_LIMIT = 8_000
_DETACHED_PAUSE = 0.05


class OutputPipe:
    """Reads until the end of the output, or until it is closed or detached."""

    def __init__(self, descriptor: int, ring: OutputRing, show: Callable[[str], None] | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._ring = ring
        self._show = show
        self._live = LiveText(_LIVE_LIMIT)
        self._timer: asyncio.TimerHandle | None = None
        self._ended = asyncio.Event()
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
            self._ring.add(data)
            if self._show is not None:
                self._live.add(data)
        if self._show is not None and self._live.waiting and self._timer is None:
            self._timer = self._loop.call_later(_LIVE_INTERVAL, self._flush)

    def _flush(self) -> None:
        self._timer = None
        if self._show is not None and self._live.waiting:
            self._show(self._live.take())

    def _end(self) -> None:
        if not self._ended.is_set():
            self._ended.set()
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)

    async def drained(self, limit: float) -> None:
        """Wait for the end of the output, ``limit`` seconds at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await self._ended.wait()

    def close(self) -> None:
        """Stop reading; whoever still writes gets a broken pipe."""
        self._stop_showing()
        self._end()

    def detach(self) -> None:
        """Leave the pipe to background processes: what they write is read slowly and thrown away, so that they
        neither block nor break."""
        self._stop_showing()
        if not self._ended.is_set():
            self._loop.remove_reader(self._descriptor)
            self._discard()

    def _discard(self) -> None:
        try:
            ended = not os.read(self._descriptor, _PIECE)
        except BlockingIOError:
            self._loop.add_reader(self._descriptor, self._discard)
            return
        except OSError:
            ended = True
        if ended:
            self._end()
            return
        self._loop.remove_reader(self._descriptor)
        self._loop.call_later(_DETACHED_PAUSE, self._discard)

    def _stop_showing(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._flush()
        self._show = None
