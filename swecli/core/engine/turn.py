"""One turn: prepare, measure, ask the model, run its calls, and repeat until it makes none."""

from __future__ import annotations

import asyncio
from typing import Literal

from swecli.core.context_management.context_manager import PreparedRequest
from swecli.core.context_management.ledger import INTERRUPTED
from swecli.core.context_management.note_topics import EMPTY, EMPTY_ANSWER
from swecli.core.engine.companion import Step, TurnStopped
from swecli.core.engine.core import Core
from swecli.core.engine.joining import Begun, Joining
from swecli.core.engine.meter import FILLING
from swecli.core.engine.model_call import (
    AnswerCompleted,
    AnswerFailed,
    AnswerInterrupted,
    Call,
    StepAccount,
    cap_reached,
    has_content,
)
from swecli.core.engine.next_request import NextRequest
from swecli.core.engine.silent_overflow import hint, is_nearly_full, silent_overflow
from swecli.core.engine.snapshots import closing_bodies
from swecli.core.engine.turn_ends import ended_by, failed, last_word
from swecli.core.llm.types import ModelClient, ModelRequest, ProviderError
from swecli.core.protocol.events import (
    ItemCompleted,
    Notice,
    Rewound,
    StepStarted,
    TurnEnded,
)
from swecli.core.protocol.messages import Message, ToolResultPart
from swecli.figures import plural

CUT_CALL = "Not executed: the answer reached the output limit, so this call may be incomplete. Make a smaller one."
CUT_LIMIT = 3
"""Most consecutive broken-off answers that are continued."""
NOT_SENT = "the message was not sent"
EMPTY_LIMIT = 2
"""Consecutive empty answers that end the turn."""


class Turn:
    """One turn, from the user's message to the last answer. ``run`` returns when it is over, whatever the outcome;
    cancelling its task interrupts it."""

    def __init__(self, core: Core, message: Begun) -> None:
        self._core = core
        self._connection = core.connection
        self._services = core.services
        self._recorder = core.recorder
        self._companions = core.companions
        self._message = message
        self._joining = Joining(core)
        self._account = StepAccount(core.services.toolset.context, core.services.access.price, core.recorder)
        self._requests = NextRequest(core, self._account)
        self._step = 0
        self._cuts = 0
        self._tried: set[Literal["rebuilt", "compacted"]] = set()
        """Remedies tried since the newest answer for requests that the provider refused as too long."""
        self._empty = 0
        self._unmeasured = False
        """Whether the conversation has changed since its newest measure."""

    async def run(self) -> None:
        """Loop over steps; emits TurnEnded last."""
        started = self._services.time.monotonic()
        self._core.asking.fragment, self._core.asking.trouble = None, ""  # of the turn before
        end = TurnStopped("error", "swecli failed internally; the conversation is kept.", "internal")
        try:
            try:
                end = await self._loop()
            except TurnStopped as stopped:
                end = stopped
            await self._companions.end_turn(end)
        except asyncio.CancelledError:
            trouble = self._core.asking.trouble
            end = TurnStopped("interrupted", f"the last attempt failed: {trouble}" if trouble else "")
        finally:
            for body in closing_bodies(self._recorder.ledger, self._recorder.state, INTERRUPTED, turn=True):
                self._recorder.emit(body)
            self._account.interrupted(self._core.asking.fragment)
            if end.outcome == "blocked":
                self._take_back()
            if self._unmeasured:
                self._core.meter.measure()
            duration = self._services.time.monotonic() - started
            waited = min(duration, self._recorder.state.waited)
            self._recorder.emit(
                TurnEnded(
                    end.outcome,
                    end.reason,
                    end.error_kind,
                    duration,
                    self._account.usage,
                    waited,
                    self._account.estimated,
                )
            )

    def _take_back(self) -> None:
        """Remove a message blocked before any answer from the conversation, with its attachments: the user gets it
        back, and no later request contains it."""
        ledger = self._recorder.ledger
        ids = [entry.id for entry in ledger.view]
        if self._message.item not in ids:
            return
        after = [ledger.entries[one] for one in ids[ids.index(self._message.item) + 1 :] if one in ledger.entries]
        if all(entry.kind in ("attachment", "note") for entry in after):
            self._recorder.emit(Rewound(self._message.item, NOT_SENT, self._message.typed))
            self._unmeasured = True

    async def _loop(self) -> TurnStopped:
        self._core.models.begin_turn()
        await self._joining.begin(self._message)
        while True:
            if self._recorder.state.queue:
                await self._joining.steer()
            self._check_caps()
            client = self._connection.client
            assert client is not None  # a turn begins only with a model, and no command removes it
            await self._core.offered.settle(client.info)
            await self._services.toolset.context.settle(self._recorder.ledger, client.info)
            if client.info.tells_progress:
                await self._services.toolset.context.count_at_server(self._recorder.ledger, client)
            prepared = await self._requests.prepare(client)
            if await self._core.triggers.before_request(prepared, client):
                await self._core.models.ready()  # another model may have waited for it
                client = self._connection.client or client
                prepared = await self._requests.prepare(client, changed=True)
            if prepared.budget.level != "ok":
                prepared = self._requests.with_warning(client, prepared)
            self._check_caps()  # freeing space may have requested a summary
            self._step += 1
            self._recorder.emit(StepStarted(self._step, prepared.budget))
            self._unmeasured = True
            if prepared.reason:
                raise TurnStopped("blocked", self._core.triggers.why_blocked(prepared), "context")
            if prepared.warning:
                self._recorder.emit(Notice(prepared.warning, "warning", "context", about=FILLING))
            self._requests.check_left(prepared)
            await self._recorder.log.barrier()
            sent_at = self._services.time.clock()
            self._account.begin(self._step, prepared, client.info)
            answered = await self._answered(client, prepared)
            if answered is None:
                continue
            message, calls = answered.message, answered.calls
            self._core.meter.report_cache_miss(prepared, message, sent_at)
            await self._run_tools(message, calls)
            await self._services.toolset.context.settle(self._recorder.ledger, client.info)
            self._finish_step()
            await self._services.toolset.context.monitor.keep_ratios()
            await self._companions.after_step(Step(calls))
            if not calls and not await self._continues(client, message) and not await self._companions.stay(message):
                return ended_by(message)

    def _check_caps(self) -> None:
        limits = self._services.settings.now.limits
        if limits.max_steps is not None and self._step >= limits.max_steps:
            raise TurnStopped("limit", f"stopped at the limit of {plural(limits.max_steps, 'model step')}", "max_turns")
        reached = cap_reached(limits, self._recorder.state)
        if reached is not None:
            raise TurnStopped("limit", *reached)

    async def _answered(self, client: ModelClient, prepared: PreparedRequest) -> AnswerCompleted | None:
        """The answer, or None if a new request is needed: to continue a broken-off answer, or to ask a fallback for an
        overloaded model."""
        result = await self._core.asking.ask(client, prepared, self._core.models.has_fallback)
        if isinstance(result, AnswerCompleted):
            message, full = result.message, None
            self._account.answered(message.response.usage if message.response else None)
            if not has_content(message):
                full = silent_overflow(message, prepared.request.max_output_tokens, prepared.budget, client.info)
            if full is None:
                self._cuts = 0
                self._tried.clear()
                return result
            self._account.end()
            result = AnswerFailed(full)
        elif isinstance(result, AnswerInterrupted):
            self._account.broke_off(result.fragment)
        else:
            self._account.refused()
        if await self._can_retry(client, prepared, result):
            return None
        self._core.models.note_failure(result.error)
        raise failed(result.error, client.info)

    async def _can_retry(
        self, client: ModelClient, prepared: PreparedRequest, result: AnswerInterrupted | AnswerFailed
    ) -> bool:
        """Remove the obstacle to a new request, if possible."""
        error = result.error
        silent = isinstance(result, AnswerFailed) and error.kind == "truncated" and is_nearly_full(prepared.budget)
        if error.kind == "context_overflow" or silent:
            return await self._makes_fit(client, prepared, error)
        if isinstance(result, AnswerInterrupted):
            self._cuts += 1
            if await self._core.asking.wait(error, client.info, self._cuts, CUT_LIMIT):
                return True
        if not self._core.models.fall_back(error):
            return False
        await self._core.models.ready()
        return True

    async def _makes_fit(self, client: ModelClient, refused: PreparedRequest, error: ProviderError) -> bool:
        """Learn from the refusal of a too long request, and make the next one fit: built anew for the stated window, if
        that is enough, else after a compaction. Each is tried once. False if no request can fit."""
        await self._core.models.learn(error)
        rebuilt = self._requests.built(client)
        if "rebuilt" not in self._tried and rebuilt.fits and _asks_less(rebuilt.request, refused.request):
            # The provider may count more than swecli does.
            counted = self._services.toolset.context.weigh(refused.request, client.info).used
            if (error.prompt_tokens or 0) * rebuilt.budget.used < rebuilt.budget.block_at * max(1, counted):
                self._tried.add("rebuilt")
                return True
        if "compacted" in self._tried:
            return False
        self._tried.add("compacted")
        return await self._core.triggers.after_overflow(rebuilt, client)

    async def _run_tools(self, message: Message, calls: tuple[Call, ...]) -> None:
        if message.response is not None and (not message.response.complete or message.response.stop.kind == "length"):
            for call in calls:
                result = ToolResultPart(call.part.call_id, call.part.name, CUT_CALL, is_error=True)
                self._recorder.emit(ItemCompleted(call.item, "error", (result,), detail="cut at the output limit"))
        elif calls:
            self._empty = 0
            for call in calls:
                self._core.offered.called(call.part.name)
            await self._core.scheduler.run(calls)

    def _finish_step(self) -> None:
        self._account.end()
        self._core.meter.measure()
        self._unmeasured = False

    async def _continues(self, client: ModelClient, message: Message) -> bool:
        """Whether the turn continues although the model made no call."""
        await self._joining.screen_steering()  # a blocked message is nothing to answer
        if any(queued.steer for queued in self._recorder.state.queue):
            return True
        if message.response is not None and message.response.stop.kind == "pause":
            return True
        if has_content(message) or last_word(message):
            self._empty = 0
            return False
        self._empty += 1
        if self._empty >= EMPTY_LIMIT:
            advice = f"Try again, or switch models. {hint(client.info)}".strip()
            raise TurnStopped("error", f"the model gave two empty answers in a row. {advice}", "empty")
        self._core.notes.add("Empty answer", EMPTY_ANSWER, EMPTY)
        self._recorder.emit(Notice("The model gave an empty answer; asking again.", "warning", "model"))
        return True


def _asks_less(request: ModelRequest, refused: ModelRequest) -> bool:
    """Whether a request with the same messages has another profile, or leaves less room for its answer."""
    if (request.system, request.tools) != (refused.system, refused.tools):
        return True
    most = refused.max_output_tokens
    return request.max_output_tokens is not None and (most is None or request.max_output_tokens < most)
