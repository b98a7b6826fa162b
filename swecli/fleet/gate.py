"""The door to the models of an attempt: each request asks the fleet first, and reports what it cost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import cast

from msgspec import Struct

from swecli.core.llm.types import (
    CountsAtServer,
    Failed,
    Finished,
    HasSlots,
    ModelClient,
    ModelInfo,
    ModelRequest,
    ProviderError,
    Started,
    StreamEvent,
    UsageUpdate,
)
from swecli.core.protocol.messages import Usage
from swecli.fleet.link import Spent

CHARACTERS = 4
"""Characters that an estimate counts as one token."""
LEAST = 4
"""By how much an estimate may exceed the reported tokens before it counts in their place."""
PAUSE = 5.0
"""Seconds of pause for a provider that limits its requests without saying for how long."""
PriceOf = Callable[[str, Usage], str | None]


class Door(Struct):
    """What an attempt knows of the fleet. ``ask`` returns why no request may be sent, empty to send it; ``refusal``
    keeps that reason."""

    ask: Callable[[str, int], Awaitable[str]]
    spent: Callable[[Spent], None]
    refusal: str = ""


class GatedClient:
    """``ModelClient`` that passes requests on once the fleet permits them."""

    def __init__(self, client: ModelClient, price: PriceOf, door: Door) -> None:
        self._client = client
        self._price = price
        self._door = door

    @property
    def info(self) -> ModelInfo:
        return self._client.info

    async def count_tokens(self, text: str) -> int | None:
        client = self._client
        return await client.count_tokens(text) if isinstance(client, CountsAtServer) else None

    async def busy_slots(self) -> tuple[int, int] | None:
        client = self._client
        return await client.busy_slots() if isinstance(client, HasSlots) else None

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Ask, then send. A refused request fails as one whose account is empty: nothing repeats it."""
        info, size = self.info, estimate(request)
        address = info.address or info.provider
        refusal = await self._door.ask(address, size)
        if refusal:
            self._door.refusal = refusal
            yield Failed(ProviderError("quota", refusal))
            return
        usage, begun, pause = None, False, 0.0
        try:
            # The port says iterator; all clients are generators, which must be closed at once.
            stream = cast("AsyncIterator[StreamEvent]", self._client.stream(request))
            async with aclosing(stream) as events:  # pyright: ignore[reportArgumentType]
                async for event in events:
                    match event:
                        case Started():
                            begun = True
                        case UsageUpdate(usage=usage):
                            pass
                        case Finished(message=message):
                            begun = True
                            usage = message.response.usage or usage if message.response is not None else usage
                        case Failed(error=error):
                            pause = pause_of(error)
                        case _:
                            begun = True
                    yield event
        finally:
            usage = usage or (Usage(input_total=size) if begun else Usage(0, output_total=0))
            price = self._price(info.ref, usage) if begun else "0"
            least = size // LEAST if begun else 0  # a server that reports nothing must not make the run endless
            self._door.spent(Spent(address, max(usage.total, least), price, pause))

    async def close(self) -> None:
        await self._client.close()


def estimate(request: ModelRequest) -> int:
    """About how many tokens the request has."""
    size = sum(len(block.text) for block in request.system)
    for message in request.messages:
        size += len(message.text) + sum(len(call.arguments) for call in message.tool_calls)
        size += sum(len(result.text) for result in message.tool_results)
    return size // CHARACTERS


def pause_of(error: ProviderError) -> float:
    """Seconds for which the provider wants no request of anybody; 0 for other failures."""
    if error.kind not in ("rate_limit", "overloaded"):
        return 0.0
    return PAUSE if error.retry_after is None else max(0.0, min(error.retry_after, 3_600.0))
