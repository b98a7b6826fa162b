"""Options of a compaction, and the sizes and allowances derived from them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Literal, Protocol, runtime_checkable

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.config.settings import RetentionSettings
from swecli.core.context_management.entry_bodies import stub_parts
from swecli.core.context_management.ledger import Entry, Ledger
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.llm.types import ModelClient, ModelInfo
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.messages import Message, Role

CHARACTERS_PER_TOKEN = 3.2
"""Characters per token of a stub, which has many digits and punctuation marks."""


class EntrySizes:
    """Estimates, each computed once and scaled by the known ratio of the model's tokenizer."""

    def __init__(self, monitor: TokenMonitor, info: ModelInfo) -> None:
        self._monitor = monitor
        self._ratio = monitor.ratio(info)
        self._known = monitor.part_counts

    def entry(self, entry: Entry) -> int:
        known = self._known.get(entry.id)
        if known is None or known[0] is not entry.body:
            tokens = self._monitor.count_once(Message(_role(entry), entry.parts, entry.id))
            known = self._known[entry.id] = (entry.body, tokens)
        return round(known[1] * self._ratio)

    def offloaded(self, entry: Entry, stub: str) -> int:
        """Tokens of an entry with this stub in place of its content, counted like the entry."""
        message = Message(_role(entry), stub_parts(entry.body.outline, stub), entry.id)
        return round(self._monitor.count_once(message) * self._ratio)

    def text(self, text: str) -> int:
        """Tokens of a text outside the ledger."""
        return round(self._monitor.count_tokens(text) * self._ratio)

    def stub(self, text: str) -> int:
        """Approximate tokens of a stub: a pass makes thousands, and rejects most of them by this number."""
        return round(len(text) / CHARACTERS_PER_TOKEN * self._ratio)

    def viewed(self, entry: ViewEntry, ledger: Ledger) -> int:
        known = ledger.entries.get(entry.id)
        if entry.kind == "live" and known is not None:
            return self.entry(known)
        return self.text(entry.text)

    def view(self, view: Iterable[ViewEntry], ledger: Ledger) -> int:
        return sum(self.viewed(entry, ledger) for entry in view)


def _role(entry: Entry) -> Role:
    match entry.kind:
        case "user" | "attachment" | "note":
            return "user"
        case "result":
            return "tool"
        case _:
            return "assistant"


WORTHWHILE = 0.10
"""The least that a clearing pass must free, as a share of the effective window."""


class Allowances(Struct, frozen=True):
    """Tokens of each kind that survive: the smaller of an absolute figure and a share of the effective window, so that
    small windows keep their proportions."""

    user_messages: int
    reports: int
    """Reports of subagents in the background."""
    tail: int
    attached: int
    summary: int
    protected: int
    """Newest part that clearing leaves unchanged."""
    worthwhile: int
    """Least tokens that a clearing pass must free to pay for rewriting the provider's cache."""

    @classmethod
    def of(cls, effective: int) -> Allowances:

        def smaller(absolute: int, share: float) -> int:
            return max(1, min(absolute, int(effective * share)))

        return cls(
            user_messages=smaller(20_000, 0.08),
            reports=smaller(20_000, 0.08),
            tail=smaller(20_000, 0.08),
            attached=smaller(8_000, 0.03),
            summary=smaller(8_000, 0.04),
            protected=smaller(40_000, 0.20),
            worthwhile=smaller(20_000, WORTHWHILE),
        )


StrategyName = Literal["chain", "truncation", "importance", "summarization"]
Trigger = Literal["manual", "auto", "overflow", "model"]


class TruncationStrategy(Struct, frozen=True):
    """Drop the oldest messages. Pairs of call and result are never split; the system prompt is not part of the history
    and always stays. The two fields for that are fixed.

    Raises:
        ValueError: one of them is False.
    """

    keep_recent: int = 10
    preserve_system: Literal[True] = True
    preserve_tool_chains: Literal[True] = True

    def __post_init__(self) -> None:
        if not self.preserve_system:
            raise ValueError("preserve_system must be True: every request has a system prompt")
        if not self.preserve_tool_chains:
            raise ValueError("preserve_tool_chains must be True: providers reject a result without its call")


class ImportanceStrategy(Struct, frozen=True):
    """Drop the messages with the lowest scores. Long answers score ``assistant_message_score``, short ones two fifths
    of it; content that recent messages refer to scores 1."""

    keep_recent: int = 10
    user_message_score: float = 1.0
    assistant_message_score: float = 0.6
    tool_use_score: float = 1.0
    min_score_threshold: float = 0.3


@runtime_checkable
class MakesModelClient(Protocol):
    """What has a model of its own, as a ``Client`` of the library."""

    def model_client(self) -> ModelClient: ...


class SummarizationStrategy(Struct, frozen=True):
    """Replace old messages by a summary of at most ``max_summary_tokens``. A conversation too long for one request is
    summarised in steps, with groups of ``summarize_chunk_size`` messages kept together. ``summarize_with`` is another
    model, or a ``Client`` that has it; None = the session's own, which reads the conversation from its cache."""

    keep_recent: int = 10
    summarize_chunk_size: int = 20
    max_summary_tokens: int = 500
    summarize_with: ModelClient | MakesModelClient | None = None

    @property
    def other_model(self) -> ModelClient | None:
        given = self.summarize_with
        return given.model_client() if isinstance(given, MakesModelClient) else given


class CompactContext(Struct, frozen=True):
    """Input of a hook before a compaction. Tokens are of the whole request."""

    trigger: Literal["manual", "auto"]
    current_tokens: int
    target_tokens: int
    message_count: int
    custom_instructions: str | None = None


class CompactDecision(Struct, frozen=True):
    """Decision of a hook. ``cancel`` is honoured unless no request would fit without compaction."""

    cancel: bool = False
    custom_instructions: str | None = None
    custom_summary: str | None = None
    reason: str = ""
    """Reason for the cancellation, for the user."""


PreCompact = Callable[[CompactContext], Awaitable[CompactDecision]]
PostCompact = Callable[["CompactResult"], Awaitable[None]]


class CompactionOptions(Struct, frozen=True):
    """Options of compaction. Sizes are tokens; None = by the size of the window."""

    strategy: StrategyName = "chain"
    auto: bool = True
    """False: without a command of the user no model writes a summary and nothing is cleared; ``retention`` still
    applies."""
    keep_recent: int = 10
    """Newest messages that stay word for word, if there is room, beside a summary or record of the others."""
    keep_recent_tokens: int | None = None
    max_summary_tokens: int | None = None
    retention: tuple[RetentionSettings, ...] = ()
    """Rules for entries to remove first and entries to keep."""
    truncation: TruncationStrategy = field(default_factory=TruncationStrategy)
    importance: ImportanceStrategy = field(default_factory=ImportanceStrategy)
    summarization: SummarizationStrategy | None = None
    provider_summary: bool = False
    """Whether the provider writes the summary, where the model can have that."""
    on_pre_compact: PreCompact | None = None
    on_post_compact: PostCompact | None = None
    """Called after each compaction is recorded."""

    @property
    def recent_messages(self) -> int:
        chosen = self.summarization if self.strategy == "summarization" else None
        return chosen.keep_recent if chosen is not None else self.keep_recent

    def allowances(self, effective: int) -> Allowances:
        """The allowances in an effective window of this size."""
        usual = Allowances.of(effective)
        caps = (usual.summary, self.max_summary_tokens, self.summarization and self.summarization.max_summary_tokens)
        return replace(
            usual,
            tail=usual.tail if self.keep_recent_tokens is None else min(self.keep_recent_tokens, effective),
            summary=min(cap for cap in caps if cap is not None),
        )


class CompactResult(Struct, frozen=True):
    """Result of a compaction, in tokens of the whole request and in messages."""

    before_tokens: int
    after_tokens: int
    before_msg_count: int
    after_msg_count: int
    strategies_run: tuple[str, ...]
    summary: str = ""


class HookOutcome(Struct, frozen=True):
    """Settings of one compaction after its hook. ``declined`` is the reason against it; empty if it continues.
    ``notes`` are for the user."""

    focus: str = ""
    summary: str = ""
    declined: str = ""
    notes: tuple[str, ...] = ()


async def run_pre_hook(
    options: CompactionOptions,
    trigger: Trigger,
    focus: str,
    before: Budget,
    messages: int,
    target: int,
    *,
    forced: bool,
) -> HookOutcome:
    """Run the hook. A cancellation is honoured unless no request fits any more; a failing hook is ignored.

    ``messages`` is their number, ``target`` the desired size in tokens.
    """
    hook = options.on_pre_compact
    if hook is None:
        return HookOutcome(focus)
    context = CompactContext("manual" if trigger == "manual" else "auto", before.used, target, messages, focus or None)
    try:
        decision = await hook(context)
    except Exception as error:  # noqa: BLE001 - a program of the user's may raise anything; it is reported and has no say
        return HookOutcome(focus, notes=(f"its pre-compaction hook failed ({_named(error)}) and was ignored",))
    notes: Sequence[str] = ()
    if decision.cancel:
        why = f": {decision.reason}" if decision.reason else ""
        if not forced:
            return HookOutcome(declined=f"cancelled by a hook{why}")
        full = f"{before.upper:,} of {before.effective:,} tokens are in use"
        notes = (f"a hook tried to cancel it{why}, but no request fits without it ({full})",)
    words = "\n".join(text for text in (focus, decision.custom_instructions) if text)
    return HookOutcome(words, (decision.custom_summary or "").strip(), notes=tuple(notes))


async def run_post_hook(options: CompactionOptions, result: CompactResult) -> str:
    """Report the result to the hook. Returns a message for the user, empty if all went well."""
    if options.on_post_compact is None:
        return ""
    try:
        await options.on_post_compact(result)
    except Exception as error:  # noqa: BLE001 - what is done is done: the failure is reported
        return f"its post-compaction hook failed ({_named(error)})"
    return ""


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
