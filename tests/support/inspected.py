"""A session's inspection over a conversation that is made up: no engine, no model, the same on every machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

from swecli.core.context_management.cache import CacheHistory
from swecli.core.context_management.compaction.options import CompactionOptions
from swecli.core.context_management.compaction.package import SessionFacts
from swecli.core.context_management.compaction.plan import PlanDraft
from swecli.core.context_management.compaction.summary import Summary
from swecli.core.context_management.compaction.transaction import Compaction, Job
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.counter import CharCounter
from swecli.core.context_management.forecast import Timeline
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.prompts import note
from swecli.core.engine.inspection import Inspection
from swecli.core.engine.settings import Settings
from swecli.core.engine.state import AgentRecord, Tally
from swecli.core.llm.types import ModelInfo, ModelRequest, ToolSchema
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.events import (
    AgentStarted,
    CacheBreak,
    CompactionCompleted,
    CompactionStarted,
    Event,
    FileRead,
    ItemCompleted,
    ItemStarted,
    ModelResponded,
    SessionStarted,
    StepEnded,
)
from swecli.core.protocol.messages import Origin, TextPart, Usage
from tests.support.said import Said

SUMMARY = (
    "## Goal\nTen pens get a discount.\n\n## Done\nRead src/f3.py, where price_3 decides.\n\n## Next\nWrite the test."
)


def price(model: str, usage: Usage) -> str | None:
    """Three dollars a million, a tenth of it from the cache."""
    new = (usage.input_total or 0) - (usage.cache_read or 0)
    return f"{new * 3e-6 + (usage.cache_read or 0) * 3e-7:.6f}"


@dataclass
class Inspected:
    """A conversation with its inspection; ``window`` in tokens."""

    window: int = 64_000
    said: Said = field(default_factory=Said)
    price: Callable[[str, Usage], str | None] = price
    tools: Sequence[ToolSchema] = ()

    def __post_init__(self) -> None:
        self.info = ModelInfo("fake", "model", self.window, 4_000)
        self.client = SimpleNamespace(info=self.info)
        self.context = ContextManager(self.tools, monitor=TokenMonitor(CharCounter()))
        self.timeline = Timeline()
        self.agents: dict[str, AgentRecord] = {}
        state = SimpleNamespace(mode="default", todos=(), effort=None, agents=self.agents)
        recorder = SimpleNamespace(ledger=self.said.ledger, timeline=self.timeline, state=state, session="s")
        access = SimpleNamespace(price=lambda model, usage: self.price(model, usage))
        connection = SimpleNamespace(client=self.client)
        parts: Any = SimpleNamespace(recorder=recorder, connection=connection)
        self.inspection = Inspection(
            self.context, Settings(), access.price, parts.recorder, parts.connection, lambda: ()
        )

    def fill(self, rounds: int, lines: int = 400) -> Inspected:
        """Requests with some work on each, and what the provider said of the sizes."""
        for number in range(rounds):
            self.said.user(f"Request {number}: never change `price_{number}` of src/f{number % 5}.py.")
            text = f"rule {number} decides here\n" * (lines + number % 7)
            item = self.said.call("read_file", {"path": f"src/f{number % 5}.py"}, text)
            self.said.tell(FileRead(f"src/f{number % 5}.py", "sha", 1, lines, item))
            self.said.call("run_command", {"command": f"make t{number}"}, f"ok {number}\n" * 9)
            self.said.answer(f"The rule of request {number} is in `src/f{number % 5}.py`.", "Let me see. " * 3)
            usage = Usage(input_total=1_500 + 400 * number, cache_read=1_000 + (0 if number == 3 else 390 * number))
            self._tell(number + 1, ModelResponded(f"m{number}", (), Origin("", "", "m"), usage=usage))
        return self

    def without_price(self) -> Inspected:
        """Of a model whose price nobody knows."""
        self.price = lambda model, usage: None
        return self

    def rewritten(self) -> Inspected:
        """A compaction and a cache miss on the record."""
        self._tell(3, CacheBreak("the cache expired: 12 minutes between two requests", 2_400))
        self._tell(5, CompactionStarted("k9", "auto", "chain", 30_000))
        view = self.said.ledger.view
        made = CompactionCompleted(
            "k9", view, 30_000, 9_000, 40, 12, ("summary",), f"{SUMMARY} [u1, t2]", anchors=12, anchors_kept=12
        )
        self._tell(5, made)
        self.said.tell(made)
        return self

    def delegated(self) -> Inspected:
        """Three subagents: one is done, one works, and one in the background reported, at an unknown price."""
        told = (("explore", "Find the price rule", "Found in src/f3.py. " * 60), ("general", "Write the test", ""))
        for number, (profile, title, report) in enumerate(told, 1):
            call = self.said.call("task", {"description": title, "prompt": title, "agent": profile}, report)
            self._agent(f"agent-{number}", call, profile, title, done=bool(report))
        call = self.said.call("task", {"description": "Review it"}, "agent-3 (review) is running in the background.")
        self._agent("agent-3", call, "review", "Review it", cost=None)
        report = note("[agent-3 (review) is done: 4 steps.]\nNothing to change.")
        self.said.tell(ItemStarted("n90", "note"), ItemCompleted("n90", "ok", (TextPart(report),)))
        return self

    def _agent(
        self, name: str, call: str, profile: str, title: str, *, done: bool = True, cost: str | None = "0.0125"
    ) -> None:
        budget = Budget((), 12_000, 12_500, 60_000, 64_000, 4_000, "ok", "measured" if done else "estimated")
        made = AgentRecord(AgentStarted(name, call, title, profile, "fake/model"), 1, 1.0, "fake/model", budget=budget)
        made.steps, made.outcome = 4, "done" if done else None
        made.tally = Tally().plus(Usage(input_total=13_000, output_total=700), Decimal(cost) if cost else None)
        self.agents[name] = made

    def _tell(self, turn: int, body: Any) -> None:
        self.timeline.apply(Event(1, float(turn), "s", turn, body))

    def draft(self) -> PlanDraft:
        client: Any = self.client
        job = Job("manual", "plan", ModelRequest((), (), ()), client, SessionFacts())
        compaction = Compaction(self.context, self.said.ledger, job, CompactionOptions(keep_recent=4))
        return PlanDraft(compaction, self.price)

    async def write(self) -> Summary:
        return Summary(SUMMARY)


def cache_history(requests: int, *, reports: bool = True) -> CacheHistory:
    """What the cache served in a session of so many requests: breaks of every kind, on the way."""
    made = CacheHistory()
    made.apply(Event(1, 1_700_000_000.0, "s", 0, SessionStarted("/proj", "fake/model", "default", "0")))
    tell_requests(made, 0, requests, reports=reports)
    return made


def tell_requests(made: CacheHistory, first: int, end: int, *, reports: bool = True) -> None:
    """Requests ``first`` to ``end`` of such a session."""
    breaks = {
        7: CacheBreak(
            "the tools changed: added mcp__hub__say", 9_100, "tools", "tool descriptions of hub", "mcp__hub__say"
        ),
        11: CacheBreak("the cache expired: 12 minutes between two requests", 13_000, "expired"),
        14: CacheBreak("the project instructions changed", 15_800, "instructions", "project instructions"),
        17: CacheBreak("you dropped 1 of the conversation's items", 12_300, "edit", "tool results", "t2.result"),
    }

    def tell(number: int, body: Any) -> None:
        made.apply(Event(number, 1_700_000_000.0 + 40 * number, "s", 1 + number // 3, body))

    for number in range(first, end):
        size = 6_000 + 900 * (number % 200)
        found = breaks.get(number % 60) if number else None
        read = (size - 900 - (found.tokens if found is not None else 0)) if number else 0
        usage = Usage(size, max(0, read), size - max(0, read), 300) if reports else Usage(size, output_total=300)
        tell(number, ModelResponded(f"m{number}", (), Origin("", "", "m"), usage=usage))
        if found is not None:
            tell(number, found)
        tell(number, StepEnded(number, usage, price("fake/model", usage)))
