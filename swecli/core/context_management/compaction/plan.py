"""What a compaction would do, before it does it: no model call, nothing changed."""

from __future__ import annotations

from dataclasses import dataclass

from swecli.core.context_management.compaction.options import CompactionOptions
from swecli.core.context_management.compaction.package import build_package
from swecli.core.context_management.compaction.sizes import Allowances, EntrySizes
from swecli.core.context_management.compaction.state_block import SessionFacts
from swecli.core.context_management.compaction.tail import message_starts, tail_start
from swecli.core.context_management.compaction.views import covered, replaced
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.ledger import Ledger
from swecli.core.context_management.projection import project
from swecli.core.llm.types import ModelInfo

TAIL_SHARE = 0.15
"""The verbatim tail takes at most this share of what there is."""


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """Tokens are of the whole request; ``tokens_after`` counts the summary at its full allowance."""

    tokens_before: int
    tokens_after: int
    effective: int
    kept_messages: int
    replaced_messages: int
    kept_tokens: int
    replaced_tokens: int
    summary_allowance: int

    @property
    def worthwhile(self) -> bool:
        """Whether there is anything to gain."""
        return self.replaced_messages > 0 and self.tokens_after < self.tokens_before


def plan_compaction(
    ledger: Ledger, context: ContextManager, info: ModelInfo, facts: SessionFacts, options: CompactionOptions
) -> CompactionPlan:
    """The plan of a compaction by summary at this moment."""
    before = context.measure(project(ledger), info)
    sizes, allowances = EntrySizes(context.monitor, info), options.allowances(before.effective)
    start = tail_start(
        ledger, ledger.view, sizes, tail_allowance(options, allowances, before.used), options.recent_messages
    )
    old, tail = ledger.view[:start], ledger.view[start:]
    after = before.used
    if old:
        package = build_package(ledger, covered(old), "", facts, sizes, allowances)
        view = replaced(ledger, ledger.view, start, "plan", package.text)
        after = context.measure(project(ledger, view), info).used + allowances.summary
    return CompactionPlan(
        before.used,
        after,
        before.effective,
        len(message_starts(ledger, tail)),
        len(message_starts(ledger, old)),
        sizes.view(tail, ledger),
        sizes.view(old, ledger),
        allowances.summary,
    )


def tail_allowance(options: CompactionOptions, allowances: Allowances, used: int) -> int:
    """Tokens of the newest messages that stay word for word."""
    if options.keep_recent_tokens is not None:
        return max(1, allowances.tail)
    return max(1, min(allowances.tail, int(used * TAIL_SHARE)))
