"""Prices of a model: US dollars per million tokens, by size of the input, day and hour. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal

from swecli.core.llm.json_values import as_int, as_list, as_object, as_text

_RATES = ("input", "output", "cache_read", "cache_write", "cache_write_1h")


@dataclass(frozen=True, slots=True)
class Rates:
    """US dollars per million tokens. A cache rate that is None is not listed: those tokens cost what any
    other input costs. ``cache_write`` keeps the prefix for minutes, ``cache_write_1h`` for an hour."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None


@dataclass(frozen=True, slots=True)
class PriceTier:
    """What all tokens of a request cost whose input is larger than ``above`` tokens."""

    above: int
    rates: Rates


@dataclass(frozen=True, slots=True)
class PricePeriod:
    """Prices and when they hold: from a day on, at hours of the day, on days of the week (1 = Monday); all UTC."""

    rates: Rates
    tiers: tuple[PriceTier, ...] = ()
    since: date | None = None
    hours: tuple[tuple[time, time], ...] = ()
    days: frozenset[int] = frozenset()

    def holds(self, moment: datetime) -> bool:
        """Whether these prices are those of ``moment`` (aware, or naive and UTC)."""
        utc = moment.astimezone(UTC) if moment.tzinfo is not None else moment
        if self.since is not None and utc.date() < self.since:
            return False
        if self.days and utc.isoweekday() not in self.days:
            return False
        return not self.hours or any(_within(utc.time(), start, end) for start, end in self.hours)

    def rates_for(self, input_tokens: int) -> Rates:
        """The rates of a request with so many input tokens, cached ones included."""
        return next((tier.rates for tier in reversed(self.tiers) if input_tokens > tier.above), self.rates)


@dataclass(frozen=True, slots=True)
class PriceList:
    """All prices of a model; the last period that holds counts. The first one always holds."""

    periods: tuple[PricePeriod, ...]

    def at(self, moment: datetime) -> PricePeriod:
        """The prices of ``moment``."""
        return next((period for period in reversed(self.periods) if period.holds(moment)), self.periods[0])


def read_prices(value: object) -> PriceList | None:
    """The price list of decoded JSON; None where there is none.

    Raises:
        ValueError: a rate is no number, or input and output are not both there.
    """
    periods = tuple(_period(as_object(item)) for item in as_list(value))
    return PriceList(periods) if periods else None


def _period(item: Mapping[str, object]) -> PricePeriod:
    tiers = [as_object(tier) for tier in as_list(item.get("tiers"))]
    since = as_text(item.get("since"))
    return PricePeriod(
        _rates(item),
        tuple(PriceTier(as_int(tier.get("above")) or 0, _rates({**item, **tier})) for tier in tiers),
        date.fromisoformat(since) if since else None,
        tuple(_span(as_text(span)) for span in as_list(item.get("hours"))),
        frozenset(day for number in as_list(item.get("days")) if (day := as_int(number)) is not None),
    )


def _rates(item: Mapping[str, object]) -> Rates:
    values = {name: Decimal(text) for name in _RATES if (text := as_text(item.get(name)))}
    if "input" not in values or "output" not in values:
        raise ValueError("a price needs input and output")
    return Rates(**values)


def _span(text: str) -> tuple[time, time]:
    start, _, end = text.partition("-")
    return time.fromisoformat(start), time.fromisoformat(end)


def _within(moment: time, start: time, end: time) -> bool:
    """Whether a span contains ``moment``; one that ends before it starts goes over midnight."""
    return start <= moment < end if start < end else moment >= start or moment < end
