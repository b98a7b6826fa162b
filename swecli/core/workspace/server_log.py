"""Log of a background program's stderr, in a file of bounded size."""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from swecli.core.atomic_text import make_private

LARGEST_LOG: Final = 1_000_000
"""Bytes of a log; the previous half is kept in a second file."""
NEWEST: Final = 2_000
"""Characters of the log kept in memory for messages, in whole lines."""
_CHUNK: Final = 65_536
_CONTINUED: Final = bytes(range(0x80, 0xC0))
"""Bytes that continue a UTF-8 character."""
OWN: Final = "[swecli] "
"""Prefix of swecli's own lines."""
STRAY: Final = "not a message: "
"""Marks, after that prefix, program output where a message was expected."""


class ServerLog:
    """A server's stderr, with swecli's remarks. ``mask`` removes secrets."""

    def __init__(self, path: Path | None, mask: Callable[[str], str]) -> None:
        self.path = path
        self._mask = mask
        self._size = 0
        self._lines = ""
        """The newest lines, masked."""
        self._rest = ""
        """The beginning of a line whose end has not arrived."""

    @property
    def newest(self) -> str:
        """The end of the log."""
        return _ending(self._lines + self._mask(self._rest)) if self._rest else self._lines

    def write(self, text: str) -> None:
        """Add a text. If the log can't be written, it is kept in memory only."""
        if not text:
            return
        text = self._mask(text)
        self._lines = _ending(self._lines + text)
        if self.path is None:
            return
        try:
            make_private(self.path.parent)
            if self._size == 0 and os.path.exists(self.path):
                self._size = self.path.stat().st_size
            data = text.encode("utf-8", "replace")
            if self._size + len(data) > LARGEST_LOG and self._size:
                os.replace(self.path, self.path.with_suffix(".old.log"))
                self._size = 0
            data = data[-LARGEST_LOG:].lstrip(_CONTINUED) if len(data) > LARGEST_LOG else data
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "ab") as file:
                file.write(data)
            self._size += len(data)
        except OSError:
            self.path = None

    async def follow(self, stream: asyncio.StreamReader) -> None:
        """Add what a stream gives, until its end."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        try:
            while chunk := await stream.read(_CHUNK):
                self._take(decoder.decode(chunk))
                await asyncio.sleep(0)
        finally:
            rest, self._rest = self._rest + decoder.decode(b"", True), ""
            self.write(rest)

    def _take(self, text: str) -> None:
        """Write whole lines: a secret may arrive in two pieces, and only a whole one is found."""
        lines, end, rest = (self._rest + text).rpartition("\n")
        self._rest = rest if len(rest) <= _CHUNK else ""
        whole = lines + end + (rest if not self._rest else "")
        if whole:
            self.write(whole)

    def line(self, text: str) -> None:
        self.write(f"{OWN}{text}\n")

    def stray(self, text: str) -> None:
        """Record program output that appeared where a message was expected."""
        self.line(f"{STRAY}{text}")

    @property
    def said(self) -> str:
        """The newest line from the program itself, on any stream; empty if there is none."""
        lines = (line.removeprefix(OWN + STRAY).strip() for line in reversed(self.newest.splitlines()))
        return next((line for line in lines if line and not line.startswith(OWN)), "")


def _ending(text: str) -> str:
    """The newest whole lines, or the end of a line longer than the limit."""
    if len(text) <= NEWEST:
        return text
    ending = text[-NEWEST:]
    return ending.partition("\n")[2] or ending
