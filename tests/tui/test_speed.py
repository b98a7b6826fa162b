"""What the interface costs, as ratios of processor times that are measured side by side: no figure here is absolute, so
none depends on the machine or on what else it does. The full figures come from the benchmarks."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.played_session import DIFF_END, READY, PlayedSession
from swecli.core.protocol.blocks import DiffBlock, TerminalBlock
from swecli.core.protocol.events import Body, ItemCheckpointed, ItemCompleted, ItemDelta, ItemStarted
from swecli.core.protocol.messages import TextPart, ToolCallPart, ToolResultPart
from tests.support.fake_session import WAIT_FOR_INTERRUPT
from tests.tui.frames import FRAMES
from tests.tui.support import Running, Session, running

FEW, SOME, MANY = 10, 200, 5_000
"""Blocks in the transcript."""
MOST = 30
"""Frames in a second at most."""
PAINTED = 0.025
"""Seconds in which what was asked for is painted: a frame and a half."""

TEXT = (
    "The parser keeps a **stack** of open blocks, so that `close_all` can end them in order.\n\n"
    "- first the blocks are opened\n- then their text is kept\n\n"
    "```python\ndef close_all(stack):\n    while stack:\n        stack.pop().close()\n```\n\n"
)


@pytest.fixture(autouse=True)
def frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each frame is drawn when it comes."""
    FRAMES.watch(monkeypatch, every=True)


def said(item: str, kind: Any, text: str) -> list[Body]:
    return [ItemStarted(item, kind), ItemCompleted(item, "ok", (TextPart(text),))]


def tool(item: str, name: str, block: TerminalBlock | DiffBlock) -> list[Body]:
    call = ItemCheckpointed(item, ToolCallPart(item, name, "{}"), "target", running=True)
    return [
        ItemStarted(item, "tool", name),
        call,
        ItemCompleted(item, "ok", (ToolResultPart(item, name, "done"),), (block,), "done", 0.1),
    ]


def history(blocks: int) -> list[Body]:
    bodies: list[Body] = []
    for number in range(0, blocks, 4):
        bodies += said(f"u{number}", "user", f"Please look at part {number}.")
        bodies += said(f"a{number}", "text", TEXT)
        bodies += tool(f"t{number}", "run_command", TerminalBlock("pytest", "passed\n" * 12, 0))
        bodies += tool(f"e{number}", "edit_file", DiffBlock("a.py", "one = 1\n" * 9, "one = 1\n" * 8 + "one = 2\n"))
    return bodies


@asynccontextmanager
async def shown(blocks: int) -> AsyncIterator[Running]:
    """The application with so many blocks on its transcript, all of them there."""
    session = Session((WAIT_FOR_INTERRUPT,), history=[*history(blocks), *said("last", "text", "Everything is there.")])
    async with running(session=session, size=(120, 40)) as it:
        await it.shows("Everything is there.")
        await asyncio.sleep(0.3)
        yield it


async def cheapest(action: Callable[[int], Awaitable[object]], rounds: int = 4, each: int = 3) -> float:
    """Processor seconds of an action and its paint: the mean of the best round."""
    best = float("inf")
    for number in range(rounds):
        begun = time.process_time()
        for repeat in range(each):
            await action(number * each + repeat)
            await asyncio.sleep(PAINTED)
        best = min(best, (time.process_time() - begun) / each)
    return best


async def key(blocks: int) -> float:
    async with shown(blocks) as it:
        cost = await cheapest(lambda number: it.press("x"))
        assert it.text.startswith("xxx")
        return cost


async def page(blocks: int) -> float:
    async with shown(blocks) as it:
        await it.press("pageup", "pageup")
        return await cheapest(lambda number: it.press("pageup" if number % 2 else "pagedown"))


async def append(blocks: int) -> float:
    async with shown(blocks) as it:

        async def one(number: int) -> None:
            for body in said(f"new{number}", "text", TEXT):
                it.session.emit(body)
            await asyncio.sleep(1 / MOST)

        cost = await cheapest(one)
        assert len(it.app.main.transcript.page.blocks) > blocks
        return cost


@pytest.mark.parametrize(("measured", "fewer"), [(key, FEW), (page, SOME), (append, SOME)])
async def test_it_costs_the_same_in_a_long_session(measured: Callable[[int], Awaitable[float]], fewer: int) -> None:
    short, long = await measured(fewer), await measured(MANY)
    assert long <= 2 * short, f"{long * 1e3:.1f} ms with {MANY} blocks, {short * 1e3:.1f} ms with {fewer}"


RATE, TOKENS = 2_000, 3_000


async def at_their_time(write: Callable[[str], object], late: float = 0.0) -> float:
    """Hand over an answer at 2,000 tokens a second; one that is late on a busy machine follows after ``late`` seconds.
    Returns the processor seconds meanwhile."""
    words = (TEXT * 200).split(" ")[:TOKENS]
    cpu, start = time.process_time(), time.monotonic()
    for number, word in enumerate(words):
        write(f"{word} ")
        ahead = start + (number + 1) / RATE - time.monotonic()
        await asyncio.sleep(ahead if ahead > 0 else late)
    await asyncio.sleep(0.1)
    return time.process_time() - cpu


async def test_a_stream_costs_few_times_a_plain_write_in_few_frames() -> None:
    sink = os.open(os.devnull, os.O_WRONLY)
    plain = await at_their_time(lambda text: os.write(sink, text.encode()), 1 / RATE)
    os.close(sink)
    async with shown(SOME) as it:
        await it.say("go")
        await it.until(lambda: it.app.session.state.busy)
        it.session.emit(ItemStarted("s", "text"))
        frames: list[float] = []
        compositor: Any = it.app.screen._compositor
        render = compositor.render_update

        def counted(*given: Any, **more: Any) -> object:
            update = render(*given, **more)
            if update is not None:
                frames.append(time.monotonic())
            return update

        compositor.render_update = counted
        begun = time.monotonic()
        cost = await at_their_time(lambda text: it.session.emit(ItemDelta("s", text)))
        seconds = time.monotonic() - begun
        compositor.render_update = render
    more = max(1.0, len(frames) * RATE / (MOST * TOKENS))  # a busy machine takes longer, and so draws more of them
    assert cost <= 10 * plain * more, f"{cost:.2f} s of the processor, a plain write {plain:.2f} s"
    assert len(frames) <= MOST * seconds + 3, f"{len(frames)} frames in {seconds:.1f} s"


async def test_the_session_of_the_benchmarks_is_shown_and_plays(tmp_path: Path) -> None:
    session: Any = PlayedSession(FEW, tmp_path)
    async with running(session=session, size=(120, 40)) as it:
        await it.shows(READY)
        await it.press(*"diff", "enter")
        await it.shows(DIFF_END)
        await it.until((tmp_path / "diff.json").exists)
