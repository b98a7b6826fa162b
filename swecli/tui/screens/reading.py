"""What a screen shows is read off the event loop; that it can't be read is shown in its place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from swecli.core.protocol.blocks import TextBlock
from swecli.tui.screens.view import ScreenView

T = TypeVar("T")


async def read_or_say(screen: ScreenView, read: Callable[[], T]) -> T | None:
    """What ``read`` finds, in a thread; None after the user was told why it can't be read (its ValueError)."""
    try:
        return await asyncio.to_thread(read)
    except ValueError as error:
        screen.say((TextBlock(str(error), "error"),))
        return None
