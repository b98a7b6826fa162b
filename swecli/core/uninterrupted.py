"""Work that ends once it has begun. Several layers need it, none of which may import the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def uninterrupted(work: Awaitable[T]) -> T:
    """The result of ``work``, which goes on to its end although the caller is cancelled meanwhile: the cancellation
    follows it, also where it fails, so that nothing is done behind anybody's back."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            cancelled = True
    if not cancelled:
        return task.result()
    if not task.cancelled():
        task.exception()  # it has been seen
    raise asyncio.CancelledError
