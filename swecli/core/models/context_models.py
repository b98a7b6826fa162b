"""The state of a context as one JSON document, and the names under which programs know its figures.

The engine works on the ledger; a ``ContextState`` is a snapshot of it. Times are aware, in UTC.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from swecli.core.context_management.budget import ContextLimits
from swecli.core.context_management.compaction.options import CompactResult
from swecli.core.context_management.counter import HybridCounter
from swecli.core.context_management.monitor import ContextStats
from swecli.core.protocol import messages as protocol
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.messages import Usage

__all__ = (
    "CodebaseSummary",
    "CompactionResult",
    "ContextBudget",
    "ContextLimits",
    "ContextState",
    "ContextStats",
    "Message",
    "TaskContext",
    "TokenUsage",
    "context_state",
    "message_document",
)

TokenUsage = Usage
ContextBudget = Budget
CompactionResult = CompactResult

DEFAULT_LIMIT = 256_000
"""Tokens."""


def _now() -> datetime:
    return datetime.now(UTC)


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", validate_assignment=True)


class Message(_Document):
    """One message of a conversation. ``tokens`` 0 = not counted yet."""

    role: Literal["user", "assistant", "system", "tool"]
    content: str = ""
    timestamp: datetime = Field(default_factory=_now)
    tokens: int = Field(default=0, ge=0)
    reasoning: str = ""
    tool_calls: list[dict[str, Any]] | None = None
    """``id``, ``name`` and ``arguments`` (the raw text) of each call."""
    tool_results: list[dict[str, Any]] | None = None
    """``id``, ``name``, ``text`` and ``is_error`` of each result."""

    def texts(self) -> Sequence[str]:
        """Everything in it that has tokens."""
        attached = [*(self.tool_calls or ()), *(self.tool_results or ())]
        texts = (self.content, self.reasoning, *(json.dumps(value, ensure_ascii=False) for value in attached))
        return [text for text in texts if text]


class CodebaseSummary(_Document):
    """What is known of a project: folders with their files, files that matter, patterns with their places."""

    summary: str
    project_structure: dict[str, list[str]] = Field(default_factory=dict)
    key_files: list[str] = Field(default_factory=list)
    patterns: dict[str, str] = Field(default_factory=dict)
    last_updated: datetime = Field(default_factory=_now)
    tokens: int = Field(default=0, ge=0)

    def texts(self) -> Sequence[str]:
        """Everything in it that has tokens."""
        rest = (self.project_structure, self.key_files, self.patterns)
        return [self.summary, *(json.dumps(part, ensure_ascii=False) for part in rest if part)]


class TaskContext(_Document):
    """What was looked up for one task."""

    task_description: str
    relevant_files: list[str] = Field(default_factory=list)
    grep_results: list[dict[str, Any]] = Field(default_factory=list)
    bash_outputs: list[dict[str, Any]] = Field(default_factory=list)
    retrieved_at: datetime = Field(default_factory=_now)
    tokens: int = Field(default=0, ge=0)

    def texts(self) -> Sequence[str]:
        """Everything in it that has tokens."""
        rest = (self.relevant_files, self.grep_results, self.bash_outputs)
        return [self.task_description, *(json.dumps(part, ensure_ascii=False) for part in rest if part)]


class ContextState(_Document):
    """A whole context. ``context_limit`` is tokens, ``compaction_threshold`` a share of it."""

    messages: list[Message] = Field(default_factory=list)
    codebase_summary: CodebaseSummary | None = None
    current_task: TaskContext | None = None
    total_tokens: int = Field(default=0, ge=0)
    context_limit: int = Field(default=DEFAULT_LIMIT, gt=0)
    compaction_threshold: float = Field(default=ContextLimits().compact, gt=0, le=1)
    session_id: str
    working_dir: str
    started_at: datetime = Field(default_factory=_now)
    last_compacted: datetime | None = None
    compaction_count: int = Field(default=0, ge=0)

    def needs_compaction(self) -> bool:
        """Whether the threshold is reached."""
        return self.total_tokens >= self.context_limit * self.compaction_threshold

    def get_available_tokens(self) -> int:
        """Tokens that are left of the limit; below 0 when it overflows."""
        return self.context_limit - self.total_tokens

    def estimate_tokens(self, text: str) -> int:
        """Tokens of a text, without the wait for a vocabulary."""
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
) -> ContextState:
    """The state of a session from its messages and its newest measure. ``created`` gives the time of a message by its
    id, ``compactions`` are the times of the compactions in force (all Unix seconds).

    Counts of single messages are left at 0: the sum is that of the measure, which counts what surrounds them too.
    """
    start = min(created.values(), default=None)
    documents = [
        message_document(message, _moment(created.get(message.id.removesuffix(".results"), start)))
        for message in messages
    ]
    return ContextState(
        messages=documents,
        total_tokens=budget.used if budget else 0,
        context_limit=max(1, budget.effective) if budget else DEFAULT_LIMIT,
        session_id=session_id,
        working_dir=working_dir,
        started_at=_moment(start),
        last_compacted=_moment(compactions[-1]) if compactions else None,
        compaction_count=len(compactions),
    )


def _moment(at: float | None) -> datetime:
    return datetime.fromtimestamp(at, UTC) if at is not None else _now()
