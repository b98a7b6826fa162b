"""A long session whose commands print much holds the outputs of a few turns, not of all."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from swecli.app import open_session
from swecli.core.engine import recorder
from swecli.core.protocol.blocks import TerminalBlock
from swecli.core.protocol.commands import Submit
from swecli.core.protocol.events import ItemCompleted, TurnEnded
from swecli.core.workspace import command_output
from swecli.launch import LaunchOptions
from tests.support.thorough import examples

TURNS, KEPT = examples(18, 24), examples(32, 64)
"""Commands, and of how many facts at least the texts are held: those of a part of the commands."""
OUTPUT = 50_000


def _script() -> str:
    steps = ['window = 200000\nchunk = "whole"\n']
    for number in range(TURNS):
        call = f"{{ tool = 'run_command', arguments = {{ command = 'cat long.txt; echo {number}' }} }}"
        steps.append(f"[[step]]\ncall = [{call}]\n[[step]]\ntext = 'Turn {number} is done.'\n")
    return "\n".join(steps)


@pytest.fixture(autouse=True)
def usual_garbage_collection() -> Iterator[None]:
    """Garbage is looked for as often as in the program; the other tests do it more rarely."""
    rarely = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*rarely)


@pytest.mark.parametrize("store", [True, False])
async def test_outputs_leave_memory_and_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: bool) -> None:
    work, script = tmp_path / "work", tmp_path / "long.toml"
    work.mkdir()
    monkeypatch.setattr(recorder, "KEPT", KEPT)
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    (work / "long.txt").write_text("x" * 99 + "\n" + ("y" * 99 + "\n") * (OUTPUT // 100), encoding="utf-8")
    script.write_text(_script(), encoding="utf-8")
    session = await open_session(LaunchOptions(cwd=work, script=script, headless=True, mode="auto", store=store))
    try:
        events = session.subscribe()
        tracemalloc.start()
        try:
            for number in range(TURNS):
                session.send(Submit(f"Run part {number}."))
                async for event in events:
                    if isinstance(event.body, TurnEnded):
                        assert event.body.outcome == "done"
                        break
            event = None
            statistics = tracemalloc.take_snapshot().statistics("filename")
        finally:
            tracemalloc.stop()
        facts = session._recorder.facts  # pyright: ignore[reportPrivateUsage]
        assert len(facts.held) <= 2 * KEPT < len(facts)
        held = [entry.size for entry in statistics if entry.traceback[0].filename == command_output.__file__]
        assert held
        assert sum(held) < 0.7 * TURNS * OUTPUT
        shown = 0
        async for event in session.subscribe(replay=True):
            if isinstance(event.body, ItemCompleted):
                shown += sum(
                    len(block.output) >= OUTPUT for block in event.body.blocks if isinstance(block, TerminalBlock)
                )
            if shown == TURNS:
                break
        assert shown == TURNS
    finally:
        await session.close()
