"""Waits and limits outlast a clock that jumps."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from swecli.steady_clock import MOST, SteadyClock, keep_steady
from tests.support.waiting import PATIENCE

MONTH = 30 * 24 * 3600.0


def test_a_clock_without_jumps_is_the_same() -> None:
    readings = [5.0, 5.5, 7.0, 7.0, 7.0 + MOST]
    source = iter(readings)
    clock = SteadyClock(lambda: next(source))
    assert [clock() for _ in readings] == readings


def test_a_jump_counts_little_and_one_back_nothing() -> None:
    def readings() -> Iterator[float]:
        yield from (10.0, 11.0, 11.0 + MONTH, 12.0 + MONTH, 12.0, 13.0, -MONTH, 1.0 - MONTH)

    source = readings()
    clock = SteadyClock(lambda: next(source))
    known = [clock() for _ in range(8)]
    assert known == [10.0, 11.0, 11.0 + MOST, 12.0 + MOST, 12.0 + MOST, 13.0 + MOST, 13.0 + MOST, 14.0 + MOST]


@pytest.mark.parametrize("jump", [MONTH, -MONTH, 3600.0, -3600.0])
def test_what_waits_in_a_loop_outlasts_a_jump(jump: float) -> None:
    async def main() -> tuple[bool, bool]:
        loop, offset = asyncio.get_running_loop(), [0.0]
        loop.time = lambda: time.monotonic() + offset[0]
        keep_steady(loop)
        late = threading.Event()
        pause = asyncio.create_task(asyncio.sleep(0.1))
        request = asyncio.create_task(asyncio.wait_for(asyncio.Event().wait(), 2 * MOST))
        await asyncio.sleep(0)
        offset[0] = jump
        await asyncio.wait(
            (pause, asyncio.ensure_future(asyncio.to_thread(late.wait, PATIENCE))), return_when="FIRST_COMPLETED"
        )
        late.set()
        ends = pause.done(), request.done()
        request.cancel()
        return ends

    assert asyncio.run(main()) == (True, False)
