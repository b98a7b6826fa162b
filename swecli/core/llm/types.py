"""The model port: from a neutral request to a stream of neutral events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from msgspec import Struct

from swecli.core.llm.capabilities import Capabilities
from swecli.core.protocol.messages import Message, ToolCallPart, Usage

ErrorKind = Literal[
    "context_overflow",
    "quota",
    "rate_limit",
    "overloaded",
    "auth",
    "not_found",
    "too_large",
    "bad_request",
    "server",
    "network",
    "stalled",
    "truncated",
    "protocol",
]
"""Kind of a request's failure. ``truncated``: the stream ended without its terminal event; ``stalled``: no meaningful
event within the limit; ``protocol``: the answer does not follow the protocol (HTML, garbage)."""

RETRYABLE: frozenset[ErrorKind] = frozenset(("rate_limit", "overloaded", "server", "network", "stalled", "truncated"))
HOPELESS: frozenset[ErrorKind] = frozenset(("context_overflow", "quota", "auth", "not_found", "too_large"))
"""The same request would fail again, whatever the server says."""


@dataclass(frozen=True, slots=True)
class ProviderError(Exception):
    """A failed request. ``message`` is the provider's own sentence; ``hint`` says what the user can do."""

    kind: ErrorKind
    message: str
    status: int | None = None
    code: str | int | None = None
    error_type: str | None = None
    retry_after: float | None = None
    """Seconds that the server asked to wait."""
    prompt_tokens: int | None = None
    """Prompt size according to an overflow error."""
    window: int | None = None
    """Context window in tokens according to an overflow error."""
    hint: str = ""
    should_retry: bool | None = None
    """Whether the server declared the request repeatable or not."""
    moderated: bool = False
    """The server refused the request's content."""
    unreached: str = ""
    """Host and port, if no connection was made or it ended before the first byte of an answer."""

    @property
    def retryable(self) -> bool:
        if self.should_retry is not None and self.kind not in HOPELESS:
            return self.should_retry
        return self.kind in RETRYABLE

    def __str__(self) -> str:
        status = f" (HTTP {self.status})" if self.status is not None and self.status != 200 else ""
        return f"{self.kind}{status}: {self.message}"


class SystemBlock(Struct, frozen=True):
    """One piece of the system prompt; ``breakpoint`` requests a cache breakpoint after it."""

    text: str
    breakpoint: bool = False


class ToolSchema(Struct, frozen=True):
    """A tool as the model sees it. ``parameters`` is a JSON Schema object, fixed for the session. ``source`` is the
    tool's owner, for the measure; empty for swecli's own."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    source: str = ""


class ServerClearing(Struct, frozen=True):
    """Request for the provider to remove old tool results itself, from a prompt of ``trigger_tokens`` on, except those
    of the newest ``keep_tool_uses`` calls and of ``exclude_tools``."""

    trigger_tokens: int = 100_000
    keep_tool_uses: int = 3
    exclude_tools: tuple[str, ...] = ()


WEB_SEARCH = "web_search"
"""Name of Anthropic's tool, of swecli's own, and of searches in the transcript."""


class WebSearch(Struct, frozen=True):
    """Request for the provider's own web search. At most one of the lists of domains is set. ``max_uses`` is the
    number of searches in one turn, ``left`` the number that this turn still has."""

    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    max_uses: int = 5
    left: int = 5


class WebSource(Struct, frozen=True):
    """A page that a search found. Both texts come from outside."""

    url: str
    title: str = ""


class AnswerFormat(Struct, frozen=True):
    """JSON schema for the text of the answer. ``last``: the answer ends the work, so that the model needs no tools."""

    schema: Mapping[str, Any]
    last: bool = False


class Announcement(Struct, frozen=True):
    """Tools that change where a note of the conversation says so, by the note's id. ``tools`` join, by their names;
    ``removed`` are gone, and then those ``defined`` are there, in their new form or as they were."""

    note: str
    tools: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    defined: tuple[ToolSchema, ...] = ()


class ModelRequest(Struct, frozen=True):
    """One request.

    ``breakpoints`` are indexes into ``messages`` after which a cache breakpoint is requested. ``session`` routes
    provider caches.
    """

    system: tuple[SystemBlock, ...]
    tools: tuple[ToolSchema, ...]
    messages: tuple[Message, ...]
    breakpoints: tuple[int, ...] = ()
    max_output_tokens: int | None = None
    effort: str | None = None
    session: str = ""
    server_clearing: ServerClearing | None = None
    """For protocols that support it; others omit it."""
    announced: tuple[Announcement, ...] = ()
    """Those of ``tools`` that are not part of the request's beginning, for models that read them elsewhere."""

    @property
    def first_tools(self) -> tuple[ToolSchema, ...]:
        """The tools at the beginning of the request."""
        later = {name for announcement in self.announced for name in announcement.tools}
        return tuple(tool for tool in self.tools if tool.name not in later) if later else self.tools

    web_search: WebSearch | None = None
    """For models that have one; others omit it."""
    answer_format: AnswerFormat | None = None
    """For models that support it; others omit it. It does not belong to the prefix that thoughts are signed with."""
    summarise: str | None = None
    """Ask the provider for its summary of the conversation in place of an answer, by these instructions. Only for
    models with ``server_compaction``, by Anthropic's protocol."""
    prewarm: bool = False
    """Only fill the provider's cache, without an answer. Only for models with ``prewarms``; a server that refuses it is
    not asked for an answer."""


# --- stream events: ``part`` is the index of the part within the assistant message -----------------------


class Started(Struct, frozen=True):
    """The provider accepted the request and began to answer."""

    model: str | None = None
    response_id: str | None = None


class TextDelta(Struct, frozen=True):
    part: int
    text: str


class ReasoningDelta(Struct, frozen=True):
    part: int
    text: str
    kind: Literal["raw", "summary"] = "raw"


class CallText(Struct, frozen=True):
    """Text that probably is a call. It arrives again as a ``TextDelta`` if it is none, and as a part of the finished
    message otherwise. ``name`` is that of its tool, empty until the model has written it."""

    part: int
    text: str
    name: str = ""


class ToolCallStarted(Struct, frozen=True):
    part: int
    call_id: str
    name: str


class ToolArgsDelta(Struct, frozen=True):
    part: int
    text: str


class ToolCallDone(Struct, frozen=True):
    """The call's arguments are complete; it must not run before ``Finished``."""

    part: int
    call: ToolCallPart


class SearchStarted(Struct, frozen=True):
    """The provider searches the web: a call that it runs itself."""

    part: int
    query: str


class SearchEnded(Struct, frozen=True):
    """``problem`` says why the search failed, empty if it did not."""

    part: int
    sources: tuple[WebSource, ...] = ()
    problem: str = ""


class SearchCited(Struct, frozen=True):
    """Pages that the whole answer cites."""

    sources: tuple[WebSource, ...]


class UsageUpdate(Struct, frozen=True):
    """Replaces earlier reports; never add them up."""

    usage: Usage


class PromptRead(Struct, frozen=True):
    """The server has evaluated ``read`` of ``total`` tokens of the prompt, those in its cache included."""

    read: int
    total: int


class StreamNotice(Struct, frozen=True):
    """A notice for one line: an optional parameter was dropped, an unknown item was kept."""

    text: str


class Finished(Struct, frozen=True):
    """Terminal: the whole assistant message, ``response`` set."""

    message: Message


class Failed(Struct, frozen=True):
    """Terminal: the error and the part received until then (``response.complete`` is False), if any."""

    error: ProviderError
    message: Message | None = None


StreamEvent = (
    Started
    | TextDelta
    | ReasoningDelta
    | ToolCallStarted
    | ToolArgsDelta
    | ToolCallDone
    | SearchStarted
    | SearchEnded
    | SearchCited
    | UsageUpdate
    | PromptRead
    | CallText
    | StreamNotice
    | Finished
    | Failed
)


ASSUMED_WINDOW = 32_000
"""Tokens; the context window of an unknown model."""


SHORTEST_CACHE = 300.0
"""Seconds for which every provider with a prompt cache keeps an unused prompt."""


Profile = Literal["full", "lean", "minimal"]
"""Size of the system prompt and of the tools."""


class ModelInfo(Struct, frozen=True, eq=False):
    """Data of a model. None = unknown; ``window_source`` is the source of the window."""

    provider: str
    name: str
    window: int | None = None
    """Total context window in tokens."""
    max_output: int | None = None
    window_source: str = "assumed"
    images: bool | None = None
    """Whether it accepts images; None if unknown."""
    tools: bool = True
    """False if the model is known to support tools only as text."""
    efforts: tuple[str, ...] | None = None
    """Effort words; empty if it takes none, None if unknown."""
    address: str = ""
    """Base URL without a password; empty for the provider's own."""
    usual_output: int | None = None
    """Requested answer limit if the longest answer is unknown; None = the provider decides."""
    capabilities: Capabilities = Capabilities()
    """Features of the model that requests may use at this address."""
    warms: bool = False
    """Whether requests ahead of time cost nothing and help: a known server program on this machine keeps what it has
    evaluated."""
    prewarms: bool = False
    """Whether the user wants its provider to fill the cache ahead of a message, at a price."""
    profile: Profile | None = None
    """Set by the user; None = by the window."""
    tells_progress: bool = False
    """Whether its server can tell how much of a prompt it has read."""
    tells_slots: bool = False
    """Whether its server can tell which of its slots work on requests."""
    cache_seconds: float = SHORTEST_CACHE
    """How long the provider keeps an unused prompt in its cache, at least."""
    answering: str = ""
    """Another model, the only one of its server, which answers to any name; empty if this one answers."""

    @property
    def ref(self) -> str:
        """``provider/name``, the format of ``-m``."""
        return f"{self.provider}/{self.name}"

    def __eq__(self, other: object) -> bool:
        return self._identity == other._identity if isinstance(other, ModelInfo) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other  # a struct's own does not call __eq__

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[object, ...]:
        """All except how it is reached and asked: efforts, address, usual length of an answer, capabilities, warming,
        cache."""
        return (
            *(self.provider, self.name, self.window, self.max_output, self.profile),
            *(self.window_source, self.images, self.tools),
        )


@runtime_checkable
class CountsAtServer(Protocol):
    """A client whose server may have a tokenizer."""

    async def count_tokens(self, text: str) -> int | None: ...


@runtime_checkable
class HasSlots(Protocol):
    """A client whose server may tell which of its slots work on requests."""

    async def busy_slots(self) -> tuple[int, int] | None: ...


class ModelClient(Protocol):
    """One model behind one endpoint."""

    @property
    def info(self) -> ModelInfo: ...

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Send the request. Yields events, the last of which is ``Finished`` or ``Failed``; raises only cancellation.
        Makes exactly one attempt: retrying is the engine's decision. Closing the iterator (or cancelling the task)
        aborts the request at once."""
        ...

    async def close(self) -> None: ...
