"""The words for how much a model is to think that have an effect at its host. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from swecli.core.llm.dialects import EffortStyle

_SWITCH = ("none", "high")
"""Where thinking can be on or off."""
_BY_STYLE: Mapping[EffortStyle, tuple[str, ...] | None] = {
    "none": (),
    "thinking": _SWITCH,
    "enable_thinking": _SWITCH,
    "think": _SWITCH,
    "budget": ("low", "medium", "high"),
    "level": ("low", "medium", "high"),
    "output_config": ("low", "medium", "high"),
}
_CERTAIN = ("none", "thinking", "enable_thinking", "think")
"""Styles that leave no other words, whatever a list of models says."""


def offered(style: EffortStyle, listed: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The words for a model whose host reads them in this ``style``; ``listed`` are those of the catalogue. Empty: it
    takes none. None: nobody knows."""
    if style in _CERTAIN or listed is None:
        return () if listed == () else _BY_STYLE.get(style)
    return listed
