"""/where: the places of the project that fit some words, from its index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult, SlashCommand, absent
from swecli.core.protocol.blocks import TableBlock, TextBlock

if TYPE_CHECKING:
    from swecli.core.engine.session import Session
    from swecli.core.retrieval.retrieve import Retrieval

NONE = "This folder has no index. swecli makes one in folders that you trust, unless context.retrieval is false."
_SHOWN = 10
_WAIT = 30.0
"""Seconds that an index may take to be made when the user waits for it."""


async def _run(session: Session, arguments: str) -> CommandResult:
    project = session.view.project
    if project is None:
        return CommandResult.text(absent(session, "the index", NONE), "warning")
    if not arguments.strip():
        state = project.state
        more = "" if state.complete else ", not all there are"
        now = "; it is being made" if state.building else ""
        return CommandResult.text(f"{state.files:,} files are indexed{more}{now}. Name what you look for: /where WORDS")
    found = await project.retrieval(arguments, first_wait=_WAIT)
    if found is None:
        return CommandResult.text(f"This folder has no index: {project.missing()}.", "warning")
    return result_of(found)


def result_of(found: Retrieval) -> CommandResult:
    """The likeliest places as a table."""
    named = {one.path for one in found.named if one.sure}
    rows = tuple(
        (
            f"{one.path}:{one.line}" if one.line else one.path,
            one.symbol,
            "named" if one.path in named else f"{one.score:.2f}",
        )
        for one in found.ranked[:_SHOWN]
    )
    if not rows:
        return CommandResult.text("Nothing in this folder fits these words.")
    sure = "" if found.pointers or named else "A message with these words gets no pointers: they fit too many files."
    blocks = (TableBlock(("place", "symbol", "score"), rows), *((TextBlock(sure, "dim"),) if sure else ()))
    return CommandResult(blocks)


WHERE = SlashCommand("where", "Find places in this project by words; asks no model", _run, arguments="words")
