"""Replay of a stored session with other context settings: the same events, other compactions, no model.

All messages and actions come from the record; only decisions of the context engine are made again, by the engine
itself. A provider's reported usage is transferred by size: the factor between its tokens and our measure is known for
every recorded request. A summary at a place with a recorded one is that summary; elsewhere code writes an extract.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from msgspec import Struct, field, structs
from msgspec.structs import replace

from swecli.core.context_management.budget import Limits, fixed_tokens, is_tools, level_of
from swecli.core.context_management.compaction.clearing import target_of
from swecli.core.context_management.compaction.options import CompactionOptions
from swecli.core.context_management.compaction.package import constraints
from swecli.core.context_management.context_manager import ContextManager, PreparedRequest
from swecli.core.context_management.counter import CountsTokens, PieceEstimator, RanksError, o200k
from swecli.core.context_management.ledger import Ledger
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.projection import project
from swecli.core.context_management.prompt import PromptTexts
from swecli.core.engine.context_parts import context_parts
from swecli.core.engine.model_access import Connection, ModelAccess
from swecli.core.engine.recorder import EventLog, Recorder
from swecli.core.engine.services import Permissions, Services, Time, Toolset, Workspace
from swecli.core.engine.settings import Adjustable, Settings
from swecli.core.llm.types import (
    Failed,
    Finished,
    ModelClient,
    ModelInfo,
    ModelRequest,
    ProviderError,
    StreamEvent,
    ToolSchema,
)
from swecli.core.permissions.types import Decision
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.commands import Compact
from swecli.core.protocol.events import (
    MAIN,
    Body,
    CacheBreak,
    CompactionCompleted,
    CompactionFailed,
    CompactionRedone,
    CompactionStarted,
    CompactionUndone,
    ContextMeasured,
    Event,
    FileRead,
    ItemCheckpointed,
    ItemCompleted,
    ItemStarted,
    ModelResponded,
    Notice,
    PromptPrefix,
    SessionStarted,
    StepStarted,
    SystemPromptSent,
    Unknown,
)
from swecli.core.protocol.messages import Message, Origin, Response, Stop, TextPart, ToolCallPart, Usage
from swecli.core.protocol.request_events import Question
from swecli.core.tools.registry import ToolRegistry
from swecli.features.lab.prefix_cache import Charge, PrefixCache, provider_tokens

MARKED = "anthropic-messages"
"""The protocol with explicit cache breakpoints; others keep any prefix."""
REREAD = frozenset(("read_file", "search", "list_files", "run_command", "web_fetch"))
"""Tools with calls that can repeat the content of an earlier result."""
CHARACTERS_PER_TOKEN = 4
"""Assumed characters per token of an extract."""
FILLER = "swecli "
"""Replaces system prompt, tools and instructions, which are in no event, at their recorded size."""
LINES = 8
"""Lines of each kind in an extract."""


class NotReplayable(Exception):
    """The session lacks data for a replay; the message names it."""


class Recording(Struct, frozen=True):
    """Events of one session in order, without subagents', and the model from its measures. ``skipped`` counts
    unreadable events."""

    session: str
    events: tuple[Event, ...]
    info: ModelInfo
    protocol: str
    folder: Path
    """The session's folder. A compaction shows the model files of the working set as they are on disk now."""
    first: Budget
    skipped: int = 0

    @property
    def requests(self) -> int:
        return sum(isinstance(event.body, StepStarted) for event in self.events)

    @classmethod
    def of(cls, session: str, events: Sequence[Event]) -> Recording:
        """Raises NotReplayable: no request was ever measured, or no measure has the size of a window."""
        own = tuple(event for event in events if event.agent == MAIN)
        known = tuple(event for event in own if not isinstance(event.body, Unknown))
        budgets = [event.body.budget for event in known if isinstance(event.body, StepStarted)]
        if not budgets:
            raise NotReplayable(f"Session {session} has no model request to replay.")
        first = budgets[0]
        if first.window <= 0 or first.effective <= 0:
            raise NotReplayable(f"Session {session} does not record the size of its model's window.")
        started = next((event.body for event in known if isinstance(event.body, SessionStarted)), None)
        provider, _, name = (started.model if started else "").partition("/")
        info = ModelInfo(provider, name, first.window, first.window - first.effective, window_source="recorded")
        protocol = next((event.body.origin.protocol for event in known if isinstance(event.body, ModelResponded)), "")
        folder = Path(started.cwd) if started else Path("/")
        return cls(session, known, info, protocol, folder, first, len(own) - len(known))


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
    """Result of one strategy for one session. ``lost`` are constraints of the user and changed paths missing from some
    request, ``needed_again`` the calls for removed content."""

    points: list[Point] = field(default_factory=list)
    summaries: list[tuple[Charge, int]] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    needed_again: int = 0
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


class CountedOnce:
    """Tokens of texts, each counted once, exactly if the vocabulary is available; texts are known by length and hash,
    so that none is kept."""

    def __init__(self) -> None:
        try:
            self._counter: CountsTokens = o200k()
        except (ImportError, OSError, RanksError):
            self._counter = PieceEstimator()
        self._known: dict[tuple[int, int], int] = {}

    def count(self, text: str) -> int:
        key = len(text), hash(text)
        if key not in self._known:
            self._known[key] = self._counter.count(text)
        return self._known[key]


class _NoLog:
    """Discards events."""

    def append(self, event: Event) -> None:
        """Discards the event."""

    async def barrier(self) -> None:
        """Nothing is pending."""

    async def close(self) -> None:
        """Nothing is open."""


def _no_log(_publish: Callable[[Sequence[Event]], None]) -> EventLog:
    return _NoLog()


async def _at_once(_seconds: float) -> None:
    """Returns at once."""


class _Nobody:
    """Answers no question: a replay needs no approval."""

    async def ask(self, item: str, questions: Sequence[Question]) -> tuple[tuple[str, ...], ...] | None:
        return None


class _Summaries:
    """The model client of a replay: returns recorded or extracted summaries, and nothing else."""

    def __init__(self, info: ModelInfo, ledger: Ledger, charge: Callable[[ModelRequest, int], None]) -> None:
        self._info = info
        self._ledger = ledger
        self._charge = charge
        self.recorded: str | None = None
        """The summary of the recorded compaction at this place, empty if it failed; None: there was none."""

    @property
    def info(self) -> ModelInfo:
        return self._info

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        text = extract(self._ledger) if self.recorded is None else self.recorded
        if not text:
            yield Failed(ProviderError("auth", "the recorded model wrote no summary either"))
            return
        tokens = len(text) // CHARACTERS_PER_TOKEN
        self._charge(request, tokens)
        response = Response(Origin("lab", "lab", self._info.name), Stop("end"), Usage(output_total=tokens))
        yield Finished(Message("assistant", (TextPart(text),), response=response))

    async def close(self) -> None:
        """Nothing is open."""


def extract(ledger: Ledger) -> str:
    """A summary by code: the user's requests, changed files, the model's last words."""
    requests, answers = _texts(ledger, "user"), _texts(ledger, "text")
    changed = dict.fromkeys(change.path for change in ledger.changes)
    sections = {
        "Goal": requests[:1],
        "Done": [f"changed {path}" for path in [*changed][-LINES:]],
        "Findings": answers[-LINES:-1],
        "Next": [*requests[-1:], *answers[-1:]],
    }
    return "\n".join(f"## {name}\n" + "\n".join(f"- {line}" for line in lines) for name, lines in sections.items())


def _texts(ledger: Ledger, kind: str) -> list[str]:
    parts = (part for entry in ledger.entries.values() if entry.kind == kind for part in entry.parts)
    return [" ".join(part.text.split())[:200] for part in parts if isinstance(part, TextPart)]


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
        self._context = self._context_of(recording)
        ratio = self._monitor.ratio(recording.info)
        self._count = lambda text: counter.count(text) * ratio
        self._filler = self._count(FILLER * 100) / 100
        self._recorder = Recorder(recording.session, (), _no_log, self._clock)
        self._client = _Summaries(recording.info, self._recorder.ledger, self._charge_summary)
        services = Services(
            workspace=Workspace(recording.folder, (recording.folder,), {}),
            toolset=Toolset(ToolRegistry(()), self._context),
            access=ModelAccess(self._make_client),
            permissions=Permissions(lambda policy, call: Decision("deny", "a replay runs nothing")),
            settings=Settings(Adjustable(compaction=strategy.compaction)),
            time=Time(self._clock, self._clock, _at_once),
        )
        connection = Connection(self._make_client)
        connection.connect(self._client.info.ref)
        self._parts = context_parts(services, self._recorder, connection, _Nobody())
        self._sent: PreparedRequest | None = None
        self._dropped: set[str] = set()
        """Recorded compactions to ignore."""
        self._changed = ""
        """Effect of a recorded compaction, until the next request."""
        self._summary: str | None = None
        self._scale = 0.0
        """Recorded tokens per measured one at a recorded compaction."""
        self._steps = [event.body for event in recording.events if isinstance(event.body, StepStarted)]
        self._seen: dict[tuple[str, str], str] = {}
        """Subject of a call -> the newest item with its answer."""

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
            self._look_back(body.part, body.item)
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
            self._check_kept(prepared.request)
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

    # --- missing content --------------------------------------------------------------------------------------

    def _check_kept(self, request: ModelRequest) -> None:
        ledger = self._recorder.ledger
        text = _folded(" ".join(map(_words_of, request.messages)))
        anchors = {anchor.text for anchor in constraints(ledger)}
        anchors |= {change.path.rpartition("/")[2] for change in ledger.changes}
        self._result.lost |= {anchor for anchor in anchors if _folded(anchor) not in text}

    def _look_back(self, call: ToolCallPart, item: str) -> None:
        """Count a call that requests content that the model had and lost."""
        key = (call.name, target_of(call))
        known = self._seen.get(key)
        if call.name not in REREAD or known == item:
            return
        self._result.needed_again += known is not None and known not in self._recorder.ledger.live_items()
        self._seen[key] = item

    # --- the fixed part ---------------------------------------------------------------------------------------

    def _context_of(self, recording: Recording) -> ContextManager:
        """A context with system prompt and tools of the recorded sizes; neither is in any event."""
        tools = sum(part.tokens for part in recording.first.components if is_tools(part.name))
        text = FILLER * self._times(fixed_tokens(recording.first) - tools, lambda filler: (filler, ""))
        return self._context_with(text, FILLER * self._times(tools, lambda filler: ("", filler)))

    def _times(self, wanted: int, placed: Callable[[str], tuple[str, str]]) -> int:
        """Repetitions of the filler at a place for this number of tokens."""
        empty = fixed_tokens(self._context_with("", "").measure((), self._recording.info))
        low, high = 0, wanted * 4
        while low < high:
            middle = (low + high) // 2
            measured = fixed_tokens(self._context_with(*placed(FILLER * middle)).measure((), self._recording.info))
            low, high = (middle + 1, high) if measured - empty < wanted else (low, middle)
        return low

    def _context_with(self, text: str, schema: str) -> ContextManager:
        tools = (ToolSchema("tools", schema, {}),) if schema else ()
        return ContextManager(tools, PromptTexts(base=text), self._strategy.limits, self._monitor)


def _charge_of(usage: Usage) -> Charge:
    read, written = usage.cache_read or 0, usage.cache_write or 0
    return Charge(read, written, max(0, (usage.input_total or 0) - read - written))


def _words_of(message: Message) -> str:
    calls = (call.arguments for call in message.tool_calls)
    return " ".join((message.text, *calls, *(result.text for result in message.tool_results)))


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
