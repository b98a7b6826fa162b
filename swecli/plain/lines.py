"""Lines that somebody types, read in a thread so that the session goes on."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass
from typing import TextIO


@dataclass(frozen=True, slots=True)
class Line:
    """``text`` is None at the end of input. ``at`` is when it was read, in monotonic seconds."""

    text: str | None
    at: float


class Lines:
    """Reads a line whenever one was asked for with ``want``; of a terminal all of the time, so that it is known
    when each was typed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._loop = asyncio.get_running_loop()
        self._asked = threading.Semaphore(0)
        self._asking = False
        self._eager = stream.isatty()
        self.queue: asyncio.Queue[Line] = asyncio.Queue()
        threading.Thread(target=self._read, daemon=True, name="typed lines").start()

    @property
    def by_hand(self) -> bool:
        """Whether a person types."""
        return self._eager

    def want(self) -> None:
        """The next line is needed now."""
        if not self._asking:
            self._asking = True
            self._asked.release()

    def taken(self) -> None:
        """The line that was wanted has come."""
        self._asking = False

    def _read(self) -> None:
        while True:
            if not self._eager:
                self._asked.acquire()
            try:
                text = self._stream.readline()
            except (OSError, ValueError):
                text = ""
            line = Line(text.rstrip("\n") if text else None, time.monotonic())
            try:
                self._loop.call_soon_threadsafe(self.queue.put_nowait, line)
            except RuntimeError:  # the loop has ended
                return
            if line.text is None:
                return
