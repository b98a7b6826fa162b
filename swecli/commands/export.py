"""Commands that write the session to a file: /export and /handoff."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult, SlashCommand, fixed_words
from swecli.core.atomic_text import make_private
from swecli.core.config.paths import user_paths
from swecli.core.protocol.events import ItemCompleted
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
from swecli.figures import plural

if TYPE_CHECKING:
    from swecli.core.engine.session import Session
    from swecli.core.protocol.events import Event


EXPORTS = "exports"
"""Folder of exports without a name, in the user's data: in the project they would be committed."""


async def _run_export(session: Session, arguments: str) -> CommandResult:
    outside = user_paths(os.environ).data / EXPORTS
    try:
        place = destination(arguments, session.view.cwd, f"swecli-{session.view.session_id}", outside)
        events = await session.facts()
        if not any(isinstance(event.body, ItemCompleted) for event in events):
            return CommandResult.text("Nothing to export yet: no message was sent.", "warning")
        if place.path.parent == outside:
            await asyncio.to_thread(make_private, outside)
        lost = await asyncio.to_thread(_export, session, events, place, await session.name())
    except DestinationError as error:
        return CommandResult.text(str(error), "error")
    except OSError as error:
        return CommandResult.text(f"Cannot create {outside} ({error.strerror or error}). Nothing was written.", "error")
    notes = "".join(f"\n{line}" for line in lost)
    form = {"markdown": "Markdown", "json": "JSON", "html": "an HTML page"}[place.format]
    return CommandResult.text(
        f"Exported as {form}: {_written(place.path, session.view.cwd)}. Known keys are masked.{notes}"
    )


def _written(path: Path, cwd: Path) -> str:
    return f"{shown_path(str(path), cwd)} ({readable_size(path.stat().st_size)})"


def _export(session: Session, events: Sequence[Event], place: Destination, name: str) -> list[str]:
    """Write the file. Returns sentences about omitted content."""
    from swecli.export.rendering import rendered

    lost: list[str] = []
    text = rendered(events, place.format, session.cover, get=session.stored_result, report=lost.append, name=name)
    write_export(place.path, text, replace=place.replace)
    return lost


EXPORT = SlashCommand(
    "export",
    "Write this session to a file: an HTML page, Markdown or JSON",
    _run_export,
    aliases=("save",),
    arguments="[file | html | markdown | json]",
    words=fixed_words(html="a page that needs nothing else", markdown="for editors", json="can be imported again"),
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
    what = ", ".join(plural(count, word) for count, word in counts if count)
    return CommandResult.text(
        f"Handoff bundle written: {_written(path, cwd)}{f': {what}' if what else ''}. Continue from it with: "
        f"swecli --from {shlex.quote(shown_path(str(path), cwd))}"
    )


HANDOFF = SlashCommand(
    "handoff",
    "Write a bundle to continue from in a new session, with another model or by hand",
    _run_handoff,
    arguments="[file]",
    under="export",
)
