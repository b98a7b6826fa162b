"""Which sentences of a conversation state something, and which facts of it outlive compactions."""

from __future__ import annotations

import pytest

from benchmarks.facts import planted, played
from swecli.core.context_management.statements import closeness, rarity, statements


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
        ("I'll use a partial index where voided_at is null.", [2]),
        ("x" * 400, []),
    ],
)
def test_what_is_definite_weighs_more(text: str, weights: list[int]) -> None:
    assert [one.weight for one in statements(text)] == weights


def test_what_the_user_announces_does_not_pass() -> None:
    assert not statements("Let's do option B.")
    assert [one.text for one in statements("Let's do option B.", by_user=True)] == ["Let's do option B."]


def test_a_fact_weighs_more_than_a_routine_of_the_same_form() -> None:
    routine = [f"The {name} looks fine, therefore the {name} {at} is next." for at, name in enumerate("abcdefgh")]
    fact = "A view was too slow to refresh."
    weights = rarity([*routine, fact])
    assert all(weights[fact] > 2 * weights[text] for text in routine)
    assert rarity([]) == {}
    assert rarity(["1 2"]) == {"1 2": 0.0}


def test_related_words_are_close() -> None:
    assert closeness(["author"], "Ilse is its authoress") == 1.0
    assert closeness(["serialization"], "we serialize it") == 0.6
    assert closeness(["money"], "amounts are cents") == 0.0


@pytest.mark.parametrize(("collection", "window"), [("second", 32_000), ("third", 16_000)])
async def test_facts_outlive_three_compactions_with_an_empty_summary(collection: str, window: int) -> None:
    figures = await played(collection, window, "empty")
    asked = sum(1 for fact in planted(collection) if fact.by != "result")
    assert figures.present >= 25 / 30 * len(planted(collection)), figures.lost
    assert figures.words == len(planted(collection)), figures.unfound
    assert figures.paraphrase >= asked, figures.unfound
