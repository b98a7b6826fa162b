"""A turn that is interrupted before it could do anything still ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from swecli.app import open_session
from swecli.core.protocol.commands import Interrupt, Submit
from swecli.core.protocol.events import TurnEnded
from swecli.launch import LaunchOptions
from tests.support.waiting import PATIENCE


@pytest.mark.parametrize("interrupts", [1, 2])
async def test_submit_and_interrupt_in_one_breath(
    interrupts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    (tmp_path / "s.toml").write_text('[[step]]\ntext = "one"\n[[step]]\ntext = "two"\n')
    session = await open_session(LaunchOptions(cwd=tmp_path, script=tmp_path / "s.toml", store=False))
    events = session.subscribe(replay=True)
    session.send(Submit("a"))
    for _ in range(interrupts):
        session.send(Interrupt())
    outcomes: list[str] = []
    while len(outcomes) < 2:
        event = await asyncio.wait_for(anext(events), PATIENCE)
        if isinstance(event.body, TurnEnded):
            outcomes.append(event.body.outcome)
            if len(outcomes) == 1:
                session.send(Submit("b"))
    await session.close()
    assert outcomes == ["interrupted", "done"]
