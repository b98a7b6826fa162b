"""How long commands wait for the first copy of the workspace."""

from __future__ import annotations

import asyncio


class Patience:
    """So many seconds, counted from the first time that somebody waits: all wait together."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._until: float | None = None

    def left(self) -> float:
        """Seconds that are left. To be called on the event loop."""
        now = asyncio.get_running_loop().time()
        if self._until is None:
            self._until = now + self.seconds
        return max(0.0, self._until - now)
