"""What a response costs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.llm.catalog import PriceList, Pricer, cost_of, load_catalog, read_prices
from swecli.core.protocol.messages import Usage
from tests.support.thorough import examples

SATURDAY = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
MONDAY = datetime(2026, 11, 23, 2, 0, tzinfo=UTC)


def prices(*periods: dict[str, object]) -> PriceList:
    found = read_prices(list(periods))
    assert found is not None
    return found


FLAT = prices({"input": "3", "output": "15", "cache_read": "0.3", "cache_write": "3.75"})
STEPPED = prices(
    {
        "input": "1",
        "output": "4",
        "cache_read": "0.1",
        "tiers": [{"above": 1000, "input": "2", "output": "8", "cache_read": "0.2"}, {"above": 5000, "input": "3"}],
    }
)
PEAK = prices(
    {"input": "1", "output": "1"},
    {"since": "2026-12-01", "input": "2", "output": "2"},
    {"hours": ["01:00-04:00", "23:00-00:30"], "days": [1, 2, 3, 4, 5], "input": "5", "output": "5"},
)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (Usage(input_total=1_000_000, output_total=0), "3"),
        (Usage(input_total=0, output_total=1_000_000), "15"),
        (Usage(input_total=1_000_000, cache_read=1_000_000, output_total=0), "0.3"),
        (Usage(input_total=1_000_000, cache_write=1_000_000, output_total=0), "3.75"),
        (Usage(input_total=100_000, cache_read=60_000, cache_write=30_000, output_total=1_000), "0.1755"),
        (Usage(input_total=10, cache_read=60, output_total=0), "0.000018"),
        (Usage(input_total=0, output_total=0), "0"),
    ],
)
def test_each_kind_of_token_has_its_rate(usage: Usage, expected: str) -> None:
    assert cost_of(FLAT, usage, MONDAY) == Decimal(expected)


def test_writes_for_an_hour_have_a_rate_of_their_own() -> None:
    listed = prices({"input": "4", "output": "20", "cache_read": "0.4", "cache_write": "5", "cache_write_1h": "8"})
    usage = Usage(input_total=1_000_000, cache_write=1_000_000, cache_write_1h=400_000, output_total=0)
    assert cost_of(listed, usage, MONDAY) == Decimal("6.2")
    assert cost_of(FLAT, usage, MONDAY) == Decimal("3.75")


@pytest.mark.parametrize(("size", "rate"), [(1000, "1"), (1001, "2"), (5000, "2"), (5001, "3")])
def test_the_size_of_the_input_chooses_the_tier_for_all_tokens(size: int, rate: str) -> None:
    assert cost_of(STEPPED, Usage(input_total=size, output_total=0), MONDAY) == size * Decimal(rate) / 1_000_000


def test_cached_tokens_count_for_the_tier() -> None:
    usage = Usage(input_total=1001, cache_read=1001, output_total=1)
    assert cost_of(STEPPED, usage, MONDAY) == (1001 * Decimal("0.2") + 8) / 1_000_000


def test_a_rate_that_a_tier_does_not_name_is_the_usual_one() -> None:
    usage = Usage(input_total=6000, cache_read=6000, output_total=1)
    assert cost_of(STEPPED, usage, MONDAY) == (6000 * Decimal("0.1") + 4) / 1_000_000


def test_a_cache_rate_that_is_not_listed_is_the_input_rate() -> None:
    plain = prices({"input": "2", "output": "10"})
    usage = Usage(input_total=900, cache_read=300, cache_write=300, output_total=0)
    assert cost_of(plain, usage, MONDAY) == Decimal("0.0018")


@pytest.mark.parametrize(
    ("moment", "rate"),
    [
        (datetime(2026, 11, 23, 0, 59, tzinfo=UTC), "1"),
        (MONDAY, "5"),
        (datetime(2026, 11, 23, 4, 0, tzinfo=UTC), "1"),
        (datetime(2026, 11, 23, 23, 30, tzinfo=UTC), "5"),
        (datetime(2026, 11, 23, 0, 10, tzinfo=UTC), "5"),
        (SATURDAY, "1"),
        (datetime(2026, 11, 30, 23, 59, tzinfo=timezone(timedelta(hours=-2))), "5"),
        (datetime(2026, 12, 1, 12, 0, tzinfo=UTC), "2"),
        (datetime(2026, 11, 30, 12, 0), "1"),
    ],
)
def test_day_and_hour_choose_the_price(moment: datetime, rate: str) -> None:
    assert PEAK.at(moment).input == Decimal(rate)


@pytest.mark.parametrize("usage", [Usage(), Usage(input_total=5), Usage(output_total=5)])
def test_without_sizes_there_is_no_price(usage: Usage) -> None:
    assert cost_of(FLAT, usage, MONDAY) is None


@pytest.mark.parametrize(
    "bad", [{"input": "1"}, {"output": "1"}, {"input": "1", "output": "x"}, {"input": "1", "output": None}]
)
def test_a_price_list_needs_both_rates(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="input and output"):
        read_prices([bad])


TOKENS = st.integers(min_value=0, max_value=3_000_000)


@given(TOKENS, TOKENS, TOKENS, TOKENS)
@settings(deadline=None, max_examples=examples(40, 200))
def test_the_cache_never_makes_reading_dearer_and_nothing_is_negative(a: int, b: int, c: int, output: int) -> None:
    total = a + b + c
    cached = cost_of(FLAT, Usage(input_total=total, cache_read=b, output_total=output), MONDAY)
    plain = cost_of(FLAT, Usage(input_total=total, output_total=output), MONDAY)
    mixed = cost_of(FLAT, Usage(input_total=total, cache_read=b, cache_write=c, output_total=output), MONDAY)
    assert cached is not None
    assert plain is not None
    assert mixed is not None
    assert 0 <= cached <= plain
    assert mixed - cached == c * Decimal("0.75") / 1_000_000


def test_what_the_provider_reports_wins() -> None:
    usage = Usage(input_total=1_000_000, output_total=0, cost=Decimal("1.5E-2"))
    assert Pricer()("anthropic/claude-sonnet-4-5", usage) == "0.015"
    assert Pricer()("nobody/knows", usage) == "0.015"
    assert Pricer()("nobody/knows", Usage(cost=Decimal("0E+3"))) == "0"


@pytest.mark.parametrize(
    ("ref", "moment", "expected"),
    [
        ("anthropic/claude-sonnet-4-5-20250929", MONDAY, "0.03075"),
        ("deepseek/deepseek-v4-pro", MONDAY, "0.01199"),
        ("deepseek/deepseek-v4-pro", SATURDAY, "0.005995"),
        ("openrouter/anthropic/claude-sonnet-4.5", MONDAY, "0.03075"),
    ],
)
def test_prices_of_the_catalogue(ref: str, moment: datetime, expected: str) -> None:
    usage = Usage(input_total=10_000, cache_read=2_500, output_total=500)
    assert Pricer(now=lambda: moment)(ref, usage) == expected


@pytest.mark.parametrize(
    "ref",
    ["ollama/qwen3-coder:30b", "vercel/anthropic/claude-sonnet-4.5", "openrouter/openai/gpt-oss-20b:free", "", "x"],
)
def test_an_unknown_price_is_none(ref: str) -> None:
    assert Pricer()(ref, Usage(input_total=10, output_total=10)) is None


def test_a_model_without_a_price_has_none() -> None:
    assert any(item.prices is None for item in load_catalog().models)
    assert Pricer()("alibaba/qwen-plus-latest", Usage(input_total=10, output_total=10)) is None
