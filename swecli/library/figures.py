"""Figures of a context, under their public names."""

from __future__ import annotations

from dataclasses import dataclass

from swecli.core.context_management.budget import ComponentLimits, Limits
from swecli.core.context_management.compaction.options import CompactResult
from swecli.core.protocol import messages as protocol
from swecli.core.protocol.budget import (
    MEMORY,
    PLAYBOOK,
    PROJECT_INSTRUCTIONS,
    SKILLS,
    SYSTEM,
    USER_INSTRUCTIONS,
    Budget,
    ContextLevel,
    is_tools,
)

DEFAULTS = Limits()


class ContextLimits(Limits):
    """The thresholds of a context under their public names: shares of the effective window, and tokens.

    Raises:
        ValueError: as ``Limits``.
    """

    __slots__ = ()

    def __init__(
        self,
        max_context_tokens: int | None = None,
        max_output_tokens: int | None = None,
        warning_threshold: float = DEFAULTS.warn,
        compaction_threshold: float = DEFAULTS.compact,
        *,
        target_tokens: int | None = None,
        components: ComponentLimits | None = None,
    ) -> None:
        super().__init__(
            warn=warning_threshold,
            compact=compaction_threshold,
            block=max(compaction_threshold, DEFAULTS.block),
            context_budget=max_context_tokens,
            max_output_tokens=max_output_tokens,
            target_tokens=target_tokens,
            components=components or ComponentLimits(),
        )

    @property
    def max_context_tokens(self) -> int | None:
        return self.context_budget

    @property
    def warning_threshold(self) -> float:
        return self.warn

    @property
    def compaction_threshold(self) -> float:
        return self.compact


class ContextBudget(Budget, frozen=True):
    """A measure with sums for programs, in tokens."""

    @classmethod
    def of(cls, budget: Budget) -> ContextBudget:
        """The same measure."""
        return cls(
            budget.components,
            budget.used,
            budget.upper,
            budget.effective,
            budget.window,
            budget.reserve,
            budget.level,
            budget.source,
            budget.window_source,
            budget.warn_at,
            budget.compact_at,
            budget.block_at,
        )

    @property
    def total(self) -> int:
        """The whole window."""
        return self.window

    @property
    def max_output_tokens(self) -> int:
        """The part of the window that is kept for the answer."""
        return self.reserve

    @property
    def system_prompt(self) -> int:
        """The system prompt with all instructions, memories and bullets."""
        return self._sum(SYSTEM, USER_INSTRUCTIONS, PROJECT_INSTRUCTIONS, MEMORY, PLAYBOOK)

    @property
    def skill_prompts(self) -> int:
        """Active skills."""
        return self._sum(SKILLS)

    @property
    def tool_descriptions(self) -> int:
        """The tools as the model sees them."""
        return sum(component.tokens for component in self.components if is_tools(component.name))

    @property
    def conversation(self) -> int:
        """Everything else: messages, calls and results, and the tail."""
        return self.used - self.system_prompt - self.skill_prompts - self.tool_descriptions

    def effective_window(self) -> int:
        """Limit of a request: the window without the reserve for the answer."""
        return self.effective

    def used_tokens(self) -> int:
        return self.used

    def remaining_tokens(self) -> int:
        """Rest of the effective window; below 0 if the request overflows."""
        return self.effective - self.used

    def used_percentage(self) -> float:
        """0 to 100, more if the request overflows."""
        return 100 * self.share

    def exceeds_budget(self) -> bool:
        return self.used > self.effective

    def _sum(self, *names: str) -> int:
        return sum(component.tokens for component in self.components if component.name in names)


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one response: the whole ``prompt``, the ``completion``, and their sum."""

    prompt: int = 0
    completion: int = 0
    total: int = 0

    def __post_init__(self) -> None:
        if not self.total:
            object.__setattr__(self, "total", self.prompt + self.completion)

    @classmethod
    def of(cls, usage: protocol.Usage) -> TokenUsage:
        """The figures of a report."""
        return cls(usage.prompt, usage.output_total or 0)


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What a compaction removed and saved; ``summary`` is empty without one."""

    removed_messages: int
    saved_tokens: int
    summary: str = ""

    @classmethod
    def of(cls, result: CompactResult) -> CompactionResult:
        """The figures of one compaction."""
        removed = result.before_msg_count - result.after_msg_count
        return cls(removed, result.before_tokens - result.after_tokens, result.summary)


@dataclass(frozen=True, slots=True)
class ContextStats:
    """``max_tokens`` is the effective window, ``usage_percent`` 0 to 100, more if it overflows. ``oldest_message_age``
    is seconds; None = not known."""

    current_usage: int
    max_tokens: int
    usage_percent: float
    message_count: int
    oldest_message_age: float | None = None

    @classmethod
    def of(cls, budget: Budget, messages: int, oldest_message_age: float | None = None) -> ContextStats:
        """The figures of one measure."""
        return cls(budget.used, budget.effective, 100 * budget.share, messages, oldest_message_age)


@dataclass(frozen=True, slots=True)
class Forecast:
    """The size of a future request, and the band that should contain the true size."""

    tokens: int
    low: int
    high: int
    level: ContextLevel
    measured: bool
    """Whether it rests on the model's reported usage."""

    @classmethod
    def of(cls, budget: Budget) -> Forecast:
        """The band of one measure, symmetric around it."""
        low = max(0, 2 * budget.used - budget.upper)
        return cls(budget.used, low, budget.upper, budget.level, budget.source == "measured")
