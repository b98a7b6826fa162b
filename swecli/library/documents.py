"""The context as documents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from swecli.core.context_management.budget import Limits
from swecli.core.context_management.codebase import read_guide
from swecli.core.context_management.counter import HybridCounter, PieceEstimator
from swecli.core.context_management.instructions import INSTRUCTION_NAMES, MAX_BYTES, read_head
from swecli.core.context_retriever import Document, TaskContext, now
from swecli.core.protocol import messages as protocol
from swecli.core.protocol.budget import Budget

DEFAULT_LIMIT = 256_000
"""Default limit in tokens."""


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


def project_summary(cwd: Path) -> CodebaseSummary | None:
    """The document of a project's guide; None without one."""
    path = cwd / INSTRUCTION_NAMES[0]
    try:
        head, written = read_head(path, MAX_BYTES, cwd), path.stat().st_mtime
    except OSError:
        return None
    return codebase_summary(head.text, written)


class ContextState(Document):
    """A snapshot of a whole context. ``compaction_threshold`` is a share of the limit."""

    messages: list[Message] = Field(default_factory=list)
    codebase_summary: CodebaseSummary | None = None
    current_task: TaskContext | None = None
    total_tokens: int = Field(default=0, ge=0)
    context_limit: int = Field(default=DEFAULT_LIMIT, gt=0)
    compaction_threshold: float = Field(default=Limits().compact, gt=0, le=1)
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


def message_document(message: protocol.Message, timestamp: datetime) -> Message:
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
