"""The gate before every model request: go on, warn, compact, or block. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swecli.core.protocol.events import Budget, Component, ContextLevel

NAMED_COMPONENTS = 3

BLOCK_ADVICE = ("/clear starts with an empty context", "/model switches to one with a larger window")
MANUAL_ADVICE = (
    "/compact free makes room without a model",
    "/compact has a summary written",
    *BLOCK_ADVICE,
)
"""Where nothing is compacted unless the user says so."""


@dataclass(frozen=True, slots=True)
class GateDecision:
    """``reason`` is one sentence or two for the user; empty at level ok. ``largest`` are the components that take
    the most room, largest first."""

    level: ContextLevel
    reason: str
    largest: tuple[Component, ...]


def decide(budget: Budget, advice: Sequence[str] = BLOCK_ADVICE) -> GateDecision:
    """Judge a measured request by the upper edge of its size.

    ``advice`` is what the user can do about a full context here and now, as clauses.
    """
    largest = tuple(sorted(budget.components, key=lambda part: part.tokens, reverse=True)[:NAMED_COMPONENTS])
    return GateDecision(budget.level, _reason(budget, largest, advice), largest)


def percent(budget: Budget) -> int:
    """Used share of the effective window in whole percent, from the upper edge of the estimate, rounded down."""
    if budget.effective <= 0:
        return 100
    return budget.upper * 100 // budget.effective


def _reason(budget: Budget, largest: Sequence[Component], advice: Sequence[str]) -> str:
    if budget.level == "ok":
        return ""
    if budget.effective <= 0:
        return f"The context window of {budget.window:,} tokens leaves no room for a request; choose a larger model."
    about = "" if budget.source == "measured" else "about "
    size = f"{about}{percent(budget)} % full ({budget.upper:,} of {budget.effective:,} tokens)"
    if budget.level == "block":
        parts = ", ".join(f"{part.name} {part.tokens:,}" for part in largest)
        todo = "; ".join(advice)
        return (
            f"The context is {size}, so no request is sent and nothing is lost. Largest: {parts}."
            f"{f' What helps: {todo}.' if todo else ''}"
        )
    if budget.level == "compact":
        return f"The context is {size}. Soon no request fits any more; /clear makes room."
    return f"The context is {size}; /context shows what takes the room."
