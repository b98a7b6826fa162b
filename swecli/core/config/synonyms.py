"""Keys that go by more than one name: what belongs together may be written together, and older files keep working."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

Key = tuple[str, ...]

_BOTH = ("context_budget", "max_output_tokens", "compact_trigger", "hard_block", "result_offload_threshold")

SYNONYMS: Mapping[Key, Key] = MappingProxyType(
    {
        **{("context", name): ("agent", name) for name in _BOTH},
        ("context", "max_context_tokens"): ("agent", "context_budget"),
        ("context", "summary_model"): ("model", "summary"),
        ("agent", "auto_compact"): ("context", "auto_compact"),
        ("agent", "warn"): ("context", "warn"),
        ("agent", "target_tokens"): ("context", "target_tokens"),
    }
)
"""Other name -> the name that it is kept under."""


def canonical(key: Key) -> Key:
    """The name that a setting is kept under."""
    return SYNONYMS.get(key, key)


def other_names(section: str) -> tuple[str, ...]:
    """Keys that may be written in a section although they are kept elsewhere."""
    return tuple(key[1] for key in SYNONYMS if key[0] == section)
