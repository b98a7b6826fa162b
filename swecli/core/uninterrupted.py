"""Work that completes once it has begun. Shared by several layers, none of which may import the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def uninterrupted(work: Awaitable[T]) -> T:
    """The result of ``work``, which completes even if the caller is cancelled meanwhile: the cancellation follows it,
    also if it fails, so that no work continues unobserved."""
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
        task.exception()  # marks it as retrieved
    raise asyncio.CancelledError


async def completed(work: Awaitable[T]) -> T:
    """The result of ``work``, which completes even if the caller is cancelled meanwhile. The cancellation is dropped:
    nothing is left to cancel, and the caller has to report the result."""
    task, caller = asyncio.ensure_future(work), asyncio.current_task()
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            if caller is not None:
                caller.uncancel()
    return task.result()
