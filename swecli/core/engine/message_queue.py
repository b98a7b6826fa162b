"""Messages of the user that wait: for the next tool boundary (steering) or for after the turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from swecli.core.engine.recorder import Recorder
from swecli.core.protocol.events import ItemCompleted, ItemStarted, QueueChanged, Queued
from swecli.core.protocol.messages import ImagePart, TextPart


class MessageQueue:
    """The queue lives in the session's state; every change is an event, so it survives a crash."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    @property
    def _waiting(self) -> tuple[Queued, ...]:
        return self._recorder.state.queue

    def add(self, text: str, images: Sequence[ImagePart] = (), *, steer: bool) -> None:
        """Put a message at the end."""
        queued = Queued(f"n{self._recorder.state.seq + 1}", text, steer, tuple(images))
        self._recorder.emit(QueueChanged((*self._waiting, queued)))

    def edit(self, identifier: str, text: str | None) -> None:
        """Change a waiting message, or take it out."""
        kept = (queued for queued in self._waiting if queued.id != identifier or text)
        changed = (replace(queued, text=text) if queued.id == identifier and text else queued for queued in kept)
        self._recorder.emit(QueueChanged(tuple(changed)))

    def take_first(self) -> Queued | None:
        """Remove and return the message that waits longest."""
        if not self._waiting:
            return None
        first, *rest = self._waiting
        self._recorder.emit(QueueChanged(tuple(rest)))
        return first

    def absorb_steering(self) -> bool:
        """Messages written for the running turn join the conversation now. False when there are none."""
        steering = [queued for queued in self._waiting if queued.steer]
        if steering:
            self._recorder.emit(QueueChanged(tuple(queued for queued in self._waiting if not queued.steer)))
        for queued in steering:
            self.say(self._recorder.new_item("u"), queued.text, queued.images)
        return bool(steering)

    def say(self, item: str, text: str, images: Sequence[ImagePart] = ()) -> None:
        """A message of the user enters the conversation as this item."""
        self._recorder.emit(ItemStarted(item, "user"))
        self._recorder.emit(ItemCompleted(item, "ok", (TextPart(text), *images)))
