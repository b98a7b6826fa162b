"""/login: store a key for a provider."""

from __future__ import annotations

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.view import SessionPort
from swecli.core.protocol.blocks import TextBlock


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    provider, _, rest = arguments.partition(" ")
    if rest:
        return CommandResult.text(
            "Give the provider's name only: the key is asked for where it is neither shown nor kept. If what you typed "
            "was a key, it is in this prompt's history now; better make a new one.",
            "error",
        )
    hint = f"swecli login {provider}".rstrip()
    return CommandResult(
        screen="login", argument=provider, instead=(TextBlock(f"Store a key from the command line: {hint}"),)
    )


LOGIN = SlashCommand("login", "Store a provider's key", _run, arguments="[provider]")
