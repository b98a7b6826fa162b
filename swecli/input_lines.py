"""Lines of a client on standard input, for protocols with one message per line."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import BinaryIO, Final

AHEAD: Final = 256
"""Lines to read ahead."""


class InputLines:
    """Reads in a thread of its own, because a read from a pipe can't be cancelled. Skips blank lines; discards lines of
    more than ``longest`` bytes. ``log`` receives the reason if the input can't be read."""

    def __init__(self, source: BinaryIO, longest: int, log: Callable[[str], None]) -> None:
        self._source = source
        self._longest = longest
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = threading.Semaphore(AHEAD)
        threading.Thread(target=self._read, name="protocol input", daemon=True).start()

    async def next(self) -> bytes | None:
        """A line without its end, empty for one that was too long; None once the input has ended."""
        line = await self._lines.get()
        if line is not None:
            self._room.release()
        return line

    def end(self) -> None:
        """Pass on nothing after the lines read so far."""
        self._lines.put_nowait(None)

    def _read(self) -> None:
        try:
            while line := self._source.readline(self._longest):
                if len(line) >= self._longest and not line.endswith(b"\n"):
                    line = b""
                    while (rest := self._source.readline(self._longest)) and not rest.endswith(b"\n"):
                        pass
                elif not (line := line.strip()):
                    continue
                self._room.acquire()
                self._tell(partial(self._lines.put_nowait, line))
        except (OSError, ValueError) as error:
            problem = str(error)
            self._tell(lambda: self._log(f"cannot read the input: {problem}"))
        self._tell(self.end)

    def _tell(self, what: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed: drop the line
            self._loop.call_soon_threadsafe(what)
