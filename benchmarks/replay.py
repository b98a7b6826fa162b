"""Recorded sessions through the real meter and the real policy: prediction, cache, cost.

Prediction is measured against the usage that the provider reported. Cost is that of a prompt cache with Anthropic's
rules and prices, in units of one uncached input token, relative to a history that only grows in a window without end.
Cleared results that the model would have read again are not in the recordings, so the cost of reading them again
is not in these figures. ``python -m benchmarks.replay FILE`` replays other recordings of the same form.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.recorded import NAMES, Call, Part, Recording, Texts, joined, load, texts_of
from swecli.core.context_management.budget import Limits
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.projection import project
from swecli.core.context_management.prompt import PromptTexts, message_breakpoints
from swecli.core.engine.model_access import ModelAccess
from swecli.core.engine.recorder import EventLog
from swecli.core.engine.services import Permissions, Services, Time, Toolset, Workspace
from swecli.core.engine.session import Session
from swecli.core.llm.types import Finished, ModelInfo, ModelRequest, StreamEvent, SystemBlock
from swecli.core.permissions.types import Decision, Effects
from swecli.core.protocol.commands import Steer, Submit
from swecli.core.protocol.context_events import CompactionCompleted, ViewEntry
from swecli.core.protocol.events import Event, StepStarted, TurnEnded
from swecli.core.protocol.messages import Message, Origin, Response, Stop, TextPart, ToolCallPart, ToolResultPart, Usage
from swecli.core.protocol.messages import Part as MessagePart
from swecli.core.tools.base import ToolContext, ToolOutcome
from swecli.core.tools.dynamic import DynamicTool, RawParams
from swecli.core.tools.registry import ToolRegistry
from swecli.features.lab.prefix_cache import Charge, Framed, PrefixCache

LONG = 400_000
"""Tokens of a long session; the recorded ones are put together to such."""
WINDOW, MAX_OUTPUT = 200_000, 16_000
WINDOWS = (32_000, 64_000, 128_000, WINDOW)
"""Windows that the long sessions are replayed in."""
FACTOR = 1.13
"""The provider's tokens for one of ours."""
NO_KINDS: Mapping[str, float] = {}
KINDS = {"TextPart": 1.12, "ToolCallPart": 1.5, "ToolResultPart": 1.28}
"""The same by kind of part, of a tokenizer that takes JSON and output apart more than prose."""
STEP_SECONDS, TURN_SECONDS = 8.0, 90.0
SUMMARY_TOKENS = 1_500
SUMMARY = "## Goal\nGo on with the tasks.\n## Done\n" + "Looked at the code and changed what was asked for. " * 110


# --- prediction ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prediction:
    """One predicted prompt against the reported one, in tokens; ``upper`` is the edge that the gate uses."""

    predicted: int
    upper: int
    reported: int

    @property
    def error(self) -> float:
        """Share of the reported size."""
        return abs(self.predicted - self.reported) / self.reported


def predictions(recording: Recording, *, silent: bool = False) -> list[Prediction]:
    """Every prompt but the first, predicted before its usage is known; ``silent``: of a server that reports none, for a
    model of an unknown family."""
    texts = Texts()
    monitor = TokenMonitor(texts)
    provider, _, name = recording.model.partition("/")
    info = ModelInfo("local", "unknown", WINDOW) if silent else ModelInfo(provider, name, WINDOW, MAX_OUTPUT)
    system: tuple[SystemBlock, ...] = ()
    messages: list[Message] = []
    found: list[Prediction] = []
    for number, call in enumerate(recording.calls):
        system += tuple(SystemBlock(texts.of(part)) for part in texts_of(call.added, "system"))
        messages += _added(call, texts, number)
        request = ModelRequest(system, (), tuple(messages))
        budget = monitor.measure(request, Limits(), info)
        if number and call.prompt:
            found.append(Prediction(budget.used, budget.upper, call.prompt))
        usage = Usage(input_total=call.prompt, cache_read=call.cached, output_total=call.output)
        if not silent:
            monitor.observe(request, usage, info)
        parts = _answer(call, texts, number)
        if parts:
            messages.append(Message("assistant", parts, f"a{number}"))
    return found


def _added(call: Call, texts: Texts, number: int) -> list[Message]:
    results = tuple(
        ToolResultPart(f"c{number}.{place}", NAMES.get(part.tool, part.tool), texts.of(part))
        for place, part in enumerate(texts_of(call.added, "tool"))
    )
    added = [Message("tool", results, f"r{number}")] if results else []
    for place, part in enumerate(texts_of(call.added, "user")):
        added.append(Message("user", (TextPart(texts.of(part)),), f"u{number}.{place}"))
    return added


def _answer(call: Call, texts: Texts, number: int) -> tuple[MessagePart, ...]:
    parts: list[MessagePart] = []
    for place, part in enumerate(call.answer):
        if part.kind == "call":
            name = NAMES.get(part.tool, part.tool)
            parts.append(ToolCallPart(f"c{number + 1}.{place}", name, texts.arguments(part)))
        else:
            parts.append(TextPart(texts.of(part)))
    return tuple(parts)


# --- policy -------------------------------------------------------------------------------------------------


class RecordedTool(DynamicTool):
    """Gives back the next recorded result, whatever its arguments."""

    def __init__(self, name: str, results: list[str]) -> None:
        super().__init__(name, "A recorded tool.", {"type": "object"}, "", verb="Run")
        self._results = results

    def effects(self, params: RawParams, ctx: ToolContext) -> Effects:
        return Effects(internal=True)

    async def run(self, params: RawParams, ctx: ToolContext) -> ToolOutcome:
        return ToolOutcome(self._results.pop(0) if self._results else "(nothing)")


@dataclass
class Replayed:
    """What one replay of a recording gave. ``steps`` are the charges of agent requests in order, with what the
    model wrote."""

    steps: list[tuple[Charge, int]] = field(default_factory=list)
    summaries: list[tuple[Charge, int]] = field(default_factory=list)
    clearings: int = 0
    compactions: int = 0
    above_block: int = 0
    baseline: float = 0.0
    outcome: str = ""
    measures: list[tuple[int, bool]] = field(default_factory=list)
    """What the meter said of each step's request, and whether a compaction or clearing came right before."""

    def errors(self, *, changed: bool) -> list[float]:
        """Shares by which the meter was off, in order of size, of requests after a change or of the others."""
        pairs = zip(self.measures, self.steps, strict=False)
        return sorted(abs(used / charge.total - 1) for (used, after), (charge, _) in pairs if after is changed)

    @property
    def cost(self) -> float:
        return sum(charge.cost(output) for charge, output in (*self.steps, *self.summaries))

    @property
    def charges(self) -> list[Charge]:
        """Of all requests, the first, those after a change of the prefix and those for summaries included."""
        return [charge for charge, _ in (*self.steps, *self.summaries)]


class RecordedModel:
    """A model client that says what the recorded one said, in front of a simulated cache."""

    def __init__(
        self,
        calls: Sequence[Call],
        texts: Texts,
        cache: PrefixCache,
        results: list[str],
        window: int,
        counted: Callable[[tuple[MessagePart, ...]], int] | None = None,
    ) -> None:
        """``counted`` are the tokens of an answer; None: as recorded."""
        self._calls = list(calls)
        self._counted = counted
        self._texts = texts
        self._cache = cache
        self._results = results
        self._number = 0
        self.replayed = Replayed()
        self.session: Session | None = None
        self.next_users: list[Part] = texts_of(calls[0].added, "user")
        self.info = ModelInfo("recorded", "model", window, MAX_OUTPUT)

    @property
    def over(self) -> bool:
        return self._number >= len(self._calls)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        charge = self._cache.charge(request)
        if request.messages[-1].id.startswith("compaction"):
            self.replayed.summaries.append((charge, SUMMARY_TOKENS))
            yield self._finished((TextPart(SUMMARY),), charge, SUMMARY_TOKENS)
            return
        call = self._calls[self._number]
        following = self._calls[self._number + 1] if self._number + 1 < len(self._calls) else None
        starts_anew = following is None or bool(texts_of(following.added, "system"))
        parts = _answer(call, self._texts, self._number)
        if starts_anew:  # the last call of a recorded session has no result
            parts = tuple(part for part in parts if not isinstance(part, ToolCallPart)) or (TextPart("Done."),)
        self._number += 1
        if following is not None:
            self._results[:] = [self._texts.of(part) for part in texts_of(following.added, "tool")]
            users = texts_of(following.added, "user")
            if any(isinstance(part, ToolCallPart) for part in parts) and self.session is not None:
                for part in users:
                    self.session.send(Steer(self._texts.of(part)))
            else:
                self.next_users = users
        output = call.output if self._counted is None else self._counted(parts)
        self.replayed.steps.append((charge, output))
        yield self._finished(parts, charge, output)

    def _finished(self, parts: tuple[MessagePart, ...], charge: Charge, output: int) -> Finished:
        usage = Usage(charge.total, charge.read, charge.written, output)
        response = Response(Origin("recorded", "recorded", "model"), Stop("end"), usage)
        return Finished(Message("assistant", parts, response=response))

    async def close(self) -> None:
        """Nothing to release."""


class _Log:
    def __init__(self, publish: Any) -> None:
        self._publish = publish

    def append(self, event: Event) -> None:
        asyncio.get_running_loop().call_soon(self._publish, (event,))

    async def barrier(self) -> None:
        await asyncio.sleep(0)

    async def close(self) -> None:
        await asyncio.sleep(0)


def make_log(publish: Any) -> EventLog:
    """Events are published and forgotten."""
    return _Log(publish)


def block_tokens(texts: Texts, kinds: Mapping[str, float] = NO_KINDS) -> Any:
    """The provider's tokenizer; ``kinds`` are its tokens for one of ours by kind of part, where these differ."""
    from swecli.core.context_management.counter import SizeCache
    from swecli.core.llm.types import ToolSchema

    sizes = SizeCache(texts)

    def tokens(block: object) -> int:
        match block:
            case Framed(role=role, part=part):
                estimate = sizes.message(Message("tool" if role == "tool" else "user", (part,), str(id(part)))).total
                kind = type(part).__name__
            case SystemBlock(text=text):
                estimate, kind = texts.count(text), ""
            case ToolSchema():
                estimate, kind = sizes.schema(block), ""
            case _:
                estimate, kind = texts.count(str(block)), ""
        return round(kinds.get(kind, FACTOR) * estimate)

    return tokens


async def replay(recording: Recording, window: int = WINDOW, kinds: Mapping[str, float] = NO_KINDS) -> Replayed:
    """The recording through a real session whose model answers as recorded, in a window of so many tokens; ``kinds``
    see ``block_tokens``."""
    texts = Texts()
    now = 0.0

    def clock() -> float:
        return now

    results: list[str] = []
    tokens = block_tokens(texts, kinds)

    def counted(parts: tuple[MessagePart, ...]) -> int:
        return sum(tokens(Framed("assistant", part)) for part in parts)

    cache = PrefixCache(tokens, clock)
    model = RecordedModel(recording.calls, texts, cache, results, window, counted if kinds else None)
    names = {NAMES.get(part.tool, part.tool) for call in recording.calls for part in call.answer if part.kind == "call"}
    registry = ToolRegistry([RecordedTool(name, results) for name in sorted(names)])
    base = "\n".join(texts.of(part) for part in texts_of(recording.calls[0].added, "system"))
    context = ContextManager(registry.schemas(), PromptTexts(base=base), monitor=TokenMonitor(texts))
    services = Services(
        workspace=Workspace(Path("/"), (Path("/"),), {}),
        toolset=Toolset(registry, context),
        access=ModelAccess(lambda _name: model),
        permissions=Permissions(lambda policy, call: Decision("allow", "recorded")),
        time=Time(clock, clock),
    )
    session = model.session = Session("replay", services, make_log)
    subscription = session.subscribe()
    session.start("recorded/model", "")
    replayed, changed = model.replayed, False
    while not model.over:
        text = "\n".join(texts.of(part) for part in model.next_users) or "Go on."
        model.next_users = []
        session.send(Submit(text))
        now += TURN_SECONDS
        async for event in subscription:
            match event.body:
                case StepStarted(budget=budget):
                    now += STEP_SECONDS
                    replayed.above_block += budget.level == "block"
                    replayed.measures.append((budget.used, changed))
                    changed = False
                case CompactionCompleted(strategies=strategies):
                    changed = True
                    replayed.clearings += strategies == ("clearing",)
                    replayed.compactions += strategies != ("clearing",)
                case TurnEnded() as end:
                    replayed.outcome = end.outcome
                    break
                case _:
                    pass
        if replayed.outcome != "done":
            break
        await asyncio.sleep(0)
    replayed.baseline = _only_growing(session, tokens)
    await session.close()
    return replayed


def _only_growing(session: Session, tokens: Any) -> float:
    """What the same answers would have cost with the whole history in every request."""
    ledger = session._recorder.ledger  # pyright: ignore[reportPrivateUsage]
    messages = project(ledger, [ViewEntry("live", entry) for entry in ledger.entries])
    system = session._services.toolset.context.prepare((), info=ModelInfo("recorded", "model", WINDOW)).request  # pyright: ignore[reportPrivateUsage]
    now = 0.0
    cache = PrefixCache(tokens, lambda: now)
    cost = 0.0
    for index, message in enumerate(messages):
        if message.role != "assistant":
            continue
        before = messages[:index]
        now += STEP_SECONDS
        request = ModelRequest(system.system, system.tools, before, message_breakpoints(before))
        usage = message.response.usage if message.response else None
        cost += cache.charge(request).cost((usage.output_total or 0) if usage else 0)
    return cost


# --- figures ------------------------------------------------------------------------------------------------


def prediction_figures(recordings: Sequence[Recording]) -> list[tuple[str, float, str]]:
    """Errors of the predicted prompts by model."""
    figures: list[tuple[str, float, str]] = []
    for model in dict.fromkeys(recording.model for recording in recordings):
        same = [recording for recording in recordings if recording.model == model]
        found = [one for recording in same for one in predictions(recording)]
        errors = sorted(one.error * 100 for one in found)
        figures += [
            (f"{model}: prompts predicted", len(found), ""),
            ("  error, median", statistics.median(errors), "%"),
            ("  error, 95 of 100", _quantile(errors, 0.95), "%   (goal 0.55)"),
            ("  error, 99 of 100", _quantile(errors, 0.99), "%   (goal 3.1)"),
            ("  largest underestimate", max(one.reported - one.predicted for one in found), "tokens (goal 1,200)"),
            ("  prompts above the upper edge", sum(one.reported > one.upper for one in found), ""),
        ]
        found = [one for recording in same for one in predictions(recording, silent=True)]
        errors = sorted(one.error * 100 for one in found)
        figures += [
            ("  without usage: error, median", statistics.median(errors), "%"),
            ("  without usage: error, 95 of 100", _quantile(errors, 0.95), "%   (goal 10)"),
            ("  without usage: prompts above the upper edge", sum(one.reported > one.upper for one in found), ""),
        ]
    return figures


def meter_figures(recordings: Sequence[Recording]) -> list[tuple[str, float, str]]:
    """Errors of the meter at a provider whose tokenizer treats kinds of content differently."""
    figures: list[tuple[str, float, str]] = []
    for recording in recordings:
        for window in (32_000, 64_000):
            replayed = asyncio.run(replay(recording, window, KINDS))
            for changed, name in ((True, "after a compaction or clearing"), (False, "of other requests")):
                errors = [100 * error for error in replayed.errors(changed=changed)]
                what = f"meter, window {window:,}, {name}: error, 95 of {len(errors)}"
                figures.append((what, _quantile(errors, 0.95) if errors else 0.0, "%   (goal 1)" if changed else "%"))
                figures.append(("  largest", max(errors, default=0.0), "%"))
    return figures


def policy_figures(
    name: str, replays: Sequence[Replayed], goal: str = "", share_goal: str = "%"
) -> list[tuple[str, float, str]]:
    """Cache and cost of a set of replays."""
    summaries = [one for replayed in replays for one in replayed.summaries]
    figures = [
        (f"{name} sessions", len(replays), f"({sum(len(one.steps) for one in replays):,} steps)"),
        (
            "  cost relative to growing without end",
            sum(r.cost for r in replays) / sum(r.baseline for r in replays),
            goal,
        ),
        ("  cached share of all requests, least session", min(_share(r.charges) for r in replays) * 100, "%"),
        ("  cached share of all requests", _share([one for r in replays for one in r.charges]) * 100, share_goal),
        ("  clearings per session", statistics.mean(r.clearings for r in replays), ""),
        ("  summaries per session", len(summaries) / len(replays), "(goal 0.5)"),
        ("  requests above the block line", sum(r.above_block for r in replays), ""),
        ("  turns that did not end well", sum(r.outcome != "done" for r in replays), ""),
    ]
    if summaries:
        price = statistics.mean(charge.cost(output) / charge.total for charge, output in summaries)
        figures.append(("  price of one summary by its prompt's tokens", price, "(goal 0.16)"))
    return figures


def _share(charges: Sequence[Charge]) -> float:
    return sum(charge.read for charge in charges) / max(1, sum(charge.total for charge in charges))


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def run(path: Path | None = None) -> list[tuple[str, float, str]]:
    """What was measured, the value, its unit."""
    recordings = load(path) if path else load()
    short = [asyncio.run(replay(recording)) for recording in recordings if recording.longest < WINDOW * 0.5]
    long = joined(recordings, LONG)
    figures = prediction_figures(recordings)
    figures += meter_figures(long[:1])
    if short:
        figures += policy_figures("short", short, "    (goal 1.00)")
    for window in WINDOWS if long else ():
        replays = [asyncio.run(replay(recording, window)) for recording in long]
        goals = ("    (goal 0.60)" if window == WINDOW else "", "%   (goal 97)" if window >= 128_000 else "%")
        figures += policy_figures(f"long, {window:,}:", replays, *goals)
    return figures


if __name__ == "__main__":
    for figure in run(Path(sys.argv[1]) if len(sys.argv) > 1 else None):
        print(f"{figure[0]:<58} {figure[1]:>12,.3f} {figure[2]}")
