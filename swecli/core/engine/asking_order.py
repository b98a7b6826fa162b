"""In which order the calls of one answer may ask the user: in the order of the calls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable


class AskingOrder:
    """A call asks when every call before it has asked, or will not ask. It does not wait for the answers."""

    def __init__(self) -> None:
        self._ahead: dict[str, asyncio.Future[None]] = {}
        """Calls that may still ask, in their order."""

    def begin(self, items: Iterable[str]) -> None:
        """These calls are about to run, in this order."""
        for item in items:
            self._ahead[item] = asyncio.get_running_loop().create_future()

    async def turn(self, item: str) -> None:
        """Wait until this call may ask; at once for one that was not announced, or has asked before."""
        if item not in self._ahead:
            return
        for other in tuple(self._ahead):
            if other == item:
                return
            future = self._ahead.get(other)
            if future is not None:
                await asyncio.wait((future,))

    def passed(self, item: str) -> None:
        """This call has asked, or it will not."""
        future = self._ahead.pop(item, None)
        if future is not None and not future.done():
            future.set_result(None)
