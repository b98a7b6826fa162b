"""Histories that belong to no session: messages as a ledger, so that the same compaction works on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swecli.core.context_management.compaction.compactor import Compacted, Compactor, Job
from swecli.core.context_management.compaction.options import CompactionOptions, CompactResult, tell_after
from swecli.core.context_management.compaction.state_block import SessionFacts
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.ledger import Ledger, bodies_of
from swecli.core.context_management.projection import project
from swecli.core.llm.types import ModelClient
from swecli.core.protocol.events import Event
from swecli.core.protocol.messages import Message


def ledger_of(messages: Sequence[Message]) -> Ledger:
    """The ledger that a session with these messages would have. Results without a call are left out."""
    ledger = Ledger()
    for seq, body in enumerate(bodies_of(messages), 1):
        ledger.apply(Event(seq, 0.0, "history", 1, body))
    return ledger


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
