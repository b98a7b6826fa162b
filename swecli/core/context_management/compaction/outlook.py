"""What the next automatic compaction will remove, and when. Pure.

It foresees the chain of ``transaction.py`` and the batches of ``policy.py`` between turns, for a conversation that goes
on as it is: the window fills to the threshold, with as many calls and results as so far.
"""

from __future__ import annotations

from swecli.core.context_management.budget import fixed_tokens
from swecli.core.context_management.compaction.clearing import Clearing, tidy
from swecli.core.context_management.compaction.options import Allowances, CompactionOptions, EntrySizes
from swecli.core.context_management.compaction.policy import (
    ACCEPTED_FILL,
    ACCEPTED_SHARE,
    LEAST_BATCH,
    PROGRESS,
    WANTED_FILL,
    WANTED_SHARE,
    adjusted,
    conversation_room,
    signals_of,
    worth_clearing,
)
from swecli.core.context_management.ledger import Ledger
from swecli.core.context_management.projection import thoughts_changed
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.budget import CALLS, RESULTS, Budget
from swecli.figures import plural
from swecli.figures import tokens as short

_BY_STRATEGY = {
    "truncation": "the oldest messages",
    "importance": "the least important messages",
    "summarization": "a summary of the older messages",
}


def next_removal(ledger: Ledger, budget: Budget, sizes: EntrySizes, options: CompactionOptions, info: ModelInfo) -> str:
    """When something is removed next, and what, as a clause: "at 95%: 6 old results, 14K"."""
    earlier = worth_clearing(ledger, budget, sizes, options, running=(), cold=False)
    scale = _as_measured(ledger, budget, sizes)
    if earlier is not None and not thoughts_changed(ledger, earlier.view, info)[0]:
        return f"between turns: {_results(earlier, scale)}"
    full = budget.level in ("compact", "block")
    when = "before the next request" if full else f"at {budget.compact_at * 100 // budget.effective}%"
    by_strategy = _BY_STRATEGY.get(options.strategy)
    if by_strategy is not None:
        return f"{when}: {by_strategy}"
    clearing = _clearing(ledger, budget, sizes, options)
    return f"{when}: {_results(clearing, scale) if clearing is not None else 'a summary of the older messages'}"


def _as_measured(ledger: Ledger, budget: Budget, sizes: EntrySizes) -> float:
    """Tokens of calls and results by the measure per token by their own sizes: what is announced is compared with the
    measure before and after."""
    measured = sum(part.tokens for part in budget.components if part.name in (CALLS, RESULTS))
    counted = sum(
        sizes.entry(entry)
        for viewed in ledger.view
        if viewed.kind == "live" and (entry := ledger.entries[viewed.id]).kind in ("call", "result")
    )
    return measured / counted if measured and counted else 1.0


def _results(clearing: Clearing, scale: float) -> str:
    return f"{plural(len(clearing.cleared), 'old result')}, {short(round(clearing.freed * scale))}"


def _clearing(ledger: Ledger, budget: Budget, sizes: EntrySizes, options: CompactionOptions) -> Clearing | None:
    """What clearing will remove of the present conversation; None if a summary will be necessary."""
    signals = signals_of(ledger, ledger.view, sizes)
    allowances = options.allowances(budget.effective)
    plan = adjusted(signals, allowances, options.recent_messages)
    if plan.no_clearing:
        return None
    growth = max(0, budget.compact_at - budget.used)
    before = max(1, budget.compact_at - fixed_tokens(budget))
    room = conversation_room(budget)
    for newest in (plan.allowances.protected, plan.allowances.tail):
        found = tidy(ledger, ledger.view, sizes, options.retention, max(1, newest - growth))
        if not found.cleared:
            continue
        left = before - found.freed - signals.tool_density * max(0, growth - newest)
        if left <= WANTED_SHARE * before and left <= WANTED_FILL * room:
            return found
        accepted = left <= ACCEPTED_SHARE * before and left < ACCEPTED_FILL * room
        if newest == plan.allowances.tail and not accepted and found.pays(_least(allowances, budget)):
            return found  # a small part of a large window: the summary can wait
    return None


def _least(allowances: Allowances, budget: Budget) -> int:
    return max(LEAST_BATCH, allowances.worthwhile // 2, round(PROGRESS * budget.compact_at))
