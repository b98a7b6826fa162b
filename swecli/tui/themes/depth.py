"""How many colours the terminal has, as far as its environment says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Depth = Literal["none", "16", "256", "truecolor"]

_FORCED: dict[str, Depth] = {"0": "none", "1": "16", "2": "256", "3": "truecolor"}
_SYSTEMS: dict[Depth, str] = {"none": "standard", "16": "standard", "256": "256", "truecolor": "truecolor"}


def depth(environ: Mapping[str, str]) -> Depth:
    """The depth by ``NO_COLOR`` (when it is not empty), ``FORCE_COLOR`` (0 to 3), ``COLORTERM`` and ``TERM``."""
    if environ.get("NO_COLOR"):
        return "none"
    forced = _FORCED.get(environ.get("FORCE_COLOR", "").strip())
    if forced is not None:
        return forced
    if environ.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit"):
        return "truecolor"
    term = environ.get("TERM", "").lower()
    if term.endswith("-direct") or "kitty" in term or "ghostty" in term or "alacritty" in term:
        return "truecolor"
    if "256" in term:
        return "256"
    return "none" if term.startswith(("vt", "dumb")) else "16"


def colour_system(found: Depth) -> str:
    """What Textual calls it."""
    return _SYSTEMS[found]
