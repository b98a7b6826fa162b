"""Budgets of single components within the window, and whether what is in every request leaves room for the rest.
Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from swecli.core.context_management.components import (
    MEMORY,
    PROJECT_INSTRUCTIONS,
    RESULTS,
    SKILLS,
    SYSTEM,
    TOOLS,
    USER_INSTRUCTIONS,
)
from swecli.core.protocol.budget import Budget, Component

FIXED = (SYSTEM, USER_INSTRUCTIONS, PROJECT_INSTRUCTIONS, MEMORY, SKILLS, TOOLS)
"""Components that are in every request, whatever is said."""

LEAST_ROOM = 400
"""Tokens that a request must have besides the fixed parts, so that a message can be sent at all."""

_ADVICE = {
    SYSTEM: "A model with a larger window helps.",
    USER_INSTRUCTIONS: "Shorten your own instruction file.",
    PROJECT_INSTRUCTIONS: "Shorten the project's instruction files.",
    MEMORY: "Take notes out of the memory that are no longer needed.",
    SKILLS: "Use fewer skills at a time.",
    TOOLS: "Use fewer tools or servers.",
    RESULTS: "/compact makes room.",
}

Amount = float | int
"""A share of the effective window (a float up to 1) or tokens (an int)."""


@dataclass(frozen=True, slots=True)
class ComponentLimits:
    """The most that components may take; None = no limit of its own. ``tool_result`` is about each single result.

    Raises:
        ValueError: a share that is not above 0 and at most 1, tokens below 1; the message names the component.
    """

    system: Amount | None = None
    instructions: Amount | None = None
    memory: Amount | None = None
    skills: Amount | None = None
    tools: Amount | None = None
    tool_results: Amount | None = None
    tool_result: Amount | None = None

    def __post_init__(self) -> None:
        for one in fields(self):
            amount: Amount | None = getattr(self, one.name)
            if amount is None:
                continue
            if not (0 < amount <= 1 if isinstance(amount, float) else amount >= 1):
                raise ValueError(f"{one.name} must be a share above 0 and up to 1, or tokens from 1 on: not {amount}")

    def of_component(self, name: str) -> Amount | None:
        """The limit of a component of the budget by its name there."""
        named = {
            SYSTEM: self.system,
            USER_INSTRUCTIONS: self.instructions,
            PROJECT_INSTRUCTIONS: self.instructions,
            MEMORY: self.memory,
            SKILLS: self.skills,
            TOOLS: self.tools,
            RESULTS: self.tool_results,
        }
        return named.get(name)

    def of_result(self, effective: int) -> int | None:
        """Tokens that a single result may take in an effective window of so many."""
        return in_tokens(self.tool_result, effective)


def in_tokens(amount: Amount | None, effective: int) -> int | None:
    """An amount in whole tokens, at least 1; None stays None."""
    if amount is None:
        return None
    return max(1, int(amount * effective)) if isinstance(amount, float) else amount


def limited(components: Iterable[Component], limits: ComponentLimits, effective: int) -> tuple[Component, ...]:
    """The components with their limits."""
    return tuple(
        replace(part, limit=limit) if (limit := in_tokens(limits.of_component(part.name), effective)) else part
        for part in components
    )


def over_limit(budget: Budget) -> tuple[str, ...]:
    """One sentence for each component that takes more than its limit, the worst first."""
    over = [part for part in budget.components if part.limit is not None and part.tokens > part.limit]
    over.sort(key=lambda part: part.tokens / (part.limit or 1), reverse=True)
    return tuple(
        f"{part.name}: {part.tokens:,} tokens, {part.tokens / max(1, budget.effective):.0%} of the window; "
        f"its limit is {part.limit:,}. {_ADVICE.get(part.name, '')}".rstrip()
        for part in over
    )


def no_room(budget: Budget, block: int) -> str:
    """Why no message fits beside the fixed parts; empty where there is room. ``block`` is the size in tokens from
    which on nothing is sent."""
    fixed = [part for part in budget.components if part.name in FIXED]
    tokens = sum(part.tokens for part in fixed)
    upper = tokens * budget.upper / budget.used if budget.used else tokens
    if not fixed or upper + LEAST_ROOM <= block:
        return ""
    largest = max(fixed, key=lambda part: part.tokens)
    return (
        f"What is in every request takes {tokens:,} of the {budget.effective:,} tokens that this model has room for, "
        f"so no message fits. The largest part is {largest.name} with {largest.tokens:,}. {_ADVICE[largest.name]}"
    )
