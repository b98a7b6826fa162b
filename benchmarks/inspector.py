"""The inspector with 10,000 items and the cache view with 10,000 requests: opening, keys, preview of a change; the
forecast while somebody types."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.inspected import Inspected, cache_history

ITEMS = 10_000
KEYS = 100
OPENED = 9
SIZE = (120, 40)

Line = tuple[str, float, str]


BETWEEN = 1 / 30
"""Seconds from one key to the next, as a keyboard repeats: without them Textual's frames would be measured."""
LOOK = 0.0005
"""Seconds after which it is looked whether something was drawn."""


def run() -> Iterator[Line]:
    """Times of this process by the clock and of its processor; a key is over when its frame has been drawn."""
    return iter([*asyncio.run(_measured()), *asyncio.run(_cache_view()), *asyncio.run(_forecasts())])


async def _measured() -> list[Line]:
    from tests.tui.screens.test_context_screens import prepared
    from tests.tui.support import running

    inspected = Inspected(window=4_000_000).fill(ITEMS // 7, 2)
    inspected.inspection.picture()  # a session has measured its conversation before anybody looks
    async with running(session=prepared(inspected), size=SIZE) as it:
        opened = await _opened(it, partial(it.app.interface.open, "context"))
        board: Any = it.app.main.list_view
        lines = [("items", float(len(board.list.items)), ""), *_told("open", opened)]
        for what, key in (("scroll by a line", "down"), ("scroll by a page", "pagedown")):
            lines += _told(what, [await _key(it, key) for _ in range(KEYS)])
            await _key(it, "home")
        await _key(it, "s")  # by size: results come first, each of which can go
        await _key(it, "down")
        return lines + _told("choose a change and see its effect", [await _key(it, "d") for _ in range(20)])


async def _cache_view() -> list[Line]:
    from swecli.assembly.prices import Prices
    from tests.tui.screens.test_context_screens import prepared
    from tests.tui.support import running

    session = prepared(Inspected())
    session.view.cache, session.view.price = cache_history(ITEMS), _at_a_known_price(Prices())
    async with running(session=session, size=SIZE) as it:
        opened = await _opened(it, partial(it.app.interface.open, "cache"))
        lines = [
            ("requests of the cache view", float(session.view.cache.count), ""),
            *_told("open the cache view", opened),
        ]
        for what, key in (("scroll it by a line", "up"), ("scroll it by a page", "pageup"), ("only misses", "f")):
            lines += _told(what, [await _key(it, key) for _ in range(KEYS)])
        return lines


def _at_a_known_price(prices: Any) -> Any:
    return lambda _model, usage: prices("anthropic/claude-sonnet-4-5", usage)


DRAFTS = {"20": 20, "2,000": 2_000, "1,000,000": 1_000_000}
"""Characters of a message that is being typed."""


async def _forecasts() -> list[Line]:
    """One forecast for each key, with its words: what the prompt does beside drawing them. Processor times."""
    from swecli.assembly.prices import Prices
    from swecli.tui.forecast_line import forecast_words
    from tests.core.engine.support import bench
    from tests.core.engine.test_prompt_cache import Clock, cached_model, fill, steps

    clock = Clock()
    turns = "\n".join(f'{steps(3, 3 * turn)}\n[[step]]\ntext = "Read."' for turn in range(10))
    model = cached_model(f"window = 200000\nmax_output = 8000\n{turns}", clock)
    given: dict[str, Any] = {"make_client": lambda _name: model, "clock": clock, "price": _at_a_known_price(Prices())}
    lines: list[Line] = []
    with tempfile.TemporaryDirectory() as folder:
        async with bench('[[step]]\ntext = "x"', Path(folder), **given) as b:
            fill(b, 30)
            for turn in range(10):
                await b.say(f"Read the next files, round {turn}.")
            for name, size in DRAFTS.items():
                draft = ("Please change the price of ten pens, and test it. " * (size // 50 + 1))[:size]
                times: list[float] = []
                for typed in range(2 * KEYS):
                    text = draft + "x" * typed
                    start = time.thread_time()
                    told = b.session.view.forecast(text)
                    assert told is not None
                    forecast_words(told, SIZE[0])
                    times.append(time.thread_time() - start)
                lines.append((f"forecast, {name} characters typed, 95th percentile", _p95(times), "ms (goal 2)"))
    return lines


def _p95(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.95)] * 1000


Times = tuple[float, float]
"""Seconds by the clock, and of the processor."""


def _told(what: str, times: list[Times]) -> list[Line]:
    """Few times as their median, many by what 95 of 100 stay below."""
    kind, of = ("median", statistics.median) if len(times) < 10 else ("95th percentile", lambda one: _p95(one) / 1000)
    return [
        (f"{what}, {kind}", of([elapsed for elapsed, _ in times]) * 1000, "ms"),
        ("  processor time", of([worked for _, worked in times]) * 1000, "ms"),
    ]


async def _opened(it: Any, show: Callable[[], None]) -> list[Times]:
    """The screen opened several times; it is open afterwards."""
    times: list[Times] = []
    for _ in range(OPENED):
        if times:
            it.app.main.close_list()
            await it.pilot.pause()
        start = time.perf_counter(), time.thread_time()
        show()
        await _until_drawn(it.app.main.list_view, 0)
        times.append((time.perf_counter() - start[0], time.thread_time() - start[1]))
    return times


async def _until_drawn(board: Any, before: int) -> None:
    while board.drawn == before:  # noqa: ASYNC110 - nothing tells that a line was drawn
        await asyncio.sleep(LOOK)


async def _key(it: Any, key: str) -> Times:
    """From a key to its lines."""
    from textual import events

    await asyncio.sleep(BETWEEN)
    board = it.app.main.list_view
    drawn, start = board.drawn, (time.perf_counter(), time.thread_time())
    it.app.post_message(events.Key(key, key if len(key) == 1 else None))
    await _until_drawn(board, drawn)
    return time.perf_counter() - start[0], time.thread_time() - start[1]


if __name__ == "__main__":
    for name, value, unit in run():
        print(f"{name:<58} {value:>10.2f} {unit}")
