"""/model: which model answers."""

from __future__ import annotations

from swecli.commands.base import CommandResult, SlashCommand
from swecli.commands.model_table import matching, model_table
from swecli.core.engine.view import SessionPort
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.commands import SetModel

ROWS = 60
"""So many models are listed at once."""


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    first, _, rest = arguments.partition(" ")
    if first == "list":
        return await _list(port, rest)
    if not arguments:
        model = port.view.model
        said = f"The model is {model.ref if model else 'not chosen'}; -m chooses another one, /model list shows all."
        usable = [offer for offer in await port.models() if offer.usable]
        table = (model_table(usable[:ROWS], "Models that can be used now"),) if usable else ()
        return CommandResult(screen="pick_model", instead=(TextBlock(said), *table))
    if rest:
        return CommandResult.text(
            "A model is one word: provider/name, an alias, or a name at the present provider.", "error"
        )
    if "/" in arguments and not all(arguments.split("/", 1)):
        return CommandResult.text("A model is provider/name, for example anthropic/claude-sonnet-5-5.", "error")
    port.send(SetModel(arguments))
    return CommandResult.text(f"Asked for {arguments}.", "dim")


async def _list(port: SessionPort, words: str) -> CommandResult:
    found = matching(await port.models(), words)
    if not found:
        return CommandResult.text(
            f"No known model has {words!r} in its name; any provider/name can be asked for.", "warning"
        )
    more = f"{len(found) - ROWS} more; name a part of what you look for: /model list WORDS"
    blocks = (model_table(found[:ROWS], "Models"), *((TextBlock(more, "dim"),) if len(found) > ROWS else ()))
    return CommandResult(blocks)


MODEL = SlashCommand("model", "Show, list or switch the model", _run, arguments="[provider/name]")
