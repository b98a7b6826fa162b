"""What can be chosen about compaction, under the names that programs use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from swecli.core.config.context_settings import RetentionSettings
from swecli.core.context_management.compaction.sizes import Allowances
from swecli.core.llm.types import ModelClient

StrategyName = Literal["chain", "truncation", "importance", "summarization"]
Trigger = Literal["manual", "auto", "overflow", "model"]


@dataclass(frozen=True, slots=True)
class TruncationStrategy:
    """Drop the oldest messages. Pairs of call and result are never split; the system prompt is not part of the
    history and always stays."""

    keep_recent: int = 10
    preserve_system: bool = True
    preserve_tool_chains: bool = True


@dataclass(frozen=True, slots=True)
class ImportanceStrategy:
    """Drop the messages that score lowest. Long answers score ``assistant_message_score``, short ones two fifths of
    it; what recent messages refer to scores 1."""

    keep_recent: int = 10
    user_message_score: float = 1.0
    assistant_message_score: float = 0.6
    tool_use_score: float = 1.0
    min_score_threshold: float = 0.3


@dataclass(frozen=True, slots=True)
class SummarizationStrategy:
    """Replace old messages by a summary of at most ``max_summary_tokens``. A conversation that is too long for one
    request is summarised in steps, groups of ``summarize_chunk_size`` messages staying together.
    ``summarize_with`` is another model; None = the session's own, which reads the conversation from its cache."""

    keep_recent: int = 10
    summarize_chunk_size: int = 20
    max_summary_tokens: int = 500
    summarize_with: ModelClient | None = None


@dataclass(frozen=True, slots=True)
class CompactContext:
    """What a hook is told before a compaction. Tokens are of the whole request."""

    trigger: Literal["manual", "auto"]
    current_tokens: int
    target_tokens: int
    message_count: int
    custom_instructions: str | None = None


@dataclass(frozen=True, slots=True)
class CompactDecision:
    """What a hook decides. ``cancel`` is honoured unless no request would fit any more without compaction."""

    cancel: bool = False
    custom_instructions: str | None = None
    custom_summary: str | None = None
    reason: str = ""
    """Why it cancels, for the user."""


PreCompact = Callable[[CompactContext], Awaitable[CompactDecision]]
PostCompact = Callable[["CompactResult"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class CompactionOptions:
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
    """Told of each compaction after it was recorded."""

    @property
    def recent_messages(self) -> int:
        """Messages that stay word for word beside a summary."""
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


@dataclass(frozen=True, slots=True)
class CompactResult:
    """What a compaction did, in tokens of the whole request and in messages."""

    before_tokens: int
    after_tokens: int
    before_msg_count: int
    after_msg_count: int
    strategies_run: tuple[str, ...]
    summary: str = ""

    @property
    def saved_tokens(self) -> int:
        return self.before_tokens - self.after_tokens

    @property
    def removed_messages(self) -> int:
        return self.before_msg_count - self.after_msg_count
