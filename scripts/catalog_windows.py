"""Context windows of all models that the two packages know, the small ones of each host and of each family: what the
catalogue leaves out of its entries, but people have."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from swecli.core.llm.catalog import common_name, spelling, undated

SMALLEST, LARGEST = 8_000, 20_000_000
"""What the packages say below or above is a placeholder."""
MAKERS = ("openai", "anthropic", "gemini", "mistral", "deepseek", "xai", "moonshot", "zai", "dashscope", "minimax")
"""What litellm calls the providers that serve their own models: their figure counts before all others."""
OWN_HOSTS = ("openai", "anthropic", "gemini", "mistral", "deepseek", "moonshot", "zai", "alibaba")
"""The same by our names: there, what the selection states of a name is about that model."""
NOT_NAMES = ("ft:", "*", "sample_spec", "embed", "tts", "whisper", "rerank", "image", "audio")


def window_table(
    hosts: Iterable[tuple[str, str, Iterable[Any]]],
    table: Mapping[str, Mapping[str, Any]],
    everyone: Iterable[Any],
    families: Mapping[str, int],
    sources: list[str],
) -> str:
    """The file. ``hosts`` are our name, litellm's name and genai-prices' models of each provider of the selection."""
    chat = [
        (str(entry.get("litellm_provider")), key, size, size + (_size(entry.get("max_output_tokens"), 1) or 0))
        for key, entry in table.items()
        if entry.get("mode") in ("chat", "responses") and (size := _size(entry.get("max_input_tokens"))) is not None
    ]
    stated = {common_name(name): size for name, size in families.items()}
    by_host: dict[str, dict[str, int]] = {}
    for host, prefix, models in hosts:
        found = {spelling(model.id): size for model in models if (size := _size(model.context_window)) is not None}
        for provider, key, size, total in chat:
            if provider == prefix:
                name = spelling(key.removeprefix(f"{prefix}/"))
                whole = found.get(
                    undated(name)
                )  # where it is input and answer together, the table gives the input only
                found[name] = total if whole == total else size
        if host in OWN_HOSTS:
            found |= {name: stated[name] for name in found.keys() & stated.keys()}
        by_host[host] = {name: found[name] for name in sorted(found) if _is_name(name)}
    return _written(
        {
            "version": 1,
            "sources": sources,
            "families": stated,
            "hosts": by_host,
            "names": _by_name(chat, everyone, stated),
        }
    )


def _by_name(
    chat: list[tuple[str, str, int, int]], everyone: Iterable[Any], stated: Mapping[str, int]
) -> dict[str, int]:
    """For each name that at least two hosts have, the figure of its maker, or that of most hosts, or the smaller; what
    the selection states counts before all."""
    sizes: dict[str, Counter[int]] = {}
    own: dict[str, int] = {}
    for provider, name, size in (*(entry[:3] for entry in chat), *_of_everyone(everyone)):
        common = common_name(name)
        sizes.setdefault(common, Counter())[size] += 1
        if provider in MAKERS:
            own.setdefault(common, size)
    return {
        name: stated.get(name) or own.get(name) or min(found, key=lambda size: (-found[size], size))
        for name, found in sorted(sizes.items())
        if _is_name(name) and (name in own or found.total() > 1)
    }


def _of_everyone(everyone: Iterable[Any]) -> Iterator[tuple[str, str, int]]:
    for provider in everyone:
        for model in provider.models:
            if (size := _size(model.context_window)) is not None:
                yield "gemini" if provider.id == "google" else provider.id, model.id, size


def _is_name(name: str) -> bool:
    return len(name) > 1 and not any(word in name for word in NOT_NAMES)


def _size(value: Any, smallest: int = SMALLEST) -> int | None:
    try:
        size = int(value)
    except (TypeError, ValueError):
        return None
    return size if smallest <= size <= LARGEST else None


def _written(data: Mapping[str, Any]) -> str:
    """One line a table, so that a change shows where it is."""
    compact = {"ensure_ascii": False, "separators": (",", ":")}
    hosts = ",\n".join(f"{json.dumps(host)}:{json.dumps(names, **compact)}" for host, names in data["hosts"].items())
    rest = ",\n".join(
        f"{json.dumps(key)}:{json.dumps(value, **compact)}" for key, value in data.items() if key != "hosts"
    )
    return f'{{{rest},\n"hosts":{{\n{hosts}\n}}}}\n'
