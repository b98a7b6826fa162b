"""Follows the events of a session and its subagents, and turns them into spans and measurements.

A collector that is slow or away delays nothing: events are read beside the turns, spans wait in a bounded queue of the
SDK, and the end of the session waits a moment only.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from swecli.core.engine.companion import Companion, EndReason
from swecli.core.engine.recorder import Recorder, Subscription
from swecli.core.protocol.events import Notice

if TYPE_CHECKING:
    from swecli.features.telemetry.exporting import Export
    from swecli.features.telemetry.spans import Spans

END_SECONDS = 2.0
"""Longest wait for the collector when the session ends."""


class Missing(Companion):
    """Says that telemetry can't work."""

    def __init__(self, recorder: Recorder, text: str) -> None:
        self._recorder = recorder
        self._text = text

    def start(self, *, resumed: bool) -> None:
        self._recorder.emit(Notice(self._text, "warning", "telemetry"))


class Telemetry(Companion):
    """``open_export`` imports and starts the SDK, off the event loop. ``content`` as of ``Spans``."""

    def __init__(
        self, recorder: Recorder, open_export: Callable[[], Export], content: Callable[[str], str] | None
    ) -> None:
        self._recorder = recorder
        self._open = open_export
        self._content = content
        self._export: Export | None = None
        self._spans: Spans | None = None
        self._events: Subscription | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self, *, resumed: bool) -> None:
        self._events = self._recorder.subscribe(replay=False)
        self._task = asyncio.create_task(self._follow(self._events, resumed=resumed))

    async def _follow(self, events: Subscription, *, resumed: bool) -> None:
        try:
            export = await asyncio.to_thread(self._open)
        except (ValueError, OSError, ImportError) as error:  # also a half-installed extra
            self._recorder.emit(Notice(f"Telemetry is off: {error}", "warning", "telemetry"))
            return
        from swecli.features.telemetry.spans import Spans

        self._export = export
        spans = Spans(export.tracer, export.meter, self._recorder.session, content=self._content, resumed=resumed)
        self._spans = spans
        async for event in events:
            spans.add(event)

    async def close(self, reason: EndReason) -> None:
        """Send what there is, within a moment."""
        await self._recorder.log.barrier()
        if self._events is None or self._task is None:
            return
        if self._export is None:
            await asyncio.wait((self._task,), timeout=END_SECONDS)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self._spans is None or self._export is None:
            return
        while not self._events.queue.empty():
            event = self._events.queue.get_nowait()
            if event is not None:
                self._spans.add(event)
        self._spans.end()
        await _within(self._export.close, END_SECONDS)


async def _within(work: Callable[[], None], seconds: float) -> None:
    """Do the work in a thread of its own, which the end of the program does not wait for."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        work()
        try:
            loop.call_soon_threadsafe(done.set)
        except RuntimeError:  # the loop has ended meanwhile
            return

    threading.Thread(target=run, name="telemetry", daemon=True).start()
    try:
        await asyncio.wait_for(done.wait(), seconds)
    except TimeoutError:
        return
