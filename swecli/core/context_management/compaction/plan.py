"""A compaction's plan: entries kept and removed, and costs, also after the user moved items. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Literal

from msgspec import Struct

from swecli.core.context_management.budget import roomy_part
from swecli.core.context_management.compaction.clearing import LEAST, arguments_stub, kept_whole, result_stub
from swecli.core.context_management.compaction.options import EntrySizes
from swecli.core.context_management.compaction.package import build_package, folded
from swecli.core.context_management.compaction.policy import wants_summary
from swecli.core.context_management.compaction.quality import Quality, anchors_of, graded, sources_of_lines
from swecli.core.context_management.compaction.selection import covered, current_request, message_starts
from swecli.core.context_management.compaction.transaction import Compaction
from swecli.core.context_management.edits import THOUGHT, led_by, thoughts_before, unit
from swecli.core.context_management.ledger import Ledger
from swecli.core.context_management.projection import thoughts_changed
from swecli.core.context_management.view_stack import View
from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.messages import Usage

Price = Callable[[str, Usage], str | None]
"""US dollars of a model's response as a decimal number; None without a known price."""


class CompactionPlan(Struct, frozen=True):
    """Tokens are of the whole request; ``tokens_after`` counts a summary of ``summary_allowance``. Ids in ``kept`` stay
    word for word, those in ``replaced`` are replaced by a summary, a record or nothing, those in ``offloaded`` leave a
    reference.

    ``rewritten_tokens`` of the next request lose their place in the provider's cache. ``cost`` is US dollars of the
    summary and of that, ``saved_per_request`` the saving of each later request; both are decimal numbers, None without
    a known price.
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
    thoughts: int = 0
    """Thoughts of the model that are lost, because what precedes them changes."""
    by_provider: bool = False
    """Whether the provider writes the summary."""

    @property
    def worthwhile(self) -> bool:
        return bool(self.replaced_messages or self.offloaded) and self.tokens_after < self.tokens_before


def plan_compaction(
    compaction: Compaction, price: Price = lambda _model, _usage: None, summary_model: str | None = None
) -> CompactionPlan:
    """The plan of a compaction at this moment. ``summary_model`` writes the summary in place of the job's model."""
    ledger, options, sizes, before = compaction.ledger, compaction.options, compaction.sizes, compaction.before
    info = compaction.job.client.info
    summary = compaction.stand_in if wants_summary(options, ledger) else ""
    view = compaction.preview(summary) or ledger.view
    after = before.used if view == ledger.view else compaction.tokens(view)
    old = {entry.id: entry for entry in ledger.view}
    new = {entry.id: entry for entry in view}
    kept = [entry for entry in view if entry.kind == "live"]
    removed = [entry for entry in ledger.view if entry.id not in new]
    shorter = [entry for entry in view if entry.id in old and entry != old[entry.id] and entry.kind != "live"]
    tokens = compaction.item_tokens
    freed = sum(max(0, tokens.get(entry.id, 0) - sizes.viewed(entry, ledger)) for entry in shorter)
    written = compaction.expected_summary if summary and removed else 0
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
        thoughts_changed(ledger, view, info)[0],
        any(entry.id == compaction.job.summary_id and entry.provider is not None for entry in view),
    )


def unchanged_tokens(ledger: Ledger, view: tuple[ViewEntry, ...], sizes: EntrySizes, before: int) -> int:
    """Tokens of the next request's prefix shared with the newest one."""
    same: list[ViewEntry] = []
    for mine, other in zip(view, ledger.view, strict=False):
        if mine != other:
            break
        same.append(mine)
    return max(0, before - sizes.view(ledger.view, ledger)) + sizes.view(same, ledger)


def _cost(
    price: Price, model: str, summary_model: str | None, before: int, after: int, written: int, rewritten: int
) -> str | None:
    """Cost of the summary's request, all of it in the present model's cache, and of rewriting the cache."""
    asked = Usage(before, before if summary_model is None else 0, output_total=written)
    summary = price(summary_model or model, asked) if written else "0"
    anew = price(model, Usage(after, after - rewritten, rewritten, 0))
    cached = price(model, Usage(after, after, output_total=0))
    if summary is None or anew is None or cached is None:
        return None
    return f"{Decimal(summary) + Decimal(anew) - Decimal(cached):f}"


def change_costs(price: Price, model: str, before: int, after: int, rewritten: int) -> tuple[str | None, str | None]:
    """Cost of sending ``rewritten`` tokens of a request uncached, and the saving of each later request with ``after``
    tokens in place of ``before``; US dollars, None without a known price."""
    anew = price(model, Usage(after, after - rewritten, rewritten, 0))
    cached = price(model, Usage(after, after, output_total=0))
    cost = None if anew is None or cached is None else f"{Decimal(anew) - Decimal(cached):f}"
    return cost, _difference(price, model, before, after)


def _difference(price: Price, model: str, before: int, after: int) -> str | None:
    old, new = (price(model, Usage(size, size, output_total=0)) for size in (before, after))
    return None if old is None or new is None else f"{Decimal(old) - Decimal(new):f}"


# An editable compaction plan: columns of items to keep word for word, to summarise, and to offload with a reference.


Column = Literal["kept", "summarised", "offloaded"]
COLUMNS: tuple[Column, ...] = ("kept", "summarised", "offloaded")


class PlannedItem(Struct, frozen=True):
    """One entry of the view with its present ``tokens``."""

    id: str
    tokens: int
    column: Column
    pinned: bool


class Arranged(Struct, frozen=True):
    """Result of a plan. Tokens are of the whole request; ``rewritten`` of them lose their place in the provider's
    cache; costs are US dollars, None without a known price."""

    view: View
    before: int
    after: int
    rewritten: int
    cost: str | None
    saved: str | None
    quality: Quality
    thoughts: int = 0
    """Thoughts of the model that are lost."""


class PlanDraft:
    """An editable plan; starts as the one that a compaction would make by itself."""

    def __init__(self, compaction: Compaction, price: Price, summary_model: str | None = None) -> None:
        self._compaction = compaction
        self._price = price
        self._ledger = compaction.ledger
        self._view = compaction.ledger.view
        self.before = compaction.before
        self.attached = compaction.job.attachments
        self.plan: CompactionPlan = plan_compaction(compaction, price, summary_model)
        self._tokens = compaction.item_tokens
        replaced = set(self.plan.replaced)
        self._columns: dict[str, Column] = {}
        request = current_request(self._ledger, self._view)
        self._fixed = {request.id} if request is not None else set[str]()
        keep = kept_whole(self._ledger, self._view, compaction.options.retention)
        self._keep = keep
        for entry in self._view:
            if entry.kind == "dropped":
                continue
            if entry.id in self.plan.offloaded:
                self._columns[entry.id] = "offloaded"
            elif replaced.intersection(covered((entry,))) and entry.id not in keep | self._fixed:
                self._columns[entry.id] = "summarised"
            else:
                self._columns[entry.id] = "kept"

    @property
    def items(self) -> tuple[PlannedItem, ...]:
        """In the order of the conversation."""
        return tuple(
            PlannedItem(
                entry.id, self._tokens.get(entry.id, 0), self._columns[entry.id], entry.id in self._ledger.pinned
            )
            for entry in self._view
            if entry.id in self._columns
        )

    @property
    def summarised(self) -> tuple[str, ...]:
        return tuple(name for name, column in self._columns.items() if column == "summarised")

    @property
    def offloaded(self) -> tuple[str, ...]:
        return tuple(name for name, column in self._columns.items() if column == "offloaded")

    def move(self, name: str, column: Column) -> str:
        """Move an item into another column, with the entries it depends on. Returns the reason if it can't, as a
        sentence."""
        if name not in self._columns:
            return f"{name} is not in the context."
        if column != "kept" and name in self._keep:
            return f"{name} is pinned or kept by one of your rules, so it is not removed."
        if column != "kept" and name in self._fixed:
            return f"{name} is your newest message, so it is not removed."
        entry = self._ledger.entries.get(name)
        if entry is None:
            if column == "offloaded":
                return "A summary has no shorter form; keep it or summarise it again."
            self._columns[name] = column
            return ""
        if column == "offloaded":
            if entry.kind in THOUGHT or self._stub(name) is None:
                return f"{name} is too short to replace, or has no shorter form."
            self._together(name, "kept")
            self._columns[name] = "offloaded"
            return ""
        self._together(name, column)
        return ""

    def _together(self, name: str, column: Column) -> None:
        """Move an entry with the other half of its pair and the reasoning before it."""
        entry = self._ledger.entries[name]
        members = led_by(self._ledger, entry) if entry.kind in THOUGHT else [entry]
        for member in members:
            for half in unit(self._ledger, member):
                pair_goes = "summarised" in (column, self._columns.get(half.id))
                if half.id in self._columns and (pair_goes or half.id == name):
                    self._columns[half.id] = column
            for thought in thoughts_before(self._ledger, member):
                spoken = [follower.id for follower in led_by(self._ledger, thought) if follower.id in self._columns]
                all_summarised = all(self._columns[spoken_id] == "summarised" for spoken_id in spoken)
                if thought.id in self._columns:
                    self._columns[thought.id] = "summarised" if all_summarised else "kept"

    def place(self, summarise: Iterable[str], offload: Iterable[str]) -> str:
        """Summarise and offload exactly these items. Returns the reason if it can't, as a sentence."""
        for name in self._columns:
            self._columns[name] = "kept"
        for name in summarise:
            if name in self._columns and (reason := self.move(name, "summarised")):
                return reason
        for name in offload:
            if name in self._columns and (reason := self.move(name, "offloaded")):
                return reason
        return ""

    def _stub(self, name: str) -> str | None:
        """The reference in place of an entry; None if it would save nothing."""
        entry = self._ledger.entries[name]
        tokens = self._compaction.sizes.entry(entry)
        if tokens < LEAST or (entry.kind == "call" and entry.item not in self._ledger.items):
            return None
        return arguments_stub(entry, tokens) if entry.kind == "call" else result_stub(entry, tokens, "offloaded")

    def arranged(self, summary: str, item: str = "plan", *, fold: bool = False) -> Arranged:
        """Result of the plan with this summary; ``item`` is the id of its text in the view. ``fold``: a few lines
        replace a stretch, without the record."""
        compaction, ledger = self._compaction, self._ledger
        summarised = [entry for entry in self._view if self._columns.get(entry.id) == "summarised"]
        sources = covered(summarised)
        text = ""
        if summarised:
            allowances = compaction.options.allowances(roomy_part(self.before))
            removed = [source for source in sources if source not in ledger.dropped]
            job, sizes = compaction.job, compaction.sizes
            text = (
                folded(ledger, removed, summary, job.when)
                if fold
                else build_package(ledger, removed, summary, job.facts, sizes, allowances, self.attached, job.when).text
            )
        view: list[ViewEntry] = []
        placed = False
        for entry in self._view:
            match self._columns.get(entry.id):
                case "summarised":
                    if not placed:
                        view.append(ViewEntry("summary", item, text, sources))
                        placed = True
                case "offloaded" if entry.kind == "live":
                    view.append(ViewEntry("stub", entry.id, self._stub(entry.id) or ""))
                case _:
                    view.append(entry)
        made = tuple(view)
        after = compaction.tokens(made)
        rewritten = max(0, after - unchanged_tokens(ledger, made, compaction.sizes, self.before.used))
        info = compaction.job.client.info
        cost, saved = change_costs(self._price, info.ref, self.before.used, after, rewritten)
        quality = (
            graded(anchors_of(ledger, sources, compaction.job.facts), text, summary) if summarised else Quality(0, 0, 0)
        )
        lost, _ = thoughts_changed(ledger, made, info)
        return Arranged(made, self.before.used, after, rewritten, cost, saved, quality, lost)

    def fold_wish(self) -> str:
        """What to ask the model for where only these items are folded."""
        first, last = self.summarised[0], self.summarised[-1]
        return (
            f"Write only about the stretch from [{first}] to [{last}], in at most six lines without headings: what was "
            "tried in it, what came of it, and what the rest of the work needs to know of it."
        )

    def lines(self, summary: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Each line of a summary with the ids of its sources."""
        return sources_of_lines(summary, self._ledger, covered(e for e in self._view if e.id in self.summarised))
