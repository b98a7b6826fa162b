"""Warming: a server on this machine evaluates the beginning of the next request while the user reads and types."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from msgspec.structs import replace

from swecli.core.context_management.projection import project
from swecli.core.engine.companion import Companion, EndReason
from swecli.core.engine.core import Core
from swecli.core.engine.model_call import gateway_of
from swecli.core.llm.types import Finished, ModelClient, ModelRequest, StreamNotice
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionRedone,
    CompactionStarted,
    CompactionUndone,
    ContextEdited,
    ContextRestored,
    Event,
    ItemsOffloaded,
    ModelChanged,
    Notice,
    RewindUndone,
    Rewound,
    ToolsChanged,
    TurnEnded,
    TurnStarted,
)
from swecli.core.protocol.messages import Message, TextPart

_CHANGES = (
    *(CompactionCompleted, CompactionUndone, CompactionRedone, ContextEdited, ContextRestored, ItemsOffloaded),
    *(ModelChanged, RewindUndone, Rewound, ToolsChanged),
)
"""Events after which the server has to evaluate the conversation anew."""
_IN_PLACE = Message("user", (TextPart("."),), "warming")
"""Stands where the next message will be: many chat templates refuse a conversation that ends with an answer."""


class Warming(Companion):
    """Sends a request with the smallest answer at the session's beginning and whenever the conversation has changed,
    and aborts it as soon as something else is to be sent. The server keeps what it has evaluated. Only for models whose
    requests cost nothing, and only with a user: a run without one sends its message at once."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._task: asyncio.Task[None] | None = None
        self._in_turn = False
        self._changed = False

    def start(self, *, resumed: bool) -> None:
        self._begin()

    def watch(self, event: Event) -> None:
        match event.body:
            case TurnStarted():
                self._in_turn = True
                self._stop()
            case CompactionStarted():
                self._stop()
            case TurnEnded():
                self._in_turn = False
                if self._changed:
                    self._begin()
            case body if isinstance(body, _CHANGES):
                self._changed = True
                if not self._in_turn:
                    self._begin()
            case _:
                pass

    async def close(self, reason: EndReason) -> None:
        self._stop()

    def _begin(self) -> None:
        self._stop()
        if not self._core.services.context.unattended:
            self._changed = False
            self._task = asyncio.create_task(self._warm())

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _warm(self) -> None:
        core = self._core
        await core.services.tools.settled()
        await core.models.asked()
        client, recorder = core.connection.client, core.recorder
        if client is None or not client.info.warms:
            return
        messages = (*project(recorder.ledger), _IN_PLACE)
        request = core.services.context.aside(messages, client.info, recorder.session)
        request = replace(request, max_output_tokens=1, effort=recorder.state.effort)
        async with aclosing(gateway_of(core.services, recorder).send(client, request, likely=True)) as events:
            async for event in events:  # a failure shows itself again with the next message
                if isinstance(event, StreamNotice):
                    recorder.emit(Notice(event.text, "info", "model"))
                elif isinstance(event, Finished):
                    self._measure(request, event.message, client)

    def _measure(self, request: ModelRequest, answer: Message, client: ModelClient) -> None:
        """Learn the size of what every request has, so that the first measure is one and not an estimate."""
        usage = answer.response.usage if answer.response is not None else None
        if usage is not None:
            self._core.services.context.monitor.observe(request, usage, client.info)
            self._core.compactions.measure(client)
