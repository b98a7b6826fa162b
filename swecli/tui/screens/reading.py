"""What a screen shows is read off the event loop; that it can't be read is shown in its place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from swecli.core.protocol.blocks import TextBlock
from swecli.tui.screens.sheet import Sheet

T = TypeVar("T")


async def read_or_say(sheet: Sheet, read: Callable[[], T]) -> T | None:
    """What ``read`` finds, in a thread; None after the user was told why it can't be read (its ValueError), and where
    the sheet has gone meanwhile."""
    try:
        found = await asyncio.to_thread(read)
    except ValueError as error:
        sheet.trouble = (TextBlock(str(error), "error"),)
        if sheet.board.shows(sheet):
            sheet.board.show()
        return None
    sheet.trouble = ()
    return found if sheet.board.shows(sheet) else None
