"""Asking the model for one answer: what fails before anything was shown is repeated, what was shown is kept."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass

from swecli.core.context_management.context_manager import PreparedRequest
from swecli.core.context_management.notes import INTERRUPTED
from swecli.core.engine.answer import Answer, Call
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.retry import retry_delay
from swecli.core.engine.services import Services
from swecli.core.engine.step_account import Fragment
from swecli.core.engine.way_out import door_of
from swecli.core.llm.types import Failed, Finished, ModelClient, ProviderError, StreamNotice
from swecli.core.protocol.events import Notice, RetryScheduled
from swecli.core.protocol.messages import Message, Origin


@dataclass(frozen=True, slots=True)
class Answered:
    """The whole answer and the calls to run."""

    message: Message
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class CutShort:
    """The answer broke off after a part of it was shown. That part is in the history, and nothing of it was run."""

    error: ProviderError
    fragment: Fragment


@dataclass(frozen=True, slots=True)
class Refused:
    """There is no answer, and asking the same model again soon is of no use."""

    error: ProviderError


class Asking:
    """Asks with retries. Cancelled, it keeps what was shown and marks it as interrupted."""

    def __init__(self, services: Services, recorder: Recorder) -> None:
        self._services = services
        self._recorder = recorder
        self._door = door_of(services, recorder)
        self.fragment: Fragment | None = None
        """What came of an answer that was interrupted."""

    async def ask(self, client: ModelClient, prepared: PreparedRequest) -> Answered | CutShort | Refused:
        """One answer, after as many attempts as it takes."""
        attempt = 0
        while True:
            attempt += 1
            answer = Answer(self._recorder, Origin("", "", client.info.ref), self._services.monotonic)
            try:
                result = await self._stream(client, prepared, answer)
            except asyncio.CancelledError:
                self.fragment = Fragment(answer.usage, answer.written) if answer.visible else None
                answer.cut("interrupted", INTERRUPTED)
                raise
            if isinstance(result, Message):
                return Answered(result, answer.complete(result))
            error = result.error
            if answer.visible or has_content(result.message):
                answer.cut("error", error.kind, result.message, error.message)
                return CutShort(error, Fragment(answer.usage, answer.written))
            if not await self.wait(error, attempt):
                answer.cut("error", error.kind, result.message)
                return Refused(error)

    async def wait(self, error: ProviderError, attempt: int) -> bool:
        """Wait before attempt ``attempt + 1``, visibly; False where there is to be none."""
        limit = self._services.limits.max_retries
        delay = retry_delay(error, attempt, limit, self._services.jitter())
        if delay is None:
            return False
        self._recorder.emit(RetryScheduled(attempt, limit, delay, error.kind, error.message))
        await self._services.sleep(delay)
        return True

    async def _stream(self, client: ModelClient, prepared: PreparedRequest, answer: Answer) -> Message | Failed:
        async with aclosing(self._door.send(client, prepared.request)) as events:
            async for event in events:
                match event:
                    case Finished(message=message):
                        return message
                    case Failed():
                        return event
                    case StreamNotice(text=text):
                        self._recorder.emit(Notice(text, "info", "model"))
                    case _:
                        answer.feed(event)
        return Failed(ProviderError("truncated", "the answer ended without its end marker"))


def has_content(message: Message | None) -> bool:
    """Whether the message says or does something."""
    return message is not None and bool(message.text.strip() or message.tool_calls)
