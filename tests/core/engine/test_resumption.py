"""A session that is continued shows the size that it had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from swecli.core.engine.services import ExtensionHost
from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.commands import Rewind, UndoCompaction
from swecli.core.protocol.events import CompactionCompleted, Event, StepStarted
from tests.core.engine.support import Bench, bench, until
from tests.core.engine.test_compaction import BIG, fill, fill_and_compact
from tests.core.engine.test_offered_tools import Source

LONG = "Read the files f0 to f11. " + "some more words " * 300


async def measured(b: Bench) -> Budget:
    await until(lambda: b.session.view.budget is not None)
    assert b.session.view.budget is not None
    return b.session.view.budget


async def resumed(facts: list[Event], folder: Path, name: str = "scripted/test") -> Budget:
    async with bench(BIG, folder, history=facts, name=name) as b:
        return await measured(b)


def near(one: Budget, other: Budget) -> bool:
    return abs(one.used - other.used) <= 0.015 * one.used


async def test_after_a_turn(tmp_path: Path) -> None:
    async with bench(BIG, tmp_path) as b:
        fill(b, 12)
        await b.say(LONG)
        before, facts = await measured(b), list(b.facts)
    after = await resumed(facts, tmp_path)
    assert near(before, after), (before.used, after.used)
    assert after.source == before.source == "measured"


async def test_it_is_an_estimate_while_tools_may_still_join(tmp_path: Path) -> None:
    async with bench(BIG, tmp_path) as b:
        fill(b, 12)
        await b.say(LONG)
        facts = list(b.facts)
    hosts: list[ExtensionHost] = []

    def begin(host: ExtensionHost) -> None:
        hosts.append(host)
        host.tools.expect("hub")

    async with bench(BIG, tmp_path, history=facts, extensions=(Source(begin),)) as b:
        assert (await measured(b)).source == "estimated"
        hosts[0].tools.settle("hub", ())
        await until(lambda: b.session.view.budget is not None and b.session.view.budget.source == "measured")
        assert b.session.view.budget is not None
        assert "~" not in b.session.view.budget.shown


async def test_after_a_compaction_and_after_what_was_said_since(tmp_path: Path) -> None:
    async with bench(BIG + '\n[[step]]\ntext = "Still here."', tmp_path) as b:
        await fill_and_compact(b)
        assert b.bodies(CompactionCompleted)
        before, facts = await measured(b), list(b.facts)
        await b.say("And now? " + "word " * 400)
        later, more = await measured(b), list(b.facts)
    after = await resumed(facts, tmp_path)
    assert near(before, after), (before.used, after.used)
    after = await resumed(more, tmp_path)
    assert near(later, after), (later.used, after.used)


async def test_after_a_rewind(tmp_path: Path) -> None:
    async with bench(BIG, tmp_path) as b:
        fill(b, 12)
        await b.say(LONG)
        await b.say("Something else. " + "word " * 400)
        b.send(Rewind([message.id for message in b.session.view.messages if message.role == "user"][-1]))
        before, facts = await measured(b), list(b.facts)
    after = await resumed(facts, tmp_path)
    assert near(before, after), (before.used, after.used)


async def test_after_a_crash_in_the_middle_of_a_turn(tmp_path: Path) -> None:
    async with bench(BIG, tmp_path) as b:
        fill(b, 12)
        await b.say(LONG)
        facts = list(b.facts)
    last = max(n for n, event in enumerate(facts) if isinstance(event.body, StepStarted))
    step = facts[last].body
    assert isinstance(step, StepStarted)
    after = await resumed(facts[: last + 1], tmp_path)
    assert near(step.budget, after), (step.budget.used, after.used)


@pytest.mark.parametrize("case", ["another model", "undone"])
async def test_what_is_not_known_is_estimated(tmp_path: Path, case: str) -> None:
    async with bench(BIG, tmp_path) as b:
        await fill_and_compact(b)
        if case == "undone":
            b.send(UndoCompaction())
        facts = list(b.facts)
    other = ScriptedModel(parse_script('name = "other"\n' + BIG))
    changes: dict[str, Any] = {"make_client": lambda _name: other} if case == "another model" else {}
    name = other.info.ref if changes else "scripted/test"
    async with bench(BIG, tmp_path, history=facts, name=name, **changes) as again:
        assert (await measured(again)).source == "estimated"
