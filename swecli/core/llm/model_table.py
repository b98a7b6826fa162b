"""What is known of a model without asking anybody."""

from __future__ import annotations

from collections.abc import Callable

from swecli.core.llm.types import ModelInfo
from swecli.core.llm.windows import model_info

ModelLookup = Callable[[str, str], ModelInfo]
"""(provider, model name) -> what is known."""


def look_up_model(provider: str, name: str) -> ModelInfo:
    """The catalogue's entry, or a cautious guess whose ``window_source`` says so."""
    return model_info(provider, name)
