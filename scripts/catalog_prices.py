"""Prices as genai-prices and litellm list them, in the catalogue's form: dollars per million tokens as text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date, time
from decimal import Decimal
from typing import Any

from genai_prices import types as genai  # pyright: ignore[reportMissingImports]

RATES = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
GENAI_RATES = dict(
    zip(("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok"), RATES, strict=True)
)
LITELLM_RATES = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "cache_read_input_token_cost": "cache_read",
    "cache_creation_input_token_cost": "cache_write",
    "cache_creation_input_token_cost_above_1hr": "cache_write_1h",
}
MILLION = Decimal(1_000_000)

Price = dict[str, Any]
"""Rates as decimal strings, ``tiers`` above a size of the input, and when they hold."""


def plain(value: Decimal) -> str:
    """A decimal without exponent and without zeros at its end."""
    text = format(value.normalize(), "f")
    return text if text != "-0" else "0"


def read_genai_prices(model: Any, today: date, off_days: list[int]) -> list[Price]:
    """Today's price first, then what replaces it from a later day, and what holds at certain hours (UTC)."""
    listed = model.prices if isinstance(model.prices, list) else [genai.ConditionalPrice(prices=model.prices)]
    now: Price | None = None
    later: list[Price] = []
    hours: dict[str, Price] = {}
    for item in listed:
        price = genai_price(item.prices)
        if isinstance(item.constraint, genai.StartDateConstraint):
            if item.constraint.start_date <= today:
                now = price
            else:
                later.append({"since": item.constraint.start_date.isoformat(), **price})
        elif isinstance(item.constraint, genai.TimeOfDateConstraint):
            span = f"{clock(item.constraint.start_time)}-{clock(item.constraint.end_time)}"
            key = json.dumps(price, sort_keys=True)
            days = [day for day in range(1, 8) if day not in off_days]
            entry = hours.setdefault(key, {"hours": [], **({"days": days} if off_days else {}), **price})
            entry["hours"].append(span)
        else:
            now = price
    return [price for price in (now, *later, *hours.values()) if price and price.keys() & set(RATES)]


def clock(moment: time) -> str:
    return moment.strftime("%H:%M")


def genai_price(prices: Any) -> Price:
    base: Price = {}
    tiers: dict[int, Price] = {}
    for source, name in GENAI_RATES.items():
        value = prices.__dict__.get(source)
        if isinstance(value, genai.TieredPrices):
            base[name] = plain(value.base)
            for tier in value.tiers:
                tiers.setdefault(tier.start, {})[name] = plain(tier.price)
        elif value is not None:
            base[name] = plain(value)
    return with_tiers(base, tiers)


def read_litellm_prices(entry: Mapping[str, Any]) -> list[Price]:
    base = litellm_rates(entry, "")
    tiers: dict[int, Price] = {}
    for size in sorted({int(n) * 1000 for key in entry for n in re.findall(r"_above_(\d+)k_tokens$", key)}):
        tiers[size] = litellm_rates(entry, f"_above_{size // 1000}k_tokens")
    for step in entry.get("tiered_pricing") or ():
        rates = litellm_rates(step, "")
        if "output_cost_per_reasoning_token" in step:
            return []  # thinking costs more than the answer there, which a price by tokens of output can't say
        start = int(step["range"][0])
        if start == 0:
            base = rates
        else:
            tiers[start] = rates
    price = with_tiers(base, {size: rates for size, rates in tiers.items() if rates})
    return [price] if "input" in price and "output" in price else []


def litellm_rates(entry: Mapping[str, Any], suffix: str) -> Price:
    found = ((name, entry.get(f"{key}{suffix}")) for key, name in LITELLM_RATES.items())
    free = ("cache_write", "cache_write_1h")  # 0 stands for "no such price" there
    return {n: plain(Decimal(v) * MILLION) for n, v in found if v is not None and not (v == 0 and n in free)}


def with_tiers(base: Price, tiers: Mapping[int, Price]) -> Price:
    if not tiers:
        return base
    return {**base, "tiers": [{"above": size, **tiers[size]} for size in sorted(tiers)]}


def off_days_of(entry: Mapping[str, Any]) -> list[int]:
    """Days of the week (1 = Monday) without peak hours."""
    windows = (entry.get("off_peak_pricing") or {}).get("windows") or ()
    return sorted({day for item in windows if item["hours_utc"] == "00:00-00:00" for day in item["weekdays"]})
