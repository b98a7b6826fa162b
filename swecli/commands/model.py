"""/model: which model answers."""

from __future__ import annotations

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.view import SessionPort
from swecli.core.protocol.commands import SetModel


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    if not arguments:
        return CommandResult(screen="pick_model")
    if len(arguments.split()) > 1:
        return CommandResult.text("A model is one word: provider/name, for example anthropic/claude-sonnet-5.", "error")
    current = port.view.model
    provider, _, name = arguments.partition("/")
    if not name:
        if current is None:
            return CommandResult.text(
                f"Say whose model it is: provider/{arguments}, for example openai/{arguments}.", "error"
            )
        provider, name = current.provider, arguments
    if not provider:
        return CommandResult.text("A model is provider/name, for example anthropic/claude-sonnet-5.", "error")
    port.send(SetModel(f"{provider}/{name}"))
    return CommandResult.text(f"Asked for {provider}/{name}.", "dim")


MODEL = SlashCommand("model", "Show or switch the model", _run, arguments="[provider/name]")
