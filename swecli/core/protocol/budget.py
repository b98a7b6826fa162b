"""Context budget: the size of one request by component."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

ContextLevel = Literal["ok", "warn", "compact", "block"]

SYSTEM: Final = "system prompt"
USER_INSTRUCTIONS: Final = "user instructions"
PROJECT_INSTRUCTIONS: Final = "project instructions"
MEMORY: Final = "memory"
PLAYBOOK: Final = "playbook"
SKILLS: Final = "skills"
TOOLS: Final = "tool descriptions"
USER: Final = "user messages"
ATTACHED: Final = "attached files"
SUMMARIES: Final = "summaries"
ASSISTANT: Final = "assistant messages"
RETRIEVED: Final = "retrieved pointers"
REASONING: Final = "reasoning"
CALLS: Final = "tool calls"
RESULTS: Final = "tool results"
NOTES: Final = "notes of swecli"
TAIL: Final = "tail"
"""What requests of earlier versions told the model behind the newest message, and took away again."""


def tools_of(source: str) -> str:
    """Component name for the tools of one source (empty: swecli's own tools)."""
    return f"{TOOLS} of {source}" if source else TOOLS


def is_tools(component: str) -> bool:
    """Whether a component holds tool descriptions."""
    return component == TOOLS or component.startswith(f"{TOOLS} of ")


class Component(Struct, frozen=True):
    """One component of the context budget. ``limit`` is its own budget in tokens, if any."""

    name: str
    tokens: int
    limit: int | None = None


class Budget(Struct, frozen=True):
    """Measure of one request by component, in tokens, against the effective window.

    ``effective`` = window - reserved output. ``upper`` is the upper bound of the estimate, which the gate uses.
    ``source`` tells whether the total is anchored on reported usage or estimated; ``window_source`` is the origin of
    the window size.
    """

    components: tuple[Component, ...]
    used: int
    upper: int
    effective: int
    window: int
    reserve: int
    level: ContextLevel
    source: Literal["measured", "estimated", "unknown"] = "estimated"
    window_source: str = ""
    warn_at: int = 0
    compact_at: int = 0
    block_at: int = 0
    """Thresholds of ``upper`` for the levels, from the settings; 0 = unknown."""

    @property
    def share(self) -> float:
        """Used share of the effective window, 0..1; above 1 on overflow."""
        return self.used / self.effective if self.effective > 0 else 1.0

    @property
    def shown(self) -> str:
        """The used share for display: a whole percentage (100 only when reached), ``~`` if estimated, ``?`` if
        unknown."""
        if self.source == "unknown" or self.effective <= 0:
            return "?"
        percent = self.share * 100
        whole = min(99, round(percent)) if percent < 100 else round(percent)
        return f"{'~' if self.source == 'estimated' else ''}{whole}%"


_SOURCES: Final = {
    "user": "your settings",
    "settings": "your settings",
    "endpoint": "reported by the server",
    "learned": "reported in a server error",
    "catalogue": "the catalogue",
    "script": "the script",
    "assumed": "assumed",
}


def window_words(window: int | None, source: str) -> str:
    """The window size and its origin for display; ``?`` if unknown."""
    if not window:
        return "?"
    return f"{window:,} tokens{f' ({_SOURCES.get(source, source)})' if source else ''}"
