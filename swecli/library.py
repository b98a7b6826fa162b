"""Public names of swecli's context for programs: documents, figures, counters, playbook, the context manager.

The program itself needs none of them. ``from swecli import ...`` has all of them and the ``Client``. Times are
timezone-aware, in UTC; sizes are tokens.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypedDict, cast, get_args

from msgspec import structs
from pydantic import Field

from swecli.core.context_management import context_manager, monitor
from swecli.core.context_management.budget import ComponentLimits, Limits, level_of, window_of
from swecli.core.context_management.calibration import RatioStore
from swecli.core.context_management.codebase import read_guide
from swecli.core.context_management.compaction.options import (
    CompactContext,
    CompactDecision,
    CompactionOptions,
    CompactResult,
    ImportanceStrategy,
    PostCompact,
    PreCompact,
    StrategyName,
    SummarizationStrategy,
    TruncationStrategy,
    run_post_hook,
)
from swecli.core.context_management.compaction.package import SessionFacts
from swecli.core.context_management.compaction.transaction import Compacted, Compaction, Job
from swecli.core.context_management.counter import CharCounter, CountsTokens, HybridCounter, PieceEstimator, pieces
from swecli.core.context_management.ledger import Ledger, bodies_of
from swecli.core.context_management.projection import project
from swecli.core.context_management.prompt import PromptTexts
from swecli.core.context_retriever import ContextRetriever, Document, TaskContext, now
from swecli.core.llm.types import Failed, ModelClient, ModelInfo, ModelRequest, ProviderError, ToolSchema
from swecli.core.llm.windows import look_up_model
from swecli.core.playbook.bullet import Bullet
from swecli.core.playbook.playbook import Playbook
from swecli.core.playbook.reflector import ExecutionReflector, ToolCall
from swecli.core.ports import BlobError
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
from swecli.core.protocol.events import Event
from swecli.core.sessions import results
from swecli.core.sessions.database import Database, open_database, open_in_memory
from swecli.core.sessions.store import add_session

__all__ = (
    "Bullet",
    "CodebaseSummary",
    "CompactContext",
    "CompactDecision",
    "CompactResult",
    "CompactedHistory",
    "CompactionOptions",
    "CompactionResult",
    "ComponentLimits",
    "ContextBudget",
    "ContextConfig",
    "ContextLimits",
    "ContextManager",
    "ContextRetriever",
    "ContextState",
    "ContextStats",
    "ExecutionReflector",
    "Forecast",
    "ImportanceStrategy",
    "Message",
    "Playbook",
    "ResultStore",
    "SummarizationStrategy",
    "TaskContext",
    "TokenCounter",
    "TokenMonitor",
    "TokenUsage",
    "ToolCall",
    "TransformersCounter",
    "TruncationStrategy",
    "UsageStats",
    "codebase_summary",
    "context_state",
    "ledger_of",
    "message_document",
)

DEFAULTS = Limits()
NO_MODEL = ModelInfo("unknown", "unknown", None)
"""Stands for the model where a measure needs none."""
DEFAULT_LIMIT = 256_000
"""Default limit in tokens."""


# --- the context as documents -----------------------------------------------------------------------------------


class Message(Document):
    """One message of a conversation. ``tokens`` 0 = not counted yet."""

    role: Literal["user", "assistant", "system", "tool"]
    content: str = ""
    timestamp: datetime = Field(default_factory=now)
    tokens: int = Field(default=0, ge=0)
    reasoning: str = ""
    tool_calls: list[dict[str, Any]] | None = None
    """``id``, ``name`` and ``arguments`` (the raw text) of each call."""
    tool_results: list[dict[str, Any]] | None = None
    """``id``, ``name``, ``text`` and ``is_error`` of each result."""

    def texts(self) -> Sequence[str]:
        """All its texts that count as tokens."""
        attached = [*(self.tool_calls or ()), *(self.tool_results or ())]
        texts = (self.content, self.reasoning, *(json.dumps(value, ensure_ascii=False) for value in attached))
        return [text for text in texts if text]


class CodebaseSummary(Document):
    """Knowledge about a project: folders with their files, important files, patterns with their places."""

    summary: str
    project_structure: dict[str, list[str]] = Field(default_factory=dict)
    key_files: list[str] = Field(default_factory=list)
    patterns: dict[str, str] = Field(default_factory=dict)
    last_updated: datetime = Field(default_factory=now)
    tokens: int = Field(default=0, ge=0)

    def texts(self) -> Sequence[str]:
        """All its texts that count as tokens."""
        rest = (self.project_structure, self.key_files, self.patterns)
        return [self.summary, *(json.dumps(part, ensure_ascii=False) for part in rest if part)]


def codebase_summary(guide: str, written: float | None = None) -> CodebaseSummary:
    """The guide to a project (OPENCLI.md, as ``/init`` writes it) as a document. ``written`` is Unix seconds."""
    facts = read_guide(guide)
    summary = CodebaseSummary(
        summary=facts.summary,
        project_structure=facts.structure,
        key_files=facts.key_files,
        patterns=facts.patterns,
        last_updated=_moment(written),
    )
    summary.tokens = PieceEstimator().count(guide)
    return summary


class ContextState(Document):
    """A snapshot of a whole context. ``compaction_threshold`` is a share of the limit."""

    messages: list[Message] = Field(default_factory=list)
    codebase_summary: CodebaseSummary | None = None
    current_task: TaskContext | None = None
    total_tokens: int = Field(default=0, ge=0)
    context_limit: int = Field(default=DEFAULT_LIMIT, gt=0)
    compaction_threshold: float = Field(default=DEFAULTS.compact, gt=0, le=1)
    session_id: str
    working_dir: str
    started_at: datetime = Field(default_factory=now)
    last_compacted: datetime | None = None
    compaction_count: int = Field(default=0, ge=0)

    def needs_compaction(self) -> bool:
        return self.total_tokens >= self.context_limit * self.compaction_threshold

    def get_available_tokens(self) -> int:
        """Tokens left of the limit; below 0 if it overflows."""
        return self.context_limit - self.total_tokens

    def estimate_tokens(self, text: str) -> int:
        """Tokens of a text, without waiting for a vocabulary."""
        return HybridCounter().count(text)


def message_document(message: protocol.Message, timestamp: datetime, tokens: int = 0) -> Message:
    """One message of a conversation as a document."""
    reasoning = "".join(part.text for part in message.parts if isinstance(part, protocol.ReasoningPart))
    calls = [{"id": call.call_id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    results = [
        {"id": result.call_id, "name": result.name, "text": result.text, "is_error": result.is_error}
        for result in message.tool_results
    ]
    return Message(
        role=message.role,
        content=message.text,
        timestamp=timestamp,
        tokens=tokens,
        reasoning=reasoning,
        tool_calls=calls or None,
        tool_results=results or None,
    )


def context_state(
    messages: Sequence[protocol.Message],
    budget: Budget | None,
    *,
    session_id: str,
    working_dir: str,
    created: Mapping[str, float],
    compactions: Sequence[float] = (),
    codebase: CodebaseSummary | None = None,
) -> ContextState:
    """The state of a session from its messages and its newest measure. ``created`` returns the time of a message by its
    id, ``compactions`` are the times of the compactions in force (all Unix seconds).

    Counts of single messages stay 0: the sum is that of the measure, which includes their frames.
    """
    start = min(created.values(), default=None)
    documents = [
        message_document(message, _moment(created.get(message.id.removesuffix(".results"), start)))
        for message in messages
    ]
    return ContextState(
        messages=documents,
        codebase_summary=codebase,
        total_tokens=budget.used if budget else 0,
        context_limit=max(1, budget.effective) if budget else DEFAULT_LIMIT,
        session_id=session_id,
        working_dir=working_dir,
        started_at=_moment(start),
        last_compacted=_moment(compactions[-1]) if compactions else None,
        compaction_count=len(compactions),
    )


def _moment(at: float | None) -> datetime:
    return datetime.fromtimestamp(at, UTC) if at is not None else now()


# --- figures ----------------------------------------------------------------------------------------------------


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


class UsageStats(TypedDict):
    """Figures about a context state; ``usage_percent`` is 0 to 100, more if it overflows."""

    total_tokens: int
    limit: int
    usage_percent: float
    available_tokens: int
    needs_compaction: bool
    message_count: int
    compaction_count: int
    breakdown: dict[str, int]


# --- counting ---------------------------------------------------------------------------------------------------


CountingMethod = Literal["tiktoken", "transformers", "chars"]


class TokenCounter:
    """Counts tokens by one of three methods; any object with a ``count`` can replace it.

    - ``tiktoken``: OpenAI's o200k_base; estimates until the vocabulary is loaded (``load`` waits for it); -
    ``transformers``: the tokenizer of ``model``, a folder or a name in the local cache of the transformers package,
    which has to be installed; nothing is downloaded; - ``chars``: four characters a token, or ``chars_per_token``.

    Raises:
        ValueError: no such method, ``transformers`` without a model, or no such tokenizer on this machine.
        ImportError: the transformers package is not installed.
    """

    def __init__(self, method: CountingMethod = "tiktoken", *, model: str = "", chars_per_token: float = 4.0) -> None:
        if method not in get_args(CountingMethod):
            raise ValueError(f"unknown token counter {method!r}; use {', '.join(get_args(CountingMethod))}")
        self.method = method
        self._counter: CountsTokens
        if method == "tiktoken":
            self._counter = HybridCounter(delay=0)
        elif method == "transformers":
            self._counter = TransformersCounter(model)
        else:
            self._counter = CharCounter(chars_per_token)

    @property
    def exact(self) -> bool:
        """Whether counts come from a vocabulary rather than estimates."""
        return self._counter.exact if isinstance(self._counter, HybridCounter) else self.method == "transformers"

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return self._counter.count(text)

    async def count_ahead(self, texts: Iterable[str], *, exact: bool = True) -> None:
        """Count long texts in a thread, so that ``count`` need not wait for them later."""
        if isinstance(self._counter, HybridCounter):
            await self._counter.count_ahead(texts, exact=exact)

    async def make_exact(self) -> bool:
        """Wait for the vocabulary without blocking the event loop; whether counts are exact now."""
        if isinstance(self._counter, HybridCounter):
            await self._counter.make_exact()
        return self.exact

    def load(self) -> bool:
        """Wait until the vocabulary is loaded; whether counts are exact now. Not for the event loop."""
        if isinstance(self._counter, HybridCounter):
            self._counter.warm_up().join()
        return self.exact


class TransformersCounter:
    """Counts with a tokenizer of the transformers package, without a template's special tokens."""

    def __init__(self, model: str) -> None:
        if not model:
            raise ValueError("counting with transformers needs a model: a folder or a name in its local cache")
        try:
            # An optional package, unknown to the type checker.
            transformers: Any = import_module("transformers")
        except ImportError as error:
            raise ImportError(
                "counting with transformers needs the transformers package: pip install transformers"
            ) from error
        try:
            self._tokenizer: Any = transformers.AutoTokenizer.from_pretrained(model, local_files_only=True)
        except (OSError, ValueError) as error:
            raise ValueError(f"no tokenizer for {model!r} on this machine: {error}") from error
        self._estimator = PieceEstimator()

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return sum(self._count(piece) for piece in pieces(text)) if text else 0

    def _count(self, piece: str) -> int:
        try:
            return len(self._tokenizer.encode(piece, add_special_tokens=False))
        except (ValueError, TypeError, OverflowError):  # a lone surrogate, for example
            return self._estimator.count(piece)


class TokenMonitor(monitor.TokenMonitor):
    """The measure of requests, and of contexts as documents. ``context_limit`` is the limit of every updated state;
    None leaves each its own."""

    def __init__(
        self,
        context_limit: int | None = None,
        *,
        counter: CountsTokens | None = None,
        ratios: RatioStore | None = None,
    ) -> None:
        super().__init__(counter, ratios)
        self.context_limit = context_limit

    def count_message_tokens(self, message: Message | protocol.Message) -> int:
        """Estimated tokens of a message with its calls and results, in the counter's own unit."""
        if isinstance(message, Message):
            return sum(map(self.count_tokens, message.texts()))
        return self._sizes.message(message).total

    def update_context_state(self, state: ContextState) -> None:
        """Count the uncounted parts, and add up the state's total."""
        if self.context_limit is not None:
            state.context_limit = self.context_limit
        for message in state.messages:
            if message.tokens == 0:
                message.tokens = self.count_message_tokens(message)
        for part in (state.codebase_summary, state.current_task):
            if part is not None and part.tokens == 0:
                part.tokens = sum(map(self.count_tokens, part.texts()))
        state.total_tokens = sum(_breakdown(state).values())

    def get_usage_stats(self, state: ContextState) -> UsageStats:
        """The state in figures."""
        return {
            "total_tokens": state.total_tokens,
            "limit": state.context_limit,
            "usage_percent": 100 * state.total_tokens / state.context_limit,
            "available_tokens": state.get_available_tokens(),
            "needs_compaction": state.needs_compaction(),
            "message_count": len(state.messages),
            "compaction_count": state.compaction_count,
            "breakdown": _breakdown(state),
        }


def _breakdown(state: ContextState) -> dict[str, int]:
    return {
        "messages": sum(message.tokens for message in state.messages),
        "codebase_summary": state.codebase_summary.tokens if state.codebase_summary else 0,
        "current_task": state.current_task.tokens if state.current_task else 0,
    }


# --- the context manager ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ContextConfig:
    """How the context is kept within its window.

    ``max_context_tokens`` replaces the model's window; ``target_tokens`` is a size from which on the conversation is
    compacted; None uses the model's known values. Options of strategies that are not chosen have no effect.
    ``token_counter`` counts instead of the estimate.
    """

    max_context_tokens: int | None = None
    target_tokens: int | None = None
    strategy: StrategyName = "chain"
    truncation_options: TruncationStrategy | None = None
    importance_options: ImportanceStrategy | None = None
    summarization_options: SummarizationStrategy | None = None
    token_counter: CountsTokens | None = None
    component_limits: ComponentLimits | None = None
    """Limits of single components."""
    on_pre_compact: PreCompact | None = None
    on_post_compact: PostCompact | None = None
    auto: bool = True
    """False: compaction only on request."""

    def limits(self) -> Limits:
        """The thresholds.

        Raises:
            ValueError: sizes that contradict each other; the message names them.
        """
        return Limits(
            context_budget=self.max_context_tokens,
            target_tokens=self.target_tokens,
            components=self.component_limits or ComponentLimits(),
        )

    def compaction(self) -> CompactionOptions:
        """Options of compaction."""
        return CompactionOptions(
            strategy=self.strategy,
            auto=self.auto,
            truncation=self.truncation_options or TruncationStrategy(),
            importance=self.importance_options or ImportanceStrategy(),
            summarization=self.summarization_options,
            on_pre_compact=self.on_pre_compact,
            on_post_compact=self.on_post_compact,
        )


class ContextManager(context_manager.ContextManager):
    """Measures and compacts any history.

    ``context`` is a configuration, or the name of a provider together with its ``model``. Methods without ``info`` use
    the model of the newest measure, and before the first one that model; without any, the usual estimate and a cautious
    window. Histories are those of a conversation, exported ``Message`` documents, or dictionaries with ``role`` and
    ``content``. ``client`` writes summaries; without one, a compaction leaves them out.
    """

    def __init__(
        self,
        context: ContextConfig | str | None = None,
        model: str = "",
        *,
        client: ModelClient | None = None,
        tools: Sequence[ToolSchema] = (),
        texts: PromptTexts | None = None,
        special_tools: Callable[[str], Sequence[ToolSchema]] = lambda model: (),
    ) -> None:
        self.config = context if isinstance(context, ContextConfig) else ContextConfig()
        self.client = client
        measure = TokenMonitor(counter=self.config.token_counter)
        super().__init__(tools, texts, self.config.limits(), measure, special_tools=special_tools)
        if isinstance(context, str):
            self.measured_for = look_up_model(context, model)

    def count_tokens(self, content: str | History, info: ModelInfo | None = None) -> int:
        """Tokens of a text, of the text parts of one message's ``content``, or of a whole request with these messages,
        in the model's units."""
        model = self._model(info)
        texts = [content] if isinstance(content, str) else _content_texts(content)
        if texts:
            return round(sum(map(self.monitor.count_tokens, texts)) * self.monitor.ratio(model))
        return self.measure(messages_of(cast("History", content)), model).used

    def predict_next(self, messages: History, text: str = "", info: ModelInfo | None = None) -> Forecast:
        """The size of the next request if the user said ``text`` now."""
        draft = (protocol.Message("user", (protocol.TextPart(text),), "forecast"),) if text else ()
        return Forecast.of(self.measure((*messages_of(messages), *draft), self._model(info)))

    def get_stats(self, history: History | None = None, info: ModelInfo | None = None) -> ContextStats:
        """Figures about a history; None: about what was measured or reported last."""
        if history is None:
            budget = self._newest_measure or self.measure((), self._model(info))
            return ContextStats.of(budget, self.measured_messages)
        return ContextStats.of(self.measure(messages_of(history), self._model(info)), len(history))

    def should_compact(self, history: History, info: ModelInfo | None = None) -> bool:
        """Whether a request with this history would require compaction."""
        return self.measure(messages_of(history), self._model(info)).level in ("compact", "block")

    def update_usage(
        self, request: ModelRequest | TokenUsage, usage: protocol.Usage | None = None, info: ModelInfo | None = None
    ) -> int:
        """As in a session; or, for a program that sends its own requests, the usage of its newest one alone: the next
        begins with that prompt and its answer."""
        model = self._model(info)
        if not isinstance(request, TokenUsage):
            return super().update_usage(request, usage or protocol.Usage(), model)
        budget, total = self._newest_measure or self.measure((), model), request.total
        level = level_of(total, budget.effective, self.limits)
        self.newest = structs.replace(budget, used=total, upper=total, level=level, source="measured")
        self._newest_measure = self.newest
        return 0

    def needs_compaction(self) -> bool:
        """Whether the newest request requires compaction."""
        return self.newest is not None and self.newest.level in ("compact", "block")

    def is_blocked(self) -> bool:
        """Whether the newest request must not be sent."""
        return self.newest is not None and self.newest.level == "block"

    def exceeds_budget(self) -> bool:
        """Whether the newest request is larger than the effective window."""
        return self.newest is not None and self.newest.used > self.newest.effective

    async def compact(
        self,
        history: History,
        options: CompactionOptions | None = None,
        client: ModelClient | None = None,
        focus: str = "",
    ) -> CompactedHistory:
        """A shorter history, or the same one with the reason. ``options`` replace the configuration's, ``focus`` is the
        emphasis of a summary."""
        client = client or self.client or _NoClient(self._model(None))
        options = options or self.config.compaction()
        history = messages_of(history)
        ledger = ledger_of(history)
        ledger.pinned.update(message.id for message in history if message.id.startswith(_SYSTEM))
        prepared = self.prepare(project(ledger), info=client.info)
        count = sum(message.id.startswith("compacted") for message in history)
        job = Job("manual", f"compacted-{count + 1}", prepared.request, client, SessionFacts(), focus)
        outcome = await Compaction(self, ledger, job, options).run()
        if not isinstance(outcome, Compacted):
            return CompactedHistory(tuple(history), None, outcome.reason)
        trouble = await run_post_hook(options, outcome.result)
        kept = sorted(project(ledger, outcome.view), key=lambda message: not message.id.startswith(_SYSTEM))
        return CompactedHistory(tuple(kept), outcome.result, trouble)

    @staticmethod
    def get_context_limit(provider: str, model: str) -> int:
        """Context window of a model in tokens from the catalogue; for an unknown model a cautious guess."""
        return window_of(look_up_model(provider, model), Limits()).total

    def _model(self, info: ModelInfo | None) -> ModelInfo:
        return info or self.measured_for or NO_MODEL


class _NoClient:
    """Stands for a model that only its window is known of: it writes nothing."""

    def __init__(self, info: ModelInfo) -> None:
        self.info = info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Failed, None]:
        yield Failed(ProviderError("not_found", "no model client was given"))

    async def close(self) -> None:
        return


@dataclass(frozen=True, slots=True)
class CompactedHistory:
    """``messages`` is the history to continue with; ``result`` is None if it is unchanged. ``reason`` explains that, or
    a problem on the way."""

    messages: tuple[protocol.Message, ...]
    result: CompactResult | None
    reason: str = ""


Entry = protocol.Message | Message | Mapping[str, Any]
History = Sequence[Entry]
"""Messages of a conversation, as documents, or as dictionaries with ``role`` and ``content``, and ``tool_calls`` and
``tool_call_id`` in the form of OpenAI's chat protocol."""
_SYSTEM = "system-"
"""How the ids of system messages begin, which every compaction keeps. Requests send them as the user's."""


def _content_texts(content: Sequence[object]) -> list[str]:
    """The texts of one message's content in parts; empty for a history."""
    parts = [cast("Mapping[str, object]", part) for part in content if isinstance(part, Mapping)]
    if len(parts) < len(content) or any("role" in part for part in parts):
        return []
    return [str(part["text"]) for part in parts if "text" in part]


def messages_of(history: History) -> tuple[protocol.Message, ...]:
    """The history as messages of a conversation.

    Raises:
        ValueError: an entry has no known role.
    """
    return tuple(_message(entry, f"m{number}") for number, entry in enumerate(history, 1))


def _message(entry: Entry, name: str) -> protocol.Message:
    if isinstance(entry, protocol.Message):
        return entry
    fields: Mapping[str, Any] = entry.model_dump() if isinstance(entry, Message) else entry
    role = fields.get("role")
    if role not in ("user", "assistant", "system", "tool"):
        raise ValueError(f"{name} has no known role: {role!r}")
    content = fields.get("content")
    if isinstance(content, list):
        pieces_of = cast("list[Mapping[str, Any]]", content)
        content = "\n".join(str(piece.get("text") or "") for piece in pieces_of)
    parts: list[protocol.Part] = [protocol.ReasoningPart(text)] if (text := str(fields.get("reasoning") or "")) else []
    if content and role != "tool":
        parts.append(protocol.TextPart(str(content)))
    for call in cast("list[Mapping[str, Any]]", fields.get("tool_calls") or []):
        inner: Mapping[str, Any] = call.get("function") or call
        parts.append(protocol.ToolCallPart(str(call["id"]), str(inner["name"]), str(inner.get("arguments") or "{}")))
    for result in cast("list[Mapping[str, Any]]", fields.get("tool_results") or []):
        failed = bool(result.get("is_error"))
        parts.append(
            protocol.ToolResultPart(
                str(result["id"]), str(result.get("name", "")), str(result["text"]), is_error=failed
            )
        )
    if fields.get("tool_call_id"):
        call_id, tool = str(fields["tool_call_id"]), str(fields.get("name") or "")
        parts.append(protocol.ToolResultPart(call_id, tool, str(content or "")))
    if role == "system":
        return protocol.Message("user", tuple(parts), f"{_SYSTEM}{name}")
    return protocol.Message(role, tuple(parts), name)


def ledger_of(messages: Sequence[protocol.Message]) -> Ledger:
    """The ledger that a session with these messages would have. Results without a call are left out."""
    ledger = Ledger()
    for seq, body in enumerate(bodies_of(messages), 1):
        ledger.apply(Event(seq, 0.0, "history", 1, body))
    return ledger


# --- stored results ---------------------------------------------------------------------------------------------


class ResultStore(results.ResultStore):
    """The stored results of one session, in the file of a database that is made as needed, or in memory (None). Not for
    the event loop.

    Raises:
        BlobError: the file can't be used.
        sqlite3.Error: the session can't be added.
    """

    def __init__(
        self,
        store: Database | str | os.PathLike[str] | None = None,
        session_id: str = "results",
        threshold: int = results.THRESHOLD,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        database = store if isinstance(store, Database) else _database(store)
        super().__init__(database, session_id, threshold, clock=clock)
        if database is not store:
            with database.write() as connection:
                add_session(connection, session_id, clock())

    def close(self) -> None:
        """Close the database. A result can't be read afterwards."""
        self._database.close()

    def offload_result(self, tool: str, tool_use_id: str, content: str) -> str:
        """Store a result that is larger than the threshold; returns its replacement in the context. A smaller one is
        returned unchanged.

        Raises:
            BlobError: it can't be stored.
        """
        text = results.encodable(content)
        raw = text.encode("utf-8")
        if len(raw) <= self.threshold:
            return text
        excerpt = results.usual_excerpt(len(raw), failed=False)
        note = f"Too long to keep here (call {tool_use_id})"
        return results.reference_text(self.put(tool, raw), text, excerpt, note=note)

    def retrieve(self, ref_id: str) -> str:
        """The whole stored result.

        Raises:
            BlobError: there is none of this id, or it is damaged.
        """
        content = self.get(ref_id)
        if content is None:
            raise BlobError(f"Unknown stored result {ref_id!r}.")
        return content.decode("utf-8", "replace")


def _database(path: str | os.PathLike[str] | None) -> Database:
    if path is None:
        return open_in_memory()
    database = open_database(Path(path))
    if database.why_in_memory:
        database.close()
        raise BlobError(database.why_in_memory)
    return database
