"""Jobs on the screen: the key that moves a command, the count in the status bar, the question before quitting."""

from __future__ import annotations

from swecli.core.protocol.commands import Background
from swecli.core.protocol.events import ItemCheckpointed, ItemStarted, JobChanged
from swecli.core.protocol.messages import ToolCallPart
from swecli.core.workspace.jobs import JobInfo
from swecli.tui.status_bar import Facts, line
from tests.support.fake_session import WAIT_FOR_INTERRUPT
from tests.tui.support import Session, running

SERVER = JobInfo("j1", "npm start", "t1", 4711, 0.0)
CALL = ToolCallPart("c1", "run_command", '{"command": "npm start"}')
RUNS = (ItemStarted("t1", "tool", "run_command"), ItemCheckpointed("t1", CALL, "npm start", running=True))


async def test_the_key_sends_a_running_command_to_the_background() -> None:
    async with running((*RUNS, WAIT_FOR_INTERRUPT)) as it:
        await it.press("ctrl+b")
        assert it.session.sent(Background) == []
        await it.shows("No command to move")
        await it.say("go")
        await it.shows("npm start")
        await it.press("ctrl+b")
        assert it.session.sent(Background) == [Background("t1")]


async def test_quitting_with_jobs_asks_first() -> None:
    async with running() as it:
        it.session.view.jobs = (SERVER,)
        it.session.emit(JobChanged("j1", "npm start", "running"))
        await it.shows("1 job")
        await it.press("ctrl+d")
        await it.shows("A job is running in the background")
        assert "j1 npm start" in it.screen()
        await it.press("escape")
        assert not it.session.closed
        await it.press("ctrl+d")
        await it.shows("Stop and quit")
        await it.press("enter")
        await it.pilot.pause()
        await it.app.workers.wait_for_complete([one for one in it.app.workers if one.group == "end"])
    assert it.session.closed


async def test_another_session_in_place_of_one_with_jobs_asks_first() -> None:
    new = Session()

    async def new_session() -> Session:
        return new

    async with running(new_session=new_session) as it:
        it.session.view.jobs = (SERVER,)
        await it.say("/clear")
        await it.shows("A job is running in the background", "Stop and continue  j1 npm start")
        await it.press("escape")
        await it.say("/context")
        await it.shows("context got []")
        assert not it.session.closed
        await it.say("/clear")
        await it.shows("Stop and continue")
        await it.press("enter")
        await it.until(lambda: it.app.session.port is new)
        assert it.session.closed


def test_jobs_stay_in_the_status_bar_while_there_is_room() -> None:
    facts = Facts("default", "m", jobs=2)
    assert "".join(piece.text for piece in line(facts, 80)) == "default · 2 jobs · m"
    assert "job" not in "".join(piece.text for piece in line(facts, 12))
