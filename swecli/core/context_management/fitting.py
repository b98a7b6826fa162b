"""What comes back when a removal is undone: as much of the earlier view as the model's window has room for. Pure.

An automatic compaction undoes a full window, so the view before it, with what was added since, rarely fits as it was.
First the largest old results become references; then an older part stays summarised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.context_management.compaction.clearing import (
    LEAST,
    kept_whole,
    reference_to,
    with_pairs,
)
from swecli.core.context_management.compaction.options import Allowances, CompactionOptions, EntrySizes
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.edits import Edited
from swecli.core.context_management.ledger import Ledger, with_entries
from swecli.core.context_management.monitor import is_vague
from swecli.core.context_management.view_measure import ViewMeasure
from swecli.core.context_management.view_stack import View
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.context_events import ViewEntry

FILLED = 0.90
"""Share of the effective window that a view may fill after an undo that had to make room."""
FAR = 1.3
"""Factor of the room from which on an estimate is enough to know that a view is too large."""
ROUNDS = 6
"""Measures at the most: the sizes of entries are estimates, so the first choice may be a little too large."""


_SHORTENED = frozenset(("result", "attachment", "call"))
"""Kinds of entries that have a reference."""


class Fitted(Struct, frozen=True):
    """A view with what comes back. ``used`` is the size of the whole request in tokens; ``references`` counts the
    results and arguments that became references. ``since`` is the first turn whose messages are back, of ``turns``; 0:
    all are. ``more`` counts the later compactions that are redone as well."""

    view: View
    used: int
    references: int = 0
    since: int = 0
    turns: int = 0
    more: int = 0

    @property
    def whole(self) -> bool:
        return not self.references and not self.since

    @property
    def clause(self) -> str:
        """What an undo brings back, after "/compact undo"."""
        turns = f"turn {self.since}" if self.since == self.turns else f"turns {self.since} to {self.turns}"
        return ", ".join(filter(None, (f"restores {turns if self.since else 'it'}", self._shortened)))

    @property
    def extent(self) -> str:
        """How far a compaction was undone, after "Compaction undone"."""
        if not self.since:
            return f"with {self._shortened}"
        return ", ".join(filter(None, (f"back to turn {self.since} of {self.turns}", self._shortened)))

    @property
    def _shortened(self) -> str:
        return as_references(self.references) if self.references else ""


def as_references(count: int) -> str:
    """So many old results in another form, as words."""
    return "1 old result as a reference" if count == 1 else f"{count:,} old results as references"


class Room:
    """How much of an earlier view fits beside what every request to a model has. The entries of ``back`` stay word for
    word, as do pinned ones and those that a rule keeps."""

    def __init__(
        self,
        context: ContextManager,
        ledger: Ledger,
        info: ModelInfo,
        options: CompactionOptions,
        back: Iterable[str] = (),
    ) -> None:
        self._ledger = ledger
        self._options = options
        self._roomy = ("ok", "warn") if options.auto else ("ok", "warn", "compact")
        """Levels at which the next request is sent as it is."""
        self._exact = context.monitor.exact
        self._sizes = EntrySizes(context.monitor, info)
        self._back = with_pairs(ledger, back)
        self._measure = ViewMeasure(context, ledger, info).measure

    @property
    def now(self) -> Budget:
        """The measure of the conversation as it is."""
        return self._measure(self._ledger.view)

    def without(self, item: str) -> Fitted | None:
        """The view if the compaction of this item, and all later ones, were undone; None if it can't be."""
        view = self._ledger.view_without(item)
        return None if view is None else self.fit(view, self._ledger.view)

    def again(self, item: str) -> tuple[str, Fitted] | None:
        """The view if compactions that were undone were redone, up to the returned item: that of ``item``, or as many
        more as its view needs to fit, because several may have been undone at once. None if it was not undone."""
        undone = self._ledger.compactions[1]
        found: tuple[str, Fitted] | None = None
        for more, compaction in enumerate(undone[undone.index(item) :] if item in undone else ()):
            view = self._ledger.view_with(compaction)
            if view is None:
                break
            budget = self._measure(view)
            found = (compaction, Fitted(view, budget.used, more=more))
            if budget.level in self._roomy:
                break
        return found

    def fit(self, wanted: View, present: View) -> Fitted | None:
        """As much of the view ``wanted`` in place of the ``present`` one as fits; None if nothing of it does."""
        now = self._measure(present)
        limit = _limit(now)
        whole: Fitted | None = None
        likely = now.upper + self._more(wanted, present)
        if likely < FAR * limit:
            budget = self._measure(wanted)
            # What exact counts may find larger is as good as full. Of exact ones only the guard is left, with which the
            # view was sent before.
            doubtful = is_vague(budget) and not self._exact and budget.upper > limit
            if (budget.level in self._roomy and not doubtful) or budget.used <= now.used:
                return Fitted(wanted, budget.used)
            likely = budget.upper
            if budget.level != "block":
                whole = Fitted(wanted, budget.used)
        for protected in (Allowances.of(now.effective).protected, 0):  # 0: the newest results alone are too large
            fitted, shortened = self._with_references(wanted, likely, limit, protected)
            if fitted := fitted or self._with_boundary(shortened, present, limit):
                return fitted
        # One large message: it fits, though the next request compacts again. Or an earlier undo has filled the window.
        return whole or self._no_more(wanted, present, now.used)

    def _more(self, wanted: View, present: View) -> int:
        """About how many tokens the view ``wanted`` has more than the ``present`` one."""
        mine, theirs = set(map(id, present)), set(map(id, wanted))
        more = sum(self._size(entry) for entry in wanted if id(entry) not in mine)
        return more - sum(self._size(entry) for entry in present if id(entry) not in theirs)

    def _size(self, entry: ViewEntry) -> int:
        return self._sizes.stub(entry.text) if entry.kind == "stub" else self._sizes.viewed(entry, self._ledger)

    def shorten(self, wanted: View) -> Fitted | None:
        """All of the view, with references for what does not fit; None if that is not enough."""
        budget = self._measure(wanted)
        for protected in (Allowances.of(budget.effective).protected, 0):
            fitted, _ = self._with_references(wanted, budget.upper, _limit(budget), protected)
            if fitted is not None:
                return fitted
        return None

    def _with_references(self, wanted: View, size: int, limit: int, protected: int) -> tuple[Fitted | None, View]:
        """The view with the largest results older than the newest ``protected`` tokens as references: as few as
        needed, or all of them where even that is too large. ``size`` is its likely size without any, in tokens."""
        whole = kept_whole(self._ledger, wanted, self._options.retention).union(self._back)
        stubs = sorted(self._stubs(wanted, protected, whole), key=lambda stub: stub[1], reverse=True)
        forms = {index: form for index, _, form in stubs}
        shortened = tuple(forms.get(index, entry) for index, entry in enumerate(wanted))
        if size - sum(freed for _, freed, _ in stubs) > FAR * limit:
            return None, shortened
        number, over = 0, size - limit
        taken: dict[int, ViewEntry] = {}
        for _ in range(ROUNDS):
            while over > 0 and number < len(stubs):
                index, freed, form = stubs[number]
                taken[index] = form
                over -= freed
                number += 1
            view = tuple(taken.get(index, entry) for index, entry in enumerate(wanted))
            measured = self._measure(view)
            if measured.upper <= limit:
                return Fitted(view, measured.used, len(taken)), shortened
            if number == len(stubs):
                break
            over = measured.upper - limit
        return None, shortened

    def _stubs(self, view: View, protected: int, whole: frozenset[str]) -> Iterator[tuple[int, int, ViewEntry]]:
        """Places of results and arguments that can become references, the tokens freed, and the reference."""
        sizes, ledger = self._sizes, self._ledger
        after = 0
        for place in range(len(view) - 1, -1, -1):
            shown = view[place]
            entry = ledger.entries.get(shown.id)
            if after < protected:
                after += self._size(shown)
                continue
            if entry is None or shown.kind != "live" or entry.kind not in _SHORTENED or shown.id in whole:
                continue
            size = self._size(shown)
            text = reference_to(entry, ledger, size) if size >= LEAST else None
            if text and (freed := size - sizes.stub(text)) > 0:
                yield place, freed, ViewEntry("stub", shown.id, text)

    def _with_boundary(self, wanted: View, present: View, limit: int) -> Fitted | None:
        """The present view with the newest part of the wanted one, which a summary in the present view no longer
        covers: from the beginning of a turn, or of an answer where not even one turn fits."""
        ledger = self._ledger
        references = {entry.id: entry for entry in wanted if entry.kind == "stub"}
        present = tuple(references.get(entry.id, entry) if entry.kind == "live" else entry for entry in present)
        current = {entry.id: entry for entry in present}
        back = [entry.kind != "summary" and current.get(entry.id) != entry for entry in wanted]

        size = self._size
        missing = [
            size(entry) - (size(current[entry.id]) if entry.id in current else 0) if new else 0
            for entry, new in zip(wanted, back, strict=True)
        ]
        newest = max((index for index, new in enumerate(back) if new), default=-1)
        order = {name: number for number, name in enumerate(ledger.entries)}
        before = self._measure(present).upper
        room = limit - before
        for starts in (self._turn_starts(wanted), self._answer_starts(wanted)):
            candidates = [start for start in starts if start <= newest]
            start = _first_that_fits(candidates, missing, room)
            best: Fitted | None = None
            for _ in range(ROUNDS):
                if start is None:
                    break
                forms = [entry for entry, new in zip(wanted[start:], back[start:], strict=True) if new]
                view = with_entries(present, forms, order)
                measured = self._measure(view)
                fits = measured.upper <= limit
                best = self._from(start, wanted, view, measured.used) if fits else best
                # Estimates may be too large as well: an earlier start fits then, too.
                candidates = [other for other in candidates if (other < start) == fits and other != start]
                likely = sum(missing[start:]) * room // max(1, measured.upper - before)
                start = _first_that_fits(candidates, missing, likely)
            if best is not None:
                return best
        return None

    def _no_more(self, wanted: View, present: View, used: int) -> Fitted | None:
        """The present view, if it has the newest part of the wanted one; None if it has nothing of it."""
        current = {entry.id for entry in present}
        end = len(wanted)
        start = next((index + 1 for index in range(end - 1, -1, -1) if wanted[index].id not in current), 0)
        return self._from(start, wanted, present, used) if start < end else None

    def _from(self, start: int, wanted: View, view: View, used: int) -> Fitted:
        entries = self._ledger.entries
        since = next((entries[entry.id].turn for entry in wanted[start:] if entry.id in entries), 0)
        turns = max((entries[entry.id].turn for entry in wanted if entry.id in entries), default=0)
        stubs = {entry.id for entry in wanted[start:] if entry.kind == "stub"}
        shown = sum(1 for entry in view if entry.kind == "stub" and entry.id in stubs)
        return Fitted(view, used, shown, since, turns)

    def _turn_starts(self, view: View) -> Sequence[int]:
        entries = self._ledger.entries
        return [
            index
            for index, shown in enumerate(view)
            if (entry := entries.get(shown.id)) is not None and entry.kind == "user"
        ]

    def _answer_starts(self, view: View) -> Sequence[int]:
        entries = self._ledger.entries
        starts: list[int] = []
        before = ""
        for index, shown in enumerate(view):
            entry = entries.get(shown.id)
            if entry is not None and entry.message != before and entry.kind not in ("result", "note"):
                starts.append(index)
            before = entry.message if entry is not None else ""
        return starts


def with_references(done: Edited, fitted: Fitted) -> Edited:
    """The user's changes, with the references that make room for them."""
    changed = {entry.id for entry in done.entries}
    before = {entry.id: entry for entry in done.view}
    forms = tuple(entry for entry in fitted.view if before.get(entry.id) != entry and entry.id not in changed)
    return replace(done, view=fitted.view, entries=(*done.entries, *forms))


def _limit(budget: Budget) -> int:
    """Tokens up to which a view that had to be shortened may fill the window."""
    return min(int(FILLED * budget.effective), budget.compact_at - 1)


def _first_that_fits(starts: Sequence[int], missing: Sequence[int], room: int) -> int | None:
    """The earliest start from which on everything missing takes at most ``room`` tokens."""
    if not starts:
        return None
    best, total, end = None, 0, len(missing)
    for start in reversed(starts):
        total += sum(missing[start:end])
        end = start
        if total > room:
            break
        best = start
    return best
