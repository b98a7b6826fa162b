"""/model: which model answers."""

from __future__ import annotations

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.view import SessionPort
from swecli.core.protocol.commands import SetModel


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    if not arguments:
        return CommandResult(screen="pick_model")
    if len(arguments.split()) > 1:
        return CommandResult.text(
            "A model is one word: provider/name, an alias, or a name at the present provider.", "error"
        )
    if "/" in arguments and not all(arguments.split("/", 1)):
        return CommandResult.text("A model is provider/name, for example anthropic/claude-sonnet-5.", "error")
    port.send(SetModel(arguments))
    return CommandResult.text(f"Asked for {arguments}.", "dim")


MODEL = SlashCommand("model", "Show or switch the model", _run, arguments="[provider/name]")
