"""What fills the context window: one measure of one request, by component."""

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
TAIL: Final = "tail"


def tools_of(source: str) -> str:
    """The component of the tools of one source; empty for swecli's own."""
    return f"{TOOLS} of {source}" if source else TOOLS


def is_tools(component: str) -> bool:
    """Whether a component is the tools of some source."""
    return component == TOOLS or component.startswith(f"{TOOLS} of ")


class Component(Struct, frozen=True):
    """One component of the context budget. ``limit`` is its own budget in tokens, where it has one."""

    name: str
    tokens: int
    limit: int | None = None


class Budget(Struct, frozen=True):
    """Measure of one request by component, in tokens, against the effective window.

    ``effective`` = window - reserved output. ``upper`` is the upper edge of the estimate, which the gate
    uses. ``source`` says whether the total is anchored on reported usage or estimated, ``window_source``
    where the window size is known from.
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
    """Sizes of ``upper`` from which on the levels hold, by the settings; 0 = not known."""

    @property
    def share(self) -> float:
        """Used share of the effective window, 0..1 and above when it overflows."""
        return self.used / self.effective if self.effective > 0 else 1.0

    @property
    def shown(self) -> str:
        """The used share as everything shows it: a whole percentage, 100 only when it is reached, ``~`` while it is
        estimated, ``?`` while nothing is known."""
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
    "assumed": "assumed; unknown",
}


def window_words(window: int | None, source: str) -> str:
    """A window and where its size is known from, as everything shows it; ``?`` where there is none."""
    if not window:
        return "?"
    return f"{window:,} tokens{f' ({_SOURCES.get(source, source)})' if source else ''}"
