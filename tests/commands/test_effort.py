"""/effort and /plan."""

from __future__ import annotations

import pytest

from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.commands import SetEffort, SetMode, Submit
from tests.commands.support import CommandSession


def session(*efforts: str, known: bool = True) -> CommandSession:
    made = CommandSession()
    made.view.model = ModelInfo("a", "b", efforts=efforts if known else None)
    return made


async def test_a_word_that_the_model_has_is_set() -> None:
    port = session("low", "high")
    assert await port.slash("/effort HIGH") == ""  # the session says so
    assert port.commands == [SetEffort("high")]


async def test_its_other_name_and_the_way_back() -> None:
    port = session("low", "high")
    await port.slash("/thinking default")
    assert port.commands == [SetEffort(None)]


@pytest.mark.parametrize(
    ("efforts", "said"), [(("low", "high"), "low, high, or default"), ((), "has no effort levels")]
)
async def test_a_word_that_it_has_not_changes_nothing(efforts: tuple[str, ...], said: str) -> None:
    port = session(*efforts)
    assert said in await port.slash("/effort extreme")
    assert port.commands == []


async def test_where_the_words_are_not_known_those_of_other_models_go() -> None:
    port = session(known=False)
    assert "unknown" in await port.slash("/effort xhigh")
    assert port.commands == [SetEffort("xhigh")]
    for wrong in ("extreme", "very much", "low high"):
        said = await port.slash(f"/effort {wrong}")
        assert f"Unknown effort {wrong}" in said
        assert "low, medium, high" in said
    assert len(port.commands) == 1


async def test_without_a_word_it_is_a_list_to_pick_from() -> None:
    assert await session("low").slash("/effort") == "screen:pick_effort"


async def test_without_a_model_nothing_can_be_set() -> None:
    port = CommandSession(model=False)
    assert "No model" in await port.slash("/effort low")
    assert port.commands == []


async def test_plan_switches_the_mode_and_sends_a_task() -> None:
    port = CommandSession()
    port.turns(())
    assert "Mode plan" in await port.slash("/plan")
    assert port.commands == [SetMode("plan")]
    await port.slash("/plan the refactoring of @a.py")
    assert port.commands[1:] == [SetMode("plan"), Submit("the refactoring of @a.py")]


@pytest.mark.parametrize("words", ["go on", "exit", "show it"])
async def test_plan_with_a_word_that_it_does_not_know_sends_nothing(words: str) -> None:
    port = CommandSession()
    assert "Nothing was changed or sent" in await port.slash(f"/plan {words}")
    assert port.commands == []


async def test_plan_with_a_task_waits_for_the_end_of_a_turn() -> None:
    port = CommandSession()
    port.view.busy = True
    assert "A turn is running" in await port.slash("/plan the refactoring")
    assert port.commands == []
