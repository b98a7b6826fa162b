"""What a command wrote: its beginning and end in memory, all of it up to a cap on disk."""

from __future__ import annotations

from pathlib import Path

from swecli.core.workspace.output_ring import HEAD, TAIL, OutputRing, joined
from swecli.core.workspace.output_spill import CAP, OutputSpill


class CommandOutput:
    """Bytes go in with ``add`` on the event loop; ``write``, ``text`` and ``read`` may wait for a disk."""

    def __init__(self, folder: Path | None = None, *, cap: int = CAP) -> None:
        """``folder`` is where a long output is kept while swecli runs."""
        self._ring = OutputRing(HEAD, TAIL)
        self._spill = OutputSpill(folder, cap)

    def add(self, data: bytes) -> None:
        self._ring.add(data)
        self._spill.add(data)

    @property
    def total(self) -> int:
        """Bytes that were written."""
        return self._ring.total

    @property
    def wants_writing(self) -> bool:
        return self._spill.wants_writing

    @property
    def full(self) -> bool:
        """Whether reading should pause until a ``write`` has ended."""
        return self._spill.full

    def write(self) -> None:
        """Bring to disk what waits for it."""
        self._spill.write()

    def text(self, head: int = HEAD, tail: int = TAIL, start: int = 0) -> tuple[str, int]:
        """The output from byte ``start`` on: whole, or its first ``head`` and last ``tail`` bytes around a line that
        says how much is missing; and how many bytes those are."""
        total = self.total
        if start >= total:
            return "", 0
        try:
            first = self._piece(start, min(head + tail, total - start))
            if len(first) == total - start:
                return first.decode("utf-8", "replace"), 0
            first = first[:head]
            last = self._piece(total - tail, tail)
        except OSError:
            return self._ring.text(), self._ring.omitted
        omitted = total - start - len(first) - len(last)
        if not start and not (first and last):  # a disk that failed; memory still has both ends
            return self._ring.text(), self._ring.omitted
        return joined(first, last, omitted), omitted

    def _piece(self, start: int, size: int) -> bytes:
        """What follows ``start`` without a gap."""
        at, data = self._spill.read(start, size)
        return data if at == start else b""

    def read(self, offset: int, size: int) -> tuple[int, bytes]:
        """Up to ``size`` bytes from ``offset`` on, and where they really begin.

        Raises:
            OSError: the disk fails.
        """
        return self._spill.read(offset, size)

    @property
    def failure(self) -> str:
        """Why the middle of a long output is not kept; empty while all is well."""
        return self._spill.failure

    def close(self) -> None:
        """Let the file go."""
        self._spill.close()
