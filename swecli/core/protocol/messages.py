"""Messages between user, model and tools, with ordered parts.

Data that a provider wants back unchanged (a signature, encrypted reasoning, an item id) is an ``Opaque`` with its
origin, and is replayed only to that origin.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, ClassVar, Final, Literal

from msgspec import Struct

from swecli.lazy_pattern import lazy_pattern


class Tagged(Struct, frozen=True):
    """A member of a union, discriminated by ``type`` in its JSON form. Each has it as a class variable, too, by which
    type checkers narrow the union."""


class Usage(Struct, frozen=True):
    """Tokens of one model response. ``None`` means the provider did not report it.

    ``input_total`` counts the whole prompt, cached part included; ``output_total`` counts the whole answer, reasoning
    included. ``cost`` is set only if the provider reported one; it overrides any catalogue price.
    """

    input_total: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output_total: int | None = None
    reasoning: int | None = None
    cost: Decimal | None = None
    """US dollars, as reported by the provider."""
    cleared: int | None = None
    """Tokens of the request that the provider itself removed; ``input_total`` excludes them."""
    web_searches: int | None = None
    """Searches of the provider's own web search, which are billed besides the tokens."""
    cache_write_1h: int | None = None
    """The part of ``cache_write`` that the provider keeps for an hour."""

    @property
    def prompt(self) -> int:
        """Tokens of the prompt; 0 if not reported."""
        return self.input_total or 0

    @property
    def completion(self) -> int:
        """Tokens of the answer; 0 if not reported."""
        return self.output_total or 0

    @property
    def total(self) -> int:
        """Tokens of prompt and answer."""
        return self.prompt + self.completion

    @property
    def cache_share(self) -> float | None:
        """Share of the prompt served from the provider's cache, 0..1; None if unknown."""
        if self.cache_read is None or not self.input_total:
            return None
        return min(1.0, self.cache_read / self.input_total)


def plus(one: int | None, other: int | None) -> int | None:
    """The sum of two counts; one that is unknown counts as 0 beside a known one."""
    return None if one is None and other is None else (one or 0) + (other or 0)


def added(one: Usage, other: Usage) -> Usage:
    """The sum of two responses. A count that only one reported is used as it is; a cost requires both."""
    return Usage(
        plus(one.input_total, other.input_total),
        plus(one.cache_read, other.cache_read),
        plus(one.cache_write, other.cache_write),
        plus(one.output_total, other.output_total),
        plus(one.reasoning, other.reasoning),
        None if one.cost is None or other.cost is None else one.cost + other.cost,
        plus(one.cleared, other.cleared),
        plus(one.web_searches, other.web_searches),
        plus(one.cache_write_1h, other.cache_write_1h),
    )


def usage_words(usage: Usage | None, *, estimated: bool = False) -> str:
    """For example "34,120 tokens in, 1,200 out", with "about" before it if a part is an estimate; empty if unknown."""
    if usage is None or not usage.total:
        return ""
    return f"{'about ' if estimated else ''}{usage.prompt:,} tokens in, {usage.completion:,} out"


Role = Literal["user", "assistant", "tool"]

NoteForm = Literal["", "stays", "this turn", "quoted"]
"""Form of a note from swecli to the model: it holds until a later one, or for the step that begins with it; ``quoted``
includes text that others can edit, so it must not get the rank of a system message. Empty for other messages."""

StopKind = Literal[
    "end", "tool_use", "length", "stop_sequence", "content_filter", "refusal", "pause", "context_full", "other"
]
"""Why a model stopped; ``Stop.raw`` keeps the provider's own word."""


class Origin(Struct, frozen=True):
    """Source of an assistant message: wire protocol, host name, model name."""

    protocol: str
    host: str
    model: str


class Opaque(Struct, frozen=True):
    """Provider data, echoed byte for byte and only to the ``origin`` that sent it."""

    origin: Origin
    data: Any
    """Any JSON value."""


class TextPart(Tagged, frozen=True, tag="text"):
    type: ClassVar[Literal["text"]] = "text"
    text: str
    opaque: Opaque | None = None


class ReasoningPart(Tagged, frozen=True, tag="reasoning"):
    """Reasoning of the model. ``text`` may be empty if the provider sends only encrypted data."""

    type: ClassVar[Literal["reasoning"]] = "reasoning"
    text: str
    kind: Literal["raw", "summary"] = "raw"
    opaque: Opaque | None = None


class ToolCallPart(Tagged, frozen=True, tag="tool_call"):
    """A call as the model wrote it. ``arguments`` is the raw JSON text, possibly invalid. It is never re-serialised, so
    that the prompt prefix stays byte-identical."""

    type: ClassVar[Literal["tool_call"]] = "tool_call"
    call_id: str
    name: str
    arguments: str
    opaque: Opaque | None = None


class ImagePart(Tagged, frozen=True, tag="image"):
    """An image. ``data`` is base64 text of the file's bytes."""

    type: ClassVar[Literal["image"]] = "image"
    media_type: str
    data: str
    name: str = ""


PDF: Final = "application/pdf"
"""Media type of documents."""


class DocumentPart(Tagged, frozen=True, tag="document"):
    """Pages of a PDF file. ``data`` is base64 text of a file with just these pages, ``pages`` their number. ``text`` is
    what they say: for servers that read no such files, and for people."""

    type: ClassVar[Literal["document"]] = "document"
    data: str
    name: str = ""
    text: str = ""
    pages: int = 0


class ToolResultPart(Tagged, frozen=True, tag="tool_result"):
    """The result of one call, as the model reads it."""

    type: ClassVar[Literal["tool_result"]] = "tool_result"
    call_id: str
    name: str
    text: str
    is_error: bool = False
    images: tuple[ImagePart, ...] = ()
    documents: tuple[DocumentPart, ...] = ()

    @property
    def whole_text(self) -> str:
        """The text together with what the documents say."""
        return "\n\n".join((self.text, *(document.text for document in self.documents)))


class OpaquePart(Tagged, frozen=True, tag="opaque"):
    """A whole provider item that swecli does not interpret (a server tool, an unknown block), kept in order."""

    type: ClassVar[Literal["opaque"]] = "opaque"
    opaque: Opaque
    note: str = ""


Part = TextPart | ReasoningPart | ToolCallPart | ToolResultPart | ImagePart | DocumentPart | OpaquePart


class Stop(Struct, frozen=True):
    """Why the model stopped: a neutral kind and the provider's own word."""

    kind: StopKind | None = None
    raw: str | None = None
    detail: str | None = None


CUT_BY_SWECLI: Final = "swecli_limit"
"""``raw`` of a stop by swecli itself: the answer repeated itself or did not end, as ``detail`` says."""


DropReason = Literal["prefix", "model", "organization", "user"]
"""Why a provider drops a thought that a request sends back: the conversation before it changed, or this model,
organization or end user may not read it."""


class DroppedThoughts(Struct, frozen=True):
    reason: DropReason
    count: int


class ProviderReport(Struct, frozen=True):
    """What a provider says about a request beside its usage."""

    dropped: tuple[DroppedThoughts, ...] = ()
    """Thoughts of the request that the model did not see; those of earlier requests count again."""
    dropping: bool = False
    """The request let the provider drop thoughts instead of refusing it; so must the conversation's later ones."""
    miss: str = ""
    """The provider's word for why the prompt was not in its cache; empty if it was, or was not asked."""
    missed: int | None = None
    """Tokens of that miss."""
    thoughtless: tuple[str, ...] = ()
    """Ids of earlier messages whose thoughts the provider refused to take back: they are sent without from then on."""
    refused: tuple[str, ...] = ()
    """Names of images and other parts that the provider refused: they are left out from then on."""
    reduced: str = ""
    """How what the server saw of this request differs from earlier ones: what was left out, or that something between
    changes it, as a clause."""


class Response(Struct, frozen=True):
    """Metadata of the model response behind an assistant message."""

    origin: Origin
    stop: Stop = Stop()
    usage: Usage | None = None
    response_id: str | None = None
    complete: bool = True
    """False if the stream was cut, failed or was interrupted; its tool calls were never executed."""
    report: ProviderReport | None = None
    effort: str | None = None
    """Reasoning effort of the request; None: the provider's default, or unknown."""


class Message(Struct, frozen=True):
    """One entry of the conversation. Finished messages are immutable.

    ``id`` is the ledger id. ``response`` is set on assistant messages only. A ``tool`` message holds one
    ``ToolResultPart`` for each call of the assistant message before it, in call order. A ``user`` message with a
    ``note`` comes from swecli; each protocol has its own place for it.
    """

    role: Role
    parts: tuple[Part, ...]
    id: str = ""
    response: Response | None = None
    note: NoteForm = ""

    @property
    def text(self) -> str:
        """The visible text, without reasoning, calls and results."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def attached(self) -> tuple[ImagePart | DocumentPart, ...]:
        """Images and files in order, those of results included."""
        attached: list[ImagePart | DocumentPart] = []
        for part in self.parts:
            if isinstance(part, ImagePart | DocumentPart):
                attached.append(part)
            elif isinstance(part, ToolResultPart):
                attached += (*part.images, *part.documents)
        return tuple(attached)

    @property
    def tool_calls(self) -> tuple[ToolCallPart, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCallPart))

    @property
    def tool_results(self) -> tuple[ToolResultPart, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolResultPart))


_TARGETS: Final = ("command", "path", "pattern", "query", "url", "question", "ref_id", "id", "name")
"""Arguments that best describe a call, in order of preference."""
_PARTIAL: Final = lazy_pattern(r'"(' + "|".join(_TARGETS) + r')"\s*:\s*("(?:[^"\\]|\\.)*"?)')
MAX_PARSED: Final = 100_000


def target_of(arguments: str) -> str:
    """Subject of a call, from its arguments' JSON text, which may be incomplete or invalid."""
    head = arguments[:MAX_PARSED]
    values: dict[str, str] = {}
    for match in _PARTIAL.finditer(head):
        value = match[2] if len(match[2]) > 1 and match[2].endswith('"') else match[2] + '"'
        try:
            values.setdefault(match[1], str(json.loads(value)))
        except ValueError:
            continue
    for key in _TARGETS:
        if values.get(key):
            return values[key]
    return ""
