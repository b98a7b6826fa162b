"""Writing to standard output and standard error so that neither encoding nor a closed pipe is a traceback."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO

from swecli.safe_text import sanitise, without_sequences


class OutputClosed(Exception):
    """Nobody reads any more, or the disk is full. The message is empty in the first case."""


class Output:
    """One of the two standard streams. Characters that its encoding lacks are written as escapes."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

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
        """Write a line for people, made safe for a terminal wherever it goes."""
        self._write(safe(f"{text}\n"), getattr(self._stream, "encoding", None) or "utf-8")

    def line(self, text: str) -> None:
        """Write one line of JSON: always UTF-8, and at once."""
        self._write(text + "\n", "utf-8")

    def _write(self, text: str, encoding: str) -> None:
        if self._stream is None:
            return
        try:
            buffer = getattr(self._stream, "buffer", None)
            if buffer is None:
                self._stream.write(text)
            else:
                self._stream.flush()
                buffer.write(text.encode(encoding, "backslashreplace"))
            self._stream.flush()
        except BrokenPipeError as error:
            raise OutputClosed("") from error
        except (OSError, ValueError) as error:
            raise OutputClosed(f"the output can't be written: {error}") from error


def safe(text: str) -> str:
    """The text without escape sequences; what else acts on a terminal, or hides, is a visible stand-in."""
    return sanitise(without_sequences(text))


def detach_stdout() -> None:
    """Let what is still buffered for a closed standard output go nowhere, so that the exit stays silent."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
