"""Compaction of a history that belongs to no session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swecli.core.context_management.compaction.compactor import Compacted, Compactor, Job
from swecli.core.context_management.compaction.hooks import tell_after
from swecli.core.context_management.compaction.options import CompactionOptions, CompactResult
from swecli.core.context_management.compaction.state_block import SessionFacts
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.history_ledger import ledger_of
from swecli.core.context_management.projection import project
from swecli.core.llm.types import ModelClient
from swecli.core.protocol.messages import Message


@dataclass(frozen=True, slots=True)
class CompactedHistory:
    """``messages`` is the history to go on with; ``result`` is None when it is the old one. ``reason`` says why, or
    what went wrong beside it."""

    messages: tuple[Message, ...]
    result: CompactResult | None
    reason: str = ""


async def compact_history(
    context: ContextManager,
    history: Sequence[Message],
    client: ModelClient,
    options: CompactionOptions | None = None,
    focus: str = "",
) -> CompactedHistory:
    """Shorten a history by the strategy of the options; ``focus`` is what a summary should pay attention to."""
    ledger = ledger_of(history)
    prepared = context.prepare(project(ledger), info=client.info)
    count = sum(message.id.startswith("compacted") for message in history)
    job = Job("manual", f"compacted-{count + 1}", prepared.request, client, SessionFacts(), focus)
    compactor = Compactor(context, options)
    outcome = await compactor.compact(ledger, job)
    if not isinstance(outcome, Compacted):
        return CompactedHistory(tuple(history), None, outcome.reason)
    trouble = await tell_after(compactor.options, outcome.result)
    return CompactedHistory(project(ledger, outcome.view), outcome.result, trouble)
