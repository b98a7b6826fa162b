"""A session that goes on keeps little of each turn in memory, however much was said in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from swecli.app import open_session
from swecli.core.engine.session import Session
from swecli.core.protocol.commands import Submit
from swecli.core.protocol.events import CompactionCompleted, Event, TurnEnded
from swecli.launch import LaunchOptions
from tests.support.held import Held, held_by

TURNS = 120
PROMPT = "Do it just like this, and then go on. " * 50
"""What the user says at length each time."""
TEXT_PER_TURN = 600
"""Characters of long texts that a turn may leave behind; what is said in one is more than 6,000. Texts leave in
batches, so the figure depends on where the last batch was."""
OBJECTS_PER_TURN = 145
"""Objects of any kind that a turn may leave behind: entries, ids, times, sizes, numbers of the events that have long
texts, counts in caches that still fill, and the notes that are said again after each compaction."""


def _script() -> str:
    steps = ['window = 27200\nchunk = "whole"\naside = "The goal is to go on."\n']
    for number in range(TURNS):
        call = f"{{ tool = 'run_command', arguments = {{ command = 'cat long.txt; echo {number}' }} }}"
        steps.append(f"[[step]]\ncall = [{call}]\n[[step]]\ntext = 'Turn {number} is done.'\n")
    return "\n".join(steps)


async def _until_a_compaction(session: Session, events: AsyncIterator[Event], first: int) -> int:
    """Turns until the conversation gave way to a record of it; the number of the next one."""
    for number in range(first, TURNS):
        session.send(Submit(f"Run part {number}. {PROMPT}"))
        compacted = False
        async for event in events:
            if isinstance(event.body, CompactionCompleted):
                compacted = compacted or event.body.strategies != ("clearing",)
            elif isinstance(event.body, TurnEnded):
                assert event.body.outcome == "done"
                break
        if compacted:
            return number + 1
    raise AssertionError("the turns were too few")


async def test_turns_leave_no_texts_and_few_objects_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, script = tmp_path / "work", tmp_path / "long.toml"
    work.mkdir()
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    (work / "long.txt").write_text("".join(f"{number}: a line of output\n" for number in range(400)), encoding="utf-8")
    script.write_text(_script(), encoding="utf-8")
    session = await open_session(LaunchOptions(cwd=work, script=script, headless=True, mode="auto"))
    turns: list[int] = []
    held: list[Held] = []
    try:
        events = session.subscribe()
        for _ in range(6):
            turns.append(await _until_a_compaction(session, events, turns[-1] if turns else 0))
            while writing := session._context_parts.snapshots._writing:  # a snapshot in flight holds texts for a moment
                await asyncio.wait(writing)
            held.append(held_by(session))
    finally:
        await session.close()
    # What is put away leaves in batches every few compactions: three of them on each side even that out.
    more = sum(turns[3:]) - sum(turns[:3])
    most = (held[-1].objects - held[0].objects).most_common(8)
    texts, counts = ([getattr(one, name) for one in held] for name in ("long_texts", "count"))
    assert (sum(texts[3:]) - sum(texts[:3])) / more < TEXT_PER_TURN, most
    assert (sum(counts[3:]) - sum(counts[:3])) / more < OBJECTS_PER_TURN, most
