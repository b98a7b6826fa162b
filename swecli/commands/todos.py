"""/todos: the list that the agent keeps."""

from __future__ import annotations

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.view import SessionPort
from swecli.core.protocol.blocks import TodoBlock


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    todos = port.view.todos
    if not todos:
        return CommandResult.text("There is no list; the agent makes one for tasks of several steps.", "dim")
    return CommandResult((TodoBlock(todos),))


TODOS = SlashCommand("todos", "Show the agent's list", _run)
