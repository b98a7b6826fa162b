"""Parts of an assistant message while they arrive."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from swecli.core.llm.json_values import JsonObject, compact
from swecli.core.llm.text import SurrogateJoiner
from swecli.core.protocol.messages import Opaque, OpaquePart, Origin, ReasoningPart, TextPart, ToolCallPart


@dataclass(slots=True, kw_only=True)
class TextDraft:
    """Text or a refusal. ``data`` is what the provider wants back with it."""

    index: int = 0
    refusal: bool = False
    data: JsonObject | None = None
    chunks: list[str] = field(default_factory=lambda: [])
    joiner: SurrogateJoiner = field(default_factory=SurrogateJoiner)

    @property
    def text(self) -> str:
        return "".join(self.chunks)

    def part(self, origin: Origin) -> TextPart:
        return TextPart(self.text, _opaque(origin, self.data))


@dataclass(slots=True, kw_only=True)
class ReasoningDraft:
    """Reasoning; ``hidden`` where only encrypted data came."""

    index: int = 0
    summary: bool = False
    hidden: bool = False
    data: JsonObject | None = None
    chunks: list[str] = field(default_factory=lambda: [])
    joiner: SurrogateJoiner = field(default_factory=SurrogateJoiner)

    @property
    def text(self) -> str:
        return "".join(self.chunks)

    def part(self, origin: Origin) -> ReasoningPart:
        return ReasoningPart(self.text, "summary" if self.summary else "raw", _opaque(origin, self.data))


@dataclass(slots=True, kw_only=True)
class CallDraft:
    """A tool call. ``wire_id`` is the id as it came, ``call_id`` the one that is used; ``value`` is set where
    the arguments came as an object, ``chunks`` where they came as text."""

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
    def arguments(self) -> str:
        """The text that goes into the message: what came, or the object that came as text, never nothing."""
        if self.value is not None:
            return compact(self.value)
        raw = self.raw
        return raw if raw.strip() else "{}"

    def part(self, origin: Origin) -> ToolCallPart:
        return ToolCallPart(self.call_id, self.name, self.arguments, _opaque(origin, self.data))


@dataclass(slots=True, kw_only=True)
class OpaqueDraft:
    """An item that is kept as it is."""

    index: int = 0
    data: JsonObject
    note: str = ""

    def part(self, origin: Origin) -> OpaquePart:
        return OpaquePart(Opaque(origin, self.data), self.note)


Draft = TextDraft | ReasoningDraft | CallDraft | OpaqueDraft
AnyDraft = TypeVar("AnyDraft", TextDraft, ReasoningDraft, CallDraft, OpaqueDraft)


def _opaque(origin: Origin, data: JsonObject | None) -> Opaque | None:
    return None if data is None else Opaque(origin, data)
