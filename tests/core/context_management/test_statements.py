"""Which sentences of a conversation state something, and which facts of it outlive compactions."""

from __future__ import annotations

import pytest

from benchmarks.facts import played
from swecli.core.context_management.statements import closeness, statements


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("The queue is orders.inbound.v3.", [2]),
        ("Found it: the test hangs since `close` is never called.", [2]),
        ("Ruled out: bumping Celery to 5.4 breaks the beat schedule.", [5]),
        ("Die Ursache ist, dass read_adc 3 ms zu spät kommt.", [4]),
        ("Let me look at it. Okay, next I'll open the file.", []),
        ("Is it the cache? Yes.", []),
        ("Turn 5 is done. The tests are now complete.", []),
        ("I'm going to move the checksum into frame.c and drop crc_util.c.", [1]),
        ("x" * 400, []),
    ],
)
def test_what_is_definite_weighs_more(text: str, weights: list[int]) -> None:
    assert [one.weight for one in statements(text)] == weights


def test_related_words_are_close() -> None:
    assert closeness(["author"], "Ilse is its authoress") == 1.0
    assert closeness(["serialization"], "we serialize it") == 0.6
    assert closeness(["money"], "amounts are cents") == 0.0


async def test_facts_outlive_three_compactions_with_an_empty_summary() -> None:
    figures = await played("second", 32_000, "empty")
    assert figures.present >= 25, figures.lost
    assert figures.words == 30, figures.unfound
    assert figures.paraphrase >= 28, figures.unfound
