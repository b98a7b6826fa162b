"""Limits of the context window, budgets of its components, and the gate before each request. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.llm.types import ASSUMED_WINDOW, ModelInfo, ServerClearing
from swecli.core.protocol.budget import (
    MEMORY,
    PLAYBOOK,
    PROJECT_INSTRUCTIONS,
    RESULTS,
    SKILLS,
    SYSTEM,
    TOOLS,
    USER_INSTRUCTIONS,
    Budget,
    Component,
    ContextLevel,
    is_tools,
)

FIXED = (SYSTEM, USER_INSTRUCTIONS, PROJECT_INSTRUCTIONS, MEMORY, PLAYBOOK, SKILLS, TOOLS)
"""Components of every request; those of tools begin so."""

MUCH_FIXED = 1 / 3
"""Share of the effective window from which on the fixed parts get a warning of their own."""

LEAST_ROOM = 400
"""Least tokens beside the fixed parts, so that a message can be sent at all."""

_ADVICE = {
    SYSTEM: "Use a model with a larger window.",
    USER_INSTRUCTIONS: "Shorten your own instruction file.",
    PROJECT_INSTRUCTIONS: "Shorten the project's instruction files.",
    MEMORY: "Remove outdated notes from memory.",
    PLAYBOOK: "Disable bullets with /playbook.",
    SKILLS: "Use fewer skills at a time.",
    TOOLS: "Use fewer tools or servers.",
    RESULTS: "/compact frees space.",
}

Amount = float | int
"""A share of the effective window (a float up to 1) or tokens (an int)."""


class ComponentLimits(Struct, frozen=True):
    """Limits of components; None = no limit of its own. ``tool_result`` applies to each single result.

    Raises:
        ValueError: a share that is not above 0 and at most 1, tokens below 1; the message names the component.
    """

    system: Amount | None = None
    instructions: Amount | None = None
    tools: Amount | None = None
    tool_results: Amount | None = None
    tool_result: Amount | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            amount: Amount | None = getattr(self, name)
            if amount is None:
                continue
            if not (0 < amount <= 1 if isinstance(amount, float) else amount >= 1):
                raise ValueError(f"{name} must be a share above 0 and up to 1, or at least 1 token: not {amount}")

    def of_component(self, name: str) -> Amount | None:
        """The limit of a component by its name in the budget; that of tools applies to each source of tools."""
        named = {
            SYSTEM: self.system,
            USER_INSTRUCTIONS: self.instructions,
            PROJECT_INSTRUCTIONS: self.instructions,
            RESULTS: self.tool_results,
        }
        return self.tools if is_tools(name) else named.get(name)

    def of_result(self, effective: int) -> int | None:
        """Token limit of a single result in an effective window of this size."""
        return in_tokens(self.tool_result, effective)


UNLIMITED = ComponentLimits()


def _advice(component: str) -> str:
    return _ADVICE.get(TOOLS if is_tools(component) else component, "")


def in_tokens(amount: Amount | None, effective: int) -> int | None:
    """An amount in whole tokens, at least 1; None stays None."""
    if amount is None:
        return None
    return max(1, int(amount * effective)) if isinstance(amount, float) else amount


def limited(components: Iterable[Component], limits: ComponentLimits, effective: int) -> tuple[Component, ...]:
    return tuple(
        replace(part, limit=limit) if (limit := in_tokens(limits.of_component(part.name), effective)) else part
        for part in components
    )


def over_limit(budget: Budget) -> tuple[str, ...]:
    """One sentence for each component above its limit, the worst first."""
    over = [part for part in budget.components if part.limit is not None and part.tokens > part.limit]
    over.sort(key=lambda part: part.tokens / (part.limit or 1), reverse=True)
    return tuple(
        f"{part.name}: {part.tokens:,} tokens, {part.tokens / max(1, budget.effective):.0%} of the window; "
        f"its limit is {part.limit:,}. {_advice(part.name)}".rstrip()
        for part in over
    )


def fixed_tokens(budget: Budget) -> int:
    return sum(part.tokens for part in _fixed_parts(budget))


def _fixed_parts(budget: Budget) -> list[Component]:
    return [part for part in budget.components if part.name.startswith(FIXED)]


def roomy_part(budget: Budget) -> int:
    """Base for the conversation's shares: the effective window, or less if much of it is fixed."""
    return max(1, min(budget.effective, int((budget.effective - fixed_tokens(budget)) / (1 - MUCH_FIXED))))


def much_fixed(budget: Budget) -> str:
    """Explanation of little room for the conversation; empty if there is enough."""
    tokens = fixed_tokens(budget)
    if tokens < MUCH_FIXED * budget.effective or budget.effective <= 0:
        return ""
    largest = max(_fixed_parts(budget), key=lambda part: part.tokens)
    return (
        f"The fixed part of every request takes {tokens:,} of the {budget.effective:,} tokens available "
        f"({tokens / budget.effective:.0%}), so swecli compacts often. The largest part is {largest.name} with "
        f"{largest.tokens:,}. {_advice(largest.name)}"
    )


def no_room(budget: Budget) -> str:
    fixed = _fixed_parts(budget)
    tokens = sum(part.tokens for part in fixed)
    upper = tokens * budget.upper / budget.used if budget.used else tokens
    if not fixed or upper + LEAST_ROOM <= budget.block_at:
        return ""
    largest = max(fixed, key=lambda part: part.tokens)
    return (
        f"The fixed part of every request takes {tokens:,} of the {budget.effective:,} tokens available, "
        f"so no message fits. The largest part is {largest.name} with {largest.tokens:,}. {_advice(largest.name)}"
    )


NAMED_COMPONENTS = 3

COMPACT_ADVICE = "/compact frees space"
"""Advice before any attempt to compact."""
BLOCK_ADVICE = ("/clear starts with an empty context", "/model switches to one with a larger window")
MANUAL_ADVICE = (
    "/compact free removes old results without a model",
    "/compact writes a summary",
    *BLOCK_ADVICE,
)
"""Advice if automatic compaction is off."""


def percent(budget: Budget) -> int:
    """Used share of the effective window in whole percent, from the upper edge of the estimate, rounded down."""
    if budget.effective <= 0:
        return 100
    return budget.upper * 100 // budget.effective


def gate_reason(budget: Budget, advice: Sequence[str] = BLOCK_ADVICE) -> str:
    """Reason for a warning or a block of a measured request, in one or two sentences for the user; empty at level ok.

    ``advice`` is what the user can do about a full context here and now, as clauses.
    """
    if budget.level == "ok":
        return ""
    if budget.effective <= 0:
        return f"The context window of {budget.window:,} tokens leaves no room for a request; choose a larger model."
    about = "" if budget.source == "measured" else "about "
    size = f"{about}{percent(budget)}% full ({budget.upper:,} of {budget.effective:,} tokens)"
    if budget.level == "block":
        largest = sorted(budget.components, key=lambda part: part.tokens, reverse=True)[:NAMED_COMPONENTS]
        parts = ", ".join(f"{part.name} {part.tokens:,}" for part in largest)
        todo = "; ".join(advice)
        return f"The context is {size}, so nothing was sent. Largest: {parts}.{f' Try: {todo}.' if todo else ''}"
    if budget.level == "compact":
        return f"The context is {size}. Soon no request will fit; /compact frees space."
    return f"The context is {size}. /compact frees space, /context shows what fills it."


RESERVE_SHARE = 0.20
"""Largest share of the window reserved for the answer."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Settings of the context. Thresholds are shares of the effective window; sizes are tokens.

    ``context_budget`` replaces the model's window, ``max_output_tokens`` its longest answer; None uses the model's own
    values. ``target_tokens`` is a request size that triggers compaction even below ``compact``; None = only the share
    counts.

    Raises:
        ValueError: thresholds out of order or range, sizes below 1, a target above the budget; the message names
            the setting.
    """

    warn: float = 0.80
    compact: float = 0.95
    block: float = 0.98
    context_budget: int | None = None
    max_output_tokens: int | None = None
    target_tokens: int | None = None
    components: ComponentLimits = UNLIMITED
    """Limits of single components."""
    server_clearing: ServerClearing | None = None
    """Content that a capable provider clears by itself; None = nothing."""

    def __post_init__(self) -> None:
        if not 0 < self.warn <= self.compact <= self.block <= 1:
            raise ValueError(
                "context thresholds must be 0 < warn <= compact <= block <= 1, "
                f"not warn={self.warn}, compact={self.compact}, block={self.block}"
            )
        for name in ("context_budget", "max_output_tokens", "target_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1 token, not {value}")
        if self.context_budget is not None and (self.target_tokens or 0) > self.context_budget:
            raise ValueError(
                f"target_tokens must not be above context_budget: {self.target_tokens} > {self.context_budget}"
            )


class Window(Struct, frozen=True):
    """The context window available to one request, in tokens. ``effective`` is what the ``reserve`` for the answer
    leaves of the ``total``."""

    total: int
    reserve: int
    effective: int
    source: str
    """Source of the total."""


def window_of(info: ModelInfo, limits: Limits) -> Window:
    """Window, reserve for the answer, and the source of the window's size."""
    known = info.window if info.window is not None and info.window > 0 else None
    if limits.context_budget is not None and not budget_too_large(info, limits):
        total, source = limits.context_budget, "settings"
    elif known is not None:
        total, source = known, info.window_source
    else:
        total, source = ASSUMED_WINDOW, "assumed"
    longest = [size for size in (info.max_output, limits.max_output_tokens) if size is not None and size > 0]
    reserve = min(*longest, int(total * RESERVE_SHARE), total)
    return Window(total, reserve, total - reserve, source)


def budget_too_large(info: ModelInfo, limits: Limits) -> bool:
    """Whether the configured budget exceeds a window of known size, which then counts instead."""
    known = info.window if info.window is not None and info.window > 0 and info.window_source != "assumed" else None
    return limits.context_budget is not None and known is not None and limits.context_budget > known


def level_of(upper: int, effective: int, limits: Limits) -> ContextLevel:
    """The gate's level for a request of at most ``upper`` tokens; reaching a threshold counts as passing it."""
    if effective <= 0 or upper >= edge(limits.block, effective):
        return "block"
    if upper >= compact_edge(effective, limits):
        return "compact"
    return "warn" if upper >= edge(limits.warn, effective) else "ok"


def compact_edge(effective: int, limits: Limits) -> int:
    """The smallest number of tokens that triggers compaction."""
    share = edge(limits.compact, effective)
    return min(share, limits.target_tokens) if limits.target_tokens else share


def edge(share: float, effective: int) -> int:
    """The smallest number of tokens that reaches ``share`` of the effective window."""
    # Rounded first: 0.95 * 9500 is slightly off as a float and must not move the edge by a token.
    return math.ceil(round(share * effective, 6))


LONGEST_ANSWER = 32_768
"""Limit in tokens for the answer of a model whose own is unknown."""


def clamp_output(info: ModelInfo, limits: Limits, upper: int) -> int | None:
    """The answer's token limit for a request of at most ``upper`` tokens; None leaves it to the protocol's default.

    Never above the model's output limit, the configured limit, or the room left after the request.
    """
    known = [size for size in (info.max_output, limits.max_output_tokens) if size is not None and size > 0]
    left = window_of(info, limits).total - upper
    if known:
        return max(1, min(*known, left))
    # Some protocols require a limit and use a default, which must fit as well. Without any limit, a model that does not
    # end its answer writes until its window is full.
    if info.usual_output is not None and info.usual_output <= left:
        return None
    return max(1, min(left, LONGEST_ANSWER))
