"""The assistant message under construction: ordered parts, usage, stop reason, and how it ended."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from swecli.core.llm.errors import WireError
from swecli.core.llm.json_values import JsonObject, compact
from swecli.core.llm.protocols.arguments import parse_arguments
from swecli.core.llm.text import SurrogateJoiner, ThinkSplitter, ThinkTags
from swecli.core.llm.types import (
    Failed,
    Finished,
    ProviderError,
    ReasoningDelta,
    Started,
    StreamEvent,
    TextDelta,
    ToolArgsDelta,
    ToolCallDone,
    ToolCallStarted,
    UsageUpdate,
)
from swecli.core.protocol.messages import (
    Message,
    Opaque,
    OpaquePart,
    Origin,
    Part,
    ReasoningPart,
    Response,
    Stop,
    StopKind,
    TextPart,
    ToolCallPart,
)
from swecli.core.protocol.usage import Usage

WireStop = Literal[
    "end",
    "tool_use",
    "length",
    "stop_sequence",
    "content_filter",
    "refusal",
    "pause",
    "context",
    "compaction",
    "malformed_tool_call",
    "error",
    "unknown",
]
"""Why a model stopped, in finer words than the neutral ``StopKind``."""

_NEUTRAL: dict[WireStop, StopKind] = {
    "end": "end",
    "tool_use": "tool_use",
    "length": "length",
    "stop_sequence": "stop_sequence",
    "content_filter": "content_filter",
    "refusal": "refusal",
    "pause": "pause",
    "context": "context_full",
}
_CUT: frozenset[WireStop] = frozenset(("length", "context", "content_filter", "error"))
"""Reasons after which the last call may be half a call."""

Outcome = Literal["open", "completed", "truncated", "error"]


def new_call_id() -> str:
    """An id for a call that came without one."""
    return f"call_{uuid.uuid4().hex[:24]}"


@dataclass(slots=True)
class TextDraft:
    """Text or a refusal. ``data`` is what the provider wants back with it."""

    index: int
    refusal: bool = False
    data: JsonObject | None = None
    chunks: list[str] = field(default_factory=lambda: [])
    joiner: SurrogateJoiner = field(default_factory=SurrogateJoiner)

    @property
    def text(self) -> str:
        return "".join(self.chunks)


@dataclass(slots=True)
class ReasoningDraft:
    """Reasoning; ``hidden`` where only encrypted data came."""

    index: int
    summary: bool = False
    hidden: bool = False
    data: JsonObject | None = None
    chunks: list[str] = field(default_factory=lambda: [])
    joiner: SurrogateJoiner = field(default_factory=SurrogateJoiner)

    @property
    def text(self) -> str:
        return "".join(self.chunks)


@dataclass(slots=True)
class CallDraft:
    """A tool call. ``wire_id`` is the id as it came, ``call_id`` the one that is used; ``value`` is set where
    the arguments came as an object, ``chunks`` where they came as text."""

    index: int
    wire_id: str | None = None
    call_id: str = ""
    name: str = ""
    value: JsonObject | None = None
    data: JsonObject | None = None
    chunks: list[str] = field(default_factory=lambda: [])
    joiner: SurrogateJoiner = field(default_factory=SurrogateJoiner)
    started: bool = False
    done: bool = False

    @property
    def raw(self) -> str:
        return "".join(self.chunks)

    @property
    def arguments(self) -> str:
        """The text that goes into the message: what came, or the object that came as text, never nothing."""
        if self.value is not None:
            return compact(self.value)
        raw = self.raw
        return raw if raw.strip() else "{}"

    @property
    def whole(self) -> bool:
        return self.value is not None or parse_arguments(self.raw).ok


@dataclass(slots=True)
class OpaqueDraft:
    """An item that is kept as it is."""

    index: int
    data: JsonObject
    note: str


Draft = TextDraft | ReasoningDraft | CallDraft | OpaqueDraft
_D = TypeVar("_D", TextDraft, ReasoningDraft, CallDraft, OpaqueDraft)


class Answer:
    """Collects what a decoder finds and tells it as stream events.

    Usage and stop reason are replaced, never added. After ``complete``, ``truncate`` or ``fail`` the answer is
    closed and takes nothing more. ``changes`` counts everything that was added, for a watchdog.
    """

    def __init__(
        self, origin: Origin, think_tags: ThinkTags = "keep", make_id: Callable[[], str] = new_call_id
    ) -> None:
        self.origin = origin
        self.drafts: list[Draft] = []
        self.usage: Usage | None = None
        self.stop_raw: str | None = None
        self.stop_kind: WireStop | None = None
        self.stop_detail: str | None = None
        self.model: str | None = None
        self.response_id: str | None = None
        self.outcome: Outcome = "open"
        self.error: WireError | None = None
        self.changes = 0
        self._events: list[StreamEvent] = []
        self.splits = think_tags != "keep"
        self._splitter = ThinkSplitter(think_tags)
        self._make_id = make_id
        self._started = False

    @property
    def calls(self) -> list[CallDraft]:
        return [draft for draft in self.drafts if isinstance(draft, CallDraft)]

    def take_events(self) -> list[StreamEvent]:
        """Events since the last time."""
        events, self._events = self._events, []
        return events

    def start(self, model: str | None = None, response_id: str | None = None) -> None:
        """Note what the provider says of itself; the first word of each counts."""
        self.model = self.model or model or None
        self.response_id = self.response_id or response_id or None
        if not self._started:
            self._started = True
            self._emit(Started(self.model, self.response_id))

    def text(self, text: str, draft: TextDraft | None = None) -> TextDraft | None:
        """Add to ``draft``, or to the last part if it is text, or to a new part."""
        reasoning, text = self._splitter.feed(text)
        if reasoning:
            self.reasoning(reasoning)
        return self._add_text(text, draft)

    def refusal(self, text: str) -> None:
        last = self._last()
        if not (isinstance(last, TextDraft) and last.refusal):
            last = self.add(TextDraft(len(self.drafts), refusal=True))
        self._push(last, text)

    def reasoning(self, text: str, draft: ReasoningDraft | None = None, summary: bool = False) -> ReasoningDraft:
        """Add to ``draft``, or to the last part if it is reasoning of the same kind, or to a new part."""
        if draft is None:
            last = self._last()
            fits = isinstance(last, ReasoningDraft) and last.summary == summary and not last.hidden
            draft = last if fits and isinstance(last, ReasoningDraft) else None
        if draft is None:
            draft = self.add(ReasoningDraft(len(self.drafts), summary=summary))
        self._push(draft, text)
        return draft

    def add(self, draft: _D) -> _D:
        """A new part at the end. Its ``index`` must be the number of parts so far."""
        self.drafts.append(draft)
        self.changes += 1
        return draft

    def open_call(self, wire_id: str | None = None, name: str = "") -> CallDraft:
        return self.add(CallDraft(len(self.drafts), wire_id=wire_id, name=name))

    def call_text(self, call: CallDraft, text: str) -> None:
        """More of the arguments' JSON text; also tells of the call once its name is known."""
        text = call.joiner.feed(text)
        if text:
            call.chunks.append(text)
            self.changes += 1
        if call.name and not call.started and (call.wire_id or call.chunks):
            self._announce(call)
        elif call.started and text:
            self._emit(ToolArgsDelta(call.index, text))

    def close_call(self, call: CallDraft) -> None:
        """The arguments are whole."""
        if call.done:
            return
        call.done = True
        self.call_text(call, call.joiner.end())
        if not call.started:
            self._announce(call)
        self._emit(ToolCallDone(call.index, self._call_part(call)))

    def report_usage(self, usage: Usage) -> None:
        if usage != self.usage:
            self.usage = usage
            self._emit(UsageUpdate(usage))

    def stop(self, raw: str | None, kind: WireStop | None, detail: str | None = None) -> None:
        self.stop_raw, self.stop_kind, self.stop_detail = raw, kind, detail
        self.changes += 1

    def complete(self) -> None:
        """The answer is whole, as far as the provider says."""
        if self.outcome != "open":
            return
        self._settle()
        self.outcome = "completed"
        kind = self.stop_kind
        if self.calls and kind == "end":
            self.stop_kind = "tool_use"
        elif kind == "end" and any(isinstance(draft, TextDraft) and draft.refusal for draft in self.drafts):
            self.stop_kind = "refusal"
        for call in self.calls:
            self.close_call(call)
        self._emit(Finished(self.message(complete=not (self.calls and self.stop_kind in _CUT))))

    def fail(self, outcome: Literal["truncated", "error"], error: ProviderError, wire: WireError | None = None) -> None:
        """The answer ended early; what came so far is kept and marked as incomplete."""
        if self.outcome != "open":
            return
        self._settle()
        self.outcome, self.error = outcome, wire
        self._emit(Failed(error, self.message(complete=False) if self.drafts else None))

    def message(self, complete: bool) -> Message:
        """The message so far."""
        kind = _NEUTRAL.get(self.stop_kind, "other") if self.stop_kind is not None else None
        if kind is None and complete:
            kind = "tool_use" if self.calls else "end"
        response = Response(
            self.origin, Stop(kind, self.stop_raw, self.stop_detail), self.usage, self.response_id, complete
        )
        return Message("assistant", tuple(self._part(draft) for draft in self.drafts), response=response)

    def _settle(self) -> None:
        """Give out what was held back."""
        reasoning, text = self._splitter.end()
        if reasoning:
            self.reasoning(reasoning)
        self._add_text(text, None)
        for draft in self.drafts:
            if not isinstance(draft, OpaqueDraft | CallDraft):
                self._push(draft, draft.joiner.end(), joined=True)

    def _add_text(self, text: str, draft: TextDraft | None) -> TextDraft | None:
        if draft is None:
            last = self._last()
            draft = last if isinstance(last, TextDraft) and not last.refusal and last.data is None else None
        if not text:
            return draft
        if draft is None:
            draft = self.add(TextDraft(len(self.drafts)))
        self._push(draft, text)
        return draft

    def _push(self, draft: TextDraft | ReasoningDraft, text: str, joined: bool = False) -> None:
        text = text if joined else draft.joiner.feed(text)
        if not text:
            return
        draft.chunks.append(text)
        self.changes += 1
        if isinstance(draft, TextDraft):
            self._emit(TextDelta(draft.index, text))
        else:
            self._emit(ReasoningDelta(draft.index, text, "summary" if draft.summary else "raw"))

    def _announce(self, call: CallDraft) -> None:
        call.started = True
        taken = {other.call_id for other in self.calls if other is not call}
        call.call_id = call.wire_id if call.wire_id and call.wire_id not in taken else self._make_id()
        self._emit(ToolCallStarted(call.index, call.call_id, call.name))
        if text := call.raw or ("" if call.value is None else call.arguments):
            self._emit(ToolArgsDelta(call.index, text))

    def _call_part(self, call: CallDraft) -> ToolCallPart:
        return ToolCallPart(call.call_id or self._make_id(), call.name, call.arguments, self._opaque(call.data))

    def _part(self, draft: Draft) -> Part:
        opaque = self._opaque(draft.data)
        if isinstance(draft, TextDraft):
            return TextPart(draft.text, opaque)
        if isinstance(draft, ReasoningDraft):
            return ReasoningPart(draft.text, "summary" if draft.summary else "raw", opaque)
        if isinstance(draft, CallDraft):
            if not draft.call_id:
                self._announce(draft)
            return self._call_part(draft)
        return OpaquePart(Opaque(self.origin, draft.data), draft.note)

    def _opaque(self, data: JsonObject | None) -> Opaque | None:
        return None if data is None else Opaque(self.origin, data)

    def _last(self) -> Draft | None:
        return self.drafts[-1] if self.drafts else None

    def _emit(self, event: StreamEvent) -> None:
        self._events.append(event)
