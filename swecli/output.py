"""The two standard streams: writing, also from an event loop, and the departure of a reader."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import select
import sys
import threading
from collections.abc import Callable
from typing import Any, TextIO

from swecli.safe_text import sanitise, without_sequences


class OutputClosed(Exception):
    """The reader has closed the stream, or the disk is full. The message is empty in the first case."""


class Output:
    """One of the two standard streams. Characters that its encoding lacks are written as escapes. With a ``writer`` no
    method blocks, and failures are found there."""

    def __init__(self, stream: TextIO | None, writer: Writer | None = None) -> None:
        self._stream = stream
        self._writer = writer
        self._closed = False

    @property
    def is_terminal(self) -> bool:
        return self._stream is not None and self._stream.isatty()

    def text(self, text: str) -> None:
        """Write text for people: raw for a pipe or file, made safe for a terminal.

        Raises:
            OutputClosed: it can't be written.
        """
        self._write(safe(text) if self.is_terminal else text, getattr(self._stream, "encoding", None) or "utf-8")

    def note(self, text: str) -> None:
        """Write a line for people, always in safe form for a terminal. Failures are ignored."""
        with contextlib.suppress(OutputClosed):
            self._write(safe(f"{text}\n"), getattr(self._stream, "encoding", None) or "utf-8", vital=False)

    def line(self, text: str) -> None:
        """Write one line of JSON: always UTF-8, and at once."""
        self._write(text + "\n", "utf-8")

    def _write(self, text: str, encoding: str, *, vital: bool = True) -> None:
        if self._writer is None:
            self._deliver(text, encoding)
        elif vital:
            self._writer.put(lambda: self._deliver(text, encoding), len(text))
        else:
            self._writer.put(lambda: self._try(text, encoding), len(text))

    def _try(self, text: str, encoding: str) -> None:
        with contextlib.suppress(OutputClosed):
            self._deliver(text, encoding)

    def _deliver(self, text: str, encoding: str) -> None:
        if self._stream is None or self._closed:
            return
        try:
            self._stream.flush()  # earlier output of others comes first
            buffer = getattr(self._stream, "buffer", None)
            if buffer is None:
                self._stream.write(text)
                self._stream.flush()
            else:
                _write_through(buffer, text.encode(encoding, "backslashreplace"))
        except (OSError, ValueError) as error:
            self._closed = True
            raise closed(error) from error


def closed(error: Exception) -> OutputClosed:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return OutputClosed("" if isinstance(error, BrokenPipeError) else f"The output cannot be written: {reason}")


def _write_through(buffer: Any, data: bytes) -> None:
    """Write all of it, past the buffer, which has been flushed."""
    raw = getattr(buffer, "raw", buffer)
    view = memoryview(data)
    while view:
        written = raw.write(view)
        if written is None:  # the file is non-blocking
            select.select([], [raw], [])
        else:
            view = view[written:]


def safe(text: str) -> str:
    """The text without escape sequences; what else acts on a terminal, or hides, is a visible stand-in."""
    return sanitise(without_sequences(text))


def takes_more(stream: TextIO | None) -> bool:
    """Whether a line can be written without waiting for a reader; in doubt it can't."""
    try:
        return stream is not None and bool(select.select([], [stream], [], 0)[1])
    except (OSError, ValueError):
        return False


def lost_output() -> OutputClosed | None:
    """Flush both standard streams. Returns the failure of standard output, or None. The unwritten rest is discarded, so
    that the exit stays silent."""
    failure: OutputClosed | None = None
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        if stream is None or stream.closed:  # pyright: ignore[reportUnnecessaryComparison] - None where it was closed
            continue
        try:
            stream.flush()
        except OSError as error:
            if number == 1:
                failure = closed(error)
            _to_nowhere(stream)
    return failure


def _to_nowhere(stream: TextIO) -> None:
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
        stream.flush()


ROOM = 1 << 20
"""Characters waiting to be written at which a run stops taking events."""


class Writer:
    """Writes for an event loop, in a thread of its own and in order."""

    def __init__(self) -> None:
        import asyncio  # not needed for usage messages

        self.failure: OutputClosed | None = None
        """Reason of a failure; later output to that stream is discarded."""
        self.changed: Callable[[], None] = lambda: None
        """Called on the loop when an output fails."""
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[tuple[Callable[[], None], int]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting = 0
        self._limit: int | None = None
        """Number of waiting characters that a caller waits for."""
        self._settled = asyncio.Event()
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> int:
        return self._waiting

    def put(self, write: Callable[[], None], size: int) -> None:
        """Call ``write`` in its turn; an ``OutputClosed`` from it becomes the failure."""
        with self._lock:
            self._waiting += size
        self._queue.put((write, size))
        if self._thread is None:
            self._thread = threading.Thread(target=self._write, name="output", daemon=True)
            self._thread.start()

    async def settled(self, limit: int = 0) -> None:
        """Wait until at most ``limit`` characters are unwritten. One caller at a time."""
        while True:
            self._settled.clear()
            with self._lock:
                if self._waiting <= limit:
                    return
                self._limit = limit
            await self._settled.wait()

    def _write(self) -> None:
        while True:
            write, size = self._queue.get()
            try:
                write()
            except OutputClosed as error:
                if self.failure is None:
                    self.failure = error
                    self._tell(lambda: self.changed())
            with self._lock:
                self._waiting -= size
                reached = self._limit is not None and self._waiting <= self._limit
                if reached:
                    self._limit = None
            if reached:
                self._tell(self._settled.set)

    def _tell(self, what: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(what)


def log_in_lines(errors: Output, program: str) -> None:
    """Print warnings and errors from libraries' logs as single lines on standard error; their tracebacks are useless to
    the user of another program that started this one."""

    class OneLine(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            error: Any = record.exc_info[1] if record.exc_info else None
            detail = f": {type(error).__name__}: {error}" if error is not None else ""
            errors.note(f"{program}: {record.getMessage()}{detail}"[:500])

    logging.getLogger().handlers[:] = [OneLine(level=logging.WARNING)]
