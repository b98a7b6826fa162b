"""A line that begins with # adds to the instructions of the folder."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult
from swecli.core.atomic_text import make_private, write_whole
from swecli.core.context_management.instructions import INSTRUCTION_NAMES, read_head
from swecli.core.workspace.text_file import TextFile, decode, read_bytes

if TYPE_CHECKING:
    from swecli.core.engine.session import Session

HEADING = "## Notes"
_MAX_BYTES = 256 * 1024


def note_of(text: str) -> str:
    """The line that a message adds to the instructions; empty for an ordinary message. Several lines are markdown, and
    ``#12`` is an issue number."""
    stripped = text.strip()
    rest = stripped.lstrip("#")
    if not stripped.startswith("#") or "\n" in stripped or rest[:1].isdecimal():
        return ""
    return rest.strip()


def with_note(text: str, note: str) -> str:
    """The instructions with the line after their last note. A comment at the end of the file stays there."""
    lines = text.rstrip().split("\n") if text.strip() else []
    record = [lines.pop()] if lines and lines[-1].startswith("<!--") and lines[-1].endswith("-->") else []
    while lines and not lines[-1].strip():
        lines.pop()
    if HEADING not in lines:
        lines += [*([""] if lines else []), HEADING, ""]
    end = next((n for n in range(lines.index(HEADING) + 1, len(lines)) if lines[n].startswith("#")), len(lines))
    while not lines[end - 1].strip() and end - 1 > lines.index(HEADING) + 1:
        end -= 1
    after = lines[end:]
    lines[end:] = [f"- {note}", *([""] if after and after[0].strip() else []), *after]
    return "\n".join([*lines, *([""] if record else []), *record]) + "\n"


def instructions_file(folder: Path) -> Path:
    """The folder's instruction file: the first of the usual names, or a new one."""
    return next(
        (folder / name for name in INSTRUCTION_NAMES if os.path.isfile(folder / name)), folder / INSTRUCTION_NAMES[0]
    )


def read_instructions(path: Path, folder: Path) -> str:
    """The whole file, ready for editing; empty if there is none.

    Raises:
        OSError: it can't be read, is outside ``folder``, is larger than instructions may be, or has bytes that a change
            of its text would lose.
    """
    try:
        head = read_head(path, _MAX_BYTES, folder)
        if not head.whole:
            raise OSError(f"it has {head.size:,} bytes, more than the limit for instructions")
        file = _decoded(path)
    except FileNotFoundError:
        return ""
    if file.looks_binary or file.tail or any("\ud800" <= char <= "\udfff" for char in file.text):
        raise OSError("it has bytes that are not text; convert it to UTF-8")
    return file.text.replace("\r\n", "\n").replace("\r", "\n")


def _decoded(path: Path) -> TextFile:
    return decode(read_bytes(Path(os.path.realpath(path)), _MAX_BYTES)[0])


def counts_from(session: Session) -> str:
    """When a change of the instructions takes effect, as a sentence."""
    if session.view.watches_instructions:
        return "The model sees it with your next message."
    return "It applies to new conversations (/clear)."


async def remember(session: Session, note: str, folder: Path, *, own: bool = False) -> CommandResult:
    """Add the line to the folder's instructions through the tool, so that the change is shown and can be undone; the
    user's own input needs no approval. The user's ``own`` folder is closed to tools."""
    path = instructions_file(folder)
    try:
        text = with_note(await asyncio.to_thread(read_instructions, path, folder), note)
    except OSError as error:
        return CommandResult.text(f"Cannot read {path} ({error.strerror or error}); nothing was added.", "error")
    if own:
        try:
            await asyncio.to_thread(_write, path, text)
        except OSError as error:
            return CommandResult.text(f"Cannot write {path} ({error.strerror or error}).", "error")
        return CommandResult.text(f"Added to {path}: {note}. {counts_from(session)}")
    run = await session.command_tools.run("write_file", {"path": str(path), "content": text}, typed=True)
    if run.is_error:
        return CommandResult.text(f"{path.name} was not changed. {run.why}", "warning")
    return CommandResult.text(f"Added to {path.name}: {note}. {counts_from(session)}")


def _write(path: Path, text: str) -> None:
    """Write the user's own file, in UTF-8 and with its line ends."""
    make_private(path.parent)
    try:
        old = _decoded(path)
    except FileNotFoundError:
        old = decode(b"")
    write_whole(path, text.replace("\n", "\r\n") if old.line_end == "crlf" else text)
