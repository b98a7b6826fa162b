"""What is shown while no model is connected: what was found, and the shortest ways to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from swecli.core.protocol.blocks import DisplayBlock, TableBlock, TextBlock

if TYPE_CHECKING:
    from swecli.core.llm.offers import ModelOffer
    from swecli.core.llm.providers import ConfiguredProvider


def providers(environ: Mapping[str, str]) -> Sequence[ConfiguredProvider]:
    """The providers whose key or address is in the environment."""
    from swecli.core.llm.providers import configured_providers

    return configured_providers(environ)


def blocks(environ: Mapping[str, str], running: Sequence[ModelOffer] = ()) -> tuple[DisplayBlock, ...]:
    """The first-run notice; ``running`` are models of servers on this machine. Values of keys are never shown."""
    found = [
        (item.key_variable, f"swecli -m {item.default_model or f'{item.name}/MODEL'}") for item in providers(environ)
    ]
    seen: list[DisplayBlock] = []
    if found:
        seen.append(TableBlock(("Found", "Use"), tuple(found), "In your environment"))
    if running:
        servers = {offer.ref.partition("/")[0]: 0 for offer in running}
        for offer in running:
            servers[offer.ref.partition("/")[0]] += 1
        rows = tuple((name, str(count)) for name, count in servers.items())
        seen.append(TableBlock(("Server", "Models"), rows, "Running on this machine"))
    if not seen:
        text = "No provider's key was found in your environment, and no model server runs on this machine."
        seen.append(TextBlock(text, "warning"))
    return (
        TextBlock("No model is connected yet, so messages are not sent."),
        *seen,
        TextBlock(
            "/model picks one, /login stores a provider's key, swecli demo shows how it works without any.\n"
            "Any OpenAI-compatible server:\n"
            "  OPENAI_BASE_URL=http://localhost:8000/v1  swecli -m openai/MODEL"
        ),
    )
