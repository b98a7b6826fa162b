"""A plan is recognised, and carried out in another mode with its steps as the todo list."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from swecli.core.context_management.compaction.package import state_block
from swecli.core.engine.compaction_plans import session_facts
from swecli.core.engine.plan import ProposedPlan, file_name, proposed, steps_of, todos_of
from swecli.core.engine.settings import Adjustable
from swecli.core.permissions.types import Policy
from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.commands import CarryOut
from swecli.core.protocol.events import ItemStarted, Notice, PlanChanged, TodosChanged
from swecli.core.protocol.messages import Message, TextPart, ToolCallPart
from tests.core.engine.support import bench, call, new_notes, notes_in, until


def written(folder: Path | None) -> dict[str, Any]:
    return {"plans": folder}


PLAN = """## Plan

The cause is the comparison.

1. **Fix** `shop/pricing.py`
   - use `>=`
2) Add a test
3. Run `make test`

```
1. not a step
2. nor this
3. nor that
4. nor that
```
Open questions:
- none
"""


def test_steps_are_those_of_the_longest_numbered_list_outside_of_code() -> None:
    assert steps_of(PLAN) == ("Fix shop/pricing.py", "Add a test", "Run make test")
    assert steps_of("Do:\n- [ ] one\n* two\n") == ("one", "two")
    assert steps_of("1. a\n2. b\n\n1. c\n2. d\n3. e") == ("c", "d", "e")
    assert len(steps_of("\n".join(f"{n}. x" for n in range(1, 200)))) == 199


def test_steps_that_the_todo_list_has_no_room_for_are_in_its_last_entry() -> None:
    steps = tuple(f"step {number}" for number in range(1, 201))
    assert [todo.text for todo in todos_of(ProposedPlan(steps[:50]), ())] == list(steps[:50])
    todos = todos_of(ProposedPlan(steps), ())
    assert [todo.text for todo in todos] == [*steps[:49], "Steps 50 to 200 of the plan"]


@pytest.mark.parametrize(
    ("text", "is_plan"),
    [
        (PLAN, True),
        ("My plan: change a.py.", True),
        ("It is in a.py, line 3.", False),
        ("Plan mode forbids that.", False),
        ("- only one\n", False),
    ],
)
def test_what_is_a_plan(text: str, is_plan: bool) -> None:
    answer = Message("assistant", (TextPart(text),), "m")
    assert (proposed([answer]) is not None) == is_plan
    assert proposed([answer, Message("user", (TextPart("no"),), "u")]) is None
    assert proposed([Message("assistant", (TextPart(text), ToolCallPart("c", "x", "{}")), "m")]) is None


def test_todos_of_the_model_are_kept() -> None:
    listed = Message("assistant", (ToolCallPart("c", "TodoWrite", "{}"),), "l")
    plan = proposed(
        [Message("user", (TextPart("plan it"),), "u"), listed, Message("assistant", (TextPart(PLAN),), "m")]
    )
    assert plan is not None
    own = (Todo("mine"),)
    assert todos_of(plan, own) == own
    assert [todo.status for todo in todos_of(plan, (Todo("old", "completed"),))] == [
        "in_progress",
        "pending",
        "pending",
    ]


async def test_a_second_plan_replaces_the_open_steps_of_the_first(tmp_path: Path) -> None:
    first = Message("assistant", (ToolCallPart("c", "update_todos", "{}"),), "l")
    asked = Message("user", (TextPart("another plan"),), "u")
    second = proposed([first, asked, Message("assistant", (TextPart("Plan:\n1. one\n2. two"),), "m")])
    assert second is not None
    assert [todo.text for todo in todos_of(second, (Todo("old", "in_progress"), Todo("older")))] == ["one", "two"]
    prose = "The plan: leave it."
    steps = answers(PLAN, "Done.", "Plan:\n1. one\n2. two", "Done.", prose, "Done.")
    async with bench(steps, tmp_path, policy=Policy(mode="plan")) as b:
        for turns, todos in ((2, "Fix shop/pricing.py"), (4, "one")):
            await b.say("plan it")
            b.send(CarryOut())
            await until(lambda: not b.session.view.busy and b.session.view.totals.turns == turns, "end of the turn")  # noqa: B023
            assert b.session.view.todos[0].text == todos
        await b.say("plan it")
        b.send(CarryOut())
        await until(lambda: not b.session.view.busy and b.session.view.totals.turns == 6, "end of the turn")
        said = [message.text for message in b.session.view.messages if "Go ahead" in message.text]
        assert ["todo list" in text.partition("<")[0] for text in said] == [True, True, False]


async def test_a_plan_is_carried_out_in_the_mode_that_was_chosen(tmp_path: Path) -> None:
    steps = f'[[step]]\ntext = """{PLAN}"""\n[[step]]\ncall = [{call("write_file", "a")}]\n[[step]]\ntext = "Done."\n'
    async with bench(steps, tmp_path, policy=Policy(mode="plan")) as b:
        b.send(CarryOut())
        await until(lambda: any("no plan" in notice.text for notice in b.bodies(Notice)), "a notice")
        await b.say("plan it")
        assert b.session.view.plan is not None
        b.send(CarryOut("accept-edits"))
        assert b.session.view.mode == "accept-edits"
        assert [todo.text for todo in b.session.view.todos] == ["Fix shop/pricing.py", "Add a test", "Run make test"]
        await until(lambda: not b.session.view.busy and b.session.view.totals.turns == 2, "end of the turn")
        assert b.gates.ended == ["a"]
        assert any("keep it current" in message.text for message in b.session.view.messages)
        assert "Go ahead with the plan." in [began.title for began in b.bodies(ItemStarted)]
        assert b.session.view.plan is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("# Plan: Fix the rounding\n1. a", "2026-05-04-fix-rounding"),
        (PLAN, "2026-05-04-cause-is-comparison"),
        ("My plan:\n\n1. Löschen ../../etc", "2026-05-04-1-l-schen-etc"),
        ("\u4f60\u597d plan", "2026-05-04"),
        ("", "2026-05-04"),
    ],
)
def test_a_file_is_named_by_its_title(text: str, name: str) -> None:
    assert file_name(text, date(2026, 5, 4)) == name


def answers(*texts: str) -> str:
    return "".join(f'[[step]]\ntext = """{text}"""\n' for text in texts)


async def test_a_plan_is_written_down_and_carried_out_as_the_user_left_it(tmp_path: Path) -> None:
    later = PLAN.replace("Add a test", "Add two tests")
    steps = answers(PLAN, later, "Done.", later)
    async with bench(steps, tmp_path, policy=Policy(mode="plan"), **written(tmp_path / ".swecli" / "plans")) as b:
        await b.say("plan it")
        first = b.session.view.plan
        assert first is not None
        file = tmp_path / first.path
        assert file.parent == tmp_path / ".swecli" / "plans"
        assert file.read_text() == PLAN
        await b.say("two tests")  # one file for one conversation
        assert b.session.view.plan is not None
        assert b.session.view.plan.path == first.path
        assert "two tests" in file.read_text()
        file.write_text("Only this:\n1. Nothing\n2. Tell me\n")
        b.send(CarryOut())
        await until(lambda: not b.session.view.busy and b.session.view.totals.turns == 3, "end of the turn")
        said = next(message.text for message in b.session.view.messages if "Go ahead" in message.text)
        assert first.path in said
        assert "Go ahead with the plan. I changed it." in [began.title for began in b.bodies(ItemStarted)]
        assert "Only this:" in said
        assert [todo.text for todo in b.session.view.todos] == ["Nothing", "Tell me"]
        assert [body.accepted for body in b.bodies(PlanChanged)] == [False, False, True]
        plan = b.session.plan()
        assert plan is not None
        assert "Only this" in plan.text


async def test_the_model_learns_that_the_user_edited_a_plan_that_is_to_be_revised(tmp_path: Path) -> None:
    steps = answers(PLAN, "Which?", PLAN, "Nothing.")
    async with bench(steps, tmp_path, policy=Policy(mode="plan"), **written(tmp_path / "plans")) as b:
        await b.say("plan it")
        plan = b.session.view.plan
        assert plan is not None
        assert "Changed on disk" not in new_notes(b.model.requests[-1])
        (tmp_path / plan.path).write_text("1. mine\n2. and yours\n")
        note = f"Changed on disk since you last saw them: {plan.path} (the user edited your plan)"
        await b.say("Change the plan: add a test")
        assert note in new_notes(b.model.requests[-1])
        await b.say("again")
        assert note in notes_in(b.model.requests[-1]), "the note stays"
        assert note not in new_notes(b.model.requests[-1]), "it is said once"
        await b.say("what now?")
        assert "Changed on disk" not in new_notes(b.model.requests[-1])


async def test_a_folder_that_is_trusted_meanwhile_gets_the_plan(tmp_path: Path) -> None:
    trusted = Adjustable(plans=tmp_path / "plans")
    async with bench(answers(PLAN, PLAN), tmp_path, policy=Policy(mode="plan"), read=lambda: trusted) as b:
        await b.say("plan it")
        assert not (tmp_path / "plans").exists()
        await b.session.follow_settings()
        await b.say("plan it again")
        assert [path.read_text() for path in (tmp_path / "plans").iterdir()] == [PLAN]


async def test_a_file_that_the_user_changed_is_not_written_over(tmp_path: Path) -> None:
    async with bench(answers(PLAN, PLAN), tmp_path, policy=Policy(mode="plan"), **written(tmp_path / "plans")) as b:
        await b.say("plan it")
        assert b.session.view.plan is not None
        file = tmp_path / b.session.view.plan.path
        file.write_text("mine\n")
        await b.say("again")
        assert file.read_text() == "mine\n"
        assert b.session.view.plan.path.endswith("-2.md")


@pytest.mark.parametrize("way", ["untrusted", "link", "linked parent", "file"])
async def test_where_nothing_may_be_written_the_plan_stays_in_the_conversation(tmp_path: Path, way: str) -> None:
    (project := tmp_path / "project").mkdir()
    inside = project / "own" if way == "linked parent" else project
    folder = None if way == "untrusted" else inside / "plans"
    (tmp_path / "elsewhere").mkdir()
    if way == "link":
        (project / "plans").symlink_to(tmp_path / "elsewhere")
    elif way == "linked parent":
        (project / "own").symlink_to(tmp_path / "elsewhere")
    elif way == "file":
        (project / "plans").write_text("x")
    async with bench(answers(PLAN), project, policy=Policy(mode="plan"), **written(folder)) as b:
        await b.say("plan it")
        assert b.session.view.plan is not None
        assert b.session.view.plan.path == ""
        assert len(b.bodies(PlanChanged)) == 1
        assert any("Could not write" in notice.text for notice in b.bodies(Notice)) == (way != "untrusted")
    assert not os.listdir(tmp_path / "elsewhere")


async def test_the_plan_is_part_of_what_outlives_a_compaction(tmp_path: Path) -> None:
    async with bench(answers(PLAN, "Done."), tmp_path, policy=Policy(mode="plan"), **written(tmp_path / "plans")) as b:
        await b.say("plan it")
        recorder = b.session._recorder
        assert "the user has not agreed to it" in state_block(recorder.ledger, session_facts(recorder))
        b.send(CarryOut())
        await until(lambda: not b.session.view.busy and b.session.view.totals.turns == 2, "end of the turn")
        text = state_block(recorder.ledger, session_facts(recorder))
        assert "the user agreed to it and you are carrying it out. It is in plans/" in text
        assert "> 1. **Fix** `shop/pricing.py`" in text
        recorder.emit(TodosChanged(tuple(Todo(todo.text, "completed") for todo in recorder.state.todos)))
        assert "## Plan" not in state_block(recorder.ledger, session_facts(recorder))
