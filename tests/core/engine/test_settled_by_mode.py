"""A change of mode, or a new rule, settles the questions that wait; what still asks goes on waiting."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from swecli.core.permissions.facts import OsFacts
from swecli.core.permissions.types import Policy, Rule
from swecli.core.protocol.commands import ReplyPermission, RevokeRule, SetMode, Submit
from swecli.core.protocol.events import ItemCompleted, Mode, Notice, PermissionResolved, RuleRevoked
from swecli.core.tools.run_command import RunCommand
from tests.core.engine.support import Bench, bench, call, until

POLICY = Policy(facts=OsFacts({"PATH": "/usr/bin:/bin"}))


def step(*calls: str) -> str:
    return f'[[step]]\ncall = [{", ".join(calls)}]\n[[step]]\ntext = "Done."\n'


def waiting(b: Bench) -> set[str]:
    return set(b.session._recorder.state.permissions)


async def ended(b: Bench) -> None:
    await until(lambda: not b.session.view.busy and b.session.view.totals.turns == 1, "end of the turn")


THREE = step(
    call("write_file", "a"), call("write_file", "b"), call("write_file", ".git/config"), call("read_file", "r")
)


async def test_accept_edits_approves_the_edits_that_wait_and_leaves_the_rest(tmp_path: Path) -> None:
    async with bench(THREE, tmp_path) as b:
        b.gates.held.add("r")
        b.send(Submit("go"))
        requests = [await b.asked(number) for number in (1, 2, 3)]
        assert [one.acceptable for one in requests] == [True, True, False]
        await until(lambda: b.gates.started == ["r"], "the read runs")
        b.send(SetMode("accept-edits"))
        await until(lambda: set(b.gates.ended) == {"a", "b"}, "both edits")
        assert waiting(b) == {requests[2].request}, "protected files still ask"
        settled = b.bodies(PermissionResolved)
        assert [(one.choice, one.by) for one in settled] == [("once", "engine")] * 2
        assert "accept-edits" in settled[0].note
        assert ("cancel", "r") not in b.gates.log, "what runs is not affected"
        b.gates.release("r")
        b.allow(requests[2], "reject")
        await ended(b)


async def test_plan_refuses_what_waits_and_the_model_is_told_why(tmp_path: Path) -> None:
    async with bench(THREE, tmp_path) as b:
        b.gates.held.add("r")
        b.send(Submit("go"))
        await b.asked(3)
        await until(lambda: b.gates.started == ["r"], "the read runs")
        b.send(SetMode("plan"))
        await until(lambda: not waiting(b), "all are settled")
        b.gates.release("r")
        await ended(b)
        assert b.gates.ended == ["r"]
        texts = [text for text in b.tool_texts().values() if "Plan mode is read-only" in text]
        assert len(texts) == 3
        assert [body.status for body in b.bodies(ItemCompleted)].count("rejected") == 3


async def test_a_mode_that_still_asks_leaves_the_question_as_it_is(tmp_path: Path) -> None:
    policy = replace(POLICY, mode="accept-edits")
    async with bench(step(call("run_command", "make a")), tmp_path, policy=policy) as b:
        b.send(Submit("go"))
        asked = await b.asked()
        b.send(SetMode("default"))
        assert waiting(b) == {asked.request}
        b.allow(asked)
        await ended(b)
        assert b.gates.ended == ["make a"]


async def test_a_new_rule_settles_the_other_questions_that_it_covers(tmp_path: Path) -> None:
    script = step(call("run_command", "npm test"), call("run_command", "npm test"), call("run_command", "touch g"))
    async with bench(script, tmp_path, policy=POLICY) as b:
        b.send(Submit("go"))
        first, other = await b.asked(), await b.asked(3)
        assert first.rule is not None
        b.send(ReplyPermission(first.request, "always"))
        await until(lambda: waiting(b) == {other.request}, "only the other command waits")
        b.allow(other)
        await ended(b)
        assert b.gates.ended == ["npm test", "npm test", "touch g"]


async def test_what_a_revoked_rule_covered_asks_again(tmp_path: Path) -> None:
    npm = call("run_command", "npm test")
    script = f"[[step]]\ncall = [{npm}]\n" + step(npm)
    async with bench(script, tmp_path, policy=POLICY) as b:
        b.gates.held.add("npm test")  # the next call must not be decided before the rule is revoked
        b.send(Submit("go"))
        first = await b.asked()
        b.send(ReplyPermission(first.request, "always"))
        await until(lambda: b.session.view.rules, "the rule holds")
        b.send(RevokeRule(str(first.rule)))
        b.gates.release("npm test")
        b.allow(await b.asked(2), "reject")
        await ended(b)
        assert [body.rule for body in b.bodies(RuleRevoked)] == [first.rule]
        assert b.gates.ended == ["npm test"]


async def test_the_danger_of_a_deletion_is_one_clause_with_how_much(tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    for name in "abc":
        (tmp_path / "build" / name).write_text("1234")
    command = '{ tool = "run_command", arguments = { command = "rm -rf build" } }'
    async with bench(step(command), tmp_path, tools=(RunCommand(),), policy=POLICY) as b:
        b.send(Submit("go"))
        asked = await b.asked()
        assert asked.danger == "deletes 3 files; /undo can't restore it: checkpoints are off"
        assert not any("bytes" in fact for fact in asked.facts)
        b.allow(asked, "reject")
        await ended(b)
        assert len(os.listdir(tmp_path / "build")) == 3


DECLINED = replace(POLICY, trust="declined")
BROKEN = replace(POLICY, rules=(Rule("deny", "Bash(((", "user", "config.toml:3"),))


@pytest.mark.parametrize(
    ("policy", "why"), [(DECLINED, "you declined to trust this folder"), (BROKEN, "rule is invalid")]
)
@pytest.mark.parametrize("mode", ["accept-edits", "auto"])
async def test_a_mode_that_would_not_hold_is_refused_with_the_reason(
    mode: Mode, policy: Policy, why: str, tmp_path: Path
) -> None:
    async with bench(step(call("write_file", "a")), tmp_path, policy=policy) as b:
        b.send(SetMode(mode))
        assert b.session.view.mode == "default"
        await until(lambda: [why in body.text for body in b.bodies(Notice) if body.level == "warning"] == [True], "why")
        b.send(SetMode("plan"))
        assert b.session.view.mode == "plan"


@pytest.mark.parametrize("policy", [DECLINED, BROKEN])
async def test_a_session_does_not_begin_in_a_mode_that_would_not_hold(policy: Policy, tmp_path: Path) -> None:
    async with bench(step(call("write_file", "a")), tmp_path, policy=replace(policy, mode="accept-edits")) as b:
        assert b.session.view.mode == "default"
        await until(lambda: any("Mode accept-edits is off" in body.text for body in b.bodies(Notice)), "the reason")
        b.send(Submit("go"))
        b.allow(await b.asked(1))
        await ended(b)
