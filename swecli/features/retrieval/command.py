"""/where: places of the project that match some words, from its index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult, SlashCommand, absent
from swecli.core.protocol.blocks import TableBlock, TextBlock
from swecli.figures import plural

if TYPE_CHECKING:
    from swecli.core.engine.session import Session
    from swecli.core.retrieval.project import IndexState
    from swecli.core.retrieval.retrieve import Retrieval

NONE = (
    "This folder has no index. swecli indexes folders you trust (/permissions trust), unless context.retrieval is "
    "false."
)
_SHOWN = 10
_FEW_FILES = 48
"""In a folder of fewer files no two words reach the floor of pointers, even if unique to one file."""
_WAIT = 30.0
"""Seconds to wait for an index at the user's request."""


async def _run(session: Session, arguments: str) -> CommandResult:
    from swecli.features.retrieval.companion import PromptRetrieval

    retrieval = session.companion(PromptRetrieval)
    if retrieval is None:
        return CommandResult.text(absent(session, "the index", NONE), "warning")
    project = retrieval.project
    if not arguments.strip():
        state = project.state
        return CommandResult.text(f"{indexed(state)} Name what to find: /where WORDS")
    result = await project.retrieval(arguments, first_wait=_WAIT)
    if result is None:
        return CommandResult.text(f"This folder has no index: {project.missing()}.", "warning")
    return result_of(result, project.state)


def indexed(state: IndexState) -> str:
    """Extent and gaps of the index."""
    now = "; indexing continues" if state.building else ""
    known = f"{plural(state.files, 'file')} {'is' if state.files == 1 else 'are'} indexed{now}."
    if state.complete:
        return known
    most = ", ".join(f"{folder} ({count:,})" for folder, count in state.left_out)
    where = f" Most are in {most}." if most else ""
    return f"{known} There are more, which were left out: programs come first, then tests.{where}"


def result_of(found: Retrieval, state: IndexState) -> CommandResult:
    """The likeliest places as a table."""
    named = {file.path for file in found.named if file.sure}
    rows = tuple(
        (
            f"{file.path}:{file.line}" if file.line else file.path,
            file.symbol,
            "named" if file.path in named else f"{file.score:.2f}",
        )
        for file in found.ranked[:_SHOWN]
    )
    if not rows:
        more = "" if state.complete else f" {indexed(state)}"
        return CommandResult.text(f"No file in this folder matches these words.{more}")
    few = f"in a folder of {plural(state.files, 'file')}, words say too little; search or read instead"
    why = few if state.files < _FEW_FILES else "they match too many files"
    sure = "" if found.pointers or named else f"A message with these words gets no pointers: {why}."
    blocks = (TableBlock(("Place", "Symbol", "Score"), rows), *((TextBlock(sure, "dim"),) if sure else ()))
    return CommandResult(blocks)


WHERE = SlashCommand("where", "Find places in this project by words; sends nothing to a model", _run, arguments="words")
