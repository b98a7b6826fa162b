"""/redo: bring back what /undo took back."""

from __future__ import annotations

from swecli.commands.base import CommandResult, SlashCommand
from swecli.commands.restored import restored_result
from swecli.core.engine.view import SessionPort


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    return restored_result(await port.files.redo(), port.view.cwd)


REDO = SlashCommand("redo", "Bring back what /undo took back", _run, while_busy=False)
