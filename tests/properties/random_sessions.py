"""Random sessions: what a user, a model and a summariser might do, and what must hold whatever they do."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hypothesis import strategies as st

from swecli.core.context_management.budget import edge
from swecli.core.context_management.compaction.options import CompactionOptions
from swecli.core.context_management.ledger import Ledger
from swecli.core.llm.types import (
    Failed,
    Finished,
    ModelInfo,
    ModelRequest,
    ProviderError,
    StreamEvent,
)
from swecli.core.protocol.commands import Compact, RedoCompaction, Rewind, SetMode, Submit, UndoCompaction
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionFailed,
    CompactionRedone,
    CompactionUndone,
    ModelResponded,
    Notice,
    Rewound,
    StepStarted,
    TurnEnded,
)
from swecli.core.protocol.messages import Message, Origin, Part, Response, Stop, TextPart, ToolCallPart, Usage
from swecli.features.lab.prefix_cache import Framed, fixed_blocks, provider_tokens
from tests.core.context_management.test_projection import check_valid
from tests.core.engine.support import Bench, bench, until
from tests.support.reduced import check_written

TOOLS = ("read_file", "write_file", "run_command")
Summary = Literal["good", "empty", "call", "error", "cut", "long"]
SUMMARY = "## Goal\nDo what the user wants.\n## Done\nRead and wrote files.\n## Next\nThe rest."
WORDS = "some words that mean nothing in particular but take room\n"
MESSAGE_OVERHEAD = 5


@dataclass(frozen=True)
class Say:
    """A turn: the user's words, then an answer with calls for each row of result sizes (characters)."""

    words: int
    steps: tuple[tuple[tuple[str, int], ...], ...]


@dataclass(frozen=True)
class Do:
    """Something besides a turn."""

    what: Literal["compact", "undo", "redo", "rewind", "mode", "ask"]
    words: int = 1
    """Of a question beside the conversation."""


@dataclass(frozen=True)
class Plan:
    """A whole session. ``factor`` is the provider's tokens for one of ours, ``silent`` reports no usage.
    ``beside`` is the window of a model of its own for summaries and questions; None = the one at hand does it."""

    window: int
    factor: float
    actions: tuple[Say | Do, ...]
    summaries: tuple[Summary, ...]
    strategy: str = "chain"
    silent: bool = False
    beside: int | None = None


_CALLS = st.lists(
    st.tuples(st.sampled_from(TOOLS), st.sampled_from([0, 40, 400, 3_000, 9_000])), min_size=1, max_size=3
)
_SAY = st.builds(
    Say,
    st.sampled_from([1, 5, 30, 200, 900, 60_000]),
    st.lists(_CALLS.map(tuple), max_size=7).map(tuple),
)
_DO = st.builds(
    Do, st.sampled_from(["compact", "undo", "redo", "rewind", "mode", "ask"]), st.sampled_from([1, 3_000, 60_000])
)

plans = st.builds(
    Plan,
    window=st.sampled_from([8_000, 16_000, 32_000, 64_000]),
    factor=st.floats(0.8, 1.25),
    actions=st.lists(st.one_of(_SAY, _SAY, _SAY, _DO), min_size=2, max_size=14).map(tuple),
    summaries=st.lists(st.sampled_from(["good", "good", "empty", "call", "error", "cut", "long"]), max_size=12).map(
        tuple
    ),
    strategy=st.sampled_from(["chain", "chain", "truncation", "summarization"]),
    silent=st.booleans(),
    beside=st.sampled_from([None, None, 6_000, 20_000]),
)


class RandomModel:
    """Answers as the plan says. ``before`` is called with each request, summaries included."""

    def __init__(self, plan: Plan, window: int | None = None) -> None:
        window = window or plan.window
        self.info = ModelInfo("random", "model", window, window // 8)
        self._plan = plan
        self._tokens = provider_tokens(plan.factor)
        self._summaries = list(plan.summaries)
        self.steps: list[tuple[tuple[str, int], ...]] = []
        self.outputs: dict[str, str] = {}
        self.requests: list[ModelRequest] = []
        self.sizes: list[int] = []
        self.summaries = self.questions = 0
        self._number = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        blocks = (Framed(message.role, part) for message in request.messages for part in message.parts)
        size = sum(map(self._tokens, (*fixed_blocks(request)[0], *blocks)))
        assert self.info.window is not None
        summary = request.messages[-1].id.startswith("compaction")
        # A summary of the whole conversation may use what is kept for a turn's answer; it goes by its likely size, as
        # there is another way where it is refused.
        assert summary or size < edge(0.98, self.info.window - self.info.window // 8), (size, request.messages[-1].id)
        if size > self.info.window:
            yield Failed(ProviderError("context_overflow", "too long"))
            return
        if request.messages[-1].id == "question":
            self.questions += 1
            yield self._finished((TextPart("An answer."),), None)
            return
        if summary:
            self.summaries += 1
            async for event in self._summary(self._summaries.pop(0) if self._summaries else "good"):
                yield event
            return
        self.requests.append(request)
        self.sizes.append(size)
        self._number += 1
        parts: list[Part] = [TextPart(f"Step {self._number}. {WORDS}")]
        for place, (tool, output) in enumerate(self.steps.pop(0) if self.steps else ()):
            target = f"t{self._number}-{place}"
            self.outputs[target] = f"result {target}\n" + WORDS * (output // len(WORDS))
            arguments = f'{{"target": "{target}"}}'
            parts.append(ToolCallPart(f"c{target}", tool, arguments))
        written = sum(self._tokens(Framed("assistant", part)) for part in parts)
        yield self._finished(tuple(parts), None if self._plan.silent else Usage(size, output_total=written))

    async def _summary(self, kind: Summary) -> AsyncIterator[StreamEvent]:
        if kind == "error":
            yield Failed(ProviderError("bad_request", "refused"))
        elif kind == "cut":
            yield Failed(ProviderError("truncated", "cut"))
        elif kind == "call":
            yield self._finished((ToolCallPart("c", "read_file", "{}"),), None)
        else:
            text = {"good": SUMMARY, "empty": " ", "long": WORDS * 4_000}[kind]
            yield self._finished((TextPart(text),), None)

    def _finished(self, parts: tuple[Part, ...], usage: Usage | None) -> Finished:
        response = Response(Origin("random", "random", "model"), Stop("end"), usage)
        return Finished(Message("assistant", parts, response=response))

    async def close(self) -> None:
        """Nothing to release."""


EDITS = (CompactionCompleted, CompactionUndone, CompactionRedone, Rewound)


@dataclass
class Witness:
    """Looks on while a plan is carried out, and fails when something is not as it must be."""

    bench: Bench
    model: RandomModel
    plan: Plan
    rewound: set[str] = field(default_factory=set)
    _checked: int = 0
    _rewinds: int = 0

    def check(self) -> None:
        """After each action."""
        self._requests()
        self._conserved()
        check_valid(tuple(self.bench.session.view.messages))

    def _requests(self) -> None:
        """No request above the block line, each one valid and, without a logged edit, a continuation of the last."""
        for body in self.bench.bodies(StepStarted):
            # A blocked step is announced with its budget and ends before it is sent.
            assert body.budget.effective == self.plan.window - self.plan.window // 8
        block = edge(0.98, self.plan.window - self.plan.window // 8)
        for at in range(self._checked, len(self.model.requests)):
            request = self.model.requests[at]
            check_valid(request.messages)
            assert self.model.sizes[at] < block, (self.model.sizes[at], block)
            if at and at > self._checked:
                before = self.model.requests[at - 1]
                if not self._edited_between(at):
                    check_prefix(before, request)
        self._checked = len(self.model.requests)

    def _edited_between(self, at: int) -> bool:
        steps = [n for n, event in enumerate(self.bench.events) if isinstance(event.body, StepStarted)]
        sent = [n for n in steps if self._answered(n)]
        first, second = sent[at - 1], sent[at]
        return any(isinstance(event.body, EDITS) for event in self.bench.events[first:second])

    def _answered(self, number: int) -> bool:
        """Whether the step that begins here reached the model, which answers whatever reaches it: one that is blocked,
        or refused at the door as too long, is announced all the same."""
        later = (event.body for event in self.bench.events[number + 1 :])
        return isinstance(
            next((body for body in later if isinstance(body, StepStarted | ModelResponded)), None), ModelResponded
        )

    def _conserved(self) -> None:
        """Every entry ever made is in the view, named by a summary or stub in it, or was taken back by a rewind, or
        by being blocked."""
        ledger = ledger_of(self.bench)
        entries = list(ledger.entries)
        for back in self.bench.bodies(Rewound)[self._rewinds :]:
            self._rewinds += 1
            self.rewound |= set(entries[entries.index(back.item) :])
        shown = {entry.id for entry in ledger.view} | {source for entry in ledger.view for source in entry.sources}
        lost = set(ledger.entries) - shown - self.rewound
        assert not lost, lost


def check_prefix(before: ModelRequest, now: ModelRequest) -> None:
    """The new request begins with the old one."""
    assert now.tools == before.tools
    assert [block.text for block in now.system] == [block.text for block in before.system]
    assert len(now.messages) >= len(before.messages)
    for old, new in zip(before.messages, now.messages, strict=False):
        assert (old.role, old.parts) == (new.role, new.parts)


def ledger_of(b: Bench) -> Ledger:
    """The session's ledger, which no front-end gets to see."""
    return b.session._recorder.ledger  # pyright: ignore[reportPrivateUsage]


async def carry_out(plan: Plan) -> RandomModel:
    """Run the plan; raises AssertionError where something does not hold."""
    model = RandomModel(plan)
    models = {"random/beside": RandomModel(plan, plan.beside)}
    side = {"summary": "random/beside", "small": "random/beside"} if plan.beside else {}
    options = CompactionOptions(strategy=plan.strategy)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as name:
        script = '[[step]]\ntext = "unused"'
        async with bench(
            script,
            Path(name),
            make_client=lambda name: models.get(name, model),
            compaction=options,
            side_models=side,
        ) as b:
            b.allow_all = True
            b.gates.outputs = model.outputs
            witness = Witness(b, model, plan)
            for number, action in enumerate(plan.actions):
                if isinstance(action, Say):
                    model.steps = list(action.steps)
                    await b.say(f"Request {number}: never touch port {7_000 + number}. " + "word " * action.words)
                else:
                    await _do(b, action, witness, number)
                witness.check()
            await _undo_and_redo(b)
            check_written(b.facts, len(b.facts) * len(plan.actions) // 15)
    return model


async def _do(b: Bench, action: Do, witness: Witness, number: int) -> None:
    ended = (CompactionCompleted, CompactionFailed)
    if action.what == "compact":
        before = sum(len(b.bodies(kind)) for kind in ended)
        b.send(Compact())
        await until(lambda: sum(len(b.bodies(kind)) for kind in ended) > before and not b.session.view.busy)
    elif action.what == "ask":
        await b.session.questions.ask("Answer.", "word " * action.words)
    elif action.what == "mode":
        b.send(SetMode("plan" if number % 2 else "default"))
    elif action.what == "rewind":
        ledger = ledger_of(b)
        users = [entry.id for entry in ledger.view if entry.kind == "live" and ledger.entries[entry.id].kind == "user"]
        if users:
            chosen = users[len(users) // 2]
            before = len(b.bodies(Rewound))
            b.send(Rewind(chosen))
            await until(lambda: len(b.bodies(Rewound)) > before)
            witness.check()
            shown = {entry.id for entry in ledger.view} | {one for entry in ledger.view for one in entry.sources}
            assert not shown & witness.rewound
    else:
        kinds = (CompactionUndone, CompactionRedone, Notice)
        before = sum(len(b.bodies(kind)) for kind in kinds)
        b.send(UndoCompaction() if action.what == "undo" else RedoCompaction())
        await until(lambda: sum(len(b.bodies(kind)) for kind in kinds) > before)


async def _undo_and_redo(b: Bench) -> None:
    """All the way back, as far as it fits, and forth again: byte for byte the same views."""
    views: list[Sequence[Message]] = [tuple(b.session.view.messages)]
    while ledger_of(b).undoable is not None:
        count, said = len(b.bodies(CompactionUndone)), len(b.bodies(Notice))
        b.send(UndoCompaction())
        await until(lambda n=count, m=said: len(b.bodies(CompactionUndone)) > n or len(b.bodies(Notice)) > m)
        if len(b.bodies(CompactionUndone)) == count:
            assert "fit" in b.bodies(Notice)[-1].text
            break
        views.append(tuple(b.session.view.messages))
        check_valid(tuple(views[-1]))
    for view in reversed(views[:-1]):
        count = len(b.bodies(CompactionRedone))
        b.send(RedoCompaction())
        await until(lambda n=count: len(b.bodies(CompactionRedone)) > n)
        assert tuple(b.session.view.messages) == view


def run(plan: Plan) -> RandomModel:
    """``carry_out`` for a test that is no coroutine."""
    return asyncio.run(carry_out(plan))


def ended(b: Bench) -> TurnEnded:
    """The end of the newest turn."""
    return b.bodies(TurnEnded)[-1]


__all__ = ("Do", "Plan", "RandomModel", "Say", "Submit", "plans", "run")
