"""/memory lists, shows and changes memories."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult, SlashCommand, absent, fixed_words
from swecli.core.context_management.counter import PieceEstimator
from swecli.core.tools.base import readable_size
from swecli.features.memory.places import MemoryFile, MemoryOff, MemoryPathError
from swecli.features.memory.session_notes import NotesError
from swecli.figures import aligned, number

if TYPE_CHECKING:
    from swecli.core.engine.session import Session
    from swecli.features.memory.companion import SessionMemory

_USE = (
    "/memory PATH shows a file, /memory edit PATH opens it in your editor, /memory write PATH TEXT and /memory "
    "delete PATH change it, /memory undo removes this session's lines from the session notes."
)

OFF = "Memories and session notes of this folder are off until you trust it; /memory on enables them."
_COUNTS = "It joins the prompt of new conversations (/clear)."


def _of(session: Session) -> SessionMemory:
    from swecli.features.memory.companion import SessionMemory

    memory = session.companion(SessionMemory)
    assert memory is not None
    return memory


async def _run(session: Session, arguments: str) -> CommandResult:
    word, _, rest = arguments.partition(" ")
    path, _, text = rest.strip().partition(" ")
    match word.lower():
        case "":
            return await _listed(session)
        case "undo":
            try:
                return CommandResult.text(await _of(session).undo())
            except NotesError as error:
                return CommandResult.text(str(error), "error")
        case "on":
            return CommandResult.text(await _of(session).turn_on())
        case "edit" if path:
            return await _edited(session, path)
        case "write" | "add" if path and text.strip():
            return await _changed(session, {"command": "create", "path": path, "file_text": f"{text.strip()}\n"})
        case "delete" if path:
            return await _changed(session, {"command": "delete", "path": path})
        case "edit" | "write" | "add" | "delete":
            return CommandResult.text(_USE, "warning")
        case "show" if path:
            return await _shown(session, path)
        case _:
            return await _shown(session, arguments)


MEMORY = SlashCommand(
    "memory",
    "List, show and change memories",
    _run,
    aliases=("memories", "notes"),
    arguments="[path | edit | write | delete | undo | on]",
    words=fixed_words(
        edit="PATH: open it in your editor",
        write="PATH TEXT: write a memory",
        delete="PATH: delete a memory",
        undo="remove this session's lines from the session notes",
    ),
    waits=lambda words: words.split(" ")[0].lower() in ("edit", "write", "add", "delete", "undo", "on"),
)


_INSTRUCTIONS = "Instructions are separate: /status names their files; # at the start of a message adds a line."


async def _listed(session: Session) -> CommandResult:
    memory = _of(session)
    options = memory.options
    if options.places.user is None:
        return CommandResult.text(absent(session, "memory", "Memory is off (memory.enabled)."), "warning")
    files = await asyncio.to_thread(options.places.files, options.max_file_bytes)
    lines = [aligned((_row(file) for file in files), indent="") if files else f"No memories yet. {_USE}"]
    if options.places.project is None:
        lines.append(OFF)
    if shown := memory.remembered:
        count = PieceEstimator().count(shown)
        lines.append(f"In this session's prompt: about {number(count)} tokens. Changes apply after /clear.")
    lines.append(_INSTRUCTIONS)
    if session.view.scratchpad:
        lines.append(f"Scratchpad of this conversation:\n{session.view.scratchpad}")
    return CommandResult.text("\n".join(lines))


def _row(file: MemoryFile) -> tuple[str, str, str]:
    changed = time.strftime("%Y-%m-%d %H:%M", time.localtime(file.modified))
    return file.place.path, readable_size(file.size) if file.text is not None else "no text, or too large", changed


async def _shown(session: Session, path: str) -> CommandResult:
    """Show a file directly: a call of the tool would repeat the text in its own line."""
    options = _of(session).options
    try:
        place = options.places.place(path)
    except MemoryPathError as error:
        return CommandResult.text(OFF if isinstance(error, MemoryOff) else f"{error} {_USE}", "warning")
    files = await asyncio.to_thread(options.places.files, options.max_file_bytes)
    memory = next((file for file in files if file.place.path == place.path), None)
    if memory is not None:
        return CommandResult.text(memory.text or f"{place.path}: {_row(memory)[1]}.")
    if below := [file for file in files if file.place.path.startswith(f"{place.path}/")]:
        return CommandResult.text(aligned(map(_row, below), indent=""))
    names = ", ".join(file.place.path for file in files[:8])
    return CommandResult.text(f"Unknown memory {place.path}. Memories: {names or 'none yet'}. {_USE}", "warning")


async def _changed(session: Session, arguments: dict[str, object]) -> CommandResult:
    """Change through the tool, so that changes are shown and can be undone. The user's own input needs no approval."""
    try:
        path = _of(session).options.places.place(str(arguments["path"])).path
    except MemoryPathError as error:
        return CommandResult.text(f"Nothing was changed. {_reason(error)}", "warning")
    given = {**arguments, "overwrite": arguments["command"] == "create"}
    run = await session.command_tools.run("memory", given, typed=True)
    if run.is_error:
        why = run.why.partition("\n")[0]
        return CommandResult.text(f"Nothing was changed. {why.removesuffix(' Nothing was changed.')}", "warning")
    if arguments["command"] == "delete":
        note = "This conversation's prompt keeps its part of it; new ones (/clear) start without."
        return CommandResult.text(f"Deleted {path}. {note}")
    return CommandResult.text(f"Written to {path}. {_COUNTS}")


def _reason(error: MemoryPathError) -> str:
    """For the user: the sentence of a place that is off is meant for the model."""
    return OFF if isinstance(error, MemoryOff) else str(error)


async def _edited(session: Session, path: str) -> CommandResult:
    try:
        place = _of(session).options.places.place(path)
    except MemoryPathError as error:
        return CommandResult.text(_reason(error), "warning")
    if place.file.is_dir() or place.is_base:
        return CommandResult.text(f"{place.path} is a folder; name a file in it.", "warning")
    instead = CommandResult.text(f"{place.path} is {place.file}: edit it there, or with /memory write.")
    return CommandResult(screen="edit_file", argument=str(place.file), instead=instead.blocks)
