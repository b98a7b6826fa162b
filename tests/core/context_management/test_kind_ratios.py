"""A tokenizer that takes JSON apart more than prose is learned from reports about mixtures."""

from __future__ import annotations

import random

import pytest

from swecli.core.context_management.counter import MessageSize
from swecli.core.context_management.kind_ratios import KindRatios
from swecli.core.protocol.budget import ASSISTANT, CALLS, RESULTS, SUMMARIES

TRUE = {ASSISTANT: 1.12, CALLS: 1.5, RESULTS: 1.28}
AVERAGE = 1.3


def size(**counts: int) -> MessageSize:
    names = {"prose": ASSISTANT, "calls": CALLS, "results": RESULTS}
    return MessageSize("assistant", (), tuple((names[name], tokens) for name, tokens in counts.items()))


def reported(one: MessageSize) -> float:
    return sum(TRUE[component] * tokens for component, tokens in one.counts)


def test_kinds_are_told_apart_by_reports_of_mixtures() -> None:
    rand, ratios = random.Random(1), KindRatios()
    prose, calls = size(prose=1_000), size(calls=1_000)
    assert ratios.factor(prose, AVERAGE) == ratios.factor(calls, AVERAGE) == AVERAGE
    for _ in range(60):
        for told in (
            size(prose=rand.randint(0, 600), calls=rand.randint(0, 600)),
            size(results=rand.randint(9, 3_000)),
        ):
            ratios.learn([told], reported(told), AVERAGE)
    assert ratios.factor(prose, AVERAGE) == pytest.approx(1.12, abs=0.06)
    assert ratios.factor(calls, AVERAGE) == pytest.approx(1.5, abs=0.06)
    assert ratios.factor(size(results=10), AVERAGE) == pytest.approx(1.28, abs=0.02)


def test_reports_of_nothing_and_of_nonsense_do_little_harm() -> None:
    ratios = KindRatios()
    ratios.learn([], 100, AVERAGE)
    ratios.learn([size(prose=0)], 100, AVERAGE)
    assert ratios.factor(size(prose=10), AVERAGE) == AVERAGE
    ratios.learn([size(prose=1_000)], 90_000, AVERAGE)
    assert 0.5 <= ratios.factor(size(prose=10), AVERAGE) <= 2.0
    assert ratios.factor(size(), AVERAGE) == AVERAGE


def test_a_summary_teaches_what_the_next_one_takes_and_little_about_other_prose() -> None:
    ratios, prose = KindRatios(), size(prose=1_000)
    summary = MessageSize("user", (), ((SUMMARIES, 4_000),))
    for _ in range(40):
        ratios.learn([prose], 1_120, AVERAGE)
    before = ratios.factor(prose, AVERAGE)
    assert ratios.factor(summary, AVERAGE) == pytest.approx(before)
    for _ in range(3):
        ratios.learn([summary], 4_000 * 1.05, AVERAGE)
    assert ratios.factor(summary, AVERAGE) == pytest.approx(1.05, abs=0.02)
    assert ratios.factor(prose, AVERAGE) == pytest.approx(before, abs=0.01)
