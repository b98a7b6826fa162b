"""What a compaction would do, before it does it: no model call, nothing changed."""

from __future__ import annotations

from dataclasses import dataclass

from swecli.core.context_management.compaction.options import CompactionOptions
from swecli.core.context_management.compaction.package import build_package
from swecli.core.context_management.compaction.retention import kept_whole, tidy
from swecli.core.context_management.compaction.sizes import Allowances, EntrySizes
from swecli.core.context_management.compaction.state_block import SessionFacts
from swecli.core.context_management.compaction.tail import message_starts, tail_start
from swecli.core.context_management.compaction.views import covered, important, recent_start, replaced
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.ledger import Ledger
from swecli.core.context_management.projection import project
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.events import ViewEntry

TAIL_SHARE = 0.15
"""The verbatim tail takes at most this share of what there is."""


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """Tokens are of the whole request; ``tokens_after`` counts the summary at its full allowance. Ids in ``kept`` stay
    word for word, those in ``replaced`` give way to a summary, a record or nothing, those in ``offloaded`` leave a
    reference."""

    tokens_before: int
    tokens_after: int
    effective: int
    kept_messages: int
    replaced_messages: int
    kept_tokens: int
    replaced_tokens: int
    summary_allowance: int
    strategy: str = "chain"
    offloaded_tokens: int = 0
    kept: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    offloaded: tuple[str, ...] = ()

    @property
    def worthwhile(self) -> bool:
        """Whether there is anything to gain."""
        return bool(self.replaced_messages or self.offloaded) and self.tokens_after < self.tokens_before


def plan_compaction(
    ledger: Ledger, context: ContextManager, info: ModelInfo, facts: SessionFacts, options: CompactionOptions
) -> CompactionPlan:
    """The plan of a compaction at this moment."""
    before = context.measure(project(ledger), info)
    sizes, allowances = EntrySizes(context.monitor, info), options.allowances(before.effective)
    writes = options.strategy in ("chain", "summarization")
    view, removed = _new_view(ledger, facts, options, sizes, allowances, before.used)
    tidied = tidy(ledger, view, sizes, options.retention, allowances.tail)
    after = before.used
    if removed or tidied.cleared:
        after = context.measure(project(ledger, tidied.view), info).used + (allowances.summary if writes else 0)
    kept = [entry for entry in tidied.view if entry.kind == "live"]
    return CompactionPlan(
        before.used,
        after,
        before.effective,
        len(message_starts(ledger, kept)),
        len(message_starts(ledger, removed)),
        sizes.view(kept, ledger),
        sizes.view(removed, ledger),
        allowances.summary if writes and removed else 0,
        options.strategy,
        tidied.freed,
        tuple(entry.id for entry in kept),
        covered(removed),
        tidied.cleared,
    )


def _new_view(
    ledger: Ledger,
    facts: SessionFacts,
    options: CompactionOptions,
    sizes: EntrySizes,
    allowances: Allowances,
    used: int,
) -> tuple[tuple[ViewEntry, ...], tuple[ViewEntry, ...]]:
    """The view without what is removed, and what is removed."""
    view = ledger.view
    keep = kept_whole(ledger, view, options.retention)
    if options.strategy == "importance":
        kept, dropped = important(ledger, view, options.importance, keep)
        return kept, tuple(entry for entry in view if set(covered([entry])) <= set(dropped))
    if options.strategy == "truncation":
        start = recent_start(ledger, view, options.truncation.keep_recent)
    else:
        start = tail_start(ledger, view, sizes, tail_allowance(options, allowances, used), options.recent_messages)
    if not start:
        return view, ()
    removed = tuple(entry for entry in view[:start] if entry.id not in keep)
    package = build_package(ledger, covered(removed), "", facts, sizes, allowances)
    return replaced(ledger, view, start, "plan", package.text, keep), removed


def tail_allowance(options: CompactionOptions, allowances: Allowances, used: int) -> int:
    """Tokens of the newest messages that stay word for word."""
    if options.keep_recent_tokens is not None:
        return max(1, allowances.tail)
    return max(1, min(allowances.tail, int(used * TAIL_SHARE)))
