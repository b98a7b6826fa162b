"""/effort: how much the model thinks."""

from __future__ import annotations

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.view import SessionPort
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.commands import SetEffort

DEFAULT = "default"
"""The word for what the provider does by itself."""
_SAME = (DEFAULT, "auto", "unset")


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    model = port.view.model
    if model is None:
        return CommandResult.text("No model is connected, so there is nothing that could think; /model.", "error")
    wanted = arguments.lower()
    if not wanted:
        said = f"The effort is {port.view.effort or DEFAULT}. {_choices(model)}"
        return CommandResult(screen="pick_effort", instead=(TextBlock(said),))
    if wanted in _SAME:
        port.send(SetEffort(None))
        return CommandResult.text(f"{model.ref} thinks as much as it does by itself, from the next request on.")
    if model.efforts is not None and wanted not in model.efforts:
        return CommandResult.text(f"There is no effort {arguments}. {_choices(model)} Nothing was changed.", "error")
    if len(wanted.split()) > 1 or not wanted.isprintable():
        return CommandResult.text("An effort is one word, such as low or high. Nothing was changed.", "error")
    port.send(SetEffort(wanted))
    unsure = "" if model.efforts else " It is not known which words this model takes; if it refuses, /effort default."
    return CommandResult.text(f"Effort {wanted}, from the next request on.{unsure}")


def _choices(model: ModelInfo) -> str:
    if model.efforts is None:
        return f"It is not known which words {model.ref} takes; usual are low, medium and high, or default."
    if not model.efforts:
        return f"{model.ref} takes no such word."
    return f"{model.ref} takes {', '.join(model.efforts)}, or default."


EFFORT = SlashCommand(
    "effort", "Show or set how much the model thinks", _run, aliases=("thinking",), arguments="[word]"
)
