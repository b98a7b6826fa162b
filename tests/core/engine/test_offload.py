"""Which results stay, by kind, size and room."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.context_management.budget import Limits, edge
from swecli.core.engine.results import (
    OffloadRules,
    ResultFacts,
    believed,
    correction,
    does_not_fit,
    excerpt_bytes,
    room_left,
    too_large,
)
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.events import ResultKind
from swecli.core.protocol.messages import Usage
from tests.support.thorough import examples

RULES = OffloadRules()


@pytest.mark.parametrize(
    ("kind", "failed", "size", "stays"),
    [
        ("output", False, 4_096, True),
        ("output", False, 4_097, False),
        ("output", True, 16_384, True),
        ("output", True, 16_385, False),
        ("page", False, 48_000, True),
        ("page", False, 48_001, False),
        ("stored", False, 1_000_000, True),
    ],
)
def test_size_decides_by_kind(kind: ResultKind, failed: bool, size: int, stays: bool) -> None:
    assert (too_large(ResultFacts(kind, size, failed), RULES) == "") is stays


def test_the_threshold_is_the_users() -> None:
    rules = OffloadRules(threshold=100_000)
    assert not too_large(ResultFacts("output", 100_000), rules)
    assert too_large(ResultFacts("output", 100_001), rules)
    assert not too_large(ResultFacts("output", 50_000, failed=True), rules)


def test_room_decides_whatever_the_kind() -> None:
    kinds: tuple[ResultKind, ...] = ("page", "output", "stored")
    for kind in kinds:
        assert not does_not_fit(ResultFacts(kind, 4_000, tokens=1_000), 1_100)
        assert does_not_fit(ResultFacts(kind, 4_000, tokens=1_000), 1_099)
        assert does_not_fit(ResultFacts(kind, 4_000, tokens=1), -5)
        assert not does_not_fit(ResultFacts(kind, 4_000, tokens=None), 10)
        assert not does_not_fit(ResultFacts(kind, 4_000, tokens=10**6), None)


def budget(used: int, upper: int, effective: int) -> Budget:
    return Budget((), used, upper, effective, effective, 0, "ok")


@given(
    st.integers(0, 100_000),
    st.integers(0, 3_000),
    st.integers(0, 5_000),
    st.integers(0, 50_000),
    st.integers(0, 5),
    st.none() | st.integers(1, 120_000),
)
@settings(deadline=None, max_examples=examples(80, 400))
def test_what_fits_never_reaches_the_block_line(
    used: int, band: int, answer: int, results: int, others: int, reported: int | None
) -> None:
    limits, measured = Limits(), budget(used, used + band, 128_000)
    usage = Usage(input_total=reported) if reported else None
    room = room_left(measured, limits, usage=usage, answer=answer, results=results, open_calls=others)
    tokens = max(0, int(room / 1.1))
    if does_not_fit(ResultFacts("page", 1, tokens=tokens), room):
        return
    request = max(measured.upper, believed(measured, usage) + band)
    assert room < 0 or request + answer + results + tokens < edge(limits.block, measured.effective)


def test_a_tokenizer_that_counts_more_is_believed() -> None:
    assert correction(budget(1_000, 1_100, 9_000), Usage(input_total=1_350)) == pytest.approx(1.35)
    assert correction(budget(1_000, 1_100, 9_000), Usage(input_total=100)) == 1.0
    assert correction(budget(1_000, 1_100, 9_000), Usage(input_total=2_000)) == 2.0
    assert correction(budget(1_000, 1_100, 9_000), Usage(input_total=8_000)) == 1.0  # no prompt can be that much larger
    assert correction(budget(0, 0, 9_000), Usage(input_total=9_000)) == 1.0
    assert correction(budget(1_000, 1_100, 9_000), None) == 1.0


def test_no_room_leaves_no_excerpt() -> None:
    assert excerpt_bytes(None) is None
    assert excerpt_bytes(-100) == 0
    assert excerpt_bytes(1_200) == 2_000
