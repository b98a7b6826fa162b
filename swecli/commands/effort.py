"""/effort: how much the model thinks."""

from __future__ import annotations

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.view import SessionPort
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.commands import SetEffort

DEFAULT = "default"
"""The word for what the provider does by itself."""
USUAL = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""The words that hosts have, for a model of which nobody knows its own."""
_SAME = (DEFAULT, "auto", "unset")


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    model = port.view.model
    if model is None:
        return CommandResult.text("No model is connected, so there is nothing that could think; /model.", "error")
    wanted = arguments.lower()
    if not wanted:
        said = f"The effort is {port.view.effort or DEFAULT}. {choices(model)}"
        return CommandResult(screen="pick_effort", instead=(TextBlock(said),))
    if wanted in _SAME:
        port.send(SetEffort(None))
        return CommandResult.text(f"{model.ref} thinks as much as it does by itself, from the next request on.")
    if wanted not in words(model):
        return CommandResult.text(f"There is no effort {arguments}. {choices(model)} Nothing was changed.", "error")
    port.send(SetEffort(wanted))
    unsure = "" if model.efforts else " It is not known which words this model takes; if it refuses, /effort default."
    return CommandResult.text(f"Effort {wanted}, from the next request on.{unsure}")


def words(model: ModelInfo) -> tuple[str, ...]:
    """The words that can be set for a model, besides the default."""
    return USUAL if model.efforts is None else model.efforts


def choices(model: ModelInfo) -> str:
    """The same as a sentence."""
    if model.efforts is None:
        return f"It is not known which words {model.ref} takes; there are {', '.join(USUAL)}, or default."
    if not model.efforts:
        return f"{model.ref} takes no such word."
    return f"{model.ref} takes {', '.join(model.efforts)}, or default."


EFFORT = SlashCommand(
    "effort", "Show or set how much the model thinks", _run, aliases=("thinking",), arguments="[word]"
)
