"""Commands from standard input, one JSON object for each line."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import BinaryIO

from swecli.core.protocol.codec import CodecError, decode_command
from swecli.core.protocol.commands import Command

MAX_LINE = 64 * 1024 * 1024
"""Bytes of one line; a longer one is an error, not a command."""


class BadLine(Exception):
    """A line that is no command. The message names line and field."""


class CommandInput:
    """Reads lines in a thread of its own, since a read from a pipe can't be cancelled, and hands each over on
    the event loop: a command, a ``BadLine``, or None at the end of the input."""

    def __init__(self, stream: BinaryIO, receive: Callable[[Command | BadLine | None], None]) -> None:
        self._stream = stream
        self._receive = receive
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """Begin to read."""
        threading.Thread(target=self._read, name="command input", daemon=True).start()

    def _read(self) -> None:
        number = 0
        try:
            while line := self._stream.readline(MAX_LINE):
                number += 1
                if line.strip():
                    self._hand_over(_command(line, number))
        except (OSError, ValueError) as error:
            self._hand_over(BadLine(f"standard input: {error}"))
        self._hand_over(None)

    def _hand_over(self, value: Command | BadLine | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._receive, value)
        except RuntimeError:  # the run is over and its loop closed: nobody needs the line
            return


def _command(line: bytes, number: int) -> Command | BadLine:
    try:
        return decode_command(line.decode("utf-8"))
    except (CodecError, UnicodeDecodeError) as error:
        return BadLine(f"standard input, line {number}: {error}")
