"""Whatever breaks beside the conversation: the user is told, the turn goes on, and nothing that was said is lost."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from swecli.app import open_session
from swecli.assembly import storage
from swecli.core.context_management import ranks
from swecli.core.context_management.counter import o200k
from swecli.core.engine.session import Session
from swecli.core.protocol.commands import Submit
from swecli.core.protocol.events import Event, ItemCompleted, Notice, TurnEnded
from swecli.core.protocol.messages import ToolResultPart
from swecli.core.sessions import database as databases
from swecli.core.sessions.database import Database
from swecli.core.sessions.schema import MIGRATIONS
from swecli.launch import LaunchOptions
from tests.core.engine.support import until
from tests.support.waiting import PATIENCE

_RANDOM = Random(1)
BIG = "".join(f"line {number} of the log {_RANDOM.randbytes(40).hex()}\n" for number in range(1_000))
"""Of a kind that takes room on a disk however it is packed."""
CAT = '[[step]]\ncall = [{ tool = "run_command", arguments = { command = "cat log.txt" } }]\n'
DONE = '[[step]]\ntext = "Done."\n'


@dataclass
class Running:
    """A session of the whole program, and what it published."""

    session: Session
    events: list[Event] = field(default_factory=list)

    def bodies(self, kind: type[Any]) -> list[Any]:
        return [event.body for event in self.events if isinstance(event.body, kind)]

    @property
    def notices(self) -> str:
        return "\n".join(body.text for body in self.bodies(Notice))

    @property
    def results(self) -> list[str]:
        parts = [part for body in self.bodies(ItemCompleted) for part in body.parts]
        return [part.text for part in parts if isinstance(part, ToolResultPart)]

    async def say(self, text: str) -> str:
        """The outcome of the turn."""
        before = len(self.bodies(TurnEnded))
        self.session.send(Submit(text))
        await until(lambda: len(self.bodies(TurnEnded)) > before)
        return self.bodies(TurnEnded)[-1].outcome


@asynccontextmanager
async def running(folder: Path, script: str, **options: Any) -> AsyncIterator[Running]:
    file = folder.parent / "script.toml"
    file.write_text(script)
    session = await open_session(LaunchOptions(cwd=folder, script=file, **options))
    made = Running(session)
    subscription = session.subscribe(replay=True)

    async def follow() -> None:
        async for event in subscription:
            made.events.append(event)

    follower = asyncio.create_task(follow())
    try:
        yield made
    finally:
        await session.close()
        await asyncio.wait_for(follower, PATIENCE)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(databases, "BUSY_SECONDS", 0.01)
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "log.txt").write_text(BIG)
    return folder


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Database]:
    """The databases of sessions, as they are opened."""
    found: list[Database] = []

    def remembered(path: Path) -> Database:
        found.append(databases.open_database(path))
        return found[-1]

    monkeypatch.setattr(storage, "open_database", remembered)
    return found


@contextmanager
def locked(database: Database) -> Iterator[None]:
    """Another process writes and does not come to an end."""
    assert database.path is not None
    other = sqlite3.connect(database.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@contextmanager
def full(database: Database) -> Iterator[None]:
    """No room on the disk."""
    with database.write() as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        (most,) = connection.execute("PRAGMA max_page_count").fetchone()
        database._writer.execute(f"PRAGMA max_page_count={pages}")  # type: ignore[reportPrivateUsage]
    yield
    database._writer.execute(f"PRAGMA max_page_count={most}")  # type: ignore[reportPrivateUsage]


async def test_a_database_of_a_newer_version_in_its_place(project: Path, opened: list[Database]) -> None:
    newer = project.parent / "newer.db"
    databases.open_database(newer, migrations=(*MIGRATIONS, ("CREATE TABLE extra(x)",))).close()
    async with running(project, DONE + DONE) as run:
        assert await run.say("Begin.") == "done"
        path = opened[0].path
        assert path is not None
        newer.rename(path)
        assert await run.say("Go on.") == "done"
        assert run.session.kept == "aside"
        assert "`swecli doctor --repair recover` adds it" in run.notices


@pytest.mark.parametrize("trouble", [locked, full])
async def test_a_database_that_takes_nothing_in_the_middle_of_a_session(
    project: Path, opened: list[Database], trouble: Callable[[Database], Any]
) -> None:
    script = DONE + CAT + DONE + DONE
    async with running(project, script) as run:
        assert await run.say("Begin.") == "done"
        with trouble(opened[0]):
            assert await run.say("Read the log. " + "It matters. " * 2_000) == "done"
            assert "Cannot store" in run.notices
            assert "Long results remain in the context, shortened in the middle." in run.notices
            assert "line 0 of the log" in run.results[-1]
            assert "line 999 of the log" in run.results[-1]
            assert run.session.kept == "a part"
        await until(lambda: "stored again; nothing is missing" in run.notices)
        assert await run.say("Go on.") == "done"
        assert run.session.kept == "all"
        said = [message.text for message in run.session.view.messages]
    async with running(project, DONE, continue_newest=True) as again:
        assert [message.text for message in again.session.view.messages] == said
        assert await again.say("Still there?") == "done"


@pytest.mark.parametrize("content", [None, b"", b"RNK1" + bytes(1_000)], ids=["missing", "empty", "damaged"])
async def test_a_vocabulary_that_can_not_be_had(
    project: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    file = project.parent / "vocabulary.rnk"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setattr(ranks, "_FILE", str(file))
    o200k.cache_clear()
    script = "window = 20000\nmax_output = 1000\n" + DONE * 3
    async with running(project, script) as run:
        assert await run.say("Read this. " + "word " * 11_000) == "done"  # more than half: exact counts are wanted
        assert await run.say("And now?") == "done"
        await until(lambda: "Exact token counts are not available; swecli uses estimates" in run.notices)
        assert await run.say("Go on.") == "done"
        assert run.notices.count("Exact token counts") == 1
        assert run.session.view.budget is not None


async def test_stored_results_that_are_damaged(project: Path, opened: list[Database]) -> None:
    def recall(arguments: str) -> str:
        return f'[[step]]\ncall = [{{ tool = "recall", arguments = {{ {arguments} }} }}]\n'

    script = CAT + DONE + recall('query = "line 500"') + recall('id = "t2.result"') + DONE
    async with running(project, script) as run:
        assert await run.say("Read the log.") == "done"
        with opened[0].write() as connection:
            connection.execute("UPDATE tool_result_blobs SET content = x'00'")
        assert await run.say("What was in it?") == "done"
        found, entry = run.results[-2:]
        assert "A stored result could not be searched: r" in found
        assert "is damaged, so it is not shown" in found
        assert "is damaged" in entry or "has the id" in entry
