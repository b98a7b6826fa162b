"""The screen of jobs: listed, looked into while they write, stopped, and what is said where there is none."""

from __future__ import annotations

from msgspec.structs import replace

from swecli.core.protocol.commands import Background, CancelItem
from swecli.core.protocol.events import ItemCheckpointed, ItemCompleted, ItemDelta, ItemStarted
from swecli.core.protocol.messages import ToolCallPart, ToolResultPart
from swecli.core.workspace.jobs import JobInfo
from tests.support.fake_session import WAIT_FOR_INTERRUPT
from tests.tui.support import NOW, Running, Session, running

SERVER = JobInfo("j1", "npm run dev\n-- --port 3000", "t1", 4711, NOW - 754, size=2_048, unread=48)
BUILD = JobInfo("j2", "make release", "t2", 4712, NOW - 400, "exited", 2, NOW - 90, 31_000, "it ran out of memory")
WATCH = JobInfo("j3", "sleep 600 & echo started", "t3", 4713, NOW - 20, exit_status=0, size=8)
KILLED = JobInfo("j4", "tail -f /var/log/日本語.log", "t4", 4714, NOW - 7_300, "killed", None, NOW - 7_200)
JOBS = (KILLED, SERVER, BUILD, WATCH)
OUTPUT = "> dev\n\x1b[32mready\x1b[0m on port 3000\nGET /\nGET /favicon.ico\n"
CALL = ToolCallPart("c9", "run_command", '{"command": "make test"}')
WAITED = (
    ItemStarted("t9", "tool", "run_command"),
    ItemCheckpointed("t9", CALL, "make test", running=True),
    ItemDelta("t9", "collecting tests\n", "output"),
)


def session(*turn: object, jobs: tuple[JobInfo, ...] = JOBS) -> Session:
    made = Session((*turn, WAIT_FOR_INTERRUPT))  # type: ignore[arg-type]
    made.view.jobs = jobs
    made.job_outputs = {"j1": OUTPUT, "j2": "killed\n", "j3": "started\n"}
    return made


async def opened(it: Running) -> None:
    it.app.interface.open("jobs")
    await it.shows("Jobs · 4", "In the background")


async def test_jobs_are_listed_with_state_time_size_and_command() -> None:
    async with running(session=session(), size=(100, 24)) as it:
        await opened(it)
        await it.shows("ready on port 3000", "pid 4711", "Ctrl+X stops it")
        lines = [" ".join(line.split()) for line in it.screen().split("\n")]
        assert "›● j1 running 12 min 2.0 KB npm run dev -- --port 3000" in lines
        assert "● j3 left running 20 s 8 bytes sleep 600 & echo started" in lines
        assert "j2 exit 2 5 min 31.0 KB make release" in lines
        assert "j4 stopped 1 min 0 bytes tail -f /var/log/日本語.log" in lines
        await it.press(*"exit 2")
        await it.shows("Jobs · 1 of 4", "exit 2 after 5 min, 1 min ago", "it ran out of memory")
        await it.hides("Ctrl+X")


async def test_what_is_new_is_seen_without_a_key() -> None:
    it_has = session()
    async with running(session=it_has) as it:
        await opened(it)
        await it.shows("GET /favicon.ico")
        it_has.job_outputs["j1"] = OUTPUT + "GET /new\n"
        it_has.view.jobs = (replace(SERVER, size=2_060), BUILD, WATCH)
        await it.shows("Jobs · 3", "GET /new", "2.1 KB")


async def test_output_is_followed_and_narrowed_and_left_again() -> None:
    it_has = session()
    it_has.job_outputs["j1"] = "".join(f"line {number}\n" for number in range(1, 200))
    async with running(session=it_has) as it:
        await opened(it)
        await it.press("enter")
        await it.shows("j1 · running for 12 min · 2.0 KB of output", "line 199", "esc back to the list")
        it_has.job_outputs["j1"] += "the newest\n"
        it_has.view.jobs = (replace(SERVER, size=5_000),)
        await it.shows("the newest")
        await it.press("home")
        await it.shows("$ npm run dev", "-- --port 3000", "line 12")
        it_has.job_outputs["j1"] += "newer still\n"
        it_has.view.jobs = (replace(SERVER, size=6_000),)
        await it.shows("6.0 KB")
        assert "newer still" not in it.screen()
        await it.press(*"newe")
        await it.shows("the newest", "newer still")
        await it.hides("line 12")
        await it.press("escape")
        await it.shows("Jobs · 1", "type to search commands")


async def test_output_of_a_job_that_is_gone_is_not_lost_in_silence() -> None:
    it_has = session(jobs=(BUILD,))
    async with running(session=it_has) as it:
        it.app.interface.open("jobs")
        await it.shows("Jobs · 1")
        it_has.view.jobs = ()
        await it.press("enter")
        await it.shows("Unknown job 'j2'")
        await it.press("escape")
        await it.shows("Jobs · 0")


async def test_a_job_is_stopped_once_the_user_says_so() -> None:
    it_has = session()
    async with running(session=it_has) as it:
        await opened(it)
        await it.press("ctrl+x")
        await it.shows("Stop j1 (npm run dev -- --port 3000)?", "nothing changes")
        await it.press("escape")
        await it.hides("nothing changes")
        assert it_has.stopped == []
        await it.press("ctrl+x")
        await it.shows("nothing changes")
        await it.press("enter")
        await it.shows("j1 was stopped", "stopped ")
        assert it_has.stopped == ["j1"]
        await it.press(*"make", "ctrl+x")
        await it.shows("j2 (make release) has already ended")


async def test_a_command_that_the_turn_waits_for_is_there_too() -> None:
    it_has = session(*WAITED, jobs=())
    async with running(session=it_has) as it:
        await it.say("go")
        await it.until(lambda: it.app.session.state.running)
        await it.say("/jobs")
        await it.shows("Jobs · 1", "In the foreground", "make test", "the turn waits for it", "collecting tests")
        await it.press("ctrl+b")
        assert it_has.sent(Background) == [Background("t9")]
        await it.press("ctrl+x")
        await it.shows("Stop make test?")
        await it.press("enter")
        await it.until(lambda: it_has.sent(CancelItem))
        assert it_has.sent(CancelItem) == [CancelItem("t9")]


async def test_output_is_followed_into_the_background_and_to_its_end() -> None:
    it_has = session(*WAITED, jobs=())
    async with running(session=it_has) as it:
        await it.say("go")
        await it.until(lambda: it.app.session.state.running)
        await it.say("/jobs")
        await it.shows("Jobs · 1", "collecting tests")
        await it.press("enter")
        await it.shows("the turn waits for it", "esc back to the list", "collecting tests")
        it_has.job_outputs["j7"] = "collecting tests\n12 passed\n"
        it_has.view.jobs = (JobInfo("j7", "make test", "t9", 99, NOW - 5, size=27),)
        it_has.emit(ItemCompleted("t9", "ok", (ToolResultPart("c9", "run_command", "x"),)))
        await it.shows("j7 · running for", "12 passed", "pid 99")


async def test_a_command_that_ended_while_its_output_was_read_says_so() -> None:
    it_has = session(*WAITED, jobs=())
    async with running(session=it_has, size=(120, 24)) as it:
        await it.say("go")
        await it.until(lambda: it.app.session.state.running)
        await it.say("/jobs")
        await it.shows("Jobs · 1", "collecting tests")
        await it.press("enter")
        await it.shows("the turn waits for it", "esc back to the list", "collecting tests")
        it_has.emit(ItemCompleted("t9", "ok", (ToolResultPart("c9", "run_command", "x"),)))
        await it.shows("ended after", "the result is in the conversation", "collecting tests")
        await it.hides("Ctrl+X")


async def test_without_jobs_it_says_how_to_get_one() -> None:
    for size in ((80, 24), (40, 12)):
        async with running(session=session(jobs=()), size=size) as it:
            it.app.interface.open("jobs")
            await it.shows("Jobs · 0", "No jobs yet", "esc closes")
            if size[0] >= 80:
                await it.shows("Ctrl+B moves a running command to the background")
            await it.press("enter", "ctrl+x", "escape")
            await it.hides("Jobs · 0")
            assert it.editor.has_focus


async def test_a_subagent_is_shown_as_one_and_not_as_a_command_of_a_shell() -> None:
    agent = JobInfo("agent-1", "general: look", "t5", 0, NOW - 60, "exited", 0, NOW - 30, tokens=2_200)
    has = session(jobs=(agent,))
    has.job_outputs = {"agent-1": "It is in a.py.\n"}
    async with running(session=has, size=(100, 24)) as it:
        it.app.interface.open("jobs")
        await it.shows("agent-1", "done", "2,200 tokens", "subagent · done after 30 s", "It is in a.py.")
        assert "$ general" not in it.screen()
        assert "exit 0" not in it.screen()
        assert "0 bytes" not in it.screen()
        await it.press("enter")
        await it.shows("agent-1 · subagent · done", "It is in a.py.")
        assert "$ general" not in it.screen()
