"""A long session opens from its snapshot: its newest turns are read, and the rest when somebody asks for it."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from swecli.app import open_session
from swecli.assembly import storage
from swecli.core.engine.recorder import HELD_TURNS, Past
from swecli.core.engine.session import Session
from swecli.core.protocol.commands import Submit
from swecli.core.protocol.events import Event, ItemCompleted, Notice, TurnEnded, TurnStarted
from swecli.core.protocol.messages import Message, TextPart
from swecli.core.sessions.store import SessionStore
from swecli.launch import LaunchOptions

TURNS = HELD_TURNS + 15
PROMPT = "Please look at this with care. " * 20


async def say(session: Session, text: str) -> None:
    events = session.subscribe()
    session.send(Submit(text))
    async for event in events:
        if isinstance(event.body, TurnEnded):
            assert event.body.outcome == "done"
            return


class Opened:
    """What one opening read and had."""

    def __init__(self) -> None:
        self.loaded: list[int] = []
        self.messages: Sequence[Message] = ()
        self.facts: Sequence[Event] = ()
        self.newest: Sequence[Event] = ()
        self.turns = self.total = 0
        self.notices: list[str] = []


async def opened(options: LaunchOptions, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Open and close it, with nothing said."""
    found, load = Opened(), SessionStore.load

    def counted(store: SessionStore, *given: object, **more: object) -> list[Event]:
        events = load(store, *given, **more)  # type: ignore[arg-type]
        found.loaded.append(len(events))
        return events

    with monkeypatch.context() as patch:
        patch.setattr(SessionStore, "load", counted)
        session = await open_session(options)
    try:
        facts = session._recorder.facts  # pyright: ignore[reportPrivateUsage]
        recent: Past = facts.recent(HELD_TURNS, {})
        found.newest = recent.newest
        assert recent.log is None
        found.messages = tuple(session.view.messages)
        found.turns, found.total = session.view.totals.turns, session.view.conversation.total
        found.facts = await session.facts()
        found.notices = [event.body.text for event in found.facts if isinstance(event.body, Notice)]
    finally:
        await session.close()
    return found


async def record(base: Path) -> LaunchOptions:
    """Options that continue a session of many turns, stored with SWECLI_HOME as it is."""
    work, script = base / "work", base / "long.toml"
    work.mkdir()
    steps = (f"[[step]]\ntext = 'Answer {number}. {PROMPT}'\n" for number in range(TURNS + 5))
    script.write_text(f"window = 16000\nchunk = 'whole'\naside = 'The goal is to go on.'\n{''.join(steps)}")
    new = LaunchOptions(cwd=work, script=script, headless=True, mode="auto")
    session = await open_session(new)
    for number in range(TURNS):
        await say(session, f"Message {number}. {PROMPT}")
    await session.close()
    return replace(new, continue_newest=True)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[LaunchOptions, Path]:
    """The options, and the home in which the session is."""
    base = tmp_path_factory.mktemp("long")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWECLI_HOME", str(base / "home"))
        patch.delenv("SWECLI_CONFIG", raising=False)
        return asyncio.run(record(base)), base / "home"


@pytest.fixture
def options(recorded: tuple[LaunchOptions, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LaunchOptions:
    """They continue a copy of the session."""
    shutil.copytree(recorded[1], tmp_path / "home", symlinks=True)
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    return recorded[0]


def database(tmp_path: Path) -> Path:
    return next((tmp_path / "home").rglob(storage.DATABASE))


def changed(tmp_path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(database(tmp_path), isolation_level=None)) as connection:
        assert connection.execute(statement, values).rowcount > 0


def told(facts: Sequence[Event]) -> list[str]:
    """What the user and the model said."""
    return [
        part.text
        for event in facts
        if isinstance(event.body, ItemCompleted)
        for part in event.body.parts
        if isinstance(part, TextPart)
    ]


async def test_a_long_session_reads_its_newest_turns_and_is_whole(
    options: LaunchOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lazy = await opened(options, monkeypatch)
    assert lazy.loaded[0] < len(lazy.facts) - 8 * (TURNS - HELD_TURNS) / 2
    changed(tmp_path, "UPDATE session_snapshots SET state = NULL")
    whole = await opened(options, monkeypatch)
    assert whole.loaded[0] > lazy.loaded[0]
    assert lazy.messages == whole.messages
    assert (lazy.turns, lazy.total) == (whole.turns, whole.total)
    assert lazy.turns == TURNS
    assert told(lazy.facts) == told(whole.facts)
    assert [text for text in told(lazy.facts) if text.startswith("Message 0.")], "paging goes back to the first"
    assert lazy.facts == whole.facts[: len(lazy.facts)]
    assert sum(isinstance(event.body, TurnStarted) for event in lazy.newest) == HELD_TURNS
    again = await opened(options, monkeypatch)
    assert again.loaded[0] < whole.loaded[0], "what was missing was written again"
    assert again.messages == whole.messages


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE session_snapshots SET state = x'00ff'",
        "UPDATE session_snapshots SET state = 'text'",
        "UPDATE session_snapshots SET state_facts = 3",
        "UPDATE session_snapshots SET state_seq = 'x'",
        "DELETE FROM events WHERE seq IN (SELECT seq FROM events ORDER BY seq LIMIT 1 OFFSET 20)",
    ],
)
async def test_a_damaged_or_stale_one_is_rebuilt_from_the_events(
    options: LaunchOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    before = await opened(options, monkeypatch)
    changed(tmp_path, statement)
    after = await opened(options, monkeypatch)
    assert after.loaded[0] > before.loaded[0]
    assert after.turns == TURNS
    assert after.messages == before.messages
    assert any("unreadable" in text for text in after.notices) == statement.startswith("DELETE")


async def test_what_goes_on_after_a_lazy_opening_is_the_same_session(
    options: LaunchOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await open_session(options)
    await say(session, "One more.")
    messages = tuple(session.view.messages)
    await session.close()
    lazy = await opened(options, monkeypatch)
    changed(tmp_path, "UPDATE session_snapshots SET state = NULL")
    whole = await opened(options, monkeypatch)
    assert lazy.messages == whole.messages == messages
    assert lazy.turns == whole.turns == TURNS + 1
