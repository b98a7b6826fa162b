"""The context manager for histories of any origin."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from msgspec import structs

from swecli.core.context_management import context_manager
from swecli.core.context_management.budget import ComponentLimits, Limits, level_of, window_of
from swecli.core.context_management.compaction.options import (
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
from swecli.core.context_management.counter import CountsTokens
from swecli.core.context_management.ledger import Ledger, bodies_of
from swecli.core.context_management.projection import project
from swecli.core.context_management.prompt import PromptTexts
from swecli.core.llm.types import Failed, ModelClient, ModelInfo, ModelRequest, ProviderError, ToolSchema
from swecli.core.llm.windows import look_up_model
from swecli.core.protocol import messages as protocol
from swecli.core.protocol.events import Event
from swecli.library.counting import TokenMonitor
from swecli.library.documents import Message
from swecli.library.figures import ContextStats, Forecast, TokenUsage

NO_MODEL = ModelInfo("unknown", "unknown", None)
"""Stands for the model where a measure needs none."""


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
