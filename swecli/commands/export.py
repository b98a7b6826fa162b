"""/export and /handoff: the session as a file."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.tools.base import readable_size
from swecli.core.workspace.text_file import shown_path
from swecli.export.destination import (
    FORCE,
    Destination,
    DestinationError,
    destination,
    free_name,
    located,
    write_export,
)

if TYPE_CHECKING:
    from swecli.core.engine.session import Session
    from swecli.core.protocol.events import Event


async def _run_export(session: Session, arguments: str) -> CommandResult:
    try:
        place = destination(arguments, session.view.cwd, f"swecli-{session.view.session_id}")
        events = await session.facts()
        lost = await asyncio.to_thread(_export, session, events, place, await session.name())
    except DestinationError as error:
        return CommandResult.text(str(error), "error")
    notes = "".join(f"\n{line}" for line in lost)
    return CommandResult.text(
        f"Exported as {_named(place.format)}: {_written(place.path, session.view.cwd)}. Known keys are masked.{notes}"
    )


def _written(path: Path, cwd: Path) -> str:
    return f"{shown_path(str(path), cwd)} ({readable_size(path.stat().st_size)})"


def _named(name: str) -> str:
    return {"markdown": "Markdown", "json": "JSON", "html": "an HTML page"}[name]


def _export(session: Session, events: Sequence[Event], place: Destination, name: str) -> list[str]:
    """Write the file. Returns sentences about what is not in it."""
    from swecli.export.rendering import rendered

    lost: list[str] = []
    text = rendered(events, place.format, session.cover, get=session.stored_result, report=lost.append, name=name)
    write_export(place.path, text, replace=place.replace)
    return lost


EXPORT = SlashCommand(
    "export",
    "Write this session to a file: Markdown, HTML page or JSON",
    _run_export,
    aliases=("save",),
    arguments="[file | markdown | html | json]",
)


async def _run_handoff(session: Session, arguments: str) -> CommandResult:
    from swecli.export.handoff import HandoffError, handoff_markdown, handoff_of

    cwd, name = session.view.cwd, arguments.strip()
    replace = FORCE in name.split()
    name = " ".join(word for word in name.split(" ") if word != FORCE)
    try:
        path = located(name, cwd) if name else free_name(cwd, "handoff", ".md")
        events = await session.facts()
        now = max((event.ts for event in events), default=0.0)
        bundle = await asyncio.to_thread(handoff_of, events, Path(cwd), session.cover, now)
        await asyncio.to_thread(write_export, path, handoff_markdown(bundle), replace=replace)
    except HandoffError as error:
        return CommandResult.text(f"Nothing was written: {error}.", "warning")
    except DestinationError as error:
        return CommandResult.text(str(error), "error")
    counts = (
        (len(bundle.files), "changed file"),
        (len(bundle.constraints), "constraint"),
        (len(bundle.decisions), "decision"),
        (sum(todo.status != "completed" for todo in bundle.todos), "open todo"),
        (len(bundle.checks), "check"),
    )
    what = ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts if count)
    return CommandResult.text(
        f"Handoff bundle written: {_written(path, cwd)}{f': {what}' if what else ''}. Continue from it with: "
        f"swecli --from {shlex.quote(shown_path(str(path), cwd))}"
    )


HANDOFF = SlashCommand(
    "handoff",
    "Write a bundle that a fresh session, another model or a person can start from",
    _run_handoff,
    arguments="[file]",
)
