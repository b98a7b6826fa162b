"""Jobs of a session: on record, told to the model, moved by the user, left alone by interrupts, ended at the end."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from swecli.core.context_management.ledger import Ledger
from swecli.core.engine.snapshots import recover
from swecli.core.engine.state import SessionState
from swecli.core.permissions.types import Policy
from swecli.core.protocol.commands import Background, Interrupt, RunShell, StopJob
from swecli.core.protocol.events import Event, ItemCompleted, ItemDelta, JobChanged, Notice, TurnEnded
from swecli.core.tools.run_command import JobTool, RunCommand
from tests.core.engine.support import bench, new_notes, until
from tests.support.processes import ME

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

DONE = '[[step]]\ntext = "done"'
WAITS = "echo up; while [ ! -e go ]; do sleep 0.02; done; echo over; exit 4"


def step(tool: str, **arguments: object) -> str:
    text = json.dumps(json.dumps(arguments))
    return f"[[step]]\n[[step.call]]\ntool = '{tool}'\narguments = {text}\n"


def session(folder: Path, *steps: str, **changes: Any) -> Any:
    policy = Policy(yolo=True)
    return bench("\n".join(steps), folder, tools=[RunCommand(), JobTool()], policy=policy, **changes)


def told(made: Any) -> list[str]:
    """What each request told the model in addition to the one before."""
    return [new_notes(request) for request in made.model.requests]


async def test_a_job_is_recorded_told_read_and_its_end_told(tmp_path: Path) -> None:
    steps = [step("run_command", command=WAITS, background=True), DONE, step("run_command", command="touch go"), DONE]
    async with session(tmp_path, *steps, step("job", id="j1", wait=10), DONE, DONE) as made:
        await made.say("start it")
        (begun,) = made.bodies(JobChanged)
        assert (begun.job, begun.status, begun.command) == ("j1", "running", WAITS)
        assert [job.id for job in made.session.view.jobs] == ["j1"]
        assert told(made) == ["", ""]  # the model has started it and reads so
        await made.say("let it end")
        await until(lambda: len(made.bodies(JobChanged)) == 2)
        assert (made.bodies(JobChanged)[1].status, made.bodies(JobChanged)[1].exit_status) == ("exited", 4)
        await made.say("what came of it?")
        ended = "j1 `echo up; while [ ! -e go ]; do sleep 0.02; done; echo over; exit 4` ended with exit status 4"
        assert "".join(told(made)[3:5]).count(ended) == 1  # with the first request after its end
        assert list(made.tool_texts().values())[-1].endswith("s\nover")
        await made.say("thanks")
        assert told(made)[5:] == ["", ""]


async def test_the_user_moves_a_command_and_an_interrupt_leaves_jobs_alone(tmp_path: Path) -> None:
    steps = [step("run_command", command=WAITS), step("run_command", command="echo again; sleep 300"), DONE]
    async with session(tmp_path, *steps) as made:
        made.session.send(Background("t9"))
        await until(lambda: bool(made.bodies(Notice)))
        assert "Only a running command" in made.bodies(Notice)[-1].text
        turn = made.say("go")
        task = asyncio.create_task(turn)
        await until(lambda: any(body.channel == "output" for body in made.bodies(ItemDelta)))
        made.session.send(Background(next(body.item for body in made.bodies(ItemDelta) if body.channel == "output")))
        await until(lambda: any("again" in body.text for body in made.bodies(ItemDelta)))
        made.session.send(Interrupt())
        assert (await task).outcome == "interrupted"
        assert "Running in the background as job j1" in next(iter(made.tool_texts().values()))
        assert [job.status for job in made.session.view.jobs] == ["running"]
        made.session.send(StopJob("j1"))
        await until(lambda: made.session.view.jobs[0].status == "killed")
        made.session.send(StopJob("j7"))
        await until(lambda: "Unknown job 'j7'" in made.bodies(Notice)[-1].text)
        assert "up" in await made.session.job_output("j1")


async def test_the_users_own_command_goes_on_as_a_job_too(tmp_path: Path) -> None:
    async with session(tmp_path, DONE) as made:
        made.session.send(RunShell(f"sleep 7601.{ME} & echo mine"))
        await until(lambda: bool(made.bodies(ItemCompleted)))
        text = made.bodies(ItemCompleted)[0].parts[0].text
        assert "It continues in the background as job j1.\nmine" in text
        assert made.session.view.jobs[0].status == "running"
    assert made.bodies(JobChanged)[-1].status == "killed"
    assert not any(isinstance(event.body, TurnEnded) for event in made.events)


async def test_an_interrupted_command_of_the_user_keeps_what_it_wrote(tmp_path: Path) -> None:
    async with session(tmp_path, DONE) as made:
        made.session.send(RunShell("echo begun; sleep 7603"))
        await until(lambda: any(body.text == "begun\n" for body in made.bodies(ItemDelta)))
        made.session.send(Interrupt())
        await until(lambda: bool(made.bodies(ItemCompleted)))
        (completed,) = made.bodies(ItemCompleted)
        assert completed.status == "interrupted"
        assert (
            completed.parts[0].text == "I ran this command myself and interrupted it: echo begun; sleep 7603\nbegun\n"
        )
        (message,) = made.session.view.messages
        assert message.text.endswith(completed.parts[0].text)


def test_a_job_of_a_killed_swecli_is_closed_at_the_next_start() -> None:
    state = SessionState()
    state.apply(Event(1, 0.0, "s", 1, JobChanged("j1", "npm start", "running")))
    state.apply(Event(2, 0.0, "s", 1, JobChanged("j2", "make", "exited", 0)))
    assert recover(Ledger(), state) == [JobChanged("j1", "npm start", "killed", note="swecli was stopped")]
