"""/jobs on jobs that a session knows."""

from __future__ import annotations

from swecli.commands.jobs import JOBS
from swecli.commands.registry import CommandCall, parse
from swecli.core.protocol.blocks import DisplayBlock, TableBlock, TerminalBlock, TextBlock
from swecli.core.workspace.jobs import JobInfo
from tests.support.fake_session import FakeSession

SERVER = JobInfo("j1", "npm\nstart", "t1", 4711, 0.0, size=2_000)
BUILD = JobInfo("j2", "make", "t2", 4712, 0.0, "exited", 2, 65.0, 10)
LEFT = JobInfo("j3", "sleep 9 & echo", "t3", 4713, 0.0, exit_status=0)


def session_with(*jobs: JobInfo) -> FakeSession:
    session = FakeSession()
    session.view.jobs = jobs
    session.job_outputs = {job.id: f"output of {job.id}" for job in jobs}
    return session


async def blocks(session: FakeSession, line: str) -> tuple[DisplayBlock, ...]:
    invocation = parse(line)
    assert isinstance(invocation, CommandCall)
    result = await invocation.command.run(session, invocation.arguments)
    return result.blocks or result.instead


async def text(session: FakeSession, line: str) -> str:
    return "\n".join(block.text for block in await blocks(session, line) if isinstance(block, TextBlock))


async def test_jobs_are_listed_with_status_age_size_and_command() -> None:
    assert await text(session_with(), "/jobs") == "No background jobs."
    (table,) = await blocks(session_with(SERVER, BUILD, LEFT), "/jobs")
    assert isinstance(table, TableBlock)
    rows = [row[:2] + row[3:] for row in table.rows]
    assert rows == [
        ("j1", "running (pid 4711)", "2.0 KB", "npm start"),
        ("j2", "exit 2", "10 bytes", "make"),
        ("j3", "left running", "0 bytes", "sleep 9 & echo"),
    ]
    assert table.rows[1][2] == "1 min"


async def test_a_front_end_with_a_screen_shows_that_unless_the_list_is_asked_for() -> None:
    session = session_with(SERVER)
    invocation = parse("/jobs")
    assert isinstance(invocation, CommandCall)
    assert (await invocation.command.run(session, "")).screen == "jobs"
    result = await invocation.command.run(session, "list")
    assert result.screen is None
    assert result.blocks


async def test_output_is_shown_on_demand() -> None:
    (block,) = await blocks(session_with(BUILD), "/jobs j2")
    assert block == TerminalBlock("make", "output of j2", 2, duration=65.0)
    assert await text(session_with(BUILD), "/jobs j9") == "Unknown job 'j9'."


async def test_a_subagent_is_shown_as_one() -> None:
    agent = JobInfo("agent-1", "general: look around", "t4", 0, 0.0, "exited", 0, 65.0, tokens=2_200)
    (table,) = await blocks(session_with(agent), "/jobs")
    assert isinstance(table, TableBlock)
    assert table.rows[0] == ("agent-1", "done", "1 min", "2,200 tokens", "general: look around")
    facts, report = await blocks(session_with(agent), "/jobs agent-1")
    assert facts == TextBlock("agent-1 · general: look around · done · 2,200 tokens", "dim")
    assert report == TextBlock("output of agent-1")


async def test_one_or_all_are_stopped() -> None:
    session = session_with(SERVER, BUILD, LEFT)
    assert await text(session, "/jobs kill j1") == "j1 stopped: npm\nstart"
    await blocks(session, "/jobs stop all")
    assert session.stopped == ["j1", "j3"]
    assert await text(session_with(BUILD), "/jobs stop all") == "No background jobs."
    assert "shows background jobs" in await text(session, "/jobs what is this")


def test_jobs_and_what_stops_them_are_offered_as_words() -> None:
    words = [(word.text, word.meaning) for word in JOBS.words(session_with(SERVER, BUILD))]
    assert words == [("j1", "npm\nstart"), ("stop j1", "npm\nstart"), ("j2", "make")]
