"""Token usage and cost as the provider reported them, in one neutral vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
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

    @property
    def cache_share(self) -> float | None:
        """Share of the prompt that was served from the provider's cache, 0..1; None when unknown."""
        if self.cache_read is None or not self.input_total:
            return None
        return min(1.0, self.cache_read / self.input_total)
