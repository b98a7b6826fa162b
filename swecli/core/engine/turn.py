"""The turn loop: measure, gate, ask the model, run its tools, until it makes no call."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, replace

from swecli.core.context_management.context_manager import PreparedRequest
from swecli.core.context_management.projection import INTERRUPTED, project
from swecli.core.engine.answer import Answer, Call
from swecli.core.engine.context_keeper import ContextKeeper
from swecli.core.engine.message_queue import MessageQueue
from swecli.core.engine.model_choice import ModelChoice
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.recovery import closing_bodies
from swecli.core.engine.retry import retry_delay
from swecli.core.engine.scheduler import Scheduler
from swecli.core.engine.services import Services
from swecli.core.llm.streaming import stream_events
from swecli.core.llm.types import Failed, Finished, ModelClient, ProviderError, StreamNotice
from swecli.core.protocol.events import (
    ItemCompleted,
    Notice,
    RetryScheduled,
    StepEnded,
    StepStarted,
    TurnEnded,
    TurnOutcome,
)
from swecli.core.protocol.messages import Message, Origin, ToolResultPart
from swecli.core.protocol.usage import Usage

CUT_CALL = "Not executed: the answer reached the output limit, so this call may be incomplete. Make a smaller one."
EMPTY_LIMIT = 2
"""So many empty answers in a row end the turn."""


@dataclass(frozen=True, slots=True)
class Ended(Exception):
    """The turn is over for another reason than that the model is done."""

    outcome: TurnOutcome
    reason: str
    error_kind: str = ""


class Turn:
    """One turn, from the user's message to the last answer. ``run`` returns when it is over, whatever
    happened; cancelling its task interrupts it."""

    def __init__(
        self,
        services: Services,
        recorder: Recorder,
        scheduler: Scheduler,
        keeper: ContextKeeper,
        models: ModelChoice,
    ) -> None:
        self._services = services
        self._recorder = recorder
        self._scheduler = scheduler
        self._keeper = keeper
        self._queue = MessageQueue(recorder)
        self._models = models
        self._step = 0
        self._empty = 0
        self._usage: Usage | None = None

    async def run(self) -> None:
        """Loop over steps; emits TurnEnded last."""
        started = self._services.monotonic()
        end = Ended("error", "swecli failed internally; what was said is kept.", "internal")
        try:
            end = await self._loop()
        except Ended as ended:
            end = ended
        except asyncio.CancelledError:
            end = Ended("interrupted", "interrupted")
        finally:
            for body in closing_bodies(self._recorder.ledger, self._recorder.state, INTERRUPTED):
                self._recorder.emit(body)
            duration = self._services.monotonic() - started
            self._recorder.emit(TurnEnded(end.outcome, end.reason, end.error_kind, duration, self._usage))

    @property
    def _client(self) -> ModelClient:
        client = self._models.client
        assert client is not None  # a turn begins only with a model, and no command takes it away
        return client

    async def _loop(self) -> Ended:
        await self._models.ready()
        while True:
            self._queue.absorb_steering()
            self._check_caps()
            await self._services.context.settle(self._recorder.ledger)
            prepared = await self._with_room(self._prepare())
            self._step += 1
            self._recorder.emit(StepStarted(self._step, prepared.budget))
            self._gate(prepared)
            await self._recorder.barrier()
            message, calls = await self._answered(prepared)
            await self._run_tools(message, calls)
            await self._services.context.settle(self._recorder.ledger)
            self._finish_step(prepared, message)
            if not calls and not self._goes_on(message):
                return Ended("done", self._last_word(message))

    def _check_caps(self) -> None:
        limits = self._services.limits
        if limits.max_steps is not None and self._step >= limits.max_steps:
            raise Ended("limit", f"stopped after {limits.max_steps} model steps, as asked", "max_turns")
        totals = self._recorder.state
        spent = totals.input_tokens + totals.output_tokens
        if limits.max_tokens is not None and spent >= limits.max_tokens:
            raise Ended("limit", f"stopped after {spent:,} tokens; the cap is {limits.max_tokens:,}", "max_tokens")

    def _prepare(self) -> PreparedRequest:
        return self._services.context.prepare(
            project(self._recorder.ledger),
            info=self._client.info,
            mode=self._recorder.state.mode,
            todos=self._recorder.state.todos,
            effort=self._recorder.state.effort,
            session=self._recorder.session,
        )

    async def _with_room(self, prepared: PreparedRequest) -> PreparedRequest:
        """The request after whatever compaction it needs."""
        changed = await self._keeper.before_request(prepared, self._client)
        return self._prepare() if changed else prepared

    def _gate(self, prepared: PreparedRequest) -> None:
        if prepared.blocked:
            raise Ended("blocked", prepared.reason, "context")
        if prepared.warning:
            self._recorder.emit(Notice(prepared.warning, "warning", "context"))

    async def _answered(self, prepared: PreparedRequest) -> tuple[Message, tuple[Call, ...]]:
        """The answer; where the provider says that the request is too long, after one compaction."""
        try:
            return await self._query(prepared)
        except Ended as ended:
            if ended.error_kind != "context_overflow":
                raise
            if not await self._keeper.after_overflow(prepared, self._client):
                raise
        again = self._prepare()
        self._gate(again)
        await self._recorder.barrier()
        return await self._query(again)

    async def _query(self, prepared: PreparedRequest) -> tuple[Message, tuple[Call, ...]]:
        """Ask until there is an answer. What was shown of a failed answer is kept and marked."""
        attempt = 0
        while True:
            attempt += 1
            origin = Origin("", "", self._client.info.ref)
            answer = Answer(self._recorder, origin, self._services.monotonic)
            try:
                result = await self._stream(prepared, answer)
            except asyncio.CancelledError:
                answer.cut("interrupted", INTERRUPTED)
                raise
            if isinstance(result, Message):
                return result, answer.complete(result)
            delay = retry_delay(result.error, attempt, self._services.limits.max_retries, self._services.jitter())
            if answer.visible or _has_content(result.message) or delay is None:
                answer.cut("error", result.error.kind, result.message)
                await self._models.learn(result.error)
                raise self._failure(result.error)
            self._recorder.emit(
                RetryScheduled(
                    attempt, self._services.limits.max_retries, delay, result.error.kind, result.error.message
                )
            )
            await self._services.sleep(delay)

    async def _stream(self, prepared: PreparedRequest, answer: Answer) -> Message | Failed:
        async with aclosing(stream_events(self._client, prepared.request)) as events:
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

    def _failure(self, error: ProviderError) -> Ended:
        stop = "" if error.message.endswith((".", "!", "?")) or not error.hint else "."
        reason = f"{error.message}{stop} {error.hint}".strip()
        return Ended("blocked" if error.kind == "context_overflow" else "error", reason, error.kind)

    async def _run_tools(self, message: Message, calls: tuple[Call, ...]) -> None:
        if message.response is not None and (not message.response.complete or message.response.stop.kind == "length"):
            for call in calls:
                result = ToolResultPart(call.part.call_id, call.part.name, CUT_CALL, is_error=True)
                self._recorder.emit(ItemCompleted(call.item, "error", (result,), detail="cut at the output limit"))
        elif calls:
            await self._scheduler.run(calls)

    def _finish_step(self, prepared: PreparedRequest, message: Message) -> None:
        usage = message.response.usage if message.response else None
        cost = None
        if usage is not None:
            self._usage = _sum(self._usage, usage)
            cost = self._services.price(self._client.info.ref, usage)
            self._services.context.observe(prepared.request, usage, self._client.info)
        self._recorder.emit(StepEnded(self._step, usage, cost))
        self._keeper.measure(self._client)

    def _goes_on(self, message: Message) -> bool:
        """Whether the turn continues although the model made no call."""
        if any(queued.steer for queued in self._recorder.state.queue):
            return True
        if message.response is not None and message.response.stop.kind == "pause":
            return True
        if _has_content(message):
            self._empty = 0
            return False
        self._empty += 1
        if self._empty >= EMPTY_LIMIT:
            raise Ended("error", "the model answered with nothing, twice. Try again, or another model.", "empty")
        self._recorder.emit(Notice("The model answered with nothing; asking once more.", "warning", "model"))
        return True

    def _last_word(self, message: Message) -> str:
        kind = message.response.stop.kind if message.response else None
        return _STOP_REASONS.get(kind or "end", "")


_STOP_REASONS: dict[str, str] = {
    "length": "the answer was cut at the output limit; say “continue” to go on",
    "refusal": "the model refused to answer",
    "content_filter": "the provider's content filter stopped the answer",
    "context_full": "the context window was full; the answer may be incomplete",
}


def _has_content(message: Message | None) -> bool:
    return message is not None and bool(message.text.strip() or message.tool_calls)


def _sum(one: Usage | None, other: Usage) -> Usage:
    if one is None:
        return other

    def add(a: int | None, b: int | None) -> int | None:
        return None if a is None and b is None else (a or 0) + (b or 0)

    return replace(
        other,
        input_total=add(one.input_total, other.input_total),
        cache_read=add(one.cache_read, other.cache_read),
        cache_write=add(one.cache_write, other.cache_write),
        output_total=add(one.output_total, other.output_total),
        reasoning=add(one.reasoning, other.reasoning),
        cost=None if one.cost is None or other.cost is None else one.cost + other.cost,
    )
