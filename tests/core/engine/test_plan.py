"""A plan is recognised, and carried out in another mode with its steps as the todo list."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.engine.plan import proposed, steps_of, todos_of
from swecli.core.permissions.types import Policy
from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.commands import CarryOut
from swecli.core.protocol.events import Notice
from swecli.core.protocol.messages import Message, TextPart, ToolCallPart
from tests.core.engine.support import bench, call, until

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
    assert len(steps_of("\n".join(f"{n}. x" for n in range(1, 200)))) == 30


@pytest.mark.parametrize(
    ("text", "is_plan"),
    [(PLAN, True), ("My plan: change a.py.", True), ("It is in a.py, line 3.", False), ("- only one\n", False)],
)
def test_what_is_a_plan(text: str, is_plan: bool) -> None:
    answer = Message("assistant", (TextPart(text),), "m")
    assert (proposed([answer]) is not None) == is_plan
    assert proposed([answer, Message("user", (TextPart("no"),), "u")]) is None
    assert proposed([Message("assistant", (TextPart(text), ToolCallPart("c", "x", "{}")), "m")]) is None


def test_todos_of_the_model_are_kept() -> None:
    plan = proposed([Message("assistant", (TextPart(PLAN),), "m")])
    assert plan is not None
    own = (Todo("mine"),)
    assert todos_of(plan, own) == own
    assert [todo.status for todo in todos_of(plan, (Todo("old", "completed"),))] == [
        "in_progress",
        "pending",
        "pending",
    ]


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
        assert any("Go ahead with the plan" in message.text for message in b.session.view.messages)
        assert b.session.view.plan is None
