"""Repeated calls: detected, reported to the model, then to the user."""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.context_management.compaction.clearing import target_of
from swecli.core.context_management.note_topics import LOOP
from swecli.core.engine.companion import Companion, Joined, Step, TurnStopped
from swecli.core.engine.model_call import Call
from swecli.core.engine.notes import Notes
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.results import is_pointer
from swecli.core.engine.work import enqueue
from swecli.core.llm.json_values import parse_json
from swecli.core.ports import Asker
from swecli.core.protocol.commands import Steer
from swecli.core.protocol.events import CompactionCompleted, Event, Notice
from swecli.core.protocol.messages import ToolResultPart
from swecli.core.protocol.request_events import Option, Question
from swecli.core.tools.registry import ToolRegistry
from swecli.lazy_pattern import lazy_pattern

Kind = Literal["failing", "looking", "running"]
"""Kind of a loop: a call that fails; calls that only read inside the workspace; calls that partly run a program or ask
a server, and so may be waiting for something."""

LONGEST_CYCLE = 3
NOTED = {"failing": 3, "looking": 3, "running": 6}
"""Rounds after which the model gets a note."""
ASKED = {"failing": 5, "looking": 5, "running": 20}
"""Rounds after which the user decides whether it continues."""

SCATTERED = 1
"""Rounds more for a call that is repeated among others: they may be why it is looked at again."""

_KEPT = LONGEST_CYCLE * (max(ASKED.values()) + 1)
_HEADER = lazy_pattern(r"\Aexit status (-?\d+) after \d+\.\d+ s$", re.MULTILINE)
_VARYING = lazy_pattern(r"\b\d+\.\d+ ?(?:s|ms|seconds?)\b|\b0x[0-9a-f]+\b|\b(?=[a-f]*\d)[0-9a-f]{8,}\b", re.IGNORECASE)
"""Differences between two runs that fail for the same reason: durations with fractions, addresses, ids."""


class SeenCall(Struct, frozen=True):
    """One finished call. ``waits``: its result may change without any action of the agent."""

    tool: str
    arguments: str
    result: str
    failed: bool = False
    waits: bool = False
    about: str = ""
    """Tool and target on one line, for people."""

    @property
    def key(self) -> str:
        return f"{self.tool} {normalised(self.arguments)}"

    @property
    def digest(self) -> str:
        """Hash of the result, ignoring the usual differences between two identical runs."""
        text = _HEADER.sub(r"exit status \1", self.result)
        if self.failed:
            text = _VARYING.sub("*", text)
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Repetition(Struct, frozen=True):
    """A loop that includes the newest call: ``rounds`` repetitions of the calls in ``about``, in sequence unless
    ``scattered`` among others."""

    kind: Kind
    rounds: int
    about: tuple[str, ...]
    scattered: bool = False

    @property
    def asks(self) -> bool:
        return self.rounds >= ASKED[self.kind] + (SCATTERED if self.scattered else 0)


class RepeatDetector:
    """Finds loops in the finished calls of a turn, which it must get in the model's order."""

    def __init__(self) -> None:
        self._failures: Counter[tuple[str, str]] = Counter()
        self._recent: list[tuple[str, str, SeenCall]] = []
        self._made: Counter[int] = Counter()
        """How often each call gave this result, by their hash."""
        self._in_view: Counter[int] = Counter()
        """The same, since the last compaction."""
        self._span: dict[int, SeenCall] = {}
        """The calls since the last compaction."""
        self._stale_spans = 0
        """Number of consecutive compactions before which no call gave anything new."""

    def reset(self) -> None:
        """Start again after a change: later calls repeat nothing from before it."""
        self._failures.clear()
        self._recent.clear()
        self._made.clear()
        self._in_view.clear()
        self._span.clear()
        self._stale_spans = 0

    def compacted(self) -> Repetition | None:
        """Forget lookups whose results the model no longer sees: repeating them is not a loop. Compaction after
        compaction without anything new is one, of any length: the same things are read as often as they are
        forgotten."""
        self._recent.clear()
        self._in_view.clear()
        span, self._span = self._span, {}
        if not span:
            return None
        least = min(self._made[mark] for mark in span)
        self._stale_spans = self._stale_spans + 1 if least > 1 else 0
        rounds = min(least, self._stale_spans + 1)
        kind: Kind = "running" if any(call.waits for call in span.values()) else "looking"
        about = list(dict.fromkeys(call.about for call in span.values()))
        if len(about) > LONGEST_CYCLE:
            about[LONGEST_CYCLE:] = [f"{len(about) - LONGEST_CYCLE} more"]
        return Repetition(kind, rounds, tuple(about)) if rounds >= NOTED[kind] else None

    def observe(self, call: SeenCall) -> Repetition | None:
        """Add a call. Returns the loop that it completes once more, from the round on at which it is noted."""
        key, digest = call.key, call.digest
        mark = hash((key, digest))
        self._made[mark] += 1
        self._in_view[mark] += 1
        self._span[mark] = call
        self._recent.append((key, digest, call))
        del self._recent[:-_KEPT]
        if call.failed:
            self._failures[key, digest] += 1
            rounds = self._failures[key, digest]
            if rounds >= NOTED["failing"]:
                return Repetition("failing", rounds, (call.about,))
        return self._cycle() or self._scattered(call, self._in_view[mark])

    def _scattered(self, call: SeenCall, rounds: int) -> Repetition | None:
        """The loop of a call among others, whatever their order."""
        kind: Kind = "running" if call.waits else "looking"
        return Repetition(kind, rounds, (call.about,), True) if rounds >= NOTED[kind] + SCATTERED else None

    def _cycle(self) -> Repetition | None:
        marks = [entry[:2] for entry in self._recent]
        for period in range(1, LONGEST_CYCLE + 1):
            rounds = _rounds(marks, period)
            if rounds < 2:
                continue
            calls = [entry[2] for entry in self._recent[-period:]]
            kind: Kind = "running" if any(call.waits for call in calls) else "looking"
            if rounds >= NOTED[kind]:
                return Repetition(kind, rounds, tuple(call.about for call in calls))
            return None
        return None


def _rounds(marks: list[tuple[str, str]], period: int) -> int:
    """Number of consecutive repetitions of the last ``period`` marks at the end."""
    last = marks[-period:]
    rounds = 0
    while marks[len(marks) - (rounds + 1) * period : len(marks) - rounds * period] == last:
        rounds += 1
        if (rounds + 1) * period > len(marks):
            break
    return rounds


def normalised(arguments: str) -> str:
    """Arguments without irrelevant differences: order and spacing of the JSON, blanks around texts, nulls, and spelling
    of paths."""
    try:
        data = parse_json(arguments or "{}")
    except ValueError:
        return arguments.strip()
    return json.dumps(_plain(data), sort_keys=True, ensure_ascii=False)


def _plain(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value)
        return {key: _plain(one, key) for key, one in entries.items() if one is not None}
    if isinstance(value, list):
        return [_plain(one) for one in cast("list[Any]", value)]
    if not isinstance(value, str):
        return value
    text = value.strip()
    if name == "path" and text:
        return posixpath.normpath(text)
    return " ".join(text.split()) if name == "command" else text


STOP = "Stop"
CONTINUE = "Continue"


class RepeatGuard(Companion):
    """Watches the calls of each turn, and tells the model about a loop before the next request."""

    watches = (CompactionCompleted,)

    def __init__(self, recorder: Recorder, tools: ToolRegistry, asker: Asker, notes: Notes) -> None:
        self._recorder = recorder
        self._tools = tools
        self._asker = asker
        self._detector = RepeatDetector()
        self._shown: dict[str, str] = {}
        self._changes = len(recorder.ledger.changes)
        self._reported: tuple[str, ...] = ()
        self._notes = notes
        self.due = False

    def watch(self, event: Event) -> None:
        """Results have left the model's view."""
        self.due = True

    async def joined(self, message: Joined) -> None:
        """Start again after a user message, because the model now acts on the user's request."""
        self._detector.reset()
        if message.first:
            self._shown.clear()
            self._changes, self._reported, self.due = len(self._recorder.ledger.changes), (), False
        else:
            self._notes.withdraw(LOOP)

    async def before_request(self) -> None:
        """Allow repeated lookups after results left the model's view, unless that repeats without an end."""
        self.due = False
        await self._judge(self._detector.compacted())

    async def after_step(self, step: Step) -> None:
        """Check the finished calls; note a loop for the model, or ask the user whether to continue."""
        await self._judge(self._observe(step.calls))

    async def _judge(self, repetition: Repetition | None) -> None:
        self._notes.withdraw(LOOP)
        if repetition is None:
            return
        self._notes.add("Repetition", _note(repetition), LOOP)
        if repetition.asks:
            await self._ask(repetition)
        else:
            self._tell(repetition)

    def _observe(self, calls: Sequence[Call]) -> Repetition | None:
        """The longest loop that includes a call of this step."""
        changes = len(self._recorder.ledger.changes)
        if changes != self._changes:
            self._changes = changes
            self._detector.reset()
        found = [one for call in calls if (one := self._seen(call)) is not None]
        return max(found, key=lambda one: (one.asks, one.rounds), default=None)

    def _seen(self, call: Call) -> Repetition | None:
        record = self._recorder.ledger.items.get(call.item)
        if record is None or record.status == "interrupted":
            return None
        result = next((part.text for part in record.parts if isinstance(part, ToolResultPart)), "")
        result = self._recorder.ledger.stored.get(call.item, result)  # equal for equal texts, whatever excerpt fits
        tool = self._tools.get(call.part.name)
        same = replace(call.part, arguments=normalised(call.part.arguments))
        about = " ".join(filter(None, (call.part.name, target_of(same))))
        seen = SeenCall(
            tool=call.part.name,
            arguments=call.part.arguments,
            result=result,
            failed=record.status != "ok",
            waits=tool is not None and tool.result_kind == "output",
            about=about,
        )
        if is_pointer(result):  # a re-read shows the same text as the read it refers to
            seen = SeenCall(seen.tool, seen.arguments, self._shown.get(seen.key, result), about=about)
        elif not seen.failed:
            self._shown[seen.key] = result
        return self._detector.observe(seen)

    def _tell(self, found: Repetition) -> None:
        if found.about != self._reported:
            self._reported = found.about
            text = f"The model is in a loop: {_described(found)}. It was asked to change its approach."
            self._recorder.emit(Notice(text, "info", "loop"))

    async def _ask(self, found: Repetition) -> None:
        reason = f"stopped because the model was in a loop: {_described(found)}"
        question = Question(
            f"The model is in a loop: {_described(found)}. Continue?",
            (
                Option(STOP, "end the turn; its changes are kept"),
                Option(CONTINUE, "swecli asks again if the loop continues"),
            ),
            header="Repetition",
        )
        answers = await self._asker.ask("", (question,))
        if answers is None:
            raise TurnStopped("limit", f"{reason}; no user to ask", "repetition")
        words = " ".join(answers[0]).strip() if answers else STOP
        if words == STOP:
            raise TurnStopped("interrupted", reason, "repetition")
        self._detector.reset()
        self._reported = ()
        if words and words != CONTINUE:
            enqueue(self._recorder, Steer(words))


def _described(found: Repetition) -> str:
    calls = ", then ".join(found.about)
    match found.kind:
        case "failing":
            return f"{calls} failed the same way {found.rounds} times"
        case "looking" | "running":
            return f"{calls} gave the same result {found.rounds} times"


def _note(found: Repetition) -> str:
    done = f"You are in a loop: {_described(found)}. Repeating it will not change the result."
    match found.kind:
        case "failing":
            advice = "Read the error, then change the arguments or the approach, or say what blocks you."
        case "looking":
            advice = "You have these results. Work with them, look somewhere else, or say what you are missing."
        case "running":
            advice = "If you are waiting for something, wait longer in one command; otherwise do something different."
    return f"{done} {advice}"
