"""The assistant message under construction: its parts, usage, stop reason, and how it ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from swecli.core.llm.errors import WireError
from swecli.core.llm.protocols.drafts import TextDraft
from swecli.core.llm.protocols.transcript import Transcript, new_call_id
from swecli.core.llm.text import ThinkTags
from swecli.core.llm.types import Failed, Finished, ProviderError, Started, UsageUpdate
from swecli.core.protocol.messages import Message, Origin, Response, Stop, StopKind
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


class Answer(Transcript):
    """Usage and stop reason are replaced, never added. After ``complete`` or ``fail`` the answer is closed and
    takes nothing more."""

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
        self.outcome: Outcome = "open"
        self.error: WireError | None = None
        self._started = False

    def start(self, model: str | None = None, response_id: str | None = None) -> None:
        """Note what the provider says of itself; the first word of each counts."""
        self.model = self.model or model or None
        self.response_id = self.response_id or response_id or None
        if not self._started:
            self._started = True
            self._events.append(Started(self.model, self.response_id))

    def report_usage(self, usage: Usage) -> None:
        if usage != self.usage:
            self.usage = usage
            self._events.append(UsageUpdate(usage))

    def stop(self, raw: str | None, kind: WireStop | None, detail: str | None = None) -> None:
        self.stop_raw, self.stop_kind, self.stop_detail = raw, kind, detail
        self.changes += 1

    def complete(self) -> None:
        """The answer is whole, as far as the provider says."""
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
        self._events.append(Finished(self._message(complete=not (self.calls and self.stop_kind in _CUT))))

    def fail(self, outcome: Literal["truncated", "error"], error: ProviderError, wire: WireError | None = None) -> None:
        """The answer ended early; what came so far is kept and marked as incomplete."""
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
        response = Response(self.origin, stop, self.usage, self.response_id, complete)
        return Message("assistant", tuple(draft.part(self.origin) for draft in self.drafts), response=response)
