"""The end of what running calls have written so far, for calls that are interrupted."""

from __future__ import annotations

from typing import Final

KEPT: Final = 4_000
"""Characters of each call that are kept."""


class LiveOutput:
    """What was written is kept by call, from the first text on until it is forgotten."""

    def __init__(self) -> None:
        self._written: dict[str, str] = {}
        self._cut: set[str] = set()

    def add(self, item: str, text: str) -> None:
        """More output of a call."""
        written = self._written.get(item, "") + text
        if len(written) > KEPT:
            self._cut.add(item)
        self._written[item] = written[-KEPT:]

    def of(self, item: str) -> tuple[str, bool]:
        """The end of a call's output, and whether there was more before it."""
        return self._written.get(item, ""), item in self._cut

    def forget(self, item: str) -> None:
        """The call has ended."""
        self._written.pop(item, None)
        self._cut.discard(item)
