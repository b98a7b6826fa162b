"""/init: writes OPENCLI.md, the guide to the project, from the project's own files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult, SlashCommand, fixed_words

if TYPE_CHECKING:
    from swecli.core.engine.session import Session


async def _run(session: Session, arguments: str) -> CommandResult:
    from swecli.features.init.proposal import run  # compiles patterns of many languages, too slow for the start

    return await run(session, arguments)


INIT = SlashCommand(
    "init",
    "Write OPENCLI.md, a project guide for agents, or improve the existing one",
    _run,
    arguments="[--dry-run]",
    words=fixed_words(**{"--dry-run": "show the change, write nothing"}),
    while_busy=False,
    asks_model=True,
)
