"""Warming: the model's server evaluates the beginning of the next request while the user reads and types."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from decimal import Decimal

from msgspec.structs import replace

from swecli.core.context_management.compaction.plan import Price
from swecli.core.context_management.gateway import RequestGateway
from swecli.core.context_management.projection import project, project_with
from swecli.core.engine.companion import Companion, EndReason
from swecli.core.engine.meter import Meter
from swecli.core.engine.model_access import Connection
from swecli.core.engine.models import ModelChoice
from swecli.core.engine.recorder import Recorder
from swecli.core.llm.types import Failed, Finished, ModelClient, ModelRequest, StreamNotice
from swecli.core.protocol.events import (
    Body,
    CompactionCompleted,
    CompactionRedone,
    CompactionStarted,
    CompactionUndone,
    ContextEdited,
    ContextRestored,
    Event,
    ItemsOffloaded,
    ItemStarted,
    ModelChanged,
    Notice,
    RewindUndone,
    Rewound,
    SideAnswered,
    ToolsChanged,
    TurnEnded,
    TurnStarted,
    Unknown,
)
from swecli.core.protocol.messages import Message, Usage
from swecli.core.tools.registry import ToolRegistry

_CHANGES = (
    *(CompactionCompleted, CompactionUndone, CompactionRedone, ContextEdited, ContextRestored, ItemsOffloaded),
    *(ModelChanged, RewindUndone, Rewound, ToolsChanged),
)
"""Events after which the server has to evaluate the conversation anew."""
OFF = 'models.warm = "auto" leaves it out.'
_IN_PLACE = "."
"""Stands where the next message will be: its place brings what the message will begin with, such as the environment,
and many chat templates refuse a conversation that ends with an answer."""


class Warming(Companion):
    """Sends a request with the smallest answer at the session's beginning and whenever the next request will differ
    from what the server has, and aborts it as soon as something else is to be sent. The server keeps what it has
    evaluated. Only for models whose requests cost nothing, and only with a user: a run without one sends its message at
    once.

    Where the user chose it, a hosted provider fills its cache without an answer. That is billed, so it is done only for
    a conversation that may no longer be in the cache, is not aborted, and its price is reported. An empty conversation
    has no end yet that the provider could keep.
    """

    watches = (TurnStarted, CompactionStarted, TurnEnded, ItemStarted, *_CHANGES)

    def __init__(
        self,
        gateway: RequestGateway,
        tools: ToolRegistry,
        price: Price,
        recorder: Recorder,
        connection: Connection,
        models: ModelChoice,
        meter: Meter,
    ) -> None:
        self._gateway = gateway
        self._tools = tools
        self._price = price
        self._recorder = recorder
        self._connection = connection
        self._models = models
        self._meter = meter
        self._task: asyncio.Task[None] | None = None
        self._in_turn = False
        self._changed = False
        self._filling: asyncio.Task[None] | None = None

    def start(self, *, resumed: bool) -> None:
        self._begin()
        if resumed:
            self._fill()

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
            case ItemStarted(kind=kind):
                # Most templates leave reasoning out once a message of the user follows.
                self._changed = self._changed or kind == "reasoning"
            case body:
                if _loses_cache(body):
                    self._fill()
                self._changed = True
                if not self._in_turn:
                    self._begin()

    async def close(self, reason: EndReason) -> None:
        self._stop()
        if self._filling is not None:
            self._filling.cancel()
            await asyncio.gather(self._filling, return_exceptions=True)

    def _begin(self) -> None:
        self._stop()
        if not self._gateway.context.unattended:
            self._changed = False
            self._task = asyncio.create_task(self._warm())

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _warm(self) -> None:
        await self._tools.settled()
        await self._models.asked()
        client = self._connection.client
        tools: bool | None = None
        while client is not None and client.info.warms and client.info.tools != tools:
            tools = client.info.tools  # the answer may show that the server drops them, and then the prompt changes
            await self._send_ahead(client)

    async def _send_ahead(self, client: ModelClient) -> None:
        recorder = self._recorder
        messages = project_with(recorder.ledger, _IN_PLACE)
        request = self._gateway.context.aside(messages, client.info, recorder.session)
        request = replace(request, max_output_tokens=1, effort=recorder.state.effort)
        async with aclosing(self._gateway.send(client, request, likely=True)) as events:
            async for event in events:  # a failure shows itself again with the next message
                if isinstance(event, StreamNotice):
                    recorder.emit(Notice(event.text, "info", "model"))
                elif isinstance(event, Finished):
                    self._measure(request, event.message, client)

    def _measure(self, request: ModelRequest, answer: Message, client: ModelClient) -> None:
        """Learn the size of what every request has, so that the first measure is one and not an estimate."""
        usage = answer.response.usage if answer.response is not None else None
        if usage is not None and usage.input_total is not None:
            self._gateway.context.monitor.observe(request, usage, client.info)
            self._meter.measure()

    def _fill(self) -> None:
        """Let a hosted provider fill its cache, between turns only: the next request of a turn does so itself."""
        if not (self._in_turn or self._gateway.context.unattended or self._is_filling):
            self._filling = asyncio.create_task(self._filled())

    @property
    def _is_filling(self) -> bool:
        return self._filling is not None and not self._filling.done()

    async def _filled(self) -> None:
        await self._tools.settled()
        client, recorder = self._connection.client, self._recorder
        messages = project(recorder.ledger)
        if client is None or not client.info.prewarms or not messages or self._in_turn:
            return
        request = self._gateway.context.aside(messages, client.info, recorder.session)
        request = replace(request, prewarm=True, effort=recorder.state.effort)
        async with aclosing(self._gateway.send(client, request, likely=True)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    usage = event.message.response.usage if event.message.response is not None else None
                    cost = self._price(client.info.ref, usage) if usage is not None else None
                    recorder.emit(SideAnswered("prewarm", client.info.ref, usage, cost))
                    recorder.emit(Notice(_told(client.info.ref, usage, cost), "info", "model"))
                elif isinstance(event, Failed):
                    text = f"{client.info.ref} did not fill its cache ahead of your message: {event.error.message}"
                    recorder.tell_once(Notice(text, "info", "model", OFF, about=f"prewarm: {client.info.ref}"))


def _loses_cache(body: Body | Unknown) -> bool:
    """Whether the next request finds less of itself in the provider's cache than the newest one."""
    if isinstance(body, ModelChanged):
        return body.switched
    return isinstance(body, CompactionCompleted | CompactionUndone | CompactionRedone | ContextEdited | ContextRestored)


def _told(model: str, usage: Usage | None, cost: str | None) -> str:
    tokens = f"{usage.input_total:,} tokens" if usage is not None and usage.input_total else "the prompt"
    price = f"about ${Decimal(cost):.4f}" if cost is not None else "price unknown"
    return f"{model} prepared {tokens} in its cache ahead of your message ({price}; models.warm)."
