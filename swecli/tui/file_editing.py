"""One of the user's own files in their editor, and a notice of the result."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swecli.core.protocol.events import NoticeLevel
    from swecli.tui.app import SwecliApp


async def edit_file(app: SwecliApp, file: Path) -> None:
    """Open one of the user's files in their editor, creating its folder if needed, and report the result in the
    transcript."""
    from swecli.core.atomic_text import make_private
    from swecli.tui.external import ExternalError, open_file

    try:
        await asyncio.to_thread(make_private, file.parent)
        before = await asyncio.to_thread(_stamp, file)
        await open_file(app, file)
        after = await asyncio.to_thread(_stamp, file)
    except (ExternalError, OSError) as error:
        _notice(app, f"{error}. The file is {file}", "warning")
        return
    if before == after:
        _notice(app, f"{file} is unchanged.")
        return
    done = "Edited" if before and after else "Wrote" if after else "Deleted"
    _notice(app, f"{done} {file} in your editor. New conversations (/clear) use the new version.")


def _notice(app: SwecliApp, text: str, level: NoticeLevel = "info") -> None:
    """Show a notice in the transcript."""
    if (port := app.session.port) is not None:
        port.notice(text, level)


def _stamp(file: Path) -> tuple[int, int] | None:
    """Fingerprint that changes when a file is written; None if there is no file."""
    try:
        about = file.stat()
    except FileNotFoundError:
        return None
    return about.st_mtime_ns, about.st_size
