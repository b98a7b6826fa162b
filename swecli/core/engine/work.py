"""One piece of work at a time, and the user messages that wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence

from msgspec.structs import replace

from swecli.core.engine.recorder import Recorder
from swecli.core.protocol.commands import Invoke, Steer, Submit
from swecli.core.protocol.events import ItemCompleted, ItemStarted, QueueChanged, Queued
from swecli.core.protocol.messages import TextPart


def enqueue(recorder: Recorder, message: Submit | Steer | Invoke) -> None:
    """Append a message to the queue, which is part of the session's state and so survives a crash."""
    state = recorder.state
    if isinstance(message, Invoke):
        queued = Queued(f"n{state.seq + 1}", f"/{message.name} {message.arguments}".rstrip(), invokes=True)
        recorder.emit(QueueChanged((*state.queue, queued)))
        return
    images = message.images if isinstance(message, Submit) else ()
    queued = Queued(f"n{state.seq + 1}", message.text, isinstance(message, Steer), images, message.mentions)
    recorder.emit(QueueChanged((*state.queue, queued)))


def edit_queue(recorder: Recorder, identifier: str, text: str | None) -> None:
    """Change a waiting message; None as text removes it."""
    changed = (
        replace(queued, text=text, mentions=None, invokes=queued.invokes and text.startswith("/"))
        if queued.id == identifier and text
        else queued
        for queued in recorder.state.queue
        if queued.id != identifier or text
    )
    recorder.emit(QueueChanged(tuple(changed)))


def take_first(recorder: Recorder, held: Collection[str]) -> Queued | None:
    """Take the first waiting message out of the queue, without those whose ids are ``held``."""
    queue = recorder.state.queue
    first = next((queued for queued in queue if queued.id not in held), None)
    if first is not None:
        recorder.emit(QueueChanged(tuple(queued for queued in queue if queued is not first)))
    return first


def absorb_steering(recorder: Recorder) -> Sequence[Queued]:
    """Add messages written for the running turn to the conversation. Returns them."""
    waiting = recorder.state.queue
    steering = [queued for queued in waiting if queued.steer]
    if steering:
        recorder.emit(QueueChanged(tuple(queued for queued in waiting if not queued.steer)))
    for queued in steering:
        add_user_message(recorder, recorder.new_item("u"), queued)
    return steering


def add_user_message(recorder: Recorder, item: str, message: Submit | Queued) -> None:
    """Add a user message to the conversation as this item."""
    recorder.emit(ItemStarted(item, "user"))
    recorder.emit(ItemCompleted(item, "ok", (TextPart(message.text), *message.images)))


class Work:
    """A slot for one task, and named tasks in the background. ``ended`` is called on the event loop after each task in
    the slot, with its defect if it had one; an interrupt is no defect."""

    def __init__(self, ended: Callable[[BaseException | None], None]) -> None:
        self._ended = ended
        self._task: asyncio.Task[None] | None = None
        self.interrupted = False
        """Whether the newest task was interrupted by the user."""
        self._beside: dict[str, asyncio.Task[None]] = {}

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

    def begin_beside(self, name: str, work: Coroutine[object, object, None]) -> None:
        """Start in the background. The work reports its own defects."""
        self._beside[name] = asyncio.create_task(work)
        self._beside[name].add_done_callback(lambda _: self._beside.pop(name, None))

    @property
    def has_beside(self) -> bool:
        return bool(self._beside)

    def interrupt(self) -> None:
        """Interrupt all work."""
        self._interrupt_slot()
        for name in self._beside:
            self.stop_beside(name)

    def _interrupt_slot(self) -> None:
        if self._task is not None:
            self.interrupted = True
            _cancel(self._task)

    def stop_beside(self, name: str) -> bool:
        """Interrupt work in the background. False if none of this name runs."""
        if name not in self._beside:
            return False
        _cancel(self._beside[name])
        return True

    async def beside_settled(self) -> bool:
        """Wait for the work in the background. False if there is none."""
        tasks = tuple(self._beside.values())
        if tasks:
            await asyncio.wait(tasks)
        return bool(tasks)

    async def beside_ended(self, name: str) -> None:
        """Interrupt work in the background, if it runs, and wait for its end."""
        if self.stop_beside(name):
            await asyncio.wait((self._beside[name],))

    async def settled(self) -> None:
        """Wait until nothing runs."""
        while self._task is not None:
            await asyncio.wait((self._task,))

    async def stop(self) -> None:
        """End the task in the slot."""
        task = self._task
        if task is not None:
            self._interrupt_slot()
            await asyncio.gather(task, return_exceptions=True)

    async def end_beside(self) -> None:
        """End the work in the background."""
        self.interrupt()
        await self.beside_settled()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        self._ended(None if task.cancelled() else task.exception())


def _cancel(task: asyncio.Task[None]) -> None:
    """Cancel soon: a task cancelled before its first step runs nothing, not even its clean-up. That step is already
    scheduled, so the cancellation goes after it."""
    asyncio.get_running_loop().call_soon(task.cancel)
