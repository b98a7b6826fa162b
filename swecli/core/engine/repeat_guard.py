"""What is done about a model that goes round in circles: it is told, and then the user decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from swecli.core.context_management.compaction.stubs import target_of
from swecli.core.engine.answer import Call
from swecli.core.engine.message_queue import MessageQueue
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.repeats import RepeatDetector, Repetition, SeenCall, normalised
from swecli.core.engine.seen_files import is_pointer
from swecli.core.ports import Asker
from swecli.core.protocol.events import Notice, Option, Question
from swecli.core.protocol.messages import ToolResultPart
from swecli.core.tools.registry import ToolRegistry

STOP = "Stop"
GO_ON = "Go on"

Verdict = Literal["goes on", "stopped by the user", "nobody to ask"]


class RepeatGuard:
    """Watches the calls of one turn. ``note`` is what the next request has to tell the model; empty when there is
    nothing."""

    def __init__(self, recorder: Recorder, tools: ToolRegistry, asker: Asker) -> None:
        self._recorder = recorder
        self._tools = tools
        self._asker = asker
        self._detector = RepeatDetector()
        self._shown: dict[str, str] = {}
        self._changes = len(recorder.ledger.changes)
        self._told: tuple[str, ...] = ()
        self.note = ""
        self.reason = ""
        """Why the turn should end, for people."""

    def forget_looking(self) -> None:
        """Results left the model's view: it may look at things again."""
        self._detector.forget_looking()

    def user_spoke(self) -> None:
        """The user said something: what the model does now, it was asked to do."""
        self._detector.reset()
        self.note = ""

    async def check(self, calls: Sequence[Call]) -> Verdict:
        """Look at the finished calls of a step; tell the model, or ask the user whether it may go on."""
        found = self._observe(calls)
        self.note = _note(found) if found else ""
        if found is None:
            return "goes on"
        if not found.asks:
            self._tell(found)
            return "goes on"
        return await self._ask(found)

    def _observe(self, calls: Sequence[Call]) -> Repetition | None:
        """The longest circle that a call of this step is part of."""
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
        if is_pointer(result):  # a re-read shows the same text as the read that it points to
            seen = SeenCall(seen.tool, seen.arguments, self._shown.get(seen.key, result), about=about)
        elif not seen.failed:
            self._shown[seen.key] = result
        return self._detector.observe(seen)

    def _tell(self, found: Repetition) -> None:
        if found.about != self._told:
            self._told = found.about
            text = f"The model repeats itself: {_described(found)}. It was told."
            self._recorder.emit(Notice(text, "info", "loop"))

    async def _ask(self, found: Repetition) -> Verdict:
        self.reason = f"the model went round in circles: {_described(found)}"
        question = Question(
            f"The model goes round in circles: {_described(found)}. Should it go on?",
            (
                Option(STOP, "ends the turn; what was done is kept"),
                Option(GO_ON, "you are asked again if it does not help"),
            ),
            header="Repetition",
        )
        answers = await self._asker.ask("", (question,))
        if answers is None:
            return "nobody to ask"
        words = " ".join(answers[0]).strip() if answers else STOP
        if words == STOP:
            return "stopped by the user"
        self._detector.reset()
        self._told = ()
        if words and words != GO_ON:
            MessageQueue(self._recorder).add(words, steer=True)
        return "goes on"


def _described(found: Repetition) -> str:
    calls = ", then ".join(found.about)
    match found.kind:
        case "failing":
            return f"{calls} failed in the same way {found.rounds} times"
        case "looking" | "running":
            return f"{calls} gave the same {found.rounds} times"


def _note(found: Repetition) -> str:
    done = f"You go round in circles: {_described(found)}. Doing it once more will not change that."
    match found.kind:
        case "failing":
            advice = "Read the error, then change the arguments or the approach, or say what stops you."
        case "looking":
            advice = "You have these results. Work with them, look somewhere else, or say what you are missing."
        case "running":
            advice = "If you wait for something, wait longer in one command; else do something different."
    return f"{done} {advice}"
