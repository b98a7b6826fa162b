"""Random histories at the level of ledger and policy, without engine, tools or store: cheap, so that many are tried.

A history is made up from a seed alone. Whatever is said, compacted, undone, redone or taken back in it: every request
that is sent fits and is one that strict providers accept, nothing ever said is lost, what is sent grows at its end
unless an edit was recorded, and undoing and redoing gives back the same bytes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any

from swecli.core.context_management.compaction.clearing import Clearing, tidy
from swecli.core.context_management.compaction.options import CompactionOptions, EntrySizes, Trigger
from swecli.core.context_management.compaction.package import SessionFacts
from swecli.core.context_management.compaction.selection import covered
from swecli.core.context_management.compaction.transaction import Compacted, Compaction, Job
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.counter import CharCounter
from swecli.core.context_management.gateway import RequestGateway
from swecli.core.context_management.ledger import Ledger
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.projection import project
from swecli.core.llm.types import Failed, Finished, ModelInfo, ModelRequest, ProviderError, StreamEvent
from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionRedone,
    CompactionUndone,
    FileChanged,
    FileRead,
    Rewound,
)
from swecli.core.protocol.messages import Message, Origin, Part, Response, Stop, TextPart, ToolCallPart
from tests.core.context_management.test_projection import check_valid
from tests.support.said import Said

SUMMARIES = ("good", "good", "good", "empty", "blank", "call", "error", "cut", "long", "quoting")
GOOD = "## Goal\nWhat the user wants.\n## Done\nSome of it.\n## Next\nThe rest."
WORDS = "what is written here means nothing and takes room\n"
STRATEGIES = ("chain", "chain", "chain", "summarization", "truncation", "importance")


class RandomSummariser:
    """A model that writes summaries, and often fails at it."""

    def __init__(self, info: ModelInfo, chance: random.Random) -> None:
        self.info = info
        self._chance = chance

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        match self._chance.choice(SUMMARIES):
            case "error":
                yield Failed(ProviderError("server", "refused"))
            case "cut":
                yield Failed(ProviderError("truncated", "cut"))
            case "call":
                yield self._finished(ToolCallPart("c", "read_file", "{}"))
            case "long":
                yield self._finished(TextPart(WORDS * 2_000))
            case "quoting":
                yield self._finished(TextPart(f"{GOOD}\n<|endoftext|>\u0000\ud800 {request.messages[-1].text[:200]}"))
            case kind:
                yield self._finished(TextPart({"good": GOOD, "empty": "", "blank": " \n"}[kind]))

    def _finished(self, part: Part) -> Finished:
        response = Response(Origin("p", "p", "m"), Stop("end"), None)
        return Finished(Message("assistant", (part,), response=response))

    async def close(self) -> None:
        """Nothing to release."""


class History:
    """One history, played and watched."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        window = self.chance.choice([4_096, 8_000, 16_000, 32_000])
        self.info = ModelInfo("p", "m", window, window // self.chance.choice([5, 8]))
        self.said = Said()
        self.context = ContextManager((), monitor=TokenMonitor(CharCounter()))
        strategy = self.chance.choice(STRATEGIES)
        self.options = CompactionOptions(strategy=strategy)  # type: ignore[arg-type]
        self.model = RandomSummariser(self.info, self.chance)
        self.rewound: set[str] = set()
        self.dropped: set[str] = set()
        """What compactions by importance left out: it is in the record only."""
        self.sent: tuple[tuple[Message, ...], int] | None = None
        """Messages of the newest request, and how often the view had been edited then."""
        self.requests = self.blocked = self.compactions = self.clearings = 0

    @property
    def ledger(self) -> Ledger:
        return self.said.ledger

    def play(self) -> None:
        """Up to sixty actions, each followed by every check."""
        self.said.user("Build it. Never touch port 7001.")
        for _ in range(self.chance.randint(5, 60)):
            kind = self.chance.choices(
                ("step", "user", "compact", "clear", "undo", "redo", "rewind"), (60, 14, 4, 4, 5, 5, 3)
            )[0]
            getattr(self, f"_{kind}")()
            self._conserved()
        self._there_and_back()

    # --- what happens -------------------------------------------------------------------------------------

    def _user(self) -> None:
        self.said.user(f"Request {self.requests}. " + WORDS * self.chance.choice([0, 0, 1, 5, 40]))

    def _step(self) -> None:
        """One request and its answer, behind the same gate as in a session."""
        prepared = self.context.prepare(project(self.ledger), info=self.info)
        if prepared.budget.level in ("compact", "block"):
            self._compact("auto")
            prepared = self.context.prepare(project(self.ledger), info=self.info)
        if prepared.blocked:
            self.blocked += 1
            return
        assert prepared.budget.used < 0.98 * prepared.budget.effective + 1, prepared.budget
        messages = prepared.request.messages
        check_valid(messages)
        if self.sent is not None and self.sent[1] == self.ledger.rewrites:
            before = self.sent[0]
            assert messages[: len(before)] == before
        self.sent = (messages, self.ledger.rewrites)
        self.requests += 1
        self._answer()

    def _answer(self) -> None:
        reasoning = "Let me think. " * self.chance.choice([0, 0, 3, 60])
        if self.chance.random() < 0.25:
            self.said.answer(f"Answer {self.requests}. " + WORDS * self.chance.choice([0, 1, 10]), reasoning)
            return
        for _ in range(self.chance.choice([1, 1, 1, 2, 3])):
            self._call()

    def _call(self) -> None:
        number = self.chance.randint(1, 12)
        path, text = f"src/f{number}.py", f"{number}\n" + WORDS * self.chance.choice([0, 1, 8, 40, 90])
        match self.chance.choice(("read_file", "read_file", "write_file", "run_command", "update_todos")):
            case "write_file":
                item = self.said.call("write_file", {"path": path, "content": text}, "written")
                self.said.tell(FileChanged(path, None, f"sha{self.requests}", item))
            case "run_command":
                self.said.call("run_command", {"command": f"make t{number}"}, text, self.chance.choice([0, 0, 1]))
            case "read_file":
                item = self.said.call("read_file", {"path": path}, text)
                self.said.tell(FileRead(path, f"sha{number}", 1, text.count("\n") + 1, item))
            case tool:
                self.said.call(tool, {"todos": [WORDS]}, "noted")

    def _compact(self, trigger: Trigger = "manual") -> None:
        prepared = self.context.prepare(project(self.ledger), info=self.info)
        item = f"k{self.said.next_id()}"
        forced = prepared.budget.level == "block"
        job = Job(trigger, item, prepared.request, self.model, SessionFacts(), forced=forced)
        before, view = project(self.ledger), self.ledger.view
        gateway = RequestGateway(self.context, sleep=_no_wait)
        outcome = finish(Compaction(self.context, self.ledger, job, self.options, gateway).run())
        assert self.ledger.view == view  # nothing changes before it is recorded
        if not isinstance(outcome, Compacted):
            assert outcome.reason
            return
        self.compactions += 1
        if self.options.strategy == "importance":
            self.dropped |= set(covered(view)) - set(covered(outcome.view))
        self._take(item, outcome.view)
        assert outcome.result.after_tokens < outcome.result.before_tokens
        self._undo()
        assert project(self.ledger) == before
        self._redo()
        assert self.ledger.view == outcome.view

    def _clear(self) -> None:
        sizes = EntrySizes(self.context.monitor, self.info)
        found: Clearing = tidy(self.ledger, self.ledger.view, sizes, (), self.chance.choice([0, 500, 4_000]))
        if found.cleared:
            self.clearings += 1
            self._take(f"k{self.said.next_id()}", found.view)

    def _take(self, item: str, view: tuple[ViewEntry, ...]) -> None:
        self.said.tell(CompactionCompleted(item, view, 0, 0, 0, 0, ()))
        check_valid(project(self.ledger))

    def _undo(self) -> None:
        if self.ledger.undoable is not None:
            self.said.tell(CompactionUndone(self.ledger.undoable))

    def _redo(self) -> None:
        if self.ledger.redoable is not None:
            self.said.tell(CompactionRedone(self.ledger.redoable))

    def _rewind(self) -> None:
        users = [
            one.id for one in self.ledger.view if one.kind == "live" and self.ledger.entries[one.id].kind == "user"
        ]
        if len(users) > 1:
            chosen = self.chance.choice(users[1:])
            entries = list(self.ledger.entries)
            self.said.tell(Rewound(chosen))
            self.rewound |= set(entries[entries.index(chosen) :])

    # --- what must hold -----------------------------------------------------------------------------------

    def _conserved(self) -> None:
        shown = {one.id for one in self.ledger.view} | {source for one in self.ledger.view for source in one.sources}
        assert not set(self.ledger.entries) - shown - self.rewound - self.dropped
        assert not shown & self.rewound

    def _there_and_back(self) -> None:
        """All the way back and forth again, and from the record alone: the same messages, the same measure."""
        seen = [project(self.ledger)]
        while self.ledger.undoable is not None:
            self._undo()
            seen.append(project(self.ledger))
            check_valid(seen[-1])
        for messages in reversed(seen[:-1]):
            self._redo()
            assert project(self.ledger) == messages
        again = Ledger()
        for event in self.said.events:
            again.apply(event)
        assert again.view == self.ledger.view
        assert project(again) == project(self.ledger)
        fresh = ContextManager((), monitor=TokenMonitor(CharCounter())).measure(project(again), self.info)
        known = self.context.measure(project(self.ledger), self.info)
        assert (fresh.used, fresh.components) == (known.used, known.components)


def finish(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that waits for nothing but itself; a loop only where it does."""
    return asyncio.run(work)


async def _no_wait(_seconds: float) -> None:
    return None


def play(seeds: Sequence[int]) -> list[History]:
    """Play the histories of these seeds; a failure names its seed."""
    played: list[History] = []
    for seed in seeds:
        history = History(seed)
        try:
            history.play()
        except Exception as error:
            error.add_note(f"history {seed}: repeat it with SWECLI_HISTORY={seed}")
            raise
        played.append(history)
    return played


__all__ = ("History", "play")
