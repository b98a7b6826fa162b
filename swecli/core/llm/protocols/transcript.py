"""The parts of an answer in their order, and the stream events that tell of them."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from swecli.core.llm.protocols.drafts import AnyDraft, CallDraft, Draft, ReasoningDraft, TextDraft
from swecli.core.llm.text import ThinkSplitter, ThinkTags
from swecli.core.llm.types import (
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolArgsDelta,
    ToolCallDone,
    ToolCallStarted,
)
from swecli.core.protocol.messages import Origin


def new_call_id() -> str:
    """An id for a call that came without one."""
    return f"call_{uuid.uuid4().hex[:24]}"


class Transcript:
    """Collects parts. Each addition becomes an event at once, except half characters and what may still turn
    out to be a think tag. ``changes`` counts everything that was added, for a watchdog."""

    def __init__(
        self, origin: Origin, think_tags: ThinkTags = "keep", make_id: Callable[[], str] = new_call_id
    ) -> None:
        self.origin = origin
        self.drafts: list[Draft] = []
        self.changes = 0
        self.splits = think_tags != "keep"
        self._events: list[StreamEvent] = []
        self._splitter = ThinkSplitter(think_tags)
        self._make_id = make_id

    @property
    def calls(self) -> list[CallDraft]:
        return [draft for draft in self.drafts if isinstance(draft, CallDraft)]

    @property
    def last(self) -> Draft | None:
        return self.drafts[-1] if self.drafts else None

    def take_events(self) -> list[StreamEvent]:
        """Events since the last time."""
        events, self._events = self._events, []
        return events

    def add(self, draft: AnyDraft) -> AnyDraft:
        """A new part at the end."""
        draft.index = len(self.drafts)
        self.drafts.append(draft)
        self.changes += 1
        return draft

    def text(self, text: str, draft: TextDraft | None = None) -> TextDraft | None:
        """Add to ``draft``, or to the last part if it is text, or to a new part."""
        reasoning, text = self._splitter.feed(text)
        if reasoning:
            self.reasoning(reasoning)
        return self._add_text(text, draft)

    def refusal(self, text: str) -> None:
        last = self.last
        self._push(last if isinstance(last, TextDraft) and last.refusal else self.add(TextDraft(refusal=True)), text)

    def reasoning(self, text: str, draft: ReasoningDraft | None = None, summary: bool = False) -> ReasoningDraft:
        """Add to ``draft``, or to the last part if it is reasoning of the same kind, or to a new part."""
        last = self.last
        if draft is None and isinstance(last, ReasoningDraft) and last.summary == summary and not last.hidden:
            draft = last
        if draft is None:
            draft = self.add(ReasoningDraft(summary=summary))
        self._push(draft, text)
        return draft

    def call_text(self, call: CallDraft, text: str) -> None:
        """More of the arguments' JSON text; also tells of the call once its name is known. A call that is done stays
        as it was told."""
        if call.done:
            return
        text = call.joiner.feed(text)
        if text:
            call.chunks.append(text)
            self.changes += 1
        if call.name and not call.started and (call.wire_id or call.chunks):
            self._announce(call)
        elif call.started and text:
            self._events.append(ToolArgsDelta(call.index, text))

    def close_call(self, call: CallDraft) -> None:
        """The arguments are whole."""
        if not call.done:
            self._finish_call(call)
            self._events.append(ToolCallDone(call.index, call.part(self.origin)))
            call.done = True

    def settle(self) -> None:
        """Give out what was held back: nothing more comes."""
        reasoning, text = self._splitter.end()
        if reasoning:
            self.reasoning(reasoning)
        self._add_text(text, None)
        for draft in self.drafts:
            if isinstance(draft, TextDraft | ReasoningDraft):
                self._tell(draft, draft.joiner.end())
            elif isinstance(draft, CallDraft):
                self._finish_call(draft)

    def _finish_call(self, call: CallDraft) -> None:
        self.call_text(call, "")
        if rest := call.joiner.end():
            self.call_text(call, rest)
        if not call.started:
            self._announce(call)

    def _add_text(self, text: str, draft: TextDraft | None) -> TextDraft | None:
        last = self.last
        if draft is None and isinstance(last, TextDraft) and not last.refusal and last.data is None:
            draft = last
        if text:
            draft = draft or self.add(TextDraft())
            self._push(draft, text)
        return draft

    def _push(self, draft: TextDraft | ReasoningDraft, text: str) -> None:
        self._tell(draft, draft.joiner.feed(text))

    def _tell(self, draft: TextDraft | ReasoningDraft, text: str) -> None:
        if not text:
            return
        draft.chunks.append(text)
        self.changes += 1
        if isinstance(draft, TextDraft):
            self._events.append(TextDelta(draft.index, text))
        else:
            self._events.append(ReasoningDelta(draft.index, text, "summary" if draft.summary else "raw"))

    def _announce(self, call: CallDraft) -> None:
        """The id is settled here: the one that came, unless there is none or another call has it."""
        call.started = True
        taken = {other.call_id for other in self.calls if other is not call}
        call.call_id = call.wire_id if call.wire_id and call.wire_id not in taken else self._make_id()
        self._events.append(ToolCallStarted(call.index, call.call_id, call.name))
        if text := call.raw:
            self._events.append(ToolArgsDelta(call.index, text))
