"""What a response costs: tokens times the catalogue's prices, unless the provider itself said it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal

from swecli.core.llm.catalog import Catalog, load_catalog
from swecli.core.llm.prices import PriceList
from swecli.core.protocol.usage import Usage

_MILLION = Decimal(1_000_000)


def cost_of(prices: PriceList, usage: Usage, moment: datetime) -> Decimal | None:
    """US dollars for one response that was asked for at ``moment``; None where the provider told no sizes.

    The input's size, cached part included, chooses the tier for all of it. What was neither read from nor written
    to the cache costs the input rate, and so does what was, where no cache rate is listed.
    """
    if usage.input_total is None or usage.output_total is None:
        return None
    rates = prices.at(moment).rates_for(usage.input_total)
    read, written = usage.cache_read or 0, usage.cache_write or 0
    plain = max(0, usage.input_total - read - written)
    sum_of = (
        plain * rates.input
        + read * (rates.input if rates.cache_read is None else rates.cache_read)
        + written * (rates.input if rates.cache_write is None else rates.cache_write)
        + usage.output_total * rates.output
    )
    return sum_of / _MILLION


def utc_now() -> datetime:
    """The present moment."""
    return datetime.now(UTC)


class Pricer:
    """Prices responses: ``pricer(model_ref, usage)`` is what a session asks for."""

    def __init__(self, catalog: Callable[[], Catalog] = load_catalog, now: Callable[[], datetime] = utc_now) -> None:
        self._catalog = catalog
        self._now = now

    def __call__(self, model_ref: str, usage: Usage) -> str | None:
        """US dollars as a decimal number for a response of ``provider/name``; None where no price is known. What
        the provider reported wins."""
        if usage.cost is not None:
            return as_text(usage.cost)
        provider, _, model = model_ref.partition("/")
        found = self._catalog().lookup(provider, model)
        prices = found.prices if found is not None else None
        cost = cost_of(prices, usage, self._now()) if prices is not None else None
        return as_text(cost) if cost is not None else None


def as_text(amount: Decimal) -> str:
    """The amount without exponent and without zeros at its end."""
    text = format(amount.normalize(), "f")
    return "0" if text in ("-0", "0") else text
