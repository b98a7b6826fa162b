"""A long session looked at and undone: previews, undo, the window at an earlier turn, at 10,000 items."""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from swecli.core.protocol.budget import Budget
from swecli.core.protocol.commands import Compact, UndoCompaction
from swecli.core.protocol.context_events import CompactionCompleted, CompactionUndone
from swecli.core.protocol.events import Event, StepStarted
from swecli.tui.launch import COLLECT
from tests.core.engine.support import bench, until
from tests.support.said import Said

REQUESTS = 2_500
"""Each with a call, its result and an answer."""
WINDOW = 700_000
"""Smaller than the session, so that an undo needs references."""
BUDGET = Budget((), 0, 0, WINDOW, WINDOW, 0, "ok")


def run() -> list[tuple[str, float, str]]:
    return asyncio.run(_measured())


def session() -> list[Event]:
    """The events, each request in a turn of its own."""
    said = Said()
    turns: list[int] = []
    for number in range(REQUESTS):
        said.user(f"Request {number}.")
        said.tell(StepStarted(1, BUDGET))
        said.call("read_file", {"target": f"f{number}"}, f"line of f{number} with words\n" * (30 + number % 50))
        said.tell(StepStarted(2, BUDGET))
        said.answer(f"The rule of request {number} is in f{number}.")
        turns += [number + 1] * (len(said.events) - len(turns))
    return [replace(event, turn=turn) for event, turn in zip(said.events, turns, strict=True)]


async def _measured() -> list[tuple[str, float, str]]:
    with tempfile.TemporaryDirectory() as folder:
        script = f'window = {WINDOW}\nmax_output = 2000\n[[step]]\ntext = "It is."'
        async with bench(script, Path(folder), history=session()) as b:
            b.send(Compact(without_model=True))
            await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy, "compaction")
            made = b.bodies(CompactionCompleted)[-1].item
            gc.freeze()
            gc.set_threshold(*COLLECT)  # as the interface does
            inspection = b.session.inspection
            moved = inspection.moved(made)
            assert moved is not None
            figures = [
                ("items", len(b.session.view.messages), ""),
                ("references of the undo", moved[1].references, ""),
                ("preview of an undo", _least(lambda: inspection.moved(made)), "ms (goal 100)"),
            ]
            for turn in (REQUESTS // 10, REQUESTS):
                start = time.process_time()
                picture = await inspection.at(turn)
                assert picture is not None
                figures.append((f"/context at {turn:,}", (time.process_time() - start) * 1e3, "ms (goal 300)"))
            start = time.process_time()
            b.send(UndoCompaction())
            await until(lambda: bool(b.bodies(CompactionUndone)), "undo")
            figures.append(("the undo", (time.process_time() - start) * 1e3, "ms (goal 100)"))
            return figures


def _least(action: Callable[[], object]) -> float:
    """Processor milliseconds, the least of five."""
    times: list[float] = []
    for _ in range(5):
        start = time.process_time()
        action()
        times.append((time.process_time() - start) * 1e3)
    return min(times)
