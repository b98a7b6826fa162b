"""The request gateway: sends every request to a model, except those too large for it or past the cap."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.context_management.budget import LONGEST_ANSWER, edge, window_of
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.counter import texts_of
from swecli.core.context_management.prefix_guard import PrefixGuard
from swecli.core.llm.catalog import shown_ref
from swecli.core.llm.types import Failed, Finished, ModelClient, ModelInfo, ModelRequest, ProviderError, StreamEvent
from swecli.core.protocol.budget import Budget


class RequestGateway(Struct):
    """Sends every request to a model. ``left`` returns the tokens that may still be used; None = no cap. ``sleep`` is
    for those who send again after a failure."""

    context: ContextManager
    left: Callable[[], int | None] = lambda: None
    guard: PrefixGuard | None = None
    """Set for the requests of the conversation, each of which begins with the one before."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _newest: tuple[ModelRequest, ModelInfo, Budget] | None = None
    """The request measured last: a size check usually precedes sending the same request."""

    async def send(
        self, client: ModelClient, request: ModelRequest, *, budget: Budget | None = None, likely: bool = False
    ) -> AsyncGenerator[StreamEvent]:
        """The events of one request. A blocked request fails as if the provider had refused it, and nothing of it is
        sent. Closing this generator (``contextlib.aclosing``) aborts the request at once. ``budget`` is an existing
        measure of it, ``likely`` as in ``too_long``."""
        info = client.info
        room = self._room(budget, request) if budget is not None else 0
        # Nothing is to be measured again where the window is the same, and no estimate may refuse the request.
        if budget is None or budget.upper > room or budget.window != window_of(info, self.context.limits).total:
            budget = await self._measured(request, info)
            room = self._room(budget, request)
        if (size := budget.used if likely else budget.upper) > room:
            why = f"it has up to {size:,} tokens, and {shown_ref(info.ref)} has room for {room:,}"
            yield Failed(ProviderError("context_overflow", f"{REQUEST_NOT_SENT}: {why}"))
            return
        if (left := self.left()) is not None and budget.used > left:
            yield Failed(ProviderError("quota", f"{REQUEST_NOT_SENT}: {over_cap(budget.used, left)}"))
            return
        if self.guard is not None:
            self.guard.check(request, info)
        stream = client.stream(with_room_for_answer(request, budget, info))
        try:
            async for event in stream:
                if isinstance(event, Failed):
                    self._learn(event.error, request, info)
                elif isinstance(event, Finished) and self.guard is not None:
                    self.guard.answered(request, info)
                yield event
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()

    def _learn(self, error: ProviderError, request: ModelRequest, info: ModelInfo) -> None:
        """Measure anew with the size that the provider stated for a request that it rejected as too long."""
        if error.kind == "context_overflow" and error.prompt_tokens:
            self.context.monitor.rejected(request, error.prompt_tokens, info)
            self._newest = None

    async def too_long(self, request: ModelRequest, info: ModelInfo, *, likely: bool = False) -> bool:
        """Whether the request is too long for the model by its largest possible size; ``likely``: by its probable size,
        if there is a fallback when the provider refuses it."""
        budget = await self._measured(request, info)
        return (budget.used if likely else budget.upper) > self._room(budget, request)

    async def _measured(self, request: ModelRequest, info: ModelInfo) -> Budget:
        if self._newest is not None and self._newest[0] is request and self._newest[1] == info:
            return self._newest[2]
        # Older messages are counted already; a long new text must not block the event loop.
        newest = [text for message in request.messages[-1:] for part in message.parts for text in texts_of(part)]
        await self.context.monitor.count_ahead(newest, exact=False)
        budget = self.context.weigh(request, info)
        if budget.upper > self._room(budget, request) and await self.context.monitor.count_exactly(request):
            budget = self.context.weigh(request, info)  # nothing is refused because of an estimate
        self._newest = (request, info, budget)
        return budget

    def _room(self, budget: Budget, request: ModelRequest) -> int:
        """Token limit of a request. The reserve for a turn's answer is available to a prompt with a shorter answer, so
        a summary of the whole conversation fits even if the next turn does not."""
        reserve = budget.window - budget.effective
        answer = reserve if request.max_output_tokens is None else min(reserve, request.max_output_tokens)
        return max(0, edge(self.context.limits.block, budget.window - answer) - 1)


def with_room_for_answer(request: ModelRequest, budget: Budget, info: ModelInfo) -> ModelRequest:
    """The request as sent, with its answer limited to the room left: a server may refuse one with too long an
    answer."""
    most = request.max_output_tokens or info.max_output or info.usual_output
    free = max(1, budget.window - budget.upper)
    if most is None:
        return replace(request, max_output_tokens=min(free, LONGEST_ANSWER))
    return replace(request, max_output_tokens=free) if most > free else request


REQUEST_NOT_SENT = "the request was not sent"


def over_cap(used: int, left: int) -> str:
    """Reason for refusing a request of ``used`` tokens under the cap."""
    return f"it has about {used:,} tokens, and {max(0, left):,} are left of the cap"
