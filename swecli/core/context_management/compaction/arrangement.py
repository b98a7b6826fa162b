"""A compaction plan whose items can be moved: what stays word for word, what is summarised, what leaves a reference."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from swecli.core.context_management.budget import roomy_part
from swecli.core.context_management.compaction.clearing import LEAST, arguments_stub, kept_whole, result_stub
from swecli.core.context_management.compaction.package import build_package
from swecli.core.context_management.compaction.plan import (
    CompactionPlan,
    Price,
    change_costs,
    plan_compaction,
    unchanged_tokens,
)
from swecli.core.context_management.compaction.quality import Quality, anchors_of, graded, sources_of_lines
from swecli.core.context_management.compaction.selection import covered, current_request
from swecli.core.context_management.compaction.transaction import Compaction
from swecli.core.context_management.edits import THOUGHT, led_by, thoughts_before, unit
from swecli.core.context_management.view_stack import View
from swecli.core.protocol.events import ViewEntry

Column = Literal["kept", "summarised", "offloaded"]
COLUMNS: tuple[Column, ...] = ("kept", "summarised", "offloaded")


class PlannedItem(Struct, frozen=True):
    """One entry of the view; ``tokens`` as it is now."""

    id: str
    tokens: int
    column: Column
    pinned: bool


class Arranged(Struct, frozen=True):
    """What a plan comes to. Tokens are of the whole request; ``rewritten`` of them would not come from the provider's
    cache although they would have; costs are US dollars, None where no price is known."""

    view: View
    before: int
    after: int
    rewritten: int
    cost: str | None
    saved: str | None
    quality: Quality


class PlanDraft:
    """Begins as the plan that a compaction would make by itself."""

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
        """Put an item into another column, with what can't be without it. Returns why not, as a sentence."""
        if name not in self._columns:
            return f"{name} is not in the context."
        if column != "kept" and name in self._keep:
            return f"{name} is pinned, or kept by one of your rules; it stays."
        if column != "kept" and name in self._fixed:
            return f"{name} is your newest message; it stays."
        entry = self._ledger.entries.get(name)
        if entry is None:
            if column == "offloaded":
                return "A summary has no shorter form; keep it or summarise it again."
            self._columns[name] = column
            return ""
        if column == "offloaded":
            if entry.kind in THOUGHT or self._stub(name) is None:
                return f"{name} is too short for a reference, or has no shorter form."
            self._together(name, "kept")
            self._columns[name] = "offloaded"
            return ""
        self._together(name, column)
        return ""

    def _together(self, name: str, column: Column) -> None:
        """Move an entry with the other half of its pair and the reasoning that leads to it."""
        entry = self._ledger.entries[name]
        members = led_by(self._ledger, entry) if entry.kind in THOUGHT else [entry]
        for member in members:
            for one in unit(self._ledger, member):
                pair_goes = "summarised" in (column, self._columns.get(one.id))
                if one.id in self._columns and (pair_goes or one.id == name):
                    self._columns[one.id] = column
            for thought in thoughts_before(self._ledger, member):
                spoken = [one.id for one in led_by(self._ledger, thought) if one.id in self._columns]
                gone = all(self._columns[one] == "summarised" for one in spoken)
                if thought.id in self._columns:
                    self._columns[thought.id] = "summarised" if gone else "kept"

    def place(self, summarise: Iterable[str], offload: Iterable[str]) -> str:
        """Have exactly these items summarised and offloaded. Returns why not, as a sentence."""
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
        """The reference for an entry; None where it would save nothing."""
        entry = self._ledger.entries[name]
        tokens = self._compaction.sizes.entry(entry)
        if tokens < LEAST or (entry.kind == "call" and entry.item not in self._ledger.items):
            return None
        return arguments_stub(entry, tokens) if entry.kind == "call" else result_stub(entry, tokens, "offloaded")

    def arranged(self, summary: str, item: str = "plan") -> Arranged:
        """What the plan comes to with this summary; ``item`` is the id of its text in the view."""
        compaction, ledger = self._compaction, self._ledger
        gone = [entry for entry in self._view if self._columns.get(entry.id) == "summarised"]
        sources = covered(gone)
        text = ""
        if gone:
            allowances = compaction.options.allowances(roomy_part(self.before))
            removed = [one for one in sources if one not in ledger.dropped]
            facts, sizes = compaction.job.facts, compaction.sizes
            package = build_package(ledger, removed, summary, facts, sizes, allowances, self.attached)
            text = package.text
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
        quality = graded(anchors_of(ledger, sources, compaction.job.facts), text, summary) if gone else Quality(0, 0, 0)
        return Arranged(made, self.before.used, after, rewritten, cost, saved, quality)

    def lines(self, summary: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Each line of a summary with the ids that it comes from."""
        return sources_of_lines(summary, self._ledger, covered(e for e in self._view if e.id in self.summarised))
