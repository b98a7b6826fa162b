"""The scripted model: a model client that follows a script instead of asking a provider.

It drives the demonstration and the tests. It streams, reports usage, fails and errs exactly as its script says,
and keeps every request it got.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

from swecli.core.llm.scripted_player import (
    Piece,
    ScriptPlayer,
    UsageEstimate,
    facts_of,
    pieces,
    stop_of,
    until_fault,
)
from swecli.core.llm.scripted_steps import STATUS, Fault, Script, Step
from swecli.core.llm.types import (
    ErrorKind,
    Failed,
    Finished,
    ModelInfo,
    ModelRequest,
    ProviderError,
    ReasoningDelta,
    Started,
    StreamEvent,
    TextDelta,
    ToolArgsDelta,
    ToolCallDone,
    ToolCallStarted,
    UsageUpdate,
)
from swecli.core.protocol.messages import (
    Message,
    Origin,
    Part,
    ReasoningPart,
    Response,
    Stop,
    TextPart,
    ToolCallPart,
)
from swecli.core.protocol.usage import Usage

Pause = Callable[[float], Awaitable[None]]
"""Waits so many seconds, or as long as the caller sees fit."""

DEFAULT_WINDOW = 128_000

_KINDS: dict[str, ErrorKind] = {
    "overflow": "context_overflow",
    "cut": "truncated",
    "garbage": "protocol",
    "stall": "stalled",
}
_SENTENCES: dict[str, str] = {
    "overflow": "prompt is too long: {tokens} tokens > {window} maximum",
    "quota": "the account has no credit left",
    "rate_limit": "too many requests",
    "overloaded": "the model is overloaded",
    "auth": "the API key is invalid",
    "not_found": "the model does not exist",
    "too_large": "the request is too large",
    "bad_request": "the request is invalid",
    "server": "internal server error",
    "network": "connection reset by peer",
    "cut": "the stream ended before the answer did",
    "garbage": "the answer is not of the protocol",
    "stall": "nothing arrived for too long",
}


async def without_waiting(_seconds: float) -> None:
    """A pause that only lets other tasks run."""
    await asyncio.sleep(0)


class ScriptedModel:
    """A ``ModelClient`` whose answers are those of a script.

    ``pause`` is awaited before the answer and between its pieces with the script's own delays; by default it
    takes no time. ``requests`` holds every request, in order, unless ``keep_requests`` is False.

    Raises (while streaming):
        ScriptMismatch: a request is not what the script expects. A test must fail then, so this is the one
            exception to the rule that a client raises nothing.
    """

    def __init__(
        self, script: Script, *, pause: Pause = without_waiting, provider: str = "scripted", keep_requests: bool = True
    ) -> None:
        self._script = script
        self._player = ScriptPlayer(script)
        self._usage = UsageEstimate()
        self._pause = pause
        self._origin = Origin("scripted", "scripted", script.name)
        self.requests: list[ModelRequest] = []
        self._keep_requests = keep_requests
        self._answers = 0
        self._info = ModelInfo(
            provider=provider,
            name=script.name,
            window=script.window or DEFAULT_WINDOW,
            max_output=script.max_output,
            window_source="script",
        )

    @property
    def info(self) -> ModelInfo:
        return self._info

    @property
    def over(self) -> bool:
        """Whether the script has no more steps."""
        return self._player.over

    async def close(self) -> None:
        """Nothing to release."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Answer with the next step of the script."""
        self._answers += 1
        if self._keep_requests:
            self.requests.append(request)
        facts = facts_of(request, whole=self._player.reads_requests)
        step = self._player.take(facts)
        usage = self._usage.of(request, step)
        await self._pause(step.wait)
        fault = step.fault
        if fault is not None and fault.after is None and fault.kind in (*STATUS, "network"):
            yield Failed(error_of(fault))
            return
        answer = pieces(step, (f"call_{facts.calls + number}" for number in range(1, len(step.calls) + 1)))
        partial = _Partial(self._origin)
        yield Started(self._script.name, f"scripted-{self._answers}")
        if fault is None or fault.kind == "empty":
            async for event in self._pieces(() if fault else answer, partial, step.delay):
                yield event
            if usage is not None:
                yield UsageUpdate(usage)
            yield Finished(partial.message(usage, step))
            return
        async for event in self._pieces(until_fault(answer, fault), partial, step.delay):
            yield event
        if fault.kind == "stall":
            await self._stall(fault)
        yield Failed(error_of(fault), partial.message(None, None) if partial.parts else None)

    async def _pieces(self, answer: Iterable[Piece], partial: _Partial, delay: float) -> AsyncIterator[StreamEvent]:
        for piece in answer:
            await self._pause(delay)
            yield partial.add(piece)

    async def _stall(self, fault: Fault) -> None:
        if fault.seconds is None:
            await asyncio.Event().wait()
        else:
            await self._pause(fault.seconds)


def error_of(fault: Fault) -> ProviderError:
    """The error that a client makes of the fault."""
    kind: ErrorKind = _KINDS.get(fault.kind, fault.kind)  # pyright: ignore[reportAssignmentType]
    return ProviderError(
        kind,
        sentence_of(fault),
        status=STATUS.get(fault.kind) if fault.after is None else 200,
        retry_after=fault.retry_after,
        prompt_tokens=fault.tokens,
        window=fault.window,
    )


def sentence_of(fault: Fault) -> str:
    """The provider's sentence: the script's own, or one that fits the kind."""
    if fault.message:
        return fault.message
    return _SENTENCES.get(fault.kind, fault.kind).format(tokens=fault.tokens, window=fault.window)


class _Partial:
    """The assistant message as it grows."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self.parts: list[Part] = []

    def add(self, piece: Piece) -> StreamEvent:
        """Add a piece; the event that tells of it."""
        if piece.kind == "text":
            self._append(piece, TextPart(piece.text))
            return TextDelta(piece.part, piece.text)
        if piece.kind == "reasoning":
            self._append(piece, ReasoningPart(piece.text))
            return ReasoningDelta(piece.part, piece.text)
        if piece.kind == "start":
            self._append(piece, ToolCallPart(piece.call_id, piece.name, ""))
            return ToolCallStarted(piece.part, piece.call_id, piece.name)
        if piece.kind == "arguments":
            self._append(piece, ToolCallPart(piece.call_id, piece.name, piece.text))
            return ToolArgsDelta(piece.part, piece.text)
        call = self.parts[piece.part]
        assert isinstance(call, ToolCallPart)
        return ToolCallDone(piece.part, call)

    def _append(self, piece: Piece, part: Part) -> None:
        if piece.part == len(self.parts):
            self.parts.append(part)
            return
        before = self.parts[piece.part]
        if isinstance(before, TextPart) and isinstance(part, TextPart):
            self.parts[piece.part] = TextPart(before.text + part.text)
        elif isinstance(before, ReasoningPart) and isinstance(part, ReasoningPart):
            self.parts[piece.part] = ReasoningPart(before.text + part.text)
        elif isinstance(before, ToolCallPart) and isinstance(part, ToolCallPart):
            self.parts[piece.part] = ToolCallPart(before.call_id, before.name, before.arguments + part.arguments)

    def message(self, usage: Usage | None, step: Step | None) -> Message:
        """The message: whole where ``step`` is given, else what had arrived."""
        stop = Stop(stop_of(step), stop_of(step)) if step else Stop()
        return Message(
            "assistant",
            tuple(self.parts),
            response=Response(self._origin, stop, usage, complete=step is not None),
        )
