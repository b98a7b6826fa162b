"""/recall: what has left the context, found by words or shown by its id."""

from __future__ import annotations

import re

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.view import SessionPort

_ID = re.compile(r"\[?[a-z]\d+(\.result)?(\s*[-–,]\s*[a-z]\d+(\.result)?)*\]?|r[0-9a-f]{12}")
_FOR_THE_MODEL = "recall(id=…) gives one whole."


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    if not arguments:
        return CommandResult.text("Words to look for, or an id such as t12.result: /recall database port", "warning")
    key = "id" if _ID.fullmatch(arguments) else "query"
    found = await port.run_tool("recall", {key: arguments})
    if found.is_error:
        return CommandResult.text(found.text, "error")
    return CommandResult.text(found.text.replace(_FOR_THE_MODEL, "/recall with an id shows one whole."))


RECALL = SlashCommand("recall", "Find what has left the context", _run, arguments="[words | id]", while_busy=False)
