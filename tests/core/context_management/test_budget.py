from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from swecli.core.context_management.budget import (
    LONGEST_ANSWER,
    Limits,
    budget_too_large,
    clamp_output,
    edge,
    level_of,
    window_of,
)
from swecli.core.llm.types import ASSUMED_WINDOW, ModelInfo


def model(window: int | None = 200_000, max_output: int | None = 64_000) -> ModelInfo:
    return ModelInfo("fake", "m", window, max_output, "catalogue" if window else "assumed")


@pytest.mark.parametrize(
    ("info", "limits", "total", "reserve", "source"),
    [
        (model(), Limits(), 200_000, 40_000, "catalogue"),
        (model(200_000, 8_000), Limits(), 200_000, 8_000, "catalogue"),
        (model(), Limits(max_output_tokens=4_000), 200_000, 4_000, "catalogue"),
        (model(200_000, None), Limits(), 200_000, 40_000, "catalogue"),
        (model(None, None), Limits(), ASSUMED_WINDOW, ASSUMED_WINDOW // 5, "assumed"),
        (model(0, 0), Limits(), ASSUMED_WINDOW, ASSUMED_WINDOW // 5, "assumed"),
        (model(), Limits(context_budget=10_000), 10_000, 2_000, "settings"),
        (model(1, 1), Limits(), 1, 0, "catalogue"),
        (model(8_192), Limits(context_budget=100_000), 8_192, 1_638, "catalogue"),
        (model(None, None), Limits(context_budget=100_000), 100_000, 20_000, "settings"),
    ],
)
def test_reserve_is_the_smallest_of_what_is_known(
    info: ModelInfo, limits: Limits, total: int, reserve: int, source: str
) -> None:
    window = window_of(info, limits)
    assert (window.total, window.reserve, window.effective) == (total, reserve, total - reserve)
    assert window.source == source


def test_a_budget_above_a_guessed_window_counts_and_above_a_known_one_does_not() -> None:
    limits = Limits(context_budget=100_000)
    assert not budget_too_large(ModelInfo("fake", "m", 32_000, None, "assumed"), limits)
    assert budget_too_large(ModelInfo("fake", "m", 32_000, None, "endpoint"), limits)
    assert window_of(ModelInfo("fake", "m", 32_000, None, "assumed"), limits).total == 100_000


@pytest.mark.parametrize("effective", [9_500, 10_000, 12_345, 160_000, 7])
def test_a_threshold_counts_from_the_token_that_reaches_it(effective: int) -> None:
    limits = Limits()
    order = ("ok", "warn", "compact", "block")
    for share, level in ((0.80, "warn"), (0.95, "compact"), (0.98, "block")):
        at = edge(share, effective)
        assert order.index(level_of(at, effective, limits)) >= order.index(level)
        assert order.index(level_of(at - 1, effective, limits)) < order.index(level)
    assert level_of(7_600, 9_500, limits) == "warn"
    assert level_of(7_599, 9_500, limits) == "ok"
    assert level_of(9_025, 9_500, limits) == "compact"
    assert level_of(9_310, 9_500, limits) == "block"


def test_no_room_at_all_is_blocked() -> None:
    assert level_of(0, 0, Limits()) == "block"
    assert level_of(0, -5, Limits()) == "block"


@pytest.mark.parametrize(
    "values",
    [
        {"warn": 0.0},
        {"warn": -0.1},
        {"warn": 0.96},
        {"compact": 0.99},
        {"block": 1.01},
        {"block": 0.5},
        {"warn": math.nan},
        {"block": math.inf},
    ],
)
def test_thresholds_out_of_order_are_refused(values: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="0 < warn <= compact <= block <= 1"):
        Limits(**values)


def test_sizes_below_one_are_refused() -> None:
    with pytest.raises(ValueError, match="context_budget"):
        Limits(context_budget=0)
    with pytest.raises(ValueError, match="max_output_tokens"):
        Limits(max_output_tokens=-1)
    assert Limits(warn=1, compact=1, block=1).warn == 1


@given(st.integers(0, 300_000), st.integers(1, 300_000), st.integers(1, 100_000), st.none() | st.integers(1, 100_000))
def test_the_answer_never_gets_more_than_the_window_has_left(
    upper: int, window: int, longest: int, asked: int | None
) -> None:
    limit = clamp_output(model(window, longest), Limits(max_output_tokens=asked), upper)
    assert limit is not None
    assert 1 <= limit <= min(longest, asked or longest)
    assert limit == 1 or upper + limit <= window


def test_without_any_knowledge_an_answer_has_a_limit() -> None:
    assert clamp_output(model(200_000, None), Limits(), 1_000) == LONGEST_ANSWER
    assert clamp_output(model(8_192, None), Limits(), 1_000) == 7_192
    assert clamp_output(replace(model(200_000, None), usual_output=8_192), Limits(), 1_000) is None
    assert clamp_output(model(None, None), Limits(max_output_tokens=500), 1_000) == 500
