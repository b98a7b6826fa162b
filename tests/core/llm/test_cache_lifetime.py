"""The lifetime of the prompt cache by the user's pauses and the prices."""

from __future__ import annotations

from decimal import Decimal

import pytest

from swecli.core.llm.cache_lifetime import LEAST_PAUSES, cheapest, lifetime
from swecli.core.llm.catalog import Rates
from swecli.core.llm.providers import Overrides, resolve

CLAUDE = ("5m", "1h")
OPENAI = ("30m", "12h")
RATES = Rates(Decimal(4), Decimal(20), Decimal("0.4"), Decimal(5), Decimal(8))
MINUTE = 60.0


@pytest.mark.parametrize(
    ("wanted", "selectable", "chosen"),
    [
        ("5m", CLAUDE, "5m"),
        ("1h", CLAUDE, "1h"),
        ("12h", CLAUDE, "1h"),
        ("30m", CLAUDE, "1h"),
        ("5m", OPENAI, "30m"),
        ("1h", OPENAI, "12h"),
        ("1h", (), ""),
    ],
)
def test_a_wish_is_met_by_the_next_longer_lifetime(wanted: str, selectable: tuple[str, ...], chosen: str) -> None:
    assert lifetime(wanted, selectable) == chosen


def test_pauses_between_the_two_lifetimes_pay_for_the_longer_one() -> None:
    assert cheapest(CLAUDE, [20 * MINUTE] * 8 + [MINUTE] * 4, RATES) == "1h"


def test_short_or_very_long_pauses_do_not() -> None:
    assert cheapest(CLAUDE, [MINUTE] * 30 + [20 * MINUTE], RATES) == "5m"
    assert cheapest(CLAUDE, [600 * MINUTE] * 30, RATES) == "5m"


def test_the_rest_of_swecli_knows_how_long_a_prompt_is_kept() -> None:
    def seconds(model: str, chosen: str) -> float:
        keys = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k"}
        return resolve(model, keys, overrides=Overrides(cache_ttl=lambda _: chosen)).info.cache_seconds

    assert seconds("anthropic/claude-opus-5-5", "") == 5 * MINUTE
    assert seconds("anthropic/claude-opus-5-5", "1h") == 60 * MINUTE
    assert seconds("openai/gpt-6-sol", "") == 30 * MINUTE
    assert seconds("gemini/gemini-3.8-flash", "1h") == 5 * MINUTE


def test_without_enough_knowledge_the_default_counts() -> None:
    assert cheapest(CLAUDE, [20 * MINUTE] * (LEAST_PAUSES - 1), RATES) == "5m"
    assert cheapest(CLAUDE, [20 * MINUTE] * 30, None) == "5m"
    assert cheapest(CLAUDE, [20 * MINUTE] * 30, Rates(Decimal(1), Decimal(2))) == "5m"
    assert cheapest((), [20 * MINUTE] * 30, RATES) == ""
