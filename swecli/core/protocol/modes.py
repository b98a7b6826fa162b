"""The permission modes, with what each means to people and to other agents."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

Mode = Literal["default", "accept-edits", "plan", "auto"]


class ModeProperties(Struct, frozen=True):
    title: str
    meaning: str
    """Effect, as a clause."""
    about: str
    """Effect, as a sentence for somebody who does not know the modes."""
    claude: str
    """Its name in Claude Code."""
    accepts_edits: bool = False
    """Whether file edits in the workspace run without approval."""


MODES: Mapping[Mode, ModeProperties] = MappingProxyType(
    {
        "default": ModeProperties(
            "Default",
            "reads freely, asks before everything else",
            "Asks before edits, and before commands that may change something",
            "default",
        ),
        "accept-edits": ModeProperties(
            "Accept edits",
            "file edits are accepted, commands still ask",
            "File edits run; commands still ask",
            "acceptEdits",
            accepts_edits=True,
        ),
        "plan": ModeProperties(
            "Plan",
            "read-only, nothing will be changed",
            "Read-only: proposes a plan and changes nothing",
            "plan",
        ),
        "auto": ModeProperties(
            "Auto",
            "like accept-edits; sandboxed commands run unasked",
            "Runs without asking, commands in the sandbox; destructive ones still ask",
            "auto",
            accepts_edits=True,
        ),
    }
)
"""In the order in which a key walks through them."""


TIGHTEST_FIRST: tuple[Mode, ...] = ("plan", "default", "accept-edits", "auto")
