"""What a compaction would keep, remove and cost. Pure."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from msgspec import Struct

from swecli.core.context_management.budget import roomy_part
from swecli.core.context_management.compaction.options import EntrySizes
from swecli.core.context_management.compaction.policy import wants_summary
from swecli.core.context_management.compaction.selection import covered, message_starts
from swecli.core.context_management.compaction.transaction import Compaction
from swecli.core.context_management.ledger import Ledger
from swecli.core.protocol.events import ViewEntry
from swecli.core.protocol.messages import Usage

SUMMARY_SHARE = 0.10
"""A summary is not expected to be longer than this share of the request that it makes smaller."""
_WORDS = (
    "what was done and what was found is said here in a sentence of usual length, with a path/to/file.py:12 in it\n"
)

Price = Callable[[str, Usage], str | None]
"""US dollars of a response of a model, as a decimal number; None where no price is known."""


class CompactionPlan(Struct, frozen=True):
    """Tokens are of the whole request; ``tokens_after`` counts a summary of ``summary_allowance``. Ids in ``kept`` stay
    word for word, those in ``replaced`` give way to a summary, a record or nothing, those in ``offloaded`` leave a
    reference.

    ``rewritten_tokens`` of the next request are not in the provider's cache, but would be without the compaction.
    ``cost`` is US dollars of the summary and of that, ``saved_per_request`` of what each later request costs less; both
    are decimal numbers, None where no price is known.
    """

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
    rewritten_tokens: int = 0
    cost: str | None = None
    saved_per_request: str | None = None

    @property
    def worthwhile(self) -> bool:
        return bool(self.replaced_messages or self.offloaded) and self.tokens_after < self.tokens_before


def plan_compaction(
    compaction: Compaction, price: Price = lambda _model, _usage: None, summary_model: str | None = None
) -> CompactionPlan:
    """The plan of a compaction at this moment. ``summary_model`` writes the summary in place of the job's model."""
    ledger, options, sizes, before = compaction.ledger, compaction.options, compaction.sizes, compaction.before
    info = compaction.job.client.info
    expected = min(options.allowances(roomy_part(before)).summary, int(before.used * SUMMARY_SHARE))
    summary = _stand_in(expected, sizes) if wants_summary(options, ledger) else ""
    view = compaction.preview(summary) or ledger.view
    after = before.used if view == ledger.view else compaction.tokens(view)
    old = {entry.id: entry for entry in ledger.view}
    new = {entry.id: entry for entry in view}
    kept = [entry for entry in view if entry.kind == "live"]
    removed = [entry for entry in ledger.view if entry.id not in new]
    shorter = [entry for entry in view if entry.id in old and entry != old[entry.id] and entry.kind != "live"]
    tokens = compaction.item_tokens
    freed = sum(max(0, tokens.get(entry.id, 0) - sizes.viewed(entry, ledger)) for entry in shorter)
    written = expected if summary and removed else 0
    rewritten = max(0, after - unchanged_tokens(ledger, view, sizes, before.used)) if view != ledger.view else 0
    return CompactionPlan(
        before.used,
        after,
        before.effective,
        len(message_starts(ledger, kept)),
        len(message_starts(ledger, removed)),
        sum(tokens.get(entry.id, 0) for entry in kept),
        sum(tokens.get(entry.id, 0) for entry in removed),
        written,
        options.strategy,
        freed,
        tuple(entry.id for entry in kept),
        covered(removed),
        tuple(entry.id for entry in shorter),
        rewritten,
        _cost(price, info.ref, summary_model, before.used, after, written, rewritten),
        _difference(price, info.ref, before.used, after),
    )


def _stand_in(tokens: int, sizes: EntrySizes) -> str:
    sample = _WORDS * 64
    characters = round(tokens * len(sample) / max(1, sizes.text(sample)))
    return (_WORDS * (characters // len(_WORDS) + 1))[: max(1, characters)]


def unchanged_tokens(ledger: Ledger, view: tuple[ViewEntry, ...], sizes: EntrySizes, before: int) -> int:
    """Tokens that the next request begins with just as the newest one did."""
    same: list[ViewEntry] = []
    for mine, other in zip(view, ledger.view, strict=False):
        if mine != other:
            break
        same.append(mine)
    return max(0, before - sizes.view(ledger.view, ledger)) + sizes.view(same, ledger)


def _cost(
    price: Price, model: str, summary_model: str | None, before: int, after: int, written: int, rewritten: int
) -> str | None:
    """Of the summary's request, all of which the model at hand has in its cache, and of writing the cache anew."""
    asked = Usage(before, before if summary_model is None else 0, output_total=written)
    summary = price(summary_model or model, asked) if written else "0"
    anew = price(model, Usage(after, after - rewritten, rewritten, 0))
    cached = price(model, Usage(after, after, output_total=0))
    if summary is None or anew is None or cached is None:
        return None
    return f"{Decimal(summary) + Decimal(anew) - Decimal(cached):f}"


def change_costs(price: Price, model: str, before: int, after: int, rewritten: int) -> tuple[str | None, str | None]:
    """What it costs to have ``rewritten`` tokens of a request read anew, and what each later request costs less once it
    has ``after`` tokens in place of ``before``; US dollars, None where no price is known."""
    anew = price(model, Usage(after, after - rewritten, rewritten, 0))
    cached = price(model, Usage(after, after, output_total=0))
    cost = None if anew is None or cached is None else f"{Decimal(anew) - Decimal(cached):f}"
    return cost, _difference(price, model, before, after)


def _difference(price: Price, model: str, before: int, after: int) -> str | None:
    old, new = (price(model, Usage(size, size, output_total=0)) for size in (before, after))
    return None if old is None or new is None else f"{Decimal(old) - Decimal(new):f}"
