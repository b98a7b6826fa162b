"""Shared parts of all protocols: the decoder, drafts of an answer, and the transcript of a request."""

from __future__ import annotations

import dataclasses
import re
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final, Literal, Protocol, TypeVar, get_args

from msgspec import Struct, field, structs

from swecli.core.llm.capabilities import Capabilities
from swecli.core.llm.dialects import Dialect
from swecli.core.llm.errors import WireError, message_of, read_error, readable, to_provider_error
from swecli.core.llm.framing import BodyParser, WireEvent
from swecli.core.llm.json_values import (
    JsonObject,
    as_int,
    as_object,
    as_text,
    compact,
    is_list,
    parse_event,
    parse_object,
)
from swecli.core.llm.per_message import Translations
from swecli.core.llm.protocols.arguments import is_whole, once
from swecli.core.llm.remedies import OTHER_MODEL, ErrorContext
from swecli.core.llm.text import SurrogateJoiner, ThinkSplitter, ThinkTags, clean
from swecli.core.llm.types import (
    ErrorKind,
    Failed,
    Finished,
    ModelRequest,
    PromptRead,
    ProviderError,
    ReasoningDelta,
    SearchCited,
    SearchEnded,
    SearchStarted,
    Started,
    StreamEvent,
    TextDelta,
    ToolArgsDelta,
    ToolCallDone,
    ToolCallStarted,
    UsageUpdate,
    WebSource,
)
from swecli.core.protocol.messages import (
    CUT_BY_SWECLI,
    DroppedThoughts,
    DropReason,
    Message,
    Opaque,
    OpaquePart,
    Origin,
    ProviderReport,
    ReasoningPart,
    Response,
    Stop,
    StopKind,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from swecli.lazy_pattern import lazy_pattern


class StreamedText(Struct, kw_only=True):
    chunks: list[str] = field(default_factory=lambda: [])
    joiner: SurrogateJoiner = field(default_factory=SurrogateJoiner)

    @property
    def text(self) -> str:
        return "".join(self.chunks)

    def replace(self, text: str) -> None:
        """Replace the streamed text by the provider's final one."""
        self.chunks, self.joiner = [clean(text)], SurrogateJoiner()


class TextDraft(StreamedText, kw_only=True):
    """Text or a refusal. ``data`` must be returned to the provider with it."""

    index: int = 0
    refusal: bool = False
    data: JsonObject | None = None

    def part(self, origin: Origin) -> TextPart:
        return TextPart(self.text, _opaque(origin, self.data))


class ReasoningDraft(StreamedText, kw_only=True):
    """Reasoning; ``hidden`` if only encrypted data arrived."""

    index: int = 0
    summary: bool = False
    hidden: bool = False
    data: JsonObject | None = None

    def part(self, origin: Origin) -> ReasoningPart:
        return ReasoningPart(self.text, "summary" if self.summary else "raw", _opaque(origin, self.data))


class CallDraft(Struct, kw_only=True):
    """A tool call. ``wire_id`` is the original id, ``call_id`` the one in use; ``value`` is set if the arguments
    arrived as an object, ``chunks`` if as text."""

    index: int = 0
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
    def plain_name(self) -> str:
        """The name without tokens of the model's template that its server left there: gpt-oss writes
        ``functions.NAME<|channel|>commentary``."""
        return self.name.partition("<|")[0].strip().removeprefix("functions.") or self.name

    @property
    def arguments(self) -> str:
        """The arguments for the message: the received text, or the received object as text, never empty."""
        if self.value is not None:
            return compact(self.value)
        raw = self.raw
        return raw if raw.strip() else "{}"

    def part(self, origin: Origin) -> ToolCallPart:
        return ToolCallPart(self.call_id, self.plain_name, self.arguments, _opaque(origin, self.data))


class OpaqueDraft(Struct, kw_only=True):
    """An item kept unchanged."""

    index: int = 0
    data: JsonObject
    note: str = ""

    def part(self, origin: Origin) -> OpaquePart:
        return OpaquePart(Opaque(origin, self.data), self.note)


Draft = TextDraft | ReasoningDraft | CallDraft | OpaqueDraft
AnyDraft = TypeVar("AnyDraft", TextDraft, ReasoningDraft, CallDraft, OpaqueDraft)


def _opaque(origin: Origin, data: JsonObject | None) -> Opaque | None:
    return None if data is None else Opaque(origin, data)


PART_SIZE = 50
"""Size of a part beyond its characters, so that a stream of empty parts reaches the limit too."""


def new_call_id() -> str:
    return f"call_{uuid.uuid4().hex[:24]}"


class Transcript:
    """Collects parts. Each addition becomes an event at once, except half characters and possible think tags.
    ``changes`` counts all additions, for a watchdog; ``size`` the characters of all parts plus ``PART_SIZE`` for each,
    for a limit."""

    def __init__(
        self, origin: Origin, think_tags: ThinkTags = "keep", make_id: Callable[[], str] = new_call_id
    ) -> None:
        self.origin = origin
        self.drafts: list[Draft] = []
        self.changes = 0
        self.size = 0
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
        events, self._events = self._events, []
        return events

    def add(self, draft: AnyDraft) -> AnyDraft:
        draft.index = len(self.drafts)
        self.drafts.append(draft)
        self.changes += 1
        self.size += PART_SIZE
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
        """More JSON text of the arguments; announces the call once its name is known. A finished call does not
        change."""
        if call.done:
            return
        text = call.joiner.feed(text)
        if text:
            call.chunks.append(text)
            self.changes += 1
            self.size += len(text)
        if call.name and not call.started and (call.wire_id or call.chunks):
            self._announce(call)
        elif call.started and text:
            self._events.append(ToolArgsDelta(call.index, text))

    def close_call(self, call: CallDraft) -> None:
        if not call.done:
            self._finish_call(call)
            self._events.append(ToolCallDone(call.index, call.part(self.origin)))
            call.done = True

    def search(self, index: int, query: str) -> None:
        """Announce a search of the provider, known by the index of its part."""
        self.changes += 1
        self._events.append(SearchStarted(index, clean(query)))

    def searched(self, index: int, sources: tuple[WebSource, ...], problem: str = "") -> None:
        self.changes += 1
        self._events.append(SearchEnded(index, sources, clean(problem)))

    def cited(self, sources: tuple[WebSource, ...]) -> None:
        if sources:
            self._events.append(SearchCited(sources))

    def settle(self) -> None:
        """Release held-back text: no more arrives."""
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
        if len(call.chunks) > 1 and not is_whole(call.raw) and (whole := once(call.chunks)):
            call.chunks = [whole]
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
        self.size += len(text)
        if isinstance(draft, TextDraft):
            self._events.append(TextDelta(draft.index, text))
        else:
            self._events.append(ReasoningDelta(draft.index, text, "summary" if draft.summary else "raw"))

    def _announce(self, call: CallDraft) -> None:
        """Announce the call and fix its id: the received one, unless it is missing or already used."""
        call.started = True
        taken = {other.call_id for other in self.calls if other is not call}
        call.call_id = call.wire_id if call.wire_id and call.wire_id not in taken else self._make_id()
        self._events.append(ToolCallStarted(call.index, call.call_id, call.plain_name))
        if text := call.raw:
            self._events.append(ToolArgsDelta(call.index, text))


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
    "halted",
    "error",
    "unknown",
]
"""A model's stop reason, more detailed than the neutral ``StopKind``."""

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
"""Reasons after which the last call may be incomplete."""

_UNREADABLE: dict[WireStop | None, str] = {
    "malformed_tool_call": "the model wrote a tool call that its server could not read",
    "halted": "the server ended the answer early",
    "error": "the server could not read the model's answer",
}
"""Stop reasons of an answer without the model's last words: the answer is incomplete, and another may be better."""

Outcome = Literal["open", "completed", "truncated", "error"]


class Answer(Transcript):
    """The answer so far. Usage and stop reason are replaced, never added. After ``complete`` or ``fail`` the answer is
    closed."""

    def __init__(
        self, origin: Origin, think_tags: ThinkTags = "keep", make_id: Callable[[], str] = new_call_id
    ) -> None:
        super().__init__(origin, think_tags, make_id)
        self.usage: Usage | None = None
        self.stop_raw: str | None = None
        self.stop_kind: WireStop | None = None
        self.stop_detail: str | None = None
        self.model: str | None = None
        self.response_id: str | None = None
        self.report: ProviderReport | None = None
        self.outcome: Outcome = "open"
        self.error: WireError | None = None
        self._started = False

    def start(self, model: str | None = None, response_id: str | None = None) -> None:
        """Record the provider's data about the answer; the first value of each counts."""
        self.model = self.model or model or None
        self.response_id = self.response_id or response_id or None
        if not self._started:
            self._started = True
            self._events.append(Started(self.model, self.response_id))

    def report_progress(self, read: int, total: int) -> None:
        self._events.append(PromptRead(min(read, total), total))

    def report_usage(self, usage: Usage) -> None:
        """Replace the figures. Impossible ones count as not reported: no sum, price or database could take them."""
        usage = _possible(usage)
        if usage != self.usage:
            self.usage = usage
            self._events.append(UsageUpdate(usage))

    def report_request(self, report: ProviderReport) -> None:
        """Add what the provider says about the request; later words count."""
        known = self.report or ProviderReport()
        self.report = ProviderReport(
            report.dropped or known.dropped,
            miss=report.miss or known.miss,
            missed=known.missed if report.missed is None else report.missed,
        )

    def stop(self, raw: str | None, kind: WireStop | None, detail: str | None = None) -> None:
        self.stop_raw, self.stop_kind, self.stop_detail = raw, kind, detail
        self.changes += 1

    def complete(self) -> None:
        if self.outcome != "open":
            return
        self.settle()
        self.outcome = "completed"
        if self.stop_kind == "end" and self.calls:
            self.stop_kind = "tool_use"
        elif self.stop_kind == "end" and any(isinstance(item, TextDraft) and item.refusal for item in self.drafts):
            self.stop_kind = "refusal"
        for call in self.calls:
            self.close_call(call)
        if self.stop_kind in _UNREADABLE:
            why = f"{_UNREADABLE[self.stop_kind]} ({self.stop_raw})"
            error = ProviderError("server", why, hint=f"Try again, or {OTHER_MODEL}.")
            self._events.append(Failed(error, self._message(complete=False) if self.drafts else None))
            return
        self._events.append(Finished(self._message(complete=not (self.calls and self.stop_kind in _CUT))))

    def fail(self, outcome: Literal["truncated", "error"], error: ProviderError, wire: WireError | None = None) -> None:
        """Mark the answer as ended early; the received part is kept and marked as incomplete."""
        if self.outcome != "open":
            return
        self.settle()
        self.outcome, self.error = outcome, wire
        self._events.append(Failed(error, self._message(complete=False) if self.drafts else None))

    def _message(self, complete: bool) -> Message:
        kind = _NEUTRAL.get(self.stop_kind, "other") if self.stop_kind is not None else None
        if kind is None and complete:
            kind = "tool_use" if self.calls else "end"
        stop = Stop(kind, self.stop_raw, self.stop_detail)
        response = Response(self.origin, stop, self.usage, self.response_id, complete, self.report)
        return Message("assistant", tuple(draft.part(self.origin) for draft in self.drafts), response=response)


LARGEST_COUNT = 10**12
"""Tokens; a larger figure in an answer is a server's mistake."""
_COUNTS = tuple(name for name in Usage.__struct_fields__ if name != "cost")


def _possible(usage: Usage) -> Usage:
    counts = {name: getattr(usage, name) for name in _COUNTS}
    wrong = {name: None for name, count in counts.items() if count is not None and not 0 <= count <= LARGEST_COUNT}
    if usage.cost is not None and not 0 <= usage.cost <= LARGEST_COUNT:
        wrong["cost"] = None
    return structs.replace(usage, **wrong) if wrong else usage


_DONE = "[DONE]"
OTHER_ANSWER = "the server began another answer before the end of this one"
"""What a gateway does that repeats a request of its own after some of the answer."""
_GATEWAY_PAGE = lazy_pattern(r"<title>[^<]*\b(429|5\d\d)\b", re.IGNORECASE)

USUAL_OUTPUT: Mapping[str, int] = {"anthropic-messages": 8_192}
"""Default answer limit, in tokens, for protocols that require one."""


class Target(Struct, frozen=True):
    """The model of a request. ``window`` is set if the server must be told."""

    origin: Origin
    dialect: Dialect
    provider: str = ""
    window: int | None = None
    max_output: int | None = None
    capabilities: Capabilities = Capabilities()
    shows_thoughts: bool = True
    """Whether the user wants to read the model's thoughts."""
    cache_ttl: str = ""
    """Lifetime of the prompt cache, one of the capabilities'; empty for the provider's default."""
    drops_thoughts: bool = False
    """Whether the provider may drop thoughts that no longer fit the conversation, instead of refusing the request."""
    refused: tuple[str, ...] = ()
    """Names of optional fields that the server refused."""
    tells_progress: bool = False
    """Whether the server is asked to tell how much of the prompt it has read."""

    def echo(self, opaque: Opaque | None) -> JsonObject | None:
        """The provider data of a part, if it came from this very model; else None: another one must not see it, nor a
        thought that is left out."""
        if opaque is None or opaque.data is None or opaque.origin != self.origin:
            return None
        return as_object(opaque.data)

    def lets_drop(self, messages: Iterable[Message]) -> bool:
        """Whether a request of this conversation lets the provider drop thoughts: since one was refused for them, each
        does."""
        if not self.capabilities.binding or "block_binding" in self.refused:
            return False
        own = (message.response for message in messages if message.response is not None)
        reports = (response.report for response in own if response.origin == self.origin)
        return self.drops_thoughts or any(report is not None and report.dropping for report in reports)


class WireRequest(Struct, frozen=True):
    """A request ready to send. ``path`` follows the base URL (without trailing slash), ``optional`` names the keys of
    ``body`` (``outer.inner`` for a nested one) that can be omitted if a server does not know them."""

    path: str
    body: JsonObject
    headers: Mapping[str, str] = field(default_factory=lambda: {})
    optional: tuple[str, ...] = ()


SUMMARY = "compaction"
"""Type of a block or item with a summary that the server wrote, and its key in the data of such a summary."""


def written_summary(message: Message, target: Target) -> JsonObject | None:
    """The original of a summary that this server wrote: it goes back as it came, alone, in place of all before the
    kept turns (platform.claude.com, compaction-on-demand; types of openai 3.57, ResponseCompactionItemParam)."""
    if message.role != "user":
        return None
    written = (target.echo(part.opaque) for part in message.parts if isinstance(part, TextPart) and part.opaque)
    return next((as_object(data[SUMMARY]) for data in written if data is not None and SUMMARY in data), None)


class BuildRequest(Protocol):
    """Builder of a protocol's requests. ``known`` is what earlier requests of the conversation made."""

    def __call__(self, request: ModelRequest, target: Target, known: Translations | None = None) -> WireRequest: ...


class Decoder(ABC):
    """A pure state machine from wire events to stream events. The last event is ``Finished`` or ``Failed``."""

    def __init__(
        self,
        origin: Origin,
        *,
        think_tags: ThinkTags = "keep",
        context: ErrorContext | None = None,
        make_id: Callable[[], str] = new_call_id,
    ) -> None:
        self.answer = Answer(origin, think_tags, make_id)
        self._context = context or ErrorContext(model=origin.model)
        self._recognised = False
        self._seen = False
        self._strange = ""
        self._goes_on = False
        """Whether all content has followed a stop reason, which then says nothing of the end."""
        self._complaint: object = None
        """The newest event that may be an error in no known form; it counts as one if the answer stays incomplete."""
        self._cut = False
        """Whether the body ended within an event."""

    @property
    def closed(self) -> bool:
        return self.answer.outcome != "open"

    def feed(self, event: WireEvent) -> list[StreamEvent]:
        data = event.data.strip()
        early = self.answer.stop_raw is not None and not self.answer.drafts
        while data.startswith("data:"):  # a proxy has wrapped events in events
            data = data.removeprefix("data:").lstrip()
        try:
            self._take(data, event.name)
        except ValueError:
            if not self._take_lines(data, event.name):
                self._on_unreadable(event, data)
        self._goes_on = self._goes_on or (early and bool(self.answer.drafts))
        return self.answer.take_events()

    def _take(self, data: str, name: str) -> None:
        """Process the text of one event.

        Raises:
            ValueError: it is not JSON.
        """
        if self.closed:
            return
        if data == _DONE:
            if self._recognised or not self._seen:  # else another protocol's stream ends, not an empty answer
                self.on_done()
            return
        value: object = parse_event(data)
        if is_list(value) and value:
            value = value[0]
        message = as_object(value)
        self._seen = True
        known = self.on_message(message, name)
        self._recognised = known or self._recognised
        if not known and _may_be_error(message):
            self._complaint = value
        if not self._recognised and not self._strange:
            self._strange = message_of(value, message)
        if not self.closed and (name == "error" or _is_error(message)):
            self.fail_wire(read_error(value, host=self.answer.origin.host))

    def _take_lines(self, data: str, name: str) -> bool:
        """Process events without blank lines between them. Returns whether the data has that form."""
        lines = [line for line in data.split("\n") if line.strip()]
        if len(lines) < 2 or not all(line.strip() == _DONE or parse_object(line) is not None for line in lines):
            return False
        for line in lines:
            self._take(line.strip(), name)
        return True

    def end(self) -> list[StreamEvent]:
        if self.closed:
            return []
        self.on_end()
        if not self.closed and self._seen and not self._recognised:
            excerpt = f": {readable(self._strange)[:300]}" if self._strange else ""
            self.fail("protocol", f"the answer is JSON, but does not follow this protocol{excerpt}")
        elif not self.closed and self._complaint is not None:
            self.fail_wire(read_error(self._complaint, host=self.answer.origin.host))
        elif not self.closed:
            self.fail("truncated", "the answer ended before it was complete")
        return self.answer.take_events()

    @property
    def stopped(self) -> bool:
        """Whether the stop reason has arrived, so that only usage can follow. One before all content is a mistake of
        gateways that write one into every event without text."""
        return not self.closed and self.answer.stop_raw is not None and bool(self.answer.drafts) and not self._goes_on

    def end_open(self) -> list[StreamEvent]:
        """Complete the answer although the server leaves the stream open after the stop reason."""
        self.on_whole()
        return self.answer.take_events()

    def cut_off(self, why: str) -> list[StreamEvent]:
        """Cut an answer that exceeds every limit: the received part becomes the whole, as at the output limit. ``why``
        is what the answer did, for the user."""
        self.answer.stop(CUT_BY_SWECLI, "length", f"the answer {why}")
        self.answer.complete()
        return self.answer.take_events()

    def end_of_body(self, body: BodyParser, *, told: bool = False) -> list[StreamEvent]:
        """Handle the end of the body: like ``end``, with an explanation for a body in another format. One JSON object
        instead of a stream may be the whole answer, with or without a stop reason. ``told``: the server itself said
        that the body ends here, so that whole calls at its end are what it had to say."""
        if not self.closed and body.is_one_object and self.is_whole_answer:
            return self.end_open()
        if told and not self.closed and not self._cut and self._complaint is None and self.ends_with_calls:
            return self.end_open()
        if not self.closed and not self._seen and body.kind in ("html", "other"):
            # A gateway may send its error page with status 200; its server usually returns in a moment.
            busy = _GATEWAY_PAGE.search(body.excerpt) is not None
            self.fail("server" if busy else "protocol", readable(body.excerpt))
            return self.answer.take_events()
        return self.end()

    def abort(self, error: ProviderError) -> list[StreamEvent]:
        """Handle a transport failure; the ``Failed`` event keeps the received part. After the stop reason the answer is
        whole."""
        if self.stopped and error.kind == "network":
            return self.end_open()
        if not self.closed and not error.hint:
            other = f", or {OTHER_MODEL}" if error.kind == "stalled" else ""
            error = dataclasses.replace(error, hint=f"{self._kept()} Try again{other}.")
        self.answer.fail("truncated" if error.kind == "truncated" else "error", error)
        return self.answer.take_events()

    @abstractmethod
    def on_message(self, message: JsonObject, name: str) -> bool:
        """Process one JSON object of the stream. Returns whether it belongs to this protocol."""

    def on_done(self) -> None:
        """Handle the ``[DONE]`` marker; ignored if the protocol has a terminal event."""
        return

    @property
    def is_whole_answer(self) -> bool:
        """Whether the only message has the form of a whole answer, without having closed it."""
        return False

    @property
    def ends_with_calls(self) -> bool:
        """Whether whole calls are the last of the answer, in a protocol whose servers may forget the end mark."""
        return False

    def on_whole(self) -> None:
        """Complete the answer although no terminal event of the protocol arrived."""
        self.answer.complete()

    def on_end(self) -> None:
        """Handle a stream without end marker: complete the answer if the protocol allows that."""
        return

    def _kept(self) -> str:
        """What is kept of an interrupted answer, as a sentence."""
        self.answer.settle()
        if self.answer.calls:
            return "The partial answer is kept; its tool calls were not run."
        return "The partial answer is kept." if self.answer.drafts else "No part of the answer had arrived."

    def is_another(self, response_id: str) -> bool:
        """Whether this id belongs to an answer other than the one that has begun. Their parts must not mix."""
        known = self.answer.response_id
        return bool(self.answer.drafts and response_id and known and response_id != known)

    def fail_wire(self, wire: WireError) -> None:
        self.answer.fail("error", to_provider_error(wire, self._context), wire)

    def fail(self, kind: ErrorKind, message: str) -> None:
        hint = self._kept() if kind == "truncated" else ""
        if kind == "protocol":
            hint = f"Check the base URL {self._context.base_url!r} and the protocol of this provider."
        error = ProviderError(kind, message, hint=hint)
        if kind == "truncated":
            self.answer.fail("truncated", error)
        else:
            self.answer.fail("error", error, WireError(200, message, kind=kind))

    def _on_unreadable(self, event: WireEvent, data: str) -> None:
        if event.name == "error":
            self.fail_wire(read_error(data, host=self.answer.origin.host))
        elif data.startswith(("{", "[")) and not event.partial:
            kind = "truncated" if self._recognised else "protocol"  # after valid events it can't be another protocol
            self.fail(kind, f"an event of the answer is not JSON: {readable(data)[:200]!r}")
        else:
            self._cut = self._cut or event.partial


def _is_error(message: JsonObject) -> bool:
    if message.get("error") or message.get("type") == "error" or message.get("object") == "error":
        return True
    return as_int(as_object(message.get("base_resp")).get("status_code")) not in (None, 0)  # MiniMax


def _may_be_error(message: JsonObject) -> bool:
    """Whether an event that is no part of an answer has the words of an error: ``{"code": 500, "message": "..."}``."""
    return not message.get("type") and any(as_text(message.get(key)) for key in ("message", "detail", "msg"))


def dropped_thoughts(words: Iterable[str], reasons: Mapping[str, DropReason]) -> tuple[DroppedThoughts, ...]:
    """Thoughts that a provider dropped, counted by reason; ``words`` are its own, one for each thought."""
    counts = Counter(reasons[word] for word in words if word in reasons)
    return tuple(DroppedThoughts(reason, counts[reason]) for reason in get_args(DropReason) if counts[reason])


def effort_changes(request: ModelRequest, target: Target) -> tuple[str | None, dict[int, str]]:
    """The effort at the top of a request, and the later ones by the index of the user message that they begin with: a
    change at the top would change the beginning of the prompt. Models without such a form get the newest effort.

    An effort counts from the first user message behind the last answer with another one. A return to the provider's
    default, which has no word, begins anew: the top-level effort is then none.
    """
    if not target.capabilities.effort_changes:
        return request.effort, {}
    efforts = [
        (index, message.response.effort)
        for index, message in enumerate(request.messages)
        if message.response is not None and message.response.origin == target.origin and message.response.complete
    ]
    efforts.append((len(request.messages), request.effort))
    unset = max((position for position, (_, effort) in enumerate(efforts) if effort is None), default=0)
    current, changes, before = efforts[unset][1], dict[int, str](), efforts[unset][0]
    top = current
    for index, effort in efforts[unset + 1 :]:
        stretch = request.messages[before:index]
        spoken = (at for at, message in enumerate(stretch, before) if message.role == "user" and not message.note)
        if effort is not None and effort != current and (start := next(spoken, None)) is not None:
            changes[start] = current = effort
        before = index
    return top, changes


def newest_answer(messages: Sequence[Message], target: Target) -> str | None:
    """The provider's id of the newest answer of this model, with whose request it can compare this one; None without
    one."""
    answers = (message.response for message in reversed(messages) if message.response is not None)
    return next((answer.response_id for answer in answers if answer.origin == target.origin), None)


SEARCH: Final = "tool_search"
"""The tool that finds deferred tools."""


def found_tools(request: ModelRequest) -> dict[str, tuple[str, ...]]:
    """Names of tools by the search call that first found them: a provider that supports tool search gets their
    schemas there instead of before the conversation, which preserves its cache. Results removed by a compaction do
    not count."""
    known = {tool.name for tool in request.tools if tool.source and tool.name != SEARCH}
    tools_by_call: dict[str, tuple[str, ...]] = {}
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, ToolResultPart) and part.name == SEARCH and not part.is_error:
                heads = (line.partition(": ")[0] for line in part.text.split("\n"))
                names = tuple(dict.fromkeys(name for name in heads if name in known))
                if names:
                    tools_by_call[part.call_id] = names
                    known.difference_update(names)
    return tools_by_call


_TICKS_PER_DOLLAR = Decimal(10**10)


def first_int(*values: object) -> int | None:
    """The first of the values that is a number: the same count has several names."""
    return next((number for value in values if (number := as_int(value)) is not None), None)


def read_cost(usage: JsonObject) -> Decimal | None:
    """US dollars, which gateways add to the usage of any protocol."""
    ticks = as_int(usage.get("cost_in_usd_ticks"))
    if ticks is not None:
        return Decimal(ticks) / _TICKS_PER_DOLLAR
    cost = usage.get("cost")
    if isinstance(cost, dict):
        table = as_object(usage.get("cost"))
        cost = table.get("total_cost", table.get("usd"))
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        return None
    return Decimal(str(cost))
