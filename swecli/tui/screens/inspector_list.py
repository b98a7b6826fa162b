"""What the inspector lists: sorted, narrowed, with the changes that are not applied yet. No drawing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal

from swecli.core.context_management.items import CONVERSATION, ContextItem
from swecli.core.protocol.events import ContextChange

Sort = Literal["order", "size", "age", "last use"]
SORTS: Final[tuple[Sort, ...]] = ("order", "size", "age", "last use")
Action = Literal["pin", "unpin", "drop", "offload", "restore"]
ALL: Final = "all"
CHANGED: Final = "changed"


class InspectorList:
    """``title`` gives the words of an item, ``size`` the tokens that are shown of it; both are made when they are
    needed first."""

    def __init__(
        self,
        items: Sequence[ContextItem],
        title: Callable[[ContextItem], str],
        size: Callable[[ContextItem], int],
    ) -> None:
        self._title = title
        self._size = size
        self._titles: dict[tuple[str, str], str] = {}
        self.items: Sequence[ContextItem] = items
        self.sort: Sort = "order"
        self.shown: str = ALL
        """A component, or ``ALL`` or ``CHANGED``."""
        self.words = ""
        self.staged: dict[str, Action] = {}
        """What is to be done with items, by id, in the order in which it was chosen."""
        self.rows: Sequence[ContextItem] = items
        self.at = 0
        self.top = 0

    def take(self, items: Sequence[ContextItem]) -> None:
        """The context has changed: keep what was chosen for items that are still there."""
        here = {item.id for item in items}
        self.items = items
        self.staged = {name: action for name, action in self.staged.items() if name in here}
        self.narrow()

    @property
    def chosen(self) -> ContextItem | None:
        return self.rows[self.at] if 0 <= self.at < len(self.rows) else None

    @property
    def changes(self) -> tuple[ContextChange, ...]:
        return tuple(ContextChange(action, name) for name, action in self.staged.items())

    def title(self, item: ContextItem) -> str:
        key = (item.id, item.agent)
        known = self._titles.get(key)
        if known is None:
            known = self._titles[key] = self._title(item)
        return known

    # --- what is listed ---

    def narrow(self) -> None:
        """List what is left by filter and words, sorted; the chosen item stays chosen."""
        chosen = self.chosen
        words = self.words.casefold().split()
        rows = [item for item in self.items if self._wanted(item)]
        if words:
            rows = [item for item in rows if self._has(item, words)]
        match self.sort:
            case "size":
                rows.sort(key=lambda item: -self._size(item))
            case "age":
                rows.sort(key=lambda item: item.created)
            case "last use":
                rows.sort(key=lambda item: item.used)
            case "order":
                pass
        self.rows = rows
        place = next((n for n, item in enumerate(rows) if chosen is not None and item.id == chosen.id), None)
        self.at = place if place is not None else min(self.at, max(0, len(rows) - 1))

    def _wanted(self, item: ContextItem) -> bool:
        if self.shown == ALL:
            return True
        if self.shown == CHANGED:
            return item.id in self.staged or item.pinned or item.state not in ("live", "fixed")
        return item.component == self.shown

    def _has(self, item: ContextItem, words: Sequence[str]) -> bool:
        text = f"{item.id} {item.kind} {item.component} {item.state} {self.title(item)}".casefold()
        if item.pinned:
            text += " pinned"
        return all(word in text for word in words)

    @property
    def filters(self) -> tuple[str, ...]:
        """What the list can be narrowed to, in turn."""
        present = {item.component for item in self.items}
        return (ALL, CHANGED, *(name for name in CONVERSATION if name in present))

    def next_filter(self) -> None:
        filters = self.filters
        at = filters.index(self.shown) if self.shown in filters else 0
        self.shown = filters[(at + 1) % len(filters)]
        self.narrow()

    def next_sort(self) -> None:
        self.sort = SORTS[(SORTS.index(self.sort) + 1) % len(SORTS)]
        self.narrow()
        self.at = 0

    # --- choosing ---

    def move(self, step: int) -> None:
        if self.rows:
            self.at = max(0, min(self.at + step, len(self.rows) - 1))

    def follow(self, height: int) -> None:
        """Have the chosen row in sight of so many."""
        self.top = min(self.top, self.at)
        self.top = max(self.top, self.at - max(1, height) + 1)
        self.top = max(0, min(self.top, len(self.rows) - height))

    def stage(self, action: Action) -> str:
        """Choose this for the item at hand; the same once more takes it back. Returns why not, as a sentence."""
        item = self.chosen
        if item is None:
            return "There is no item to change."
        if item.state == "fixed":
            return "This is in every request; /config and the instruction files change it."
        if item.kind == "summary":
            return "A summary goes with its compaction; /compact undoes it."
        if action == "pin" and (item.pinned or self.staged.get(item.id) == "pin"):
            action = "unpin"
        before = self.staged.get(item.id)
        taken_back = before == action or (before == "pin" and action == "unpin") or (before and action == "restore")
        if taken_back:
            del self.staged[item.id]
        elif action == "restore" and item.state == "live":
            return f"{item.id} is in the context as it was said."
        else:
            self.staged.pop(item.id, None)
            self.staged[item.id] = action
        return ""
