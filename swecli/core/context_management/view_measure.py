"""Measures of views of the ledger, to preview a change. Pure but for what it remembers.

A view that shows the same entries as one measured before, some of them in another form, costs only the messages with
these. The result is that of measuring the whole view.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from itertools import compress, count
from operator import is_not

from msgspec import Struct

from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.ledger import Ledger
from swecli.core.context_management.monitor import Weighed
from swecli.core.context_management.projection import messages_of, project
from swecli.core.context_management.view_stack import View
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.messages import Message

MOST_CHANGED = 0.6
"""Share of the entries from which on measuring the whole costs no more."""
_FORMS = frozenset(("live", "stub"))


class _Measured(Struct, frozen=True):
    view: View
    messages: dict[str, Message]
    """By id; without those whose ids occur twice."""
    dead: AbstractSet[str]
    weighed: Weighed


class ViewMeasure:
    """Measures views of one ledger for one model."""

    def __init__(self, context: ContextManager, ledger: Ledger, info: ModelInfo) -> None:
        self._context = context
        self._ledger = ledger
        self._info = info
        self._whole: _Measured | None = None
        """The view measured as a whole last."""

    def measure(self, view: View) -> Budget:
        weighed = self._exchanged(view) if self._whole is not None else None
        if weighed is None:
            weighed = self._measured(view).weighed
        return self._context.monitor.budget(weighed, self._context.limits, self._info)

    def _measured(self, view: View) -> _Measured:
        own = view is self._ledger.view
        dead = self._ledger.dead_thoughts(None if own else view)
        messages = project(self._ledger, None if own else view, dead)
        by_id = {message.id: message for message in messages}
        named = by_id if len(by_id) == len(messages) else dict[str, Message]()
        self._whole = _Measured(view, named, dead, self._context.weighed(messages, self._info))
        return self._whole

    def _exchanged(self, view: View) -> Weighed | None:
        """The sizes of a view that shows the same entries; None if it has to be measured as a whole."""
        whole, ledger = self._whole, self._ledger
        if whole is None or view is whole.view:
            return whole.weighed if whole is not None else None
        if whole.weighed.cleared or len(view) != len(whole.view):
            return None
        others = compress(count(), map(is_not, whole.view, view))
        places = [at for at in others if whole.view[at] != view[at]]
        if len(places) > MOST_CHANGED * len(view):
            return None
        if not all(self._only_form(whole.view[at], view[at]) for at in places):
            return None
        dead = ledger.dead_thoughts(view)
        if dead != whole.dead:
            other = dead ^ whole.dead
            places = sorted({*places, *(at for at, entry in enumerate(view) if entry.id in other)})
        around = self._with_their_messages(view, places)
        before = messages_of(ledger, [whole.view[at] for at in around], whole.dead)
        after = messages_of(ledger, [view[at] for at in around], dead)
        if any(whole.messages.get(message.id) != message for message in before):
            return None  # in its place it is not what it is alone
        return self._context.monitor.exchanged(whole.weighed, before, after, self._info)

    def _only_form(self, one: ViewEntry, other: ViewEntry) -> bool:
        """Whether two forms of one entry make messages that differ in nothing but content."""
        entry = self._ledger.entries.get(one.id)
        plain = entry is not None and entry.kind in ("result", "call", "text", "reasoning")
        return plain and one.id == other.id and one.kind in _FORMS and other.kind in _FORMS

    def _with_their_messages(self, view: View, places: Collection[int]) -> Sequence[int]:
        """The places of all entries of the messages that have these."""
        around: list[int] = []
        for place in places:
            if around and place <= around[-1]:
                continue
            owner = self._owner(view[place])
            start = end = place
            while start and self._owner(view[start - 1]) == owner:
                start -= 1
            while end + 1 < len(view) and self._owner(view[end + 1]) == owner:
                end += 1
            around += range(start, end + 1)
        return around

    def _owner(self, shown: ViewEntry) -> str:
        entry = self._ledger.entries.get(shown.id)
        return entry.message if entry is not None else shown.id
