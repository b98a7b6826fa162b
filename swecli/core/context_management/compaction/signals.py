"""What kind of conversation it is, and how the chain of compaction is adjusted to it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from swecli.core.context_management.compaction.options import Allowances, EntrySizes, message_starts
from swecli.core.context_management.ledger import Ledger
from swecli.core.protocol.events import ViewEntry

NEWEST_CALLS, LEAST_CALLS = 20, 5
"""Calls whose outcome is looked at, the newest ones, and how many there must be to say anything."""
MANY_ERRORS = 0.3
"""From this share of failed calls on, the model is after a failure: what it just tried must stay."""
MORE_KEPT = 1.5
"""Then so much more of the newest part stays."""
FEW_RESULTS = 0.2
"""Below this share of calls and results, clearing can't make room enough to be worth its cache rewrite."""
LONG_CONVERSATION = 100
"""Messages from which on twice as many of the newest stay beside a summary, as far as they have room."""


@dataclass(frozen=True, slots=True)
class ConversationSignals:
    """``error_density`` is the share of the newest calls that failed, ``tool_density`` the share of the conversation's
    tokens in calls and results; both 0 to 1."""

    error_density: float
    tool_density: float
    message_count: int


@dataclass(frozen=True, slots=True)
class ChainPlan:
    """The chain for one conversation: how much of the newest part stays, and how many ``recent`` messages beside a
    summary. ``reasons`` say why that is not the usual, ``no_clearing`` why clearing is not tried before a summary; each
    is a clause."""

    allowances: Allowances
    recent: int
    reasons: tuple[str, ...] = ()
    no_clearing: str = ""


def signals_of(ledger: Ledger, view: Sequence[ViewEntry], sizes: EntrySizes) -> ConversationSignals:
    """The signals of a conversation as the model sees it."""
    total = tools = 0
    calls: list[str] = []
    for entry in view:
        known, size = ledger.entries.get(entry.id), sizes.viewed(entry, ledger)
        total += size
        if known is not None and known.kind in ("call", "result"):
            tools += size
        if known is not None and known.kind == "result":
            calls.append(known.item)
    newest = [ledger.items[item] for item in calls[-NEWEST_CALLS:] if item in ledger.items]
    failed = sum(record.status == "error" or bool(record.exit_status) for record in newest)
    return ConversationSignals(
        failed / len(newest) if len(newest) >= LEAST_CALLS else 0.0,
        tools / total if total else 0.0,
        len(message_starts(ledger, view)),
    )


def adjusted(
    signals: ConversationSignals, allowances: Allowances, recent: int, *, fixed_tail: bool = False
) -> ChainPlan:
    """The chain for a conversation with these signals; ``allowances`` and ``recent`` are the usual ones, ``fixed_tail``
    says that the user chose what stays word for word."""
    plan = ChainPlan(allowances, recent)
    if signals.error_density >= MANY_ERRORS:
        tail = allowances.tail if fixed_tail else int(allowances.tail * MORE_KEPT)
        more = replace(allowances, protected=int(allowances.protected * MORE_KEPT), tail=tail)
        why = f"{signals.error_density:.0%} of the newest calls failed, so more of the newest part stays"
        plan = replace(plan, allowances=more, reasons=(*plan.reasons, why))
    if signals.message_count >= LONG_CONVERSATION:
        why = f"the conversation has {signals.message_count} messages, so the newest {2 * recent} stay if they fit"
        plan = replace(plan, recent=2 * recent, reasons=(*plan.reasons, why))
    if signals.tool_density < FEW_RESULTS:
        share = f"{signals.tool_density:.0%}"
        plan = replace(plan, no_clearing=f"calls and results are only {share} of the conversation, so none was cleared")
    return plan
