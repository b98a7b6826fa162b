"""A companion that fails, hangs or is cancelled at any moment leaves no turn open and no process behind; one that does
nothing costs nothing."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from swecli.core.engine import session
from swecli.core.engine.companion import CallCompanion, Companion, Companions
from swecli.core.permissions.types import Policy
from swecli.core.protocol.commands import Command, Interrupt, Submit
from swecli.core.protocol.events import AgentEnded, Event, Notice, StepStarted, TurnEnded
from swecli.core.protocol.messages import ToolCallPart
from swecli.core.tools.run_command import RunCommand
from tests.core.engine.support import Bench, bench, until
from tests.features.subagents.test_companion import parent, task, with_agents
from tests.support.processes import ME, running_with

MOMENTS = ("screen", "joined", "before_request", "check_request", "after_step", "stay", "end_turn")
SECONDS = f"{ME}.25"
JOB = f"""[[step]]
[[step.call]]
tool = "run_command"
arguments = {{ command = "sleep {SECONDS}", background = true }}
"""
DONE = '[[step]]\ntext = "done"\n'


class Fault(Exception):
    """A defect of a companion."""


class Faulty(Companion):
    """Fails or hangs at its moment as long as it is ``bad``."""

    def __init__(self, hangs: bool) -> None:
        self.bad = False
        self.hanging = False
        self._hangs = hangs

    async def act(self) -> bool:
        if self.bad:
            if not self._hangs:
                raise Fault("a defect")
            self.hanging = True
            await asyncio.Event().wait()
        return False


def faulty_at(moment: str, *, hangs: bool) -> Faulty:
    async def act(self: Faulty, *_arguments: object, **_named: object) -> bool:
        return await self.act()

    return type("FaultyThere", (Faulty,), {moment: act})(hangs)


class FaultyWatch(Faulty):
    watches = (StepStarted,)

    def watch(self, event: Event) -> None:
        if self.bad:
            raise Fault("a defect")


class FaultyHeard(Faulty):
    def heard(self, command: Command) -> bool:
        if self.bad:
            raise Fault("a defect")
        return False


def with_companion(monkeypatch: pytest.MonkeyPatch, companion: Companion, folder: Path, **changes: Any) -> Any:
    """A session that has this companion first, and a job that runs until the session ends."""
    put_first(monkeypatch, companion)
    changes = {"script": JOB + DONE * 5, "tools": [RunCommand()], "policy": Policy(yolo=True), **changes}
    return bench(changes.pop("script"), folder, **changes)


def put_first(monkeypatch: pytest.MonkeyPatch, companion: Companion) -> None:
    others = session.companions_of

    def companions(*arguments: Any) -> Sequence[Companion]:
        return (companion, *others(*arguments))

    monkeypatch.setattr(session, "companions_of", companions)


def check_closed(b: Bench, turns: int) -> None:
    """Each turn has its end and each item, too."""
    ends = [event.turn for event in b.events if isinstance(event.body, TurnEnded)]
    assert ends == [*range(1, turns + 1)]
    assert not b.session._recorder.ledger.open  # pyright: ignore[reportPrivateUsage]


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("moment", [*MOMENTS, "watch"])
async def test_one_that_fails_ends_its_turn_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    companion = FaultyWatch(False) if moment == "watch" else faulty_at(moment, hangs=False)
    defects: list[BaseException] = []
    async with with_companion(monkeypatch, companion, tmp_path, report_defect=defects.append) as b:
        await b.say("begin a job")
        companion.bad = True
        end = await b.say("now it fails")
        assert (end.outcome, end.error_kind) == (("done", "") if moment == "end_turn" else ("error", "internal"))
        assert [type(defect) for defect in defects] == [Fault]
        companion.bad = False
        assert (await b.say("go on")).outcome == "done"
        await b.idle()
        check_closed(b, 3)
        assert running_with(SECONDS)
    assert not running_with(SECONDS)


async def test_one_that_fails_at_a_command_keeps_nobody_from_acting_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    companion, defects = FaultyHeard(False), list[BaseException]()
    async with with_companion(monkeypatch, companion, tmp_path, report_defect=defects.append) as b:
        await b.say("begin a job")
        companion.bad = True
        assert (await b.say("now it fails")).outcome == "done"
        assert [type(defect) for defect in defects] == [Fault]
        assert "swecli failed internally: Fault: a defect" in [notice.text for notice in b.bodies(Notice)]
        companion.bad = False
        check_closed(b, 2)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("closes", [False, True], ids=["interrupted", "closed"])
@pytest.mark.parametrize("moment", MOMENTS)
async def test_one_that_hangs_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, closes: bool
) -> None:
    companion = faulty_at(moment, hangs=True)
    async with with_companion(monkeypatch, companion, tmp_path) as b:
        await b.say("begin a job")
        companion.bad = True
        b.send(Submit("now it hangs"))
        await until(lambda: companion.hanging)
        if closes:
            await b.session.close()
            await until(lambda: len(b.bodies(TurnEnded)) == 2)
        else:
            b.send(Interrupt())
            await b.idle()
        assert b.bodies(TurnEnded)[1].outcome == "interrupted"
        check_closed(b, 2)
    assert not running_with(SECONDS)
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not left


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("hangs", [False, True], ids=["fails", "hangs"])
async def test_at_the_close_it_keeps_no_process_from_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hangs: bool
) -> None:
    companion = faulty_at("close", hangs=hangs)
    async with with_companion(monkeypatch, companion, tmp_path) as b:
        await b.say("begin a job")
        companion.bad = True
        closing = asyncio.create_task(b.session.close())
        if hangs:
            await until(lambda: companion.hanging)
            closing.cancel()
        with pytest.raises(asyncio.CancelledError if hangs else Fault):
            await closing
        check_closed(b, 1)
        assert not running_with(SECONDS)


CALL_MOMENTS = ("before_call", "before_asking", "before_run", "after_call", "after_run", "after_calls")
CALL = f"""[[step]]
[[step.call]]
tool = "write_file"
arguments = {{ target = "a" }}

{DONE}"""


class FaultyCall(Faulty, CallCompanion):
    """Fails or hangs in its part of a tool call."""


def faulty_in_a_call(moment: str, *, hangs: bool) -> FaultyCall:
    async def act(self: FaultyCall, *arguments: object) -> object:
        await self.act()
        return arguments[-1] if moment in ("before_call", "after_call", "after_run") else ""

    return type("FaultyThere", (FaultyCall,), {moment: act})(hangs)


class FaultyRemark(FaultyCall):
    def on_failure(self, call: ToolCallPart, item: str, text: str) -> str:
        del call, item, text
        if self.bad:
            raise Fault("a defect")
        return ""


@pytest.mark.parametrize("moment", [*CALL_MOMENTS, "on_failure"])
async def test_one_that_fails_in_a_call_ends_its_turn_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    remarks = moment == "on_failure"
    companion = FaultyRemark(False) if remarks else faulty_in_a_call(moment, hangs=False)
    defects: list[BaseException] = []
    script = CALL.replace('"a"', '"broken"') if remarks else CALL
    made = with_companion(
        monkeypatch, companion, tmp_path, script=script * 2, policy=Policy(), report_defect=defects.append
    )
    async with made as b:
        b.allow_all = True
        companion.bad = True
        end = await b.say("now it fails")
        assert (end.outcome, end.error_kind) == ("error", "internal")
        assert [type(defect) for defect in defects] == [Fault]
        companion.bad = False
        assert (await b.say("go on")).outcome == "done"
        await b.idle()
        check_closed(b, 2)


@pytest.mark.parametrize("closes", [False, True], ids=["interrupted", "closed"])
@pytest.mark.parametrize("moment", CALL_MOMENTS)
async def test_one_that_hangs_in_a_call_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, closes: bool
) -> None:
    companion = faulty_in_a_call(moment, hangs=True)
    async with with_companion(monkeypatch, companion, tmp_path, script=CALL * 2, policy=Policy()) as b:
        b.allow_all = True
        companion.bad = True
        b.send(Submit("now it hangs"))
        await until(lambda: companion.hanging)
        if closes:
            await b.session.close()
            await until(lambda: len(b.bodies(TurnEnded)) == 1)
        else:
            b.send(Interrupt())
            await b.idle()
            companion.bad = False
            await b.say("go on")
        assert b.bodies(TurnEnded)[0].outcome == "interrupted"
        check_closed(b, 1 if closes else 2)
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not left


@pytest.mark.parametrize("hangs", [False, True], ids=["fails", "hangs"])
@pytest.mark.parametrize("moment", ["agent_begins", "agent_ends", "agent_blocked"])
async def test_one_that_fails_or_hangs_at_a_subagent_ends_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, hangs: bool
) -> None:
    companion = faulty_in_a_call(moment, hangs=hangs)
    put_first(monkeypatch, companion)
    async with with_agents(parent(task()) * 3, tmp_path, DONE, policy=Policy(yolo=True)) as b:
        companion.bad = True
        b.send(Submit("now it is bad"))
        if hangs:
            await until(lambda: companion.hanging)
            b.send(Interrupt())
        await until(lambda: b.bodies(TurnEnded))
        await b.idle()
        outcome = "error" if not hangs else "done" if moment == "agent_ends" else "interrupted"
        assert [end.outcome for end in b.bodies(AgentEnded)] == [outcome]
        companion.bad = False
        assert [(await b.say("go on")).outcome for _ in range(2)] == ["done", "done"]
        assert b.bodies(AgentEnded)[-1].outcome == "done"
        await b.idle()
        assert not b.session._recorder.ledger.open  # pyright: ignore[reportPrivateUsage]
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not left


async def test_a_moment_that_none_of_them_has_calls_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def before_request(self: Companion) -> None:
        raise AssertionError

    monkeypatch.setattr(Companion, "before_request", before_request)
    assert await Companions((Companion(),)).before_request() is None


async def test_one_that_waits_for_something_is_not_called_before_a_request() -> None:
    class Waiting(Companion):
        due = False
        calls = 0

        async def before_request(self) -> None:
            self.calls += 1

    companions = Companions((waiting := Waiting(),))
    await companions.before_request()
    assert not waiting.calls
    waiting.due = True
    await companions.before_request()
    assert waiting.calls == 1


async def test_one_gets_only_the_events_that_it_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Watching(Companion):
        watches = (StepStarted, TurnEnded)

        def __init__(self) -> None:
            self.seen: list[Event] = []

        def watch(self, event: Event) -> None:
            self.seen.append(event)

    companion = Watching()
    async with with_companion(monkeypatch, companion, tmp_path) as b:
        await b.say("begin a job")
        await b.idle()
        named = [event for event in b.events if isinstance(event.body, StepStarted | TurnEnded)]
        assert companion.seen == named
        assert {type(event.body) for event in named} == {StepStarted, TurnEnded}


def test_one_that_watches_without_naming_its_events_is_refused() -> None:
    with pytest.raises(TypeError, match="would never be called"):
        type("Watching", (Companion,), {"watch": lambda self, event: None})
