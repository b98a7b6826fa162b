"""One piece of work at a time, and the messages of the user that wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence

from msgspec.structs import replace

from swecli.core.engine.recorder import Recorder
from swecli.core.protocol.commands import Steer, Submit
from swecli.core.protocol.events import ItemCompleted, ItemStarted, QueueChanged, Queued
from swecli.core.protocol.messages import ImagePart, TextPart


class MessageQueue:
    """The queue lives in the session's state; every change is an event, so it survives a crash."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    @property
    def _waiting(self) -> tuple[Queued, ...]:
        return self._recorder.state.queue

    def add(self, message: Submit | Steer) -> None:
        """Put a message at the end."""
        images = message.images if isinstance(message, Submit) else ()
        name, steer = f"n{self._recorder.state.seq + 1}", isinstance(message, Steer)
        queued = Queued(name, message.text, steer, images, message.mentions)
        self._recorder.emit(QueueChanged((*self._waiting, queued)))

    def edit(self, identifier: str, text: str | None) -> None:
        """Change a waiting message, or take it out."""
        changed = (
            replace(queued, text=text, mentions=None) if queued.id == identifier and text else queued
            for queued in self._waiting
            if queued.id != identifier or text
        )
        self._recorder.emit(QueueChanged(tuple(changed)))

    def take_first(self) -> Queued | None:
        """Remove and return the message that waits longest."""
        if not self._waiting:
            return None
        first, *rest = self._waiting
        self._recorder.emit(QueueChanged(tuple(rest)))
        return first

    def absorb_steering(self) -> Sequence[Queued]:
        """Messages written for the running turn join the conversation now. Returns them."""
        steering = [queued for queued in self._waiting if queued.steer]
        if steering:
            self._recorder.emit(QueueChanged(tuple(queued for queued in self._waiting if not queued.steer)))
        for queued in steering:
            self.say(self._recorder.new_item("u"), queued.text, queued.images)
        return steering

    def say(self, item: str, text: str, images: Sequence[ImagePart] = ()) -> None:
        """A message of the user enters the conversation as this item."""
        self._recorder.emit(ItemStarted(item, "user"))
        self._recorder.emit(ItemCompleted(item, "ok", (TextPart(text), *images)))


class Work:
    """A slot for one task. ``ended`` is called on the event loop after each task, with its defect if it had
    one; an interrupt is no defect."""

    def __init__(self, ended: Callable[[BaseException | None], None]) -> None:
        self._ended = ended
        self._task: asyncio.Task[None] | None = None
        self.interrupted = False
        """Whether the newest task was interrupted by the user."""

    @property
    def busy(self) -> bool:
        return self._task is not None

    def begin(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Start; only when nothing runs."""
        assert self._task is None
        self.interrupted = False
        self._task = asyncio.create_task(work)
        self._task.add_done_callback(self._done)
        return self._task

    def interrupt(self) -> None:
        """Cancel what runs, if anything."""
        if self._task is not None:
            self.interrupted = True
            # A task that is cancelled before its first step runs nothing, not even its end. That step is
            # already scheduled, so the cancellation goes after it.
            asyncio.get_running_loop().call_soon(self._task.cancel)

    async def stop(self) -> None:
        """Cancel and wait until it has ended."""
        task = self._task
        if task is not None:
            self.interrupt()
            await asyncio.gather(task, return_exceptions=True)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        self._ended(None if task.cancelled() else task.exception())
