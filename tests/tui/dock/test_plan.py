"""A plan ends with choices, and is shown while it is carried out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from swecli.core.engine.plan import ACCEPTED, ProposedPlan
from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.commands import CarryOut, SetMode, Submit
from swecli.core.protocol.events import ItemCompleted, ItemStarted, ModeChanged, TodosChanged, TurnEnded
from swecli.core.protocol.messages import TextPart
from tests.support.fake_session import WAIT_FOR_INTERRUPT
from tests.tui.golden import check
from tests.tui.support import Running, Session, running

TEXT = "## Plan\n\n1. Fix the comparison in shop/pricing.py\n2. Add a test for ten pens\n3. Run the tests\n"
STEPS = ("Fix the comparison in shop/pricing.py", "Add a test for ten pens", "Run the tests")
ANSWER = (ItemStarted("a1", "text"), ItemCompleted("a1", "ok", (TextPart(TEXT),)), TurnEnded("done", duration=2.0))


def planning() -> Session:
    session = Session(ANSWER, (WAIT_FOR_INTERRUPT,))
    session.view.mode = "plan"
    session.view.plan = ProposedPlan(STEPS)
    return session


async def appear(it: Running) -> None:
    await it.say("plan it")
    await it.shows(
        "Go ahead with this plan? (3 steps)", "1 go ahead", "2 go ahead and accept edits", "3 revise it", "4 keep"
    )
    it.clock.now += 1


@pytest.mark.parametrize(
    ("keys", "mode"),
    [(("1",), "default"), (("y",), "default"), (("down", "enter"), "accept-edits"), (("a",), "accept-edits")],
)
async def test_a_plan_is_carried_out(keys: tuple[str, ...], mode: Any) -> None:
    async with running(session=planning()) as it:
        await appear(it)
        await it.press("enter")
        assert not it.session.sent(CarryOut)
        await it.press(*keys)
        await it.until(lambda: it.session.sent(CarryOut) == [CarryOut(mode)])
        await it.hides("Go ahead with this plan?")


async def test_a_plan_behind_an_open_search_is_asked_about_once_that_is_closed() -> None:
    async with running(session=planning()) as it:
        it.app.interface.open("find", "pens")
        await it.shows("esc close")
        it.session.send(Submit("plan it"))
        await it.shows("done in 2 s", "esc close")
        await it.press("escape")
        await it.shows("Go ahead with this plan? (3 steps)")
        await it.press("escape")
        await it.hides("Go ahead with this plan?")
        assert not it.app.interface.plan.waits


async def test_change_it_takes_words_for_the_model() -> None:
    async with running(session=planning()) as it:
        await appear(it)
        await it.press("3")
        await it.shows("What should the plan change?")
        await it.press(*"no test", "enter")
        await it.until(lambda: Submit("Change the plan: no test") in it.session.sent(Submit))
        assert not it.session.sent(SetMode)


async def test_words_about_a_change_that_are_not_sent_go_to_the_prompt() -> None:
    async with running(session=planning()) as it:
        await appear(it)
        await it.press("3")
        await it.shows("What should the plan change?")
        await it.press(*"no test", "escape")
        await it.until(lambda: it.text == "no test" and it.editor.has_focus)
        assert len(it.session.sent(Submit)) == 1


@pytest.mark.parametrize("key", ["4", "escape"])
async def test_keep_planning_goes_back_to_the_prompt(key: str) -> None:
    async with running(session=planning()) as it:
        await appear(it)
        await it.press(key)
        await it.until(lambda: it.editor.has_focus)
        assert not it.session.sent(CarryOut)


async def test_another_mode_settles_the_question_and_the_plan_is_shown_while_it_is_carried_out() -> None:
    session = planning()
    async with running(session=session) as it:
        await appear(it)
        session.emit(TodosChanged(tuple(Todo(step) for step in STEPS)))
        session.emit(ModeChanged("default", ACCEPTED))
        await it.hides("Go ahead with this plan?")
        await it.shows("Todos 0/3", "Add a test for ten pens")
        session.emit(TodosChanged(tuple(Todo(step, "completed") for step in STEPS)))
        await it.shows("Todos 3/3")
        session.emit(TurnEnded("done", duration=2.0))
        await it.hides("Todos 3/3")


async def test_a_panel_whose_children_the_end_of_the_program_has_removed_is_left_alone() -> None:
    async with running(session=planning()) as it:
        await appear(it)
        dock = it.app.main.dock
        assert dock.panel is not None
        await dock.panel.query("*").remove()
        dock.fit()
        await dock.panel.remove()
        dock.fit()


async def test_an_answer_that_is_no_plan_asks_nothing() -> None:
    session = planning()
    session.view.plan = None
    async with running(session=session) as it:
        await it.say("what is it?")
        await it.shows("done in 2 s")
        await it.pilot.pause()
        assert it.app.main.dock.panel is None


@pytest.mark.parametrize("size", [(80, 24), (40, 15)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_screens(size: tuple[int, int]) -> None:
    async with running(session=planning(), size=size) as it:
        await appear(it)
        await it.shows("esc keep planning")
        await it.settled()
        check(f"plan-{size[0]}x{size[1]}", it.screen())


async def test_a_written_plan_is_edited_and_asked_about_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "plan.md"
    file.write_text(TEXT)
    edited: list[Path] = []

    async def edit(app: Any, path: Path) -> None:
        edited.append(path)
        path.write_text("1. Only this\n2. And that\n")  # noqa: ASYNC240

    monkeypatch.setattr("swecli.tui.external.open_file", edit)
    session = planning()
    session.view.plan = ProposedPlan(STEPS, TEXT, str(file))
    async with running(session=session) as it:
        await it.say("plan it")
        await it.shows("Go ahead with this plan? (3 steps)", "3 edit it")
        it.clock.now += 1
        await it.press("e")
        await it.shows("plan.md, as you changed it", "Only this", "Go ahead with this plan? (2 steps)")
        assert edited == [file]
        it.clock.now += 1
        await it.press("y")
        await it.until(lambda: it.session.sent(CarryOut) == [CarryOut("default")])
