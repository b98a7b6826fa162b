"""Limits of the context window, and what follows from them for one request. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from swecli.core.context_management.component_limits import ComponentLimits
from swecli.core.llm.types import ASSUMED_WINDOW, ModelInfo, ServerClearing
from swecli.core.protocol.events import Budget, ContextLevel

RESERVE_SHARE = 0.20
"""At most this share of the window is kept free for the answer."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Settings of the context. Thresholds are shares of the effective window; sizes are tokens.

    ``context_budget`` takes the place of the model's window, ``max_output_tokens`` that of its longest answer;
    None leaves the decision to what is known of the model. ``target_tokens`` is a size of the request from which on
    it is compacted although ``compact`` is not reached; None = only the share counts.

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
    components: ComponentLimits = ComponentLimits()
    """Budgets of single components."""
    server_clearing: ServerClearing | None = None
    """What a provider that can is asked to leave out by itself; None = nothing."""

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

    @property
    def max_context_tokens(self) -> int | None:
        """``context_budget`` under another of its names."""
        return self.context_budget

    @property
    def warning_threshold(self) -> float:
        """``warn`` under another of its names."""
        return self.warn

    @property
    def compaction_threshold(self) -> float:
        """``compact`` under another of its names."""
        return self.compact


@dataclass(frozen=True, slots=True)
class Window:
    """The context window as one request may use it, in tokens. ``effective`` = ``total`` - ``reserve``."""

    total: int
    reserve: int
    source: str
    """Where the total is known from."""

    @property
    def effective(self) -> int:
        return self.total - self.reserve


def window_of(info: ModelInfo, limits: Limits) -> Window:
    """Window, reserve for the answer, and where the size of the window is known from."""
    known = info.window if info.window is not None and info.window > 0 else None
    if limits.context_budget is not None and not budget_too_large(info, limits):
        total, source = limits.context_budget, "settings"
    elif known is not None:
        total, source = known, info.window_source
    else:
        total, source = ASSUMED_WINDOW, "assumed"
    longest = [size for size in (info.max_output, limits.max_output_tokens) if size is not None and size > 0]
    return Window(total, min(*longest, int(total * RESERVE_SHARE), total), source)


def budget_too_large(info: ModelInfo, limits: Limits) -> bool:
    """Whether the budget of the settings is above a window that is really known, which then counts instead."""
    known = info.window if info.window is not None and info.window > 0 and info.window_source != "assumed" else None
    return limits.context_budget is not None and known is not None and limits.context_budget > known


def level_of(upper: int, effective: int, limits: Limits) -> ContextLevel:
    """The gate's level for a request of at most ``upper`` tokens: a threshold that is just reached counts."""
    if effective <= 0 or upper >= edge(limits.block, effective):
        return "block"
    if upper >= edge(limits.compact, effective) or (limits.target_tokens and upper >= limits.target_tokens):
        return "compact"
    return "warn" if upper >= edge(limits.warn, effective) else "ok"


def edge(share: float, effective: int) -> int:
    """The smallest number of tokens that reaches ``share`` of the effective window."""
    # Rounded first: 0.95 * 9500 is a hair off as a float and must not move the edge by a token.
    return math.ceil(round(share * effective, 6))


def clamp_output(info: ModelInfo, limits: Limits, upper: int) -> int | None:
    """The answer's token limit for a request of at most ``upper`` tokens; None leaves it to the provider.

    Never more than the model can write, than was asked for, or than the window has left after the request.
    """
    known = [size for size in (info.max_output, limits.max_output_tokens) if size is not None and size > 0]
    if not known:
        return None
    return max(1, min(*known, window_of(info, limits).total - upper))


def tokens_of(budget: Budget, component: str) -> int:
    """Tokens of one component; 0 where the request has none."""
    return sum(part.tokens for part in budget.components if part.name == component)


def remaining(budget: Budget) -> int:
    """Tokens that are left of the effective window, counted from the upper edge of the estimate; never below 0."""
    return max(0, budget.effective - budget.upper)


def overflows(budget: Budget) -> bool:
    """Whether the request is larger than the effective window."""
    return budget.upper > budget.effective


ContextLimits = Limits
"""The name that programs use."""
