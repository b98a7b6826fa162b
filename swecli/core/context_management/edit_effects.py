"""What a change of the conversation costs, before it is made: tokens, cache, money, and the model's thoughts."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from swecli.core.context_management.compaction.options import EntrySizes
from swecli.core.context_management.compaction.plan import unchanged_tokens
from swecli.core.context_management.edits import EditCosts, Effect
from swecli.core.context_management.ledger import Ledger
from swecli.core.context_management.projection import thoughts_changed
from swecli.core.context_management.view_stack import View
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.budget import Budget
from swecli.figures import dollars, plural
from swecli.figures import tokens as short


def effect_of_view(
    ledger: Ledger, view: View, before: Budget, after: Budget, sizes: EntrySizes, info: ModelInfo, costs: EditCosts
) -> Effect:
    """Effect of another view in place of the ledger's own; ``before`` and ``after`` are the measures of the two."""
    rewritten = 0
    if view != ledger.view[: len(view)]:
        rewritten = max(0, after.used - unchanged_tokens(ledger, view, sizes, before.used))
    cost, saved = costs(before.used, after.used, rewritten)
    lost, regained = thoughts_changed(ledger, view, info)
    return Effect(before.used, after.used, rewritten, cost, saved, thoughts=lost, regained=regained)


def loss_words(effect: Effect) -> Iterator[str]:
    """The thoughts that a change costs or brings back, as clauses."""
    if effect.thoughts:
        yield f"{plural(effect.thoughts, 'thought')} {'is' if effect.thoughts == 1 else 'are'} lost"
    if effect.regained:
        yield f"{plural(effect.regained, 'thought')} {'comes' if effect.regained == 1 else 'come'} back"


def cost_words(effect: Effect, unknown: str = "price unknown") -> Iterator[str]:
    """What a change costs besides its tokens, as clauses; ``unknown`` in place of an unknown price."""
    if effect.rewritten:
        yield f"{short(effect.rewritten)} leave the cache"
        price = f"costs {dollars(Decimal(effect.cost))} once" if effect.cost is not None else unknown
        if price:
            yield price
    yield from loss_words(effect)


def price_words(effect: Effect) -> str:
    """The price of a change on one line: "-5,960 tokens · 15K leave the cache · costs $0.05 once · 12 thoughts are
    lost"."""
    change = effect.after - effect.before
    return " · ".join([f"{change:+,} token{'' if abs(change) == 1 else 's'}", *cost_words(effect)])
