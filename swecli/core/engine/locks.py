"""Who may run at the same time, decided by declared effects: reads together, writes one by one per path,
shell commands alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import PurePath

from swecli.core.permissions.types import Effects


def overlap(one: str, other: str) -> bool:
    """Whether two paths are the same or one contains the other."""
    a, b = PurePath(one), PurePath(other)
    return a == b or a in b.parents or b in a.parents


def conflict(one: Effects, other: Effects) -> bool:
    """Whether two calls must not run at the same time."""
    if one.interactive or other.interactive or one.internal or other.internal:
        return False
    if one.command is not None or other.command is not None:
        return True
    return _touches(one, other) or _touches(other, one)


def _touches(writer: Effects, other: Effects) -> bool:
    touched = (*other.reads, *other.writes)
    return any(overlap(path, known) for path in writer.writes for known in touched)


class EffectLocks:
    """First come, first served: a call waits for every earlier one that it conflicts with, running or
    waiting."""

    def __init__(self) -> None:
        self._holders: list[tuple[Effects, asyncio.Event]] = []

    @asynccontextmanager
    async def hold(self, effects: Effects) -> AsyncGenerator[None, None]:
        """Wait for the turn of these effects, and keep others off until left."""
        released = asyncio.Event()
        earlier = [done for known, done in self._holders if conflict(effects, known)]
        entry = (effects, released)
        self._holders.append(entry)
        try:
            for done in earlier:
                await done.wait()
            yield
        finally:
            self._holders.remove(entry)
            released.set()
