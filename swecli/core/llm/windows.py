"""Which context window counts: the user's setting, what the server says, what it said in an overflow error, the
catalogue, or a cautious guess. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from swecli.core.llm.catalog import CatalogModel, load_catalog
from swecli.core.llm.endpoint_replies import EndpointModel
from swecli.core.llm.learned_windows import LearnedWindow
from swecli.core.llm.types import ASSUMED_WINDOW, ModelInfo

LOCAL_PROVIDERS = ("ollama", "lmstudio", "llamacpp", "vllm", "sglang")
"""Programs that serve a model with the window that their user gave it, so that no catalogue can know it."""

WindowSource = Literal["user", "endpoint", "learned", "catalogue", "assumed"]


@dataclass(frozen=True, slots=True)
class KnownWindow:
    """A window in tokens, where it is known from, and the source in more words (a path, a date, a package)."""

    tokens: int
    source: WindowSource
    detail: str = ""


def choose_window(
    setting: int | None = None,
    asked: EndpointModel | None = None,
    learned: LearnedWindow | None = None,
    listed: CatalogModel | None = None,
) -> KnownWindow:
    """The window that counts: the first source that has one. What the server says that the model could do at most
    caps every source below the server."""
    if setting is not None:
        return KnownWindow(setting, "user", "settings")
    if asked is not None and asked.window is not None:
        return KnownWindow(asked.window, "endpoint", asked.where)
    maximum = asked.maximum if asked is not None else None
    if learned is not None:
        return _capped(learned.tokens, "learned", f"an error of {learned.day}", maximum)
    if listed is not None and listed.window is not None:
        sources = ", ".join(f"{item.name} of {item.date}" for item in listed.sources.get("window", ()))
        return _capped(listed.window, "catalogue", sources, maximum)
    return _capped(ASSUMED_WINDOW, "assumed", "nothing is known of this model", maximum)


def model_info(
    provider: str,
    model: str,
    *,
    local: bool = False,
    asked: EndpointModel | None = None,
    learned: LearnedWindow | None = None,
    setting: int | None = None,
) -> ModelInfo:
    """All that is known of a model. ``local``: its server belongs to the user, who chose the window there.
    ``setting`` is the window that the user set."""
    found = None if local or provider in LOCAL_PROVIDERS else load_catalog().lookup(provider, model)
    listed = found.model if found is not None else None
    window = choose_window(setting, asked, learned, listed)
    outputs = (asked.max_output if asked else None, listed.max_output if listed else None)
    images = (asked.images if asked else None, listed.images if listed else None)
    tools = (asked.tools if asked else None, listed.tools if listed else None)
    return ModelInfo(
        provider,
        model,
        window.tokens,
        next((size for size in outputs if size is not None), None),
        window.source,
        next((flag for flag in images if flag is not None), None),
        next((flag for flag in tools if flag is not None), True),
        None if listed is None else () if listed.reasoning is False else listed.efforts or None,
    )


def lookup_with(
    asked: EndpointModel | None = None, learned: LearnedWindow | None = None, local: bool = False
) -> Callable[[str, str], ModelInfo]:
    """``model_info`` for the resolution of a provider, which puts the user's own settings over it."""

    def look_up(provider: str, model: str) -> ModelInfo:
        return model_info(provider, model, local=local, asked=asked, learned=learned)

    return look_up


def _capped(tokens: int, source: WindowSource, detail: str, maximum: int | None) -> KnownWindow:
    return KnownWindow(tokens if maximum is None else min(tokens, maximum), source, detail)
