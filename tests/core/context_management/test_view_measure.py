"""A view that differs in few entries is measured as if it were measured as a whole."""

from __future__ import annotations

import random

import pytest

from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.projection import project
from swecli.core.context_management.view_measure import ViewMeasure
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.messages import Usage
from tests.support.said import Said
from tests.support.thorough import examples

INFO = ModelInfo("p", "claude-x", 200_000, 8_000)
SEEDS = range(examples(8, 300))


def conversation(rand: random.Random) -> Said:
    said = Said()
    for number in range(rand.randint(3, 14)):
        said.user(f"Request {number}: " + "words " * rand.randint(1, 40))
        for call in range(rand.randint(0, 3)):
            said.call("read_file", {"path": f"f{call}"}, f"line of f{number}\n" * rand.randint(1, 200))
        said.answer("It is " + "so " * rand.randint(1, 50), "I think. " * rand.randint(0, 30))
    return said


def other_forms(view: tuple[ViewEntry, ...], rand: random.Random) -> tuple[ViewEntry, ...]:
    return tuple(
        ViewEntry("stub", shown.id, f"[{shown.id} is cleared]") if rand.random() < 0.2 else shown for shown in view
    )


@pytest.mark.parametrize("reported", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_an_exchange_is_measured_like_the_whole(seed: int, reported: bool) -> None:
    rand = random.Random(seed)
    ledger, context = conversation(rand).ledger, ContextManager(())
    if reported:
        usage = Usage(input_total=round(1.2 * context.measure(project(ledger), INFO).used), output_total=20)
        context.adopt_size(project(ledger), usage, INFO)
    measured = ViewMeasure(context, ledger, INFO)
    measured.measure(ledger.view)
    for _ in range(3):
        view = other_forms(ledger.view, rand)
        quick, whole = measured.measure(view), ViewMeasure(context, ledger, INFO).measure(view)
        assert abs(quick.used - whole.used) <= 1
        assert abs(quick.upper - whole.upper) <= 2
        assert {part.name for part in quick.components if part.tokens > 1} == {
            part.name for part in whole.components if part.tokens > 1
        }
        assert (quick.level, quick.source) == (whole.level, whole.source)


def test_a_preview_leaves_the_measure_of_the_conversation_as_it_is() -> None:
    ledger, context = conversation(random.Random(1)).ledger, ContextManager(())
    before = context.measure(project(ledger), INFO)
    ViewMeasure(context, ledger, INFO).measure(other_forms(ledger.view, random.Random(2)))
    assert context.measure(project(ledger), INFO) == before
