"""Output of a program in bounded memory: its beginning, its end, and how much is missing in between."""

from __future__ import annotations

import codecs

HEAD = 200_000
TAIL = 200_000


class OutputRing:
    """Takes bytes, keeps the first ``head`` and the last ``tail`` of them."""

    def __init__(self, head: int = HEAD, tail: int = TAIL) -> None:
        self._head_size, self._tail_size = head, tail
        self._head, self._tail = bytearray(), bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        free = self._head_size - len(self._head)
        if free > 0:
            self._head += data[:free]
            data = data[free:]
        if data:
            self._tail += data[-self._tail_size :]
            if len(self._tail) > 2 * self._tail_size:
                del self._tail[: -self._tail_size]

    @property
    def omitted(self) -> int:
        """Bytes that are in neither part."""
        return max(0, self.total - len(self._head) - min(len(self._tail), self._tail_size))

    def text(self) -> str:
        """What was kept, with a line that says how much is missing. Invalid bytes become U+FFFD."""
        tail = bytes(self._tail[-self._tail_size :])
        if not self.omitted:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        return joined(bytes(self._head), tail, self.omitted)


def joined(head: bytes, tail: bytes, omitted: int) -> str:
    """Both ends of an output around a line that says how much is missing. Invalid bytes become U+FFFD."""
    # The end may begin inside a character: its stray continuation bytes go.
    cut = next((index for index, byte in enumerate(tail[:4]) if byte & 0xC0 != 0x80), 0)
    beginning = head.decode("utf-8", "ignore")
    return f"{beginning}\n[… {omitted:,} bytes of output not kept …]\n{tail[cut:].decode('utf-8', 'replace')}"


class LiveText:
    """Text of a running program for showing: decoded as it comes, and only the newest when it is too much."""

    def __init__(self, limit: int) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._limit = limit
        self._pending = ""
        self._skipped = 0

    def add(self, data: bytes) -> None:
        self._pending += self._decoder.decode(data)
        surplus = len(self._pending) - self._limit
        if surplus > 0:
            self._skipped += surplus
            self._pending = self._pending[surplus:]

    @property
    def waiting(self) -> bool:
        return bool(self._pending)

    def take(self) -> str:
        """What came since the last call, at most the limit."""
        text, skipped = self._pending, self._skipped
        self._pending, self._skipped = "", 0
        return f"\n[… {skipped:,} characters …]\n{text}" if skipped else text
