"""What the user edits in their own editor: one of their files, with a notice of the result, or the message."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.safe_text import safe_line
from swecli.tui.main_screen import MainScreen

if TYPE_CHECKING:
    from swecli.core.protocol.events import NoticeLevel
    from swecli.tui.interface import Interface


async def edit_file(interface: Interface, file: Path) -> None:
    """Open one of the user's files in their editor, creating its folder if needed, and report the result in the
    transcript."""
    from swecli.core.atomic_text import make_private
    from swecli.tui.external import ExternalError, open_file

    try:
        await asyncio.to_thread(make_private, file.parent)
        before = await asyncio.to_thread(_stamp, file)
        await open_file(interface.main.app, file)
        after = await asyncio.to_thread(_stamp, file)
    except (ExternalError, OSError) as error:
        _notice(interface, f"{error}. The file is {file}", "warning")
        return
    if before == after:
        _notice(interface, f"{file} is unchanged.")
        return
    done = "Edited" if before and after else "Wrote" if after else "Deleted"
    _notice(interface, f"{done} {file} in your editor. New conversations (/clear) use the new version.")


def _notice(interface: Interface, text: str, level: NoticeLevel = "info") -> None:
    """Show a notice in the transcript."""
    if (port := interface.session.port) is not None:
        port.notice(text, level)


def _stamp(file: Path) -> tuple[int, int] | None:
    """Fingerprint that changes when a file is written; None if there is no file."""
    try:
        about = file.stat()
    except FileNotFoundError:
        return None
    return about.st_mtime_ns, about.st_size


async def edit_message(main: MainScreen) -> None:
    """Edit the message in the user's editor. On failure, keep the text. Messages that return to the prompt meanwhile
    stay before it."""
    from swecli.tui.external import ExternalError, edit

    editor = main.prompt.editor
    typed = editor.text
    try:
        text = await edit(main.app, editor.message)
    except ExternalError as error:
        main.activity.flash(f"{safe_line(str(error))}; your text was kept")
    else:
        returned = editor.text.removesuffix(typed).rstrip("\n") if editor.text != typed else ""
        editor.retype("\n".join(filter(None, (returned, editor.folded_back(text)))))
