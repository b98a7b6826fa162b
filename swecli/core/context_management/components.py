"""Names of the components of a request, as budgets, ``/context`` and the log show them."""

from __future__ import annotations

from swecli.core.protocol.budget import (
    ASSISTANT,
    CALLS,
    MEMORY,
    PROJECT_INSTRUCTIONS,
    REASONING,
    RESULTS,
    SKILLS,
    SYSTEM,
    TAIL,
    TOOLS,
    USER,
    USER_INSTRUCTIONS,
)

__all__ = (
    "ASSISTANT",
    "CALLS",
    "MEMORY",
    "PROJECT_INSTRUCTIONS",
    "REASONING",
    "RESULTS",
    "SKILLS",
    "SYSTEM",
    "TAIL",
    "TOOLS",
    "USER",
    "USER_INSTRUCTIONS",
)
