"""Figures about a context for people and programs, all from the one measure. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from swecli.core.protocol.budget import Budget, ContextLevel


@dataclass(frozen=True, slots=True)
class ContextStats:
    """``current_usage`` and ``max_tokens`` (the effective window) are tokens, ``usage_percent`` is 0 to 100 and above
    when it overflows. ``oldest_message_age`` is seconds; None = not known."""

    current_usage: int
    max_tokens: int
    usage_percent: float
    message_count: int
    oldest_message_age: float | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """The size of a request that was not sent yet: tokens, and the band in which the true size is expected."""

    tokens: int
    low: int
    high: int
    level: ContextLevel
    measured: bool
    """Whether it rests on usage that the model reported."""


def context_stats(budget: Budget, messages: int, oldest_message_age: float | None = None) -> ContextStats:
    """The figures of one measure."""
    return ContextStats(budget.used, budget.effective, budget.used_percentage(), messages, oldest_message_age)


def forecast(budget: Budget) -> Forecast:
    """The band of one measure: as far below as above."""
    low = max(0, 2 * budget.used - budget.upper)
    return Forecast(budget.used, low, budget.upper, budget.level, budget.source == "measured")
