"""What can be chosen about a compaction, and the sizes and allowances that follow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.config.settings import RetentionSettings
from swecli.core.context_management.ledger import Entry, Ledger
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.llm.types import ModelClient, ModelInfo
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.events import ViewEntry
from swecli.core.protocol.messages import Message, Role

CHARACTERS_PER_TOKEN = 3.2
"""Of a stub, which has many digits and marks."""


class EntrySizes:
    """Estimates, each made once and scaled by what is known of the model's tokenizer."""

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

    def text(self, text: str) -> int:
        """Tokens of a text that is not in the ledger."""
        return round(self._monitor.count_tokens(text) * self._ratio)

    def stub(self, text: str) -> int:
        """Tokens of a stub, about: a pass makes thousands, and looks at most of them only to decide against it."""
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


class Allowances(Struct, frozen=True):
    """How much of each thing survives, in tokens: the smaller of an absolute figure and a share of the
    effective window, so that small windows keep their proportions."""

    user_messages: int
    tail: int
    attached: int
    summary: int
    protected: int
    """Newest part that clearing leaves alone."""
    worthwhile: int
    """Least that a clearing pass must free to pay for rewriting the provider's cache."""

    @classmethod
    def of(cls, effective: int) -> Allowances:

        def smaller(absolute: int, share: float) -> int:
            return max(1, min(absolute, int(effective * share)))

        return cls(
            user_messages=smaller(20_000, 0.08),
            tail=smaller(20_000, 0.08),
            attached=smaller(8_000, 0.03),
            summary=smaller(8_000, 0.04),
            protected=smaller(40_000, 0.20),
            worthwhile=smaller(20_000, 0.10),
        )


StrategyName = Literal["chain", "truncation", "importance", "summarization"]
Trigger = Literal["manual", "auto", "overflow", "model"]


class TruncationStrategy(Struct, frozen=True):
    """Drop the oldest messages. Pairs of call and result are never split; the system prompt is not part of the
    history and always stays. The two names that say so can't be given another value.

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
    """Drop the messages that score lowest. Long answers score ``assistant_message_score``, short ones two fifths of
    it; what recent messages refer to scores 1."""

    keep_recent: int = 10
    user_message_score: float = 1.0
    assistant_message_score: float = 0.6
    tool_use_score: float = 1.0
    min_score_threshold: float = 0.3


class SummarizationStrategy(Struct, frozen=True):
    """Replace old messages by a summary of at most ``max_summary_tokens``. A conversation that is too long for one
    request is summarised in steps, groups of ``summarize_chunk_size`` messages staying together.
    ``summarize_with`` is another model; None = the session's own, which reads the conversation from its cache."""

    keep_recent: int = 10
    summarize_chunk_size: int = 20
    max_summary_tokens: int = 500
    summarize_with: ModelClient | None = None


class CompactContext(Struct, frozen=True):
    """What a hook learns before a compaction. Tokens are of the whole request."""

    trigger: Literal["manual", "auto"]
    current_tokens: int
    target_tokens: int
    message_count: int
    custom_instructions: str | None = None


class CompactDecision(Struct, frozen=True):
    """What a hook decides. ``cancel`` is honoured unless no request would fit any more without compaction."""

    cancel: bool = False
    custom_instructions: str | None = None
    custom_summary: str | None = None
    reason: str = ""
    """Why it cancels, for the user."""


PreCompact = Callable[[CompactContext], Awaitable[CompactDecision]]
PostCompact = Callable[["CompactResult"], Awaitable[None]]


class CompactionOptions(Struct, frozen=True):
    """What is chosen. Sizes are tokens; None = by the size of the window."""

    strategy: StrategyName = "chain"
    auto: bool = True
    """False: no model is asked to compact and nothing is cleared unless the user says so; only what ``retention`` says
    still happens."""
    keep_recent: int = 10
    """Newest messages that stay word for word as far as they have room, where a summary or record takes the place of
    the others."""
    keep_recent_tokens: int | None = None
    max_summary_tokens: int | None = None
    retention: tuple[RetentionSettings, ...] = ()
    """Rules about what goes first and what stays."""
    truncation: TruncationStrategy = field(default_factory=TruncationStrategy)
    importance: ImportanceStrategy = field(default_factory=ImportanceStrategy)
    summarization: SummarizationStrategy | None = None
    on_pre_compact: PreCompact | None = None
    on_post_compact: PostCompact | None = None
    """Called after each compaction was recorded."""

    @property
    def recent_messages(self) -> int:
        chosen = self.summarization if self.strategy == "summarization" else None
        return chosen.keep_recent if chosen is not None else self.keep_recent

    def allowances(self, effective: int) -> Allowances:
        """How much of each thing survives in an effective window of so many tokens."""
        usual = Allowances.of(effective)
        caps = (usual.summary, self.max_summary_tokens, self.summarization and self.summarization.max_summary_tokens)
        return replace(
            usual,
            tail=usual.tail if self.keep_recent_tokens is None else min(self.keep_recent_tokens, effective),
            summary=min(cap for cap in caps if cap is not None),
        )


class CompactResult(Struct, frozen=True):
    """What a compaction did, in tokens of the whole request and in messages."""

    before_tokens: int
    after_tokens: int
    before_msg_count: int
    after_msg_count: int
    strategies_run: tuple[str, ...]
    summary: str = ""


class HookOutcome(Struct, frozen=True):
    """What holds for one compaction after its hook was asked. ``declined`` says why there is to be none; empty when
    it goes on. ``notes`` are for the user."""

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
    """Ask the hook. A cancel is honoured unless no request fits any more; a hook that fails has no say.

    ``messages`` is their number, ``target`` the size in tokens that is aimed at.
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
    """Tell the hook what was done. Returns what the user should know of it, empty when all went well."""
    if options.on_post_compact is None:
        return ""
    try:
        await options.on_post_compact(result)
    except Exception as error:  # noqa: BLE001 - what is done is done: the failure is reported
        return f"its post-compaction hook failed ({_named(error)})"
    return ""


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
