"""swecli as a library: a conversation with an agent in a few lines, over the same engine as the program.

options = AgentOptions(model="qwen2.5-32b", base_url="http://127.0.0.1:1234/v1", context=ContextConfig(
    max_context_tokens=32_000, target_tokens=28_000, strategy="truncation"))
async with Client(options) as client:
    await client.query("What does this project do?")
    async for block in client.receive_messages():
        print(block)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Set
from contextlib import aclosing
from dataclasses import dataclass, replace
from decimal import Decimal
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from msgspec import structs
from pydantic import BaseModel, ValidationError

from swecli.core.agent_options import AgentOptions, services_of
from swecli.core.answer_schema import AnswerSchema, Mismatch
from swecli.core.context_management.compaction.options import CompactResult
from swecli.core.engine.model_access import ModelUnavailable
from swecli.core.engine.session import Session
from swecli.core.llm.types import ModelClient
from swecli.core.protocol.commands import Answer, Compact, Interrupt, ReplyPermission, Submit
from swecli.core.protocol.events import (
    MAIN,
    CompactionCompleted,
    CompactionFailed,
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ModelResponded,
    PermissionRequested,
    QuestionAsked,
    TurnEnded,
    TurnOutcome,
    TurnStarted,
)
from swecli.core.protocol.messages import Message, Part, ToolCallPart, Usage
from swecli.core.protocol.turns import Item, Turns
from swecli.core.spilled_log import SpilledLog
from swecli.library.documents import ContextState, context_state, project_summary
from swecli.library.figures import ContextStats

__all__ = ("Agent", "AgentError", "Client", "Result")


class AgentError(Exception):
    """A turn failed; the message gives the reason. The conversation so far is kept."""


@dataclass(frozen=True, slots=True)
class Result:
    """``text`` is the newest answer, ``value`` its value by a schema. ``cost`` is US dollars, None if a price is
    unknown."""

    text: str
    outcome: TurnOutcome
    reason: str = ""
    usage: Usage | None = None
    cost: Decimal | None = None
    value: Any = None


class Client:
    """One conversation. Use it as an asynchronous context manager; ``run`` does a task and returns its result,
    ``stream`` yields every event of it. ``query`` only starts a turn; ``receive_messages`` then yields the agent's
    messages and calls until the turn's end."""

    def __init__(self, options: AgentOptions) -> None:
        self.options = options
        self._services, self.context_manager = services_of(options)
        self._session: Session | None = None
        self._model: ModelClient | None = None
        self._left = False
        self._events: AsyncIterator[Event] | None = None
        """Of the turns that ``query`` began, until they were read."""
        self._asked = 0
        """Number of these turns."""
        self._streamed: set[int] = set()
        """Turns with readers of their own."""
        self._newest: object = None
        """The newest of these readers."""
        self._interrupted = False
        self._created: dict[str, float] = {}
        self._compactions: dict[int, float] = {}
        """Times by event."""

    async def __aenter__(self) -> Self:
        """Connect.

        Raises:
            AgentError: there is no such model, or no key for it.
        """
        self._model = None  # each conversation closes its own
        client = self.model_client()

        def connected(_model: str) -> ModelClient:
            return client

        self._left = False
        self.context_manager.client = client
        services = structs.replace(self._services, access=structs.replace(self._services.access, make_client=connected))
        self._session = Session(uuid4().hex[:12], services, SpilledLog)
        self._events, self._asked = None, 0
        self._session.start(client.info.ref, "")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left = True
        if self._session is not None:
            await self._session.close()

    def model_client(self) -> ModelClient:
        """The model alone, for a summary in another conversation (``SummarizationStrategy.summarize_with``).

        Raises:
            AgentError: there is no such model, or no key for it.
        """
        if self._model is None:
            try:
                self._model = self._services.access.make_client(self.options.model)
            except ModelUnavailable as error:
                raise AgentError(str(error)) from error
        return self._model

    @property
    def message_history(self) -> list[dict[str, Any]]:
        """``history`` as JSON documents."""
        documents = self.state.messages if self._session is not None else ()
        return [document.model_dump(mode="json") for document in documents]

    @property
    def history(self) -> tuple[Message, ...]:
        """The conversation as the model sees it, without swecli's notes to it: shorter after a compaction."""
        return tuple(message for message in self._open().view.messages if not message.note)

    @property
    def stats(self) -> ContextStats:
        """Fill of the context.

        Raises:
            AgentError: nothing was measured yet.
        """
        view = self._open().view
        if view.budget is None:
            raise AgentError("nothing has been measured yet")
        oldest = min(
            (self._created[message.id] for message in self.history if message.id in self._created), default=None
        )
        age = max(0.0, self._services.time.clock() - oldest) if oldest is not None else None
        return ContextStats.of(view.budget, len(self.history), age)

    @property
    def state(self) -> ContextState:
        view = self._open().view
        return context_state(
            self.history,
            view.budget,
            session_id=view.session_id,
            working_dir=str(view.cwd),
            created=self._created,
            compactions=list(self._compactions.values()),
            codebase=project_summary(view.cwd),
        )

    async def query(self, prompt: str) -> None:
        """Send a message to the agent; it begins to work at once, or after a running turn. The first one connects a
        client that is not used in an ``async with`` block."""
        session = await self._connected()
        if self._interrupted:  # a message queued behind an interrupted turn would wait for a decision of the user
            await self._idle(session)
        self._events, self._asked = self._events or session.subscribe(), self._asked + 1
        session.send(Submit(prompt))

    async def run(self, prompt: str, *, schema: type[BaseModel] | Mapping[str, Any] | None = None) -> Result:
        """Do a task and wait for the answer; without ``async with`` in a conversation of its own. With a ``schema`` (or
        a model class of pydantic) the answer is JSON that matches it, corrected once if needed.

        Raises:
            AgentError: the turn was blocked or failed, or the answer does not match the schema.
        """
        if self._session is None or self._left:
            return await self._apart(prompt, schema)
        if schema is None:
            return await self._answered(prompt)
        wanted = AnswerSchema(schema if isinstance(schema, Mapping) else schema.model_json_schema())
        wanted.check()
        self._open().require_answers(wanted.schema)
        try:
            result = await self._answered(f"{prompt}\n\n{wanted.instruction}")
            try:
                return await _with_value(result, wanted, schema)
            except Mismatch as error:
                first = error
            self._open().require_answers(wanted.schema, last=True)
            corrected = await self._answered(wanted.repair(first))
            return await _with_value(corrected, wanted, schema)
        except Mismatch as error:
            raise AgentError(f"the answer does not match the schema: {error}") from error
        finally:
            if not self._left:
                self._open().require_answers(None)

    async def _apart(self, prompt: str, schema: type[BaseModel] | Mapping[str, Any] | None) -> Result:
        """Do a task in a conversation of its own, whose history can be read afterwards."""
        own = Client(self.options)
        try:
            async with own:
                return await own.run(prompt, schema=schema)
        finally:
            self._session, self._left, self.context_manager = own._session, True, own.context_manager
            self._created, self._compactions = own._created, own._compactions

    async def stream(self, prompt: str) -> AsyncGenerator[Event, None]:
        """Do a task and yield its events up to ``TurnEnded``. It begins after the end of a running turn. If the
        iteration ends early, the task is interrupted. The first task connects as ``query`` does."""
        session = await self._connected()
        await self._idle(session)
        reader = self._newest = object()
        events = session.subscribe()
        session.send(Submit(prompt))
        ended = False
        try:
            async with aclosing(self._turn(events)) as turn:
                async for event in turn:
                    if event.agent == MAIN and isinstance(event.body, TurnStarted):
                        self._streamed.add(event.turn)
                    ended = ended or (event.agent == MAIN and isinstance(event.body, TurnEnded))
                    yield event
        finally:
            if not ended and self._newest is reader and not self._left and session.view.busy:
                self.interrupt()

    async def _idle(self, session: Session) -> None:
        """Wait for the end of a running turn."""
        while session.view.busy:
            await session.worked()
            await asyncio.sleep(0)  # publishes the last events of that turn
        self._interrupted = False

    async def _answered(self, prompt: str) -> Result:
        turns = Turns()
        async with aclosing(self.stream(prompt)) as events:
            async for event in events:
                turns.apply(event)
                match event.body:
                    case TurnEnded(outcome="blocked" | "error", reason=reason) if event.agent == MAIN:
                        raise AgentError(reason)
                    case TurnEnded() as ended if event.agent == MAIN:
                        cost = turns.cost if turns.steps else Decimal(0)
                        return Result(turns.text, ended.outcome, ended.reason, ended.usage, cost)
                    case _:
                        pass
        raise AgentError("the conversation ended before the answer")

    async def receive_messages(self) -> AsyncIterator[Part]:
        """Texts, reasoning, tool calls and results of the running turn, each when it is complete.

        Raises:
            AgentError: the turn was blocked or failed.
        """
        turns, calls = Turns(), set[str]()
        self._events = self._events or self._open().subscribe()
        async with aclosing(self._turn(self._events, self._streamed)) as events:
            async for event in events:
                item = turns.apply(event)
                if event.agent != MAIN:
                    continue
                if isinstance(event.body, TurnEnded):
                    self._asked -= 1
                    self._events = self._events if self._asked > 0 else None
                if isinstance(event.body, TurnEnded) and event.body.outcome in ("blocked", "error"):
                    raise AgentError(event.body.reason)
                for part in _shown(event, item, calls):
                    yield part

    async def _turn(self, source: AsyncIterator[Event], without: Set[int] = frozenset()) -> AsyncGenerator[Event, None]:
        """Events up to the end of the turn, except those of the turns ``without``; answers approval requests."""
        async with aclosing(self._followed(source)) as events:
            async for event in events:
                if event.turn in without:
                    continue
                yield event
                match event.body:
                    case TurnEnded() if event.agent == MAIN:
                        return
                    case PermissionRequested() as request:
                        allowed = self.options.approve is not None and await self.options.approve(request)
                        choice = "once" if allowed else "reject"
                        self._open().send(ReplyPermission(request.request, choice, by="headless"))
                    case QuestionAsked(request=question):
                        self._open().send(Answer(question, (), by="headless"))
                    case _:
                        pass

    def interrupt(self) -> None:
        """Stop the running turn; everything said so far is kept."""
        self._interrupted = True
        self._open().send(Interrupt())

    async def compact(self, focus: str = "") -> CompactResult | None:
        """Compact now, whatever the size; None if there was nothing to compact. ``focus`` is the emphasis of a summary.

        Raises:
            AgentError: a turn is running.
        """
        session = self._open()
        if session.view.busy:
            raise AgentError("a turn is running; compact after it ends")
        source = session.subscribe()
        session.send(Compact(focus))
        async with aclosing(self._followed(source)) as events:
            async for event in events:
                if event.agent != MAIN:
                    continue
                if isinstance(event.body, CompactionCompleted):
                    return _result(event.body)
                if isinstance(event.body, CompactionFailed):
                    return None
        return None

    async def _followed(self, events: AsyncIterator[Event]) -> AsyncGenerator[Event, None]:
        """The session's events; updates the data for the figures."""
        async for event in events:
            match event.body:
                case ItemCompleted(item=item):
                    self._created.setdefault(item, event.ts)
                case ModelResponded(message=message):
                    self._created.setdefault(message, event.ts)
                case CompactionCompleted():
                    self._compactions.setdefault(event.seq, event.ts)
                case _:
                    pass
            yield event

    async def _connected(self) -> Session:
        if self._session is None:
            await self.__aenter__()
        return self._open()

    async def close(self) -> None:
        """End a conversation that no ``async with`` block ends."""
        await self.__aexit__(None, None, None)

    def _open(self) -> Session:
        if self._session is None:
            raise AgentError("the client is not connected: send a message, or use it in an `async with` block")
        return self._session


Agent = Client
"""Alias."""


def _result(done: CompactionCompleted) -> CompactResult:
    return CompactResult(
        done.tokens_before,
        done.tokens_after,
        done.messages_before,
        done.messages_after,
        done.strategies,
        done.summary,
    )


def _shown(event: Event, item: Item | None, calls: set[str]) -> tuple[Part, ...]:
    """The agent's messages and actions in an event about ``item``. ``calls`` are the tool calls so far."""
    match event.body:
        case ItemCompleted(parts=parts) if item is None or item.kind not in ("user", "attachment", "note"):
            return parts
        case ItemCheckpointed(item=id, part=ToolCallPart() as call) if id not in calls:
            calls.add(id)
            return (call,)
        case _:
            pass
    return ()


async def _with_value(result: Result, wanted: AnswerSchema, schema: type[BaseModel] | Mapping[str, Any]) -> Result:
    value = await wanted.value(result.text)
    if isinstance(schema, Mapping):
        return replace(result, value=value)
    try:
        return replace(result, value=schema.model_validate(value))
    except ValidationError as error:
        raise Mismatch(str(error)) from error
