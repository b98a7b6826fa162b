"""Agent profiles: what a subagent is told, which tools it has, which model answers for it, in which mode it works."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from swecli.core.protocol.events import Mode

NEVER: Final = frozenset(("task", "ask_user"))
"""A subagent starts no subagents, and talks to nobody but the agent that started it."""


class AgentProfile(Struct, frozen=True):
    """``tools`` are names of tools, None for all; ``mode`` is None for that of the session, ``model`` empty for that
    of the session. ``worktree``: it works in a git work tree of its own."""

    name: str
    description: str
    prompt: str
    tools: tuple[str, ...] | None = None
    disallowed: tuple[str, ...] = ()
    model: str = ""
    mode: Mode | None = None
    worktree: bool = False


def tools_of(profile: AgentProfile, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a subagent has of the session's tools, in their order; and names of the profile that there are none of."""
    wanted = names if profile.tools is None else profile.tools
    unknown = tuple(name for name in (*wanted, *profile.disallowed) if name not in names and name not in NEVER)
    kept = tuple(name for name in names if name in wanted and name not in profile.disallowed and name not in NEVER)
    return kept, unknown
