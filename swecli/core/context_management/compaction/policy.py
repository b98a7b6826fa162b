"""The policy of compaction: when to clear old results, which candidates to accept, when to give up. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.context_management.budget import fixed_tokens
from swecli.core.context_management.compaction.clearing import Clearing, retain, tidy
from swecli.core.context_management.compaction.options import WORTHWHILE, Allowances, CompactionOptions, EntrySizes
from swecli.core.context_management.compaction.selection import current_request, message_starts
from swecli.core.context_management.ledger import Ledger
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.context_events import ViewEntry

ACCEPTED_SHARE = 0.70
"""Largest share of its size that the conversation may keep. The fixed parts of every request (system prompt, tools,
instructions) count neither here nor below: compaction can't shrink them."""
ACCEPTED_FILL = 0.50
"""Largest share of the window's room for the conversation that it may then fill."""
LEAST_BATCH = 8_000
"""Least tokens that a batch of clearing must free to replace a summary."""
WANTED_SHARE, WANTED_FILL = 0.35, 0.30
"""Desired values of the same two shares: clearing that frees less gives way to a summary."""


def wants_summary(options: CompactionOptions, ledger: Ledger) -> bool:
    """Whether to ask a model for a summary if clearing is not enough."""
    return options.strategy in ("chain", "summarization") and _summarisable(ledger)


def _summarisable(ledger: Ledger) -> bool:
    """Whether there is anything to summarise besides the current request."""
    request = current_request(ledger, ledger.view)
    return any(request is None or entry.id != request.id for entry in ledger.view)


def ample(before: Budget, after: Budget, unread: int = 0) -> bool:
    """Whether a candidate frees as much room as a compaction should. ``unread`` tokens of results that the model has
    not seen stay in both, and count as little as the fixed part."""
    left = conversation_tokens(after) - unread
    share = left <= (conversation_tokens(before) - unread) * WANTED_SHARE
    return share and left <= (conversation_room(after) - unread) * WANTED_FILL


def acceptable(before: Budget, after: Budget, unread: int = 0, *, manual: bool) -> bool:
    """Whether to accept a candidate. After a command of the user it need only be clearly smaller."""
    if conversation_tokens(after) - unread > (conversation_tokens(before) - unread) * ACCEPTED_SHARE:
        return False
    left = after.upper - fixed_tokens(after) - unread
    return manual or left < (conversation_room(after) - unread) * ACCEPTED_FILL


def conversation_tokens(budget: Budget) -> int:
    """Tokens of the conversation alone."""
    return budget.used - fixed_tokens(budget)


def conversation_room(budget: Budget) -> int:
    """Tokens available to the conversation in the window."""
    return max(0, budget.effective - fixed_tokens(budget))


CLEARED_FROM = 60_000
"""Effective window from which on old results are cleared before the context is full. In smaller ones the next turn
needs the content, and each batch makes the provider read most of the window uncached."""
COLD_LEAST = 5_000
"""Least tokens that a pass must free if the provider's cache is cold anyway."""


def is_small(budget: Budget) -> bool:
    """Whether all of the conversation is less than the smallest batch that is ever worth clearing."""
    return budget.used - fixed_tokens(budget) < min(COLD_LEAST, int(budget.effective * WORTHWHILE) // 2)


def worth_clearing(
    ledger: Ledger,
    budget: Budget,
    sizes: EntrySizes,
    options: CompactionOptions,
    *,
    running: Collection[str],
    cold: bool,
) -> Clearing | None:
    """Between two turns, one batch of clearing and of the user's rules, if it frees enough to be worth the cache
    rewrite. ``running`` are ids of the turn that begins, ``cold``: the provider's cache has expired anyway."""
    allowances = options.allowances(budget.effective)
    # Close to a summary, smaller batches of more of the old results: it would remove these anyway.
    near = budget.level == "warn"
    least = allowances.worthwhile // 2 if near else allowances.worthwhile
    if conversation_tokens(budget) < min(COLD_LEAST, least):
        return None  # even all of it is less than a batch must free
    if options.auto and budget.effective >= CLEARED_FROM:
        newest = allowances.tail if near else allowances.protected
        clearing = tidy(ledger, ledger.view, sizes, options.retention, newest, running)
    elif options.retention:
        clearing = retain(ledger, ledger.view, sizes, options.retention)
    else:
        return None
    pays = clearing.freed >= min(COLD_LEAST, least) if cold else clearing.pays(least)
    return clearing if pays else None


NEWEST_CALLS, LEAST_CALLS = 20, 5
"""Newest calls to examine, and the least number of them that is significant."""
MANY_ERRORS = 0.3
"""Share of failed calls from which on the model is chasing a failure: its latest attempts must stay."""
MORE_KEPT = 1.5
"""Factor for the newest part to keep in that case."""
FEW_RESULTS = 0.2
"""Share of calls and results below which clearing can't free enough to be worth its cache rewrite."""
LONG_CONVERSATION = 100
"""Messages from which on twice as many of the newest stay beside a summary, if there is room."""


class ConversationSignals(Struct, frozen=True):
    """``error_density`` is the share of the newest calls that failed, ``tool_density`` the share of the conversation's
    tokens in calls and results; both 0 to 1."""

    error_density: float
    tool_density: float
    message_count: int


class ChainPlan(Struct, frozen=True):
    """The chain for one conversation: the size of the newest part to keep, and the number of ``recent`` messages beside
    a summary. ``reasons`` explain deviations from the usual values, ``no_clearing`` the decision not to try clearing
    before a summary; each is a clause."""

    allowances: Allowances
    recent: int
    reasons: tuple[str, ...] = ()
    no_clearing: str = ""


def signals_of(ledger: Ledger, view: Sequence[ViewEntry], sizes: EntrySizes) -> ConversationSignals:
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
    """The chain for a conversation with these signals; ``allowances`` and ``recent`` are the usual values,
    ``fixed_tail``: the user chose the part to keep word for word."""
    plan = ChainPlan(allowances, recent)
    if signals.error_density >= MANY_ERRORS:
        tail = allowances.tail if fixed_tail else int(allowances.tail * MORE_KEPT)
        more = replace(allowances, protected=int(allowances.protected * MORE_KEPT), tail=tail)
        why = f"{signals.error_density:.0%} of the newest calls failed, so it keeps more of the newest part"
        plan = replace(plan, allowances=more, reasons=(*plan.reasons, why))
    if signals.message_count >= LONG_CONVERSATION:
        why = f"the conversation has {signals.message_count} messages, so it keeps the newest {2 * recent} if they fit"
        plan = replace(plan, recent=2 * recent, reasons=(*plan.reasons, why))
    if signals.tool_density < FEW_RESULTS:
        share = f"{signals.tool_density:.0%}"
        few = f"calls and results are only {share} of the conversation" if share != "0%" else "no results are left"
        plan = replace(plan, no_clearing=f"{few}, so clearing was skipped")
    return plan


PROGRESS = 0.05
"""Least share of the tokens that a compaction must free. To be accepted, a summary must free much more; a batch of
clearing that frees this much costs no model call."""
ATTEMPTS = 2
WINDOW = 10
MOST_IN_WINDOW = 3


class Breaker(Struct):
    """Counts automatic compactions by model step."""

    failures: int = 0
    steps: list[int] = field(default_factory=list)

    def record(self, step: int, before: int, after: int) -> None:
        self.steps.append(step)
        self.failures = 0 if after <= before * (1 - PROGRESS) else self.failures + 1

    def record_failure(self) -> None:
        self.failures += 1

    def reset(self) -> None:
        self.failures = 0
        self.steps.clear()

    def open(self, step: int) -> str | None:
        """Reason to stop automatic compaction, or None."""
        if self.failures >= ATTEMPTS:
            return f"{self.failures} compactions in a row freed less than {PROGRESS:.0%}"
        recent = [earlier for earlier in self.steps if step - earlier < WINDOW]
        if len(recent) >= MOST_IN_WINDOW:
            return f"{len(recent)} compactions within {WINDOW} model steps"
        return None
