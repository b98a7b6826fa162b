"""What the token monitor needs of a context state, and what it says of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypedDict


class Counted(Protocol):
    """Something with texts and a count of their tokens; 0 = not counted yet."""

    tokens: int

    def texts(self) -> Sequence[str]: ...


class CountedState(Protocol):
    """A context state. ``context_limit`` is tokens."""

    total_tokens: int

    @property
    def messages(self) -> Sequence[Counted]: ...
    @property
    def codebase_summary(self) -> Counted | None: ...
    @property
    def current_task(self) -> Counted | None: ...
    @property
    def context_limit(self) -> int: ...
    @property
    def compaction_count(self) -> int: ...

    def get_available_tokens(self) -> int: ...

    def needs_compaction(self) -> bool: ...


class UsageStats(TypedDict):
    """Figures about a context state, in tokens where nothing else is said."""

    total_tokens: int
    limit: int
    usage_percent: float
    available_tokens: int
    needs_compaction: bool
    message_count: int
    compaction_count: int
    breakdown: dict[str, int]


def state_breakdown(state: CountedState) -> dict[str, int]:
    """Tokens of the state's parts."""
    return {
        "messages": sum(message.tokens for message in state.messages),
        "codebase_summary": state.codebase_summary.tokens if state.codebase_summary else 0,
        "current_task": state.current_task.tokens if state.current_task else 0,
    }
