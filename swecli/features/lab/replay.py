"""Replay of a stored session with other context settings: the same events, other compactions, no model.

All messages and actions come from the record; only decisions of the context engine are made again, by the engine
itself. A provider's reported usage is transferred by size: the factor between its tokens and our measure is known for
every recorded request. A summary at a place with a recorded one is that summary; elsewhere code writes an extract.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field, structs
from msgspec.structs import replace

from swecli.core.context_management.budget import Limits, level_of
from swecli.core.context_management.compaction.options import CompactionOptions
from swecli.core.context_management.context_manager import PreparedRequest
from swecli.core.context_management.counter import CountsTokens
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.projection import project
from swecli.core.engine.context_parts import context_parts
from swecli.core.engine.model_access import Connection
from swecli.core.engine.recorder import Recorder
from swecli.core.llm.types import (
    ModelClient,
    ModelRequest,
)
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.commands import Compact
from swecli.core.protocol.events import (
    Body,
    CacheBreak,
    CompactionCompleted,
    CompactionFailed,
    CompactionRedone,
    CompactionStarted,
    CompactionUndone,
    ContextMeasured,
    FileRead,
    ItemCheckpointed,
    ItemCompleted,
    ItemStarted,
    ModelResponded,
    Notice,
    PromptPrefix,
    StepStarted,
    SystemPromptSent,
    Unknown,
)
from swecli.core.protocol.messages import ToolCallPart, Usage
from swecli.features.lab.losses import Losses
from swecli.features.lab.prefix_cache import Charge, PrefixCache, provider_tokens
from swecli.features.lab.recording import Recording
from swecli.features.lab.stand_ins import CountedOnce, Nobody, Summaries, context_of, no_log, services_of

MARKED = "anthropic-messages"
"""The protocol with explicit cache breakpoints; others keep any prefix."""


class Strategy(Struct, frozen=True):
    """Settings to try, by name. ``recorded``: repeats the recorded decisions, so that this is the session itself, the
    reference for the others."""

    name: str
    limits: Limits = Limits()
    compaction: CompactionOptions = CompactionOptions()
    recorded: bool = False


RECORDED = Strategy("recorded", recorded=True)


class Point(Struct, frozen=True):
    """One request: its size in tokens, on the session's meter and as measured here, its cache charge, the tokens of the
    answer, and whether it was "compacted" or "cleared" right before."""

    turn: int
    used: int
    measured: int
    charge: Charge
    output: int = 0
    changed: str = ""
    scale: float = 1.0
    """Recorded tokens per measured one, before a compaction that came right before."""
    summary: str | None = None
    """A model's summary in that compaction, empty if it failed; None if none was requested."""


class Replayed(Struct):
    """Result of one strategy for one session."""

    points: list[Point] = field(default_factory=list)
    summaries: list[tuple[Charge, int]] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    """Constraints of the user and changed paths missing from some request."""
    needed_again: int = 0
    """Calls for removed content."""
    blocked: int = 0
    """Requests above the block line; a real session would have sent none of them."""

    @property
    def peak(self) -> int:
        return max((point.used for point in self.points), default=0)

    @property
    def cost(self) -> float:
        """Cost of all requests, in units of one uncached input token."""
        steps = sum(point.charge.cost(point.output) for point in self.points)
        return steps + sum(charge.cost(output) for charge, output in self.summaries)

    @property
    def compactions(self) -> int:
        return sum(point.changed == "compacted" for point in self.points)

    @property
    def clearings(self) -> int:
        return sum(point.changed == "cleared" for point in self.points)


async def replay(recording: Recording, strategies: Sequence[Strategy]) -> list[Replayed]:
    """Replay the session through the context engine with each strategy, and first unchanged: the first result is the
    recorded session itself. Opens no connection and writes nothing."""
    counter = CountedOnce()
    baseline = await _Replay(recording, RECORDED, counter, None).run()
    return [baseline, *[await _Replay(recording, strategy, counter, baseline.points).run() for strategy in strategies]]


class _Replay:
    """One replay in progress. ``baseline`` are the points of the recorded strategy, None if this is that one."""

    def __init__(
        self, recording: Recording, strategy: Strategy, counter: CountsTokens, baseline: Sequence[Point] | None
    ) -> None:
        self._baseline = baseline
        self._recording = recording
        self._strategy = strategy
        self._now = recording.events[0].ts
        self._result = Replayed()
        style = "marked" if recording.protocol == MARKED else "automatic"
        self._cache = PrefixCache(provider_tokens(1.0, counter), self._clock, style)
        self._monitor = TokenMonitor(counter)
        self._context = context_of(recording, strategy.limits, self._monitor)
        self._recorder = Recorder(recording.session, (), no_log, self._clock)
        self._losses = Losses(self._recorder.ledger)
        self._client = Summaries(recording.info, self._recorder.ledger, self._charge_summary)
        services = services_of(recording, self._context, self._make_client, strategy.compaction, self._clock)
        connection = Connection(self._make_client)
        connection.connect(self._client.info.ref)
        self._parts = context_parts(services, self._recorder, connection, Nobody())
        self._sent: PreparedRequest | None = None
        self._dropped: set[str] = set()
        """Recorded compactions to ignore."""
        self._changed = ""
        """Effect of a recorded compaction, until the next request."""
        self._summary: str | None = None
        self._scale = 0.0
        """Recorded tokens per measured one at a recorded compaction."""
        self._steps = [event.body for event in recording.events if isinstance(event.body, StepStarted)]

    def _clock(self) -> float:
        return self._now

    def _make_client(self, _model: str) -> ModelClient:
        return self._client

    async def run(self) -> Replayed:
        for event in self._recording.events:
            self._now = event.ts
            self._recorder.turn = event.turn
            match event.body:
                case Unknown() | ContextMeasured() | PromptPrefix() | SystemPromptSent() | CacheBreak() | Notice():
                    pass
                case StepStarted() as step:
                    await self._step(step)
                case body if self._strategy.recorded:
                    self._take_recorded(body)
                case body:
                    await self._decide_anew(body)
        self._result.lost, self._result.needed_again = self._losses.lost, self._losses.needed_again
        return self._result

    # --- compactions ------------------------------------------------------------------------------------------

    def _take_recorded(self, body: Body) -> None:
        """Apply the record unchanged, compactions and their summaries included."""
        if (
            isinstance(body, CompactionStarted)
            and body.trigger != "manual"
            and len(self._result.points) < len(self._steps)
        ):
            self._scale = body.tokens_before / max(1, self._prepared().budget.used)
        self._take(body)
        if isinstance(body, CompactionCompleted):
            summarised = any(entry.id == body.item for entry in body.view)
            self._changed = "compacted" if summarised else "cleared"
            self._summary = body.summary if summarised else None
            if body.usage is not None:
                self._result.summaries.append((_charge_of(body.usage), body.usage.output_total or 0))

    async def _decide_anew(self, body: Body) -> None:
        """Apply the record without its compactions, except those by the user."""
        match body:
            case ItemStarted(kind="compaction", item=item):
                self._dropped.add(item)
            case CompactionStarted(trigger="manual"):
                await self._parts.triggers.compact_now(self._client, Compact())
            case CompactionUndone():
                self._parts.changes.undo()
            case CompactionRedone():
                self._parts.changes.redo()
            case CompactionStarted() | CompactionCompleted() | CompactionFailed():
                pass
            case ItemCompleted(item=item) | FileRead(item=item) if item in self._dropped:
                pass
            case _:
                self._take(body)

    def _take(self, body: Body) -> None:
        if isinstance(body, ItemCheckpointed) and isinstance(body.part, ToolCallPart):
            self._losses.look_back(body.part, body.item)
        self._recorder.emit(body)
        if isinstance(body, ModelResponded):
            self._answered(body)

    # --- requests ---------------------------------------------------------------------------------------------

    async def _step(self, step: StepStarted) -> None:
        prepared = self._prepared()
        if not self._strategy.recorded:
            view = {entry.id for entry in self._recorder.ledger.view}
            at = len(self._result.points)
            self._client.recorded = self._baseline[at].summary if self._baseline is not None else None
            judged = replace(prepared, budget=self._judged(prepared.budget, step.budget))
            if await self._parts.triggers.before_request(judged, self._client):
                prepared = self._prepared()
                grown = {entry.id for entry in self._recorder.ledger.view} - view
                self._changed = "compacted" if grown else "cleared"
        if self._changed:
            self._losses.check(prepared.request)
        budget = self._in_recorded_tokens(prepared.budget, step.budget)
        self._recorder.emit(structs.replace(step, budget=budget))
        self._result.blocked += budget.level == "block"
        charge = self._cache.charge(prepared.request)
        scale = self._scale or budget.used / max(1, prepared.budget.used)
        point = Point(
            self._recorder.turn, budget.used, prepared.budget.used, charge, 0, self._changed, scale, self._summary
        )
        self._result.points.append(point)
        self._changed, self._scale, self._summary = "", 0.0, None
        self._sent = prepared

    def _judged(self, measured: Budget, recorded: Budget) -> Budget:
        """The measure that decides about a compaction, in tokens of the record before one."""
        baseline = self._baseline[len(self._result.points)] if self._baseline is not None else None
        return self._scaled(measured, baseline.scale) if baseline else self._in_recorded_tokens(measured, recorded)

    def _in_recorded_tokens(self, measured: Budget, recorded: Budget) -> Budget:
        """A measure in the tokens of the record: the same request has the recorded size."""
        baseline = self._baseline[len(self._result.points)] if self._baseline is not None else None
        return self._scaled(measured, recorded.used / max(1, baseline.measured if baseline else measured.used))

    def _scaled(self, measured: Budget, scale: float) -> Budget:
        used = round(measured.used * scale)
        upper = used + measured.upper - measured.used
        level = level_of(upper, measured.effective, self._strategy.limits)
        return structs.replace(measured, used=used, upper=upper, level=level)

    def _prepared(self) -> PreparedRequest:
        messages = project(self._recorder.ledger)
        return self._context.prepare(messages, info=self._recording.info, session=self._recorder.session)

    def _answered(self, body: ModelResponded) -> None:
        """The provider's reported usage, transferred to this version of the request."""
        prepared, self._sent = self._sent, None
        if prepared is None or body.usage is None or not body.usage.input_total:
            return
        at = len(self._result.points) - 1
        point = self._result.points[at]
        self._result.points[at] = replace(point, output=body.usage.output_total or 0)
        reference = self._baseline[at].measured if self._baseline is not None else point.measured
        tokens = round(body.usage.input_total * point.measured / max(1, reference))
        usage = structs.replace(body.usage, input_total=tokens, cache_read=None, cache_write=None)
        self._context.update_usage(prepared.request, usage, self._recording.info)

    def _charge_summary(self, request: ModelRequest, output: int) -> None:
        self._result.summaries.append((self._cache.charge(request), output))


def _charge_of(usage: Usage) -> Charge:
    read, written = usage.cache_read or 0, usage.cache_write or 0
    return Charge(read, written, max(0, (usage.input_total or 0) - read - written))
