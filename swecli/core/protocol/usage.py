"""Token usage and cost as the provider reported them, in one neutral vocabulary."""

from __future__ import annotations

from decimal import Decimal

from swecli.core.protocol.value import value


@value
class Usage:
    """Tokens of one model response. ``None`` means the provider did not say.

    ``input_total`` counts the whole prompt, cached part included; ``output_total`` counts the whole
    answer, reasoning included. ``cost`` is the price in US dollars where the provider itself reported
    one (it wins over any catalogue price).
    """

    input_total: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output_total: int | None = None
    reasoning: int | None = None
    cost: Decimal | None = None
    """US dollars, only where the provider reported it."""
    cleared: int | None = None
    """Tokens of the request that the provider left out by itself; ``input_total`` is without them."""

    @property
    def prompt(self) -> int:
        """Tokens of the prompt; 0 where the provider did not say."""
        return self.input_total or 0

    @property
    def completion(self) -> int:
        """Tokens of the answer; 0 where the provider did not say."""
        return self.output_total or 0

    @property
    def total(self) -> int:
        """Tokens of both."""
        return self.prompt + self.completion

    @property
    def cache_share(self) -> float | None:
        """Share of the prompt that was served from the provider's cache, 0..1; None when unknown."""
        if self.cache_read is None or not self.input_total:
            return None
        return min(1.0, self.cache_read / self.input_total)


def added(one: Usage, other: Usage) -> Usage:
    """The sum of two responses; what only one of them reported counts as it is, a cost needs both."""

    def plus(a: int | None, b: int | None) -> int | None:
        return None if a is None and b is None else (a or 0) + (b or 0)

    return Usage(
        plus(one.input_total, other.input_total),
        plus(one.cache_read, other.cache_read),
        plus(one.cache_write, other.cache_write),
        plus(one.output_total, other.output_total),
        plus(one.reasoning, other.reasoning),
        None if one.cost is None or other.cost is None else one.cost + other.cost,
        plus(one.cleared, other.cleared),
    )
