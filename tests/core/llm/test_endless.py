"""Answers that repeat themselves without end are cut, and others are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swecli.core.llm.endless import LEAST_ARGUMENTS, LEAST_TEXT, EndlessText, smallest_period
from swecli.core.llm.types import ReasoningDelta, StreamEvent, TextDelta, ToolArgsDelta


def period_of(text: str, kind: type[TextDelta | ReasoningDelta | ToolArgsDelta] = TextDelta, size: int = 7) -> str:
    endless = EndlessText()
    events: list[StreamEvent] = [kind(0, text[at : at + size]) for at in range(0, len(text), size)]
    return next(filter(None, map(endless.feed, events)), "")


@pytest.mark.parametrize("period", ["a", "ab", "The sky is blue. ", "A whole paragraph of a model. " * 20])
@pytest.mark.parametrize("kind", [TextDelta, ReasoningDelta])
def test_a_period_is_found_whatever_precedes_it(period: str, kind: type[TextDelta | ReasoningDelta]) -> None:
    found = period_of("Once upon a time. " + period * (20_000 // len(period)), kind)
    assert len(found) == smallest_period(period * 2)


def test_a_file_may_be_monotonous() -> None:
    zeros = "0, " * 4_000
    assert len(zeros) > LEAST_TEXT
    assert period_of(zeros)
    assert not period_of(zeros, ToolArgsDelta)
    assert period_of("0, " * LEAST_ARGUMENTS, ToolArgsDelta)


@pytest.mark.parametrize("tokens", [0, 100_000])
def test_a_long_answer_has_the_usual_bounds(tokens: int) -> None:
    assert EndlessText.of_answer(tokens) == EndlessText(LEAST_TEXT, LEAST_ARGUMENTS)


@pytest.mark.parametrize(("kind", "most"), [(TextDelta, 1_300), (ToolArgsDelta, 2_100)])
def test_a_short_answer_is_cut_before_it_is_full(kind: type[TextDelta | ToolArgsDelta], most: int) -> None:
    endless, unit = EndlessText.of_answer(819), '"description": "Hello", '
    rounds = next(number for number in range(1, 200) if endless.feed(kind(0, unit)))
    assert rounds * len(unit) < most  # of the 3,000 characters that 819 tokens are


def test_what_goes_on_is_not_cut() -> None:
    counted = "".join(f"{number}. The same line again.\n" for number in range(5_000))
    assert not period_of(counted)
    assert not period_of("-" * 2_000 + "".join(map(str, range(4_000))) + "-" * 2_000)
    assert not period_of("The sky is blue. " * 100)


@given(st.text("abc", max_size=60))
def test_the_smallest_period_repeats_the_text(text: str) -> None:
    period = smallest_period(text)
    assert text == (text[:period] * (len(text) + 1))[: len(text)]
    assert not any(text == (text[:less] * (len(text) + 1))[: len(text)] for less in range(1, period))
