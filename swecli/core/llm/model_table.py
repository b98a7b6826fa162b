"""What is known of well-known models without asking anybody (``models.toml``)."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

from swecli.core.llm.json_values import as_int, as_list, as_object, as_text
from swecli.core.llm.types import ModelInfo

ASSUMED_WINDOW = 32_000
"""Tokens; taken for a model that nothing is known of."""

ModelLookup = Callable[[str, str], ModelInfo]
"""(provider, model name) -> what is known."""


@dataclass(frozen=True, slots=True)
class _Entry:
    patterns: tuple[str, ...]
    window: int | None
    max_output: int | None
    images: bool


def look_up_model(provider: str, name: str) -> ModelInfo:
    """The entry of the built-in table, or a cautious guess whose ``window_source`` says so."""
    lowered = name.lower()
    forms = (lowered, lowered.rsplit("/", 1)[-1])
    for entry in _entries():
        if any(fnmatchcase(form, pattern) for form in forms for pattern in entry.patterns):
            return ModelInfo(provider, name, entry.window, entry.max_output, "catalogue", entry.images)
    return ModelInfo(provider, name, ASSUMED_WINDOW, None, "assumed")


@cache
def _entries() -> tuple[_Entry, ...]:
    text = files("swecli.core.llm").joinpath("models.toml").read_text("utf-8")
    tables = [as_object(item) for item in as_list(tomllib.loads(text).get("model"))]
    return tuple(
        _Entry(
            tuple(as_text(item) for item in as_list(table.get("name"))),
            as_int(table.get("window")),
            as_int(table.get("max_output")),
            table.get("images") is True,
        )
        for table in tables
    )
