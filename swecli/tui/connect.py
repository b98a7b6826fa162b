"""What is shown while no model is connected: what was found, and the shortest ways to one."""

from __future__ import annotations

from collections.abc import Mapping

from swecli.core.protocol.blocks import DisplayBlock, TableBlock, TextBlock

KEYS: tuple[tuple[str, str], ...] = (
    ("OPENAI_API_KEY", "swecli -m openai/MODEL"),
    ("ANTHROPIC_API_KEY", "swecli -m anthropic/MODEL"),
    ("GEMINI_API_KEY", "a Gemini key"),
    ("OPENROUTER_API_KEY", "an OpenRouter key"),
    ("OPENAI_BASE_URL", "an OpenAI-compatible server"),
    ("ANTHROPIC_BASE_URL", "an Anthropic-compatible server"),
    ("OLLAMA_HOST", "an Ollama server"),
)


def blocks(environ: Mapping[str, str]) -> tuple[DisplayBlock, ...]:
    """The first-run notice. Values of keys are never shown."""
    found = [(name, use) for name, use in KEYS if environ.get(name)]
    seen: DisplayBlock
    if found:
        seen = TableBlock(("Found", "Use"), tuple(found), "In your environment")
    else:
        seen = TextBlock("No provider's key or address was found in your environment.", "warning")
    return (
        TextBlock("No model is connected yet, so messages are not sent."),
        seen,
        TextBlock(
            "To connect one, set its key and name the model:\n"
            "  OPENAI_API_KEY=…     swecli -m openai/MODEL\n"
            "  ANTHROPIC_API_KEY=…  swecli -m anthropic/MODEL\n"
            "Any OpenAI-compatible server, a local one too:\n"
            "  OPENAI_BASE_URL=http://localhost:11434/v1  swecli -m openai/MODEL\n"
            "To see how it works without any: swecli demo"
        ),
    )
