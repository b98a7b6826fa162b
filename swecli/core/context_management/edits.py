"""The user's edits of single items: pin, drop, offload, restore. Pure decisions over a view of the ledger.

A batch is decided as a whole: later changes see the effect of earlier ones, and impossible ones get a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct

from swecli.core.context_management.compaction.clearing import arguments_stub, result_stub, with_pairs
from swecli.core.context_management.compaction.options import EntrySizes
from swecli.core.context_management.items import ContextItem
from swecli.core.context_management.ledger import RESULT, Entry, Ledger, with_entries
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.projection import project, thoughts_changed
from swecli.core.context_management.view_stack import View
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.context_events import BY_HAND, ContextChange, ViewEntry

SPOKEN = frozenset(("text", "call"))
"""Kinds of entries of an answer that follow from its reasoning."""
THOUGHT = frozenset(("reasoning", "opaque"))


class Refusal(Struct, frozen=True):
    """An impossible change, with the reason as a sentence."""

    change: ContextChange
    reason: str


class Edited(Struct, frozen=True):
    """Result of a batch: the new forms of entries, the view with them, and the pins. ``made`` are the changes with an
    effect; refused ones have none."""

    view: View
    entries: tuple[ViewEntry, ...]
    pinned: tuple[str, ...]
    unpinned: tuple[str, ...]
    made: tuple[ContextChange, ...]
    refusals: tuple[Refusal, ...]

    @property
    def changes_anything(self) -> bool:
        return bool(self.entries or self.pinned or self.unpinned)

    @property
    def restored(self) -> tuple[str, ...]:
        """Entries that are word for word in the view again."""
        return tuple(entry.id for entry in self.entries if entry.kind == "live")


def edited(ledger: Ledger, changes: Sequence[ContextChange], sizes: EntrySizes) -> Edited:
    """Apply these changes in order to the ledger's present view."""
    batch = _Batch(ledger, sizes)
    made: list[ContextChange] = []
    refusals: list[Refusal] = []
    for change in changes:
        reason = batch.make(change)
        if reason:
            refusals.append(Refusal(change, reason))
        else:
            made.append(change)
    entries = batch.entries()
    order = {entry: number for number, entry in enumerate(ledger.entries)}
    view = with_entries(ledger.view, entries, order) if entries else ledger.view
    pinned = tuple(sorted(batch.pinned - ledger.pinned))
    unpinned = tuple(sorted(ledger.pinned - batch.pinned))
    return Edited(view, entries, pinned, unpinned, tuple(made), tuple(refusals))


class _Batch:
    """The forms of entries during a batch of changes."""

    def __init__(self, ledger: Ledger, sizes: EntrySizes) -> None:
        self._ledger = ledger
        self._sizes = sizes
        self._before = {entry.id: entry for entry in ledger.view if entry.kind != "summary"}
        self._behind = {source for entry in ledger.view for source in entry.sources}
        self._forms: dict[str, ViewEntry] = {}
        self.pinned = set(ledger.pinned)

    def entries(self) -> tuple[ViewEntry, ...]:
        return tuple(form for name, form in self._forms.items() if not _same(form, self._before.get(name)))

    def make(self, change: ContextChange) -> str:
        """Make one change. Returns the reason if it is impossible, or an empty text."""
        entry = self._ledger.entries.get(change.id)
        if entry is None:
            return f"Unknown item {change.id!r}."
        if not self._ledger.is_sound(entry):
            return f"{entry.id} can't be changed: part of it is unreadable in this session's record."
        match change.action:
            case "pin":
                return self._pin(entry) or self._restore(entry)
            case "unpin":
                self.pinned -= with_pairs(self._ledger, [entry.id])
                return ""
            case "restore":
                return self._restore(entry)
            case "drop":
                return self._drop(entry)
            case "offload":
                return self._offload(entry)

    def _form(self, name: str) -> ViewEntry | None:
        return self._forms.get(name) or self._before.get(name)

    def _kind(self, name: str) -> str:
        form = self._form(name)
        return form.kind if form is not None else "gone"

    def _pin(self, entry: Entry) -> str:
        if entry.kind in THOUGHT:
            led = next((follower.id for follower in led_by(self._ledger, entry)), "")
            return f"{entry.id} is reasoning and belongs to the answer after it{f'; pin {led}' if led else ''}."
        self.pinned.add(entry.id)
        return ""

    def _held(self, pair: Iterable[Entry], entry: Entry) -> str:
        for half in pair:
            if half.id not in self.pinned:
                continue
            if half.id == entry.id:
                return f"{entry.id} is pinned; unpin it first."
            needs = "its call" if half.kind == "result" else "its result"
            return f"{half.id} is pinned and needs {needs}, {entry.id}; unpin {half.id} first."
        return ""

    def _drop(self, entry: Entry) -> str:
        both = unit(self._ledger, entry)
        objection = self._held(both, entry)
        if objection:
            return objection
        if self._kind(entry.id) == "gone":
            return f"{entry.id} is not in the context word for word: it was summarised or removed."
        if all(half.id in self._before and self._before[half.id].kind == "dropped" for half in both):
            return f"{entry.id} is already dropped."
        if entry.kind in THOUGHT:
            led = [
                follower.id
                for follower in led_by(self._ledger, entry)
                if self._kind(follower.id) not in ("dropped", "gone")
            ]
            if led:
                return f"{entry.id} belongs to {led[0]}; drop {led[0]}."
        for half in both:
            form = self._form(half.id)
            text = form.text if form is not None and form.kind == "stub" else ""
            self._set(half.id, ViewEntry("dropped", half.id, text, rule=BY_HAND))
        for thought in thoughts_before(self._ledger, entry):
            led = led_by(self._ledger, thought)
            if self._kind(thought.id) != "gone" and all(
                self._kind(follower.id) in ("dropped", "gone") for follower in led
            ):
                self._set(thought.id, ViewEntry("dropped", thought.id, rule=BY_HAND))
        return ""

    def _offload(self, entry: Entry) -> str:
        if entry.kind in THOUGHT:
            return f"{entry.id} is reasoning, which has no short form; drop the answer after it."
        objection = self._held([entry], entry)
        if objection:
            return objection
        if self._kind(entry.id) in ("gone", "dropped"):
            return f"{entry.id} is not in the context word for word; restore it first."
        if self._kind(entry.id) == "stub":
            return f"{entry.id} is already offloaded."
        if entry.kind == "call" and entry.item not in self._ledger.items:
            return f"{entry.id} is still running."
        tokens = self._sizes.entry(entry)
        stub = arguments_stub(entry, tokens) if entry.kind == "call" else result_stub(entry, tokens, "offloaded")
        if self._sizes.offloaded(entry, stub) >= tokens:
            return f"{entry.id} has {tokens:,} tokens; a reference to it would need as many."
        self._set(entry.id, ViewEntry("stub", entry.id, stub, rule=BY_HAND))
        return ""

    def _restore(self, entry: Entry) -> str:
        wanted = [
            half
            for half in unit(self._ledger, entry)
            if half.id == entry.id or self._kind(half.id) in ("gone", "dropped")
        ]
        if self._kind(entry.id) == "gone" and entry.id not in self._behind and not self._was_left_out(entry):
            return f"{entry.id} is no longer part of the conversation because of a rewind."
        for member in (*self._missing_thoughts(entry), *wanted):
            form = self._form(member.id)
            if member.id != entry.id and form is not None and form.kind == "dropped" and form.text:
                self._set(
                    member.id, ViewEntry("stub", member.id, form.text, rule=BY_HAND)
                )  # its form before it was dropped along
            elif self._kind(member.id) != "live":
                self._set(member.id, ViewEntry("live", member.id, rule=BY_HAND))
        return ""

    def _was_left_out(self, entry: Entry) -> bool:
        """Whether a compaction without a summary removed it: a rewound entry has nothing later in the view."""
        newest = next((shown.id for shown in reversed(self._ledger.view) if shown.id in self._ledger.entries), None)
        if newest is None:
            return False
        return self._ledger.entries[newest].created >= entry.created and bool(self._ledger.compactions[0])

    def _set(self, name: str, form: ViewEntry) -> None:
        before = self._before.get(name)
        self._forms[name] = before if before is not None and _same(form, before) else form

    def _missing_thoughts(self, entry: Entry) -> list[Entry]:
        """Reasoning that the user dropped with this entry."""
        return [thought for thought in thoughts_before(self._ledger, entry) if self._kind(thought.id) == "dropped"]


# --- reasoning and the entries that follow from it move together: providers refuse one without the other --


def _message(ledger: Ledger, entry: Entry) -> list[Entry]:
    """The entries of the same answer in order, without its results."""
    response = ledger.responses.get(entry.message)
    names = response.items if response is not None else (entry.id,)
    return [ledger.entries[name] for name in names if name in ledger.entries]


def _runs(ledger: Ledger, entry: Entry) -> Iterator[tuple[list[Entry], list[Entry]]]:
    """Stretches of reasoning of the same answer, each with the entries that follow from it."""
    thoughts: list[Entry] = []
    spoken: list[Entry] = []
    for member in _message(ledger, entry):
        if member.kind in THOUGHT and spoken:
            yield thoughts, spoken
            thoughts, spoken = [], []
        (thoughts if member.kind in THOUGHT else spoken).append(member)
    yield thoughts, spoken


def led_by(ledger: Ledger, thought: Entry) -> list[Entry]:
    """Entries that follow from this reasoning."""
    return [follower for thoughts, spoken in _runs(ledger, thought) if thought in thoughts for follower in spoken]


def thoughts_before(ledger: Ledger, entry: Entry) -> list[Entry]:
    """The reasoning before an entry; for a result, before its call."""
    mine = ledger.entries.get(entry.item, entry)
    if mine.kind not in SPOKEN:
        return []
    return [thought for thoughts, spoken in _runs(ledger, mine) if mine in spoken for thought in thoughts]


def unit(ledger: Ledger, entry: Entry) -> list[Entry]:
    """The entry with the other half of its pair."""
    names = (entry.item, entry.item + RESULT) if entry.kind in ("call", "result") else (entry.id,)
    return [ledger.entries[name] for name in names if name in ledger.entries]


def _same(entry: ViewEntry, other: ViewEntry | None) -> bool:
    """Whether the model sees the same."""
    return other is not None and (entry.kind, entry.text) == (other.kind, other.text)


def _sent_together(ledger: Ledger, entry: Entry) -> Iterator[str]:
    """Entries of the same answer, their results included."""
    for member in _message(ledger, ledger.entries.get(entry.item, entry)):
        yield member.id
        yield member.id + RESULT


def _beginning(ledger: Ledger, view: View) -> Iterator[str]:
    """The first message, and the first one of the user, which carries the environment even when dropped."""
    shown = (viewed.id for viewed in view if viewed.kind != "dropped")
    users = (viewed.id for viewed in view if _is_from_user(ledger, viewed))
    for name in (*islice(shown, 1), *islice(users, 1)):
        entry = ledger.entries.get(name)
        yield from [name] if entry is None else _sent_together(ledger, entry)


def _is_from_user(ledger: Ledger, shown: ViewEntry) -> bool:
    entry = ledger.entries.get(shown.id)
    return entry is None or entry.kind == "user" or (shown.kind != "dropped" and entry.kind in ("note", "attachment"))


EditCosts = Callable[[int, int, int], tuple[str | None, str | None]]
"""Costs from tokens before, tokens after, and the uncached part of the latter: the cost now, and the saving of each
later request."""


class Effect(Struct, frozen=True):
    """Effect of a change on the next request. ``after`` is approximate; ``rewritten`` are tokens that lose their place
    in the provider's cache; ``cost`` of these and ``saved`` by each later request are US dollars as decimal strings,
    None without a known price. ``over`` are the tokens beyond the limit, 0 if it fits. ``thoughts`` of the model are
    lost: they leave the conversation, or what precedes them changes; ``regained`` ones are sent again. ``references``
    is the number of old results that become references to make room."""

    before: int
    after: int
    rewritten: int
    cost: str | None
    saved: str | None
    over: int = 0
    refusals: tuple[Refusal, ...] = ()
    thoughts: int = 0
    regained: int = 0
    references: int = 0


def effect_of(
    done: Edited,
    ledger: Ledger,
    items: Sequence[ContextItem],
    budget: Budget,
    monitor: TokenMonitor,
    info: ModelInfo,
    costs: EditCosts,
) -> Effect:
    """Effect of the batch ``done``. ``items`` are those of the ledger's view, ``budget`` is its measure. Measures only
    the changed messages and the conversation's first ones."""
    changed = {entry.id for entry in done.entries}
    together = {member for name in changed for member in _sent_together(ledger, ledger.entries[name])}
    together |= {member for view in (ledger.view, done.view) for member in _beginning(ledger, view)}
    dead = {view: ledger.dead_thoughts(view) for view in (ledger.view, done.view)}
    if ledger.bound is not None:  # thoughts behind the change leave with it, or come back
        both = dead[ledger.view] ^ dead[done.view]
        together |= {member for name in both for member in _sent_together(ledger, ledger.entries[name])}
    old, new = (
        monitor.tokens_of(project(ledger, [entry for entry in view if entry.id in together], dead[view]), info)
        for view in (ledger.view, done.view)
    )
    lost, regained = thoughts_changed(ledger, done.view, info)
    after = max(0, budget.used + round(new - old))
    unchanged = 0
    first = next((number for number, item in enumerate(items) if item.id in changed and item.state != "summarised"), -1)
    present = {entry.id for entry in ledger.view}
    if any(entry.id not in present for entry in done.entries):
        first = next((number for number, item in enumerate(items) if item.state != "fixed"), 0)
    if done.entries:
        unchanged = sum(item.tokens for item in items[: max(0, first)])
    rewritten = max(0, after - unchanged) if done.entries else 0
    over = max(0, after + (budget.upper - budget.used) - budget.block_at + 1) if budget.block_at else 0
    cost, saved = costs(budget.used, after, rewritten)
    over = over if after > budget.used else 0
    return Effect(budget.used, after, rewritten, cost, saved, over, done.refusals, lost, regained)
