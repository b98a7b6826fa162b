"""Work in a thread that must not be left halfway."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def to_the_end(work: Callable[[], T]) -> T:
    """``work`` off the event loop. Once begun it ends, even when the caller is cancelled meanwhile: then the
    cancellation goes on after it, so that nothing is done behind anybody's back."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        raise
