"""The newest part of the conversation, which stays word for word."""

from __future__ import annotations

from collections.abc import Sequence

from swecli.core.context_management.compaction.options import CompactionOptions
from swecli.core.context_management.compaction.sizes import Allowances, EntrySizes
from swecli.core.context_management.ledger import Ledger
from swecli.core.protocol.events import ViewEntry

LEAST_MESSAGES = 10
"""So many messages are kept even when they are larger than the allowance, as long as they take no more than
twice of it."""


TAIL_SHARE = 0.15
"""The verbatim tail takes at most this share of what there is."""


def tail_allowance(options: CompactionOptions, allowances: Allowances, used: int) -> int:
    """Tokens of the newest messages that stay word for word."""
    if options.keep_recent_tokens is not None:
        return max(1, allowances.tail)
    return max(1, min(allowances.tail, int(used * TAIL_SHARE)))


def message_starts(ledger: Ledger, view: Sequence[ViewEntry]) -> list[int]:
    """Indexes of the view at which a message begins and no pair of call and result is cut."""
    starts: list[int] = []
    current: str | None = None
    for index, entry in enumerate(view):
        known = ledger.entries.get(entry.id)
        owner = known.message if known else entry.id
        if owner != current:
            starts.append(index)
            current = owner
    return starts


def tail_start(
    ledger: Ledger, view: Sequence[ViewEntry], sizes: EntrySizes, allowance: int, recent: int = LEAST_MESSAGES
) -> int:
    """Index of the view where the verbatim tail begins: the most whole messages that fit ``allowance`` tokens,
    at least one, and ``recent`` if these take no more than twice as much."""
    starts = message_starts(ledger, view)
    chosen = len(view)
    tokens = kept = 0
    end = len(view)
    for start in reversed(starts):
        size = sum(sizes.viewed(entry, ledger) for entry in view[start:end])
        limit = allowance if kept >= recent else 2 * allowance
        if kept > 0 and tokens + size > limit:
            break
        tokens, kept, chosen, end = tokens + size, kept + 1, start, start
    return chosen
