"""A line that the user adds to the instructions, with ``#`` at the start of a message."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult
from swecli.core.atomic_text import make_private, write_whole
from swecli.core.context_management.instructions import INSTRUCTION_NAMES, read_head

if TYPE_CHECKING:
    from swecli.core.engine.session import Session

HEADING = "## Notes"
_MAX_BYTES = 256 * 1024


def note_of(text: str) -> str:
    """The line that a message asks to add; empty where it is a message. One that has several lines is markdown, and
    ``#12`` is a number of an issue."""
    stripped = text.strip()
    rest = stripped.lstrip("#")
    if not stripped.startswith("#") or "\n" in stripped or rest[:1].isdecimal():
        return ""
    return rest.strip()


def with_note(text: str, note: str) -> str:
    """The instructions with the line at the end of their notes. A comment at the end of the file stays there."""
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
    """The file of the folder that counts: the first of the usual names, or a new one."""
    return next(
        (folder / name for name in INSTRUCTION_NAMES if (folder / name).is_file()), folder / INSTRUCTION_NAMES[0]
    )


def read_instructions(path: Path, folder: Path) -> str:
    """The whole file, as it is to be changed; empty where there is none.

    Raises:
        OSError: it can't be read, is outside of ``folder``, or is larger than instructions may be.
    """
    try:
        head = read_head(path, _MAX_BYTES, folder)
    except FileNotFoundError:
        return ""
    if not head.whole:
        raise OSError(f"it has {head.size:,} bytes, more than instructions may have")
    return head.text


def counts_from(session: Session) -> str:
    """From when on a change of the instructions counts, as a sentence."""
    if session.view.watches_instructions:
        return "The model sees it with your next message."
    return "It counts in new conversations (/clear)."


async def remember(session: Session, note: str, folder: Path, *, own: bool = False) -> CommandResult:
    """Add the line to the folder's instructions, by the tool whose changes are shown and undone; what the user typed
    needs no approval. The user's ``own`` folder is closed to tools."""
    path = instructions_file(folder)
    try:
        text = with_note(await asyncio.to_thread(read_instructions, path, folder), note)
    except OSError as error:
        return CommandResult.text(f"{path} can't be read ({error.strerror or error}); nothing was added.", "error")
    if own:
        try:
            await asyncio.to_thread(_write, path, text)
        except OSError as error:
            return CommandResult.text(f"{path} can't be written ({error.strerror or error}).", "error")
        return CommandResult.text(f"Added to {path}: {note}. {counts_from(session)}")
    run = await session.run_tool("write_file", {"path": str(path), "content": text}, typed=True)
    if run.is_error:
        return CommandResult.text(f"{path.name} was not changed. {run.why}", "warning")
    return CommandResult.text(f"Added to {path.name}: {note}. {counts_from(session)}")


def _write(path: Path, text: str) -> None:
    make_private(path.parent)
    write_whole(path, text)
