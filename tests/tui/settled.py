"""When a running application has nothing left to do: a condition, where Textual's pilot looks at processor time."""

from __future__ import annotations

import asyncio
import time
from asyncio.base_events import BaseEventLoop
from typing import Any

import pytest
from textual.pilot import Pilot

QUIET = 3
"""Passes of the loop in a row in which nothing but the waiting itself was ready."""
WORK = 2.0
"""Processor seconds of the loop after which it is not waited any longer: something may go on for ever. However many
others want the processor, the loop gets as far."""
ENDLESS = 10.0
"""Seconds after which a thread is not waited for any longer: it may wait for what the test does next."""


RESIZE = Pilot.resize_terminal


class Threads:
    """Counts what the loop has given to threads, whose end makes more work."""

    def __init__(self) -> None:
        self.pending: set[asyncio.Future[Any]] = set()
        self.endless: set[asyncio.Future[Any]] = set()
        """Those that wait for the test, as far as known."""

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original = BaseEventLoop.run_in_executor

        def run_in_executor(loop: BaseEventLoop, *arguments: Any) -> asyncio.Future[Any]:
            future = original(loop, *arguments)
            self.pending.add(future)
            future.add_done_callback(self.pending.discard)
            return future

        monkeypatch.setattr(BaseEventLoop, "run_in_executor", run_in_executor)

    async def settled(self, min_sleep: float = 0.0, max_sleep: float = ENDLESS) -> None:
        """In the place of ``textual._wait.wait_for_idle``, which on a busy machine returns too early, and too late
        where anything moves on the screen."""
        ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
        begun = time.thread_time()
        quiet = 0
        while quiet < QUIET and time.thread_time() - begun < WORK:
            await asyncio.sleep(0)
            if (pending := self.pending - self.endless) and not ready:
                ended, _ = await asyncio.wait(pending, timeout=max_sleep, return_when=asyncio.FIRST_COMPLETED)
                if not ended:
                    self.endless |= pending
                    return
            quiet = 0 if ready else quiet + 1

    async def worked_off(self, pilot: Pilot[Any], timeout: float = ENDLESS) -> bool:
        """In the place of ``Pilot._wait_for_screen``, which sends each widget a message and waits until all have come:
        26 of them for a key. What has come is worked off when the loop has nothing more to do."""
        ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
        begun = time.thread_time()
        quiet = 0
        while quiet < QUIET and time.thread_time() - begun < WORK:
            await asyncio.sleep(0)
            quiet = 0 if ready else quiet + 1
        return quiet >= QUIET

    async def resize(self, pilot: Pilot[Any], width: int, height: int) -> None:
        """In the place of ``Pilot.resize_terminal``: Textual takes a new size in after a hundredth of a second."""
        await RESIZE(pilot, width, height)
        while pilot.app._resize_event is not None:  # noqa: ASYNC110 - Textual has no event for it
            await asyncio.sleep(0.001)
        await pilot.pause()
