"""Names of models as people, providers and routers write them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

_BETWEEN_DIGITS = re.compile(r"(?<=\d)[.p](?=\d)")
_DATE = re.compile(r"(?:[-@](?:20\d\d-?\d\d-?\d\d|\d{4})|-latest)$")
_ROUTERS = frozenset(("openrouter", "huggingface", "vercel"))

_OTHER_PROVIDER_NAMES = {
    "google": "gemini",
    "x-ai": "xai",
    "moonshotai": "moonshot",
    "z-ai": "zai",
    "zai-org": "zai",
    "zhipuai": "zai",
    "qwen": "alibaba",
    "dashscope": "alibaba",
    "deepseek-ai": "deepseek",
    "mistralai": "mistral",
    "meta-models": "meta",
    "minimaxai": "minimax",
    "fireworks-ai": "fireworks",
    "fireworks_ai": "fireworks",
    "togetherai": "together",
    "together_ai": "together",
}


def provider_name(name: str) -> str:
    """Our name for a provider or a model's maker, whatever a router or another program calls it."""
    lowered = name.strip().lower()
    return _OTHER_PROVIDER_NAMES.get(lowered, lowered)


def spelling(name: str) -> str:
    """The same for names that mean the same: case does not count, and between digits neither does the choice of
    dot, dash or ``p`` (``4.5``, ``4-5``, ``4p5``)."""
    return _BETWEEN_DIGITS.sub("-", name.strip().lower())


def undated(name: str) -> str:
    """The name without a date or ``-latest`` at its end; the name itself where there is none."""
    return _DATE.sub("", name)


def without_variant(provider: str, name: str) -> str:
    """A router's name without what chooses a way to serve the model: ``:free``, ``:nitro``, ``:some-host``."""
    return name.partition(":")[0] if provider in _ROUTERS else name


def tails(name: str) -> Iterator[str]:
    """The name, then what follows its first slash, its second, and so on."""
    while True:
        yield name
        _, slash, name = name.partition("/")
        if not slash or not name:
            return
