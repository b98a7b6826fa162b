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
        self._newest: _Measured | None = None
        """The view measured last: the next try often differs from it in few entries."""

    def measure(self, view: View) -> Budget:
        measured = self._known(view) or self._measured(view)
        return self._context.monitor.budget(measured.weighed, self._context.limits, self._info)

    def _known(self, view: View) -> _Measured | None:
        """A view that was measured, or that differs little from one; None if it has to be measured as a whole."""
        before = (self._newest, self._whole)
        known = next((measured for measured in before if measured is not None and measured.view is view), None)
        for measured in before if known is None else ():
            known = known or (self._exchanged(measured, view) if measured is not None else None)
        self._newest = known or self._newest
        return known

    def _measured(self, view: View) -> _Measured:
        own = view is self._ledger.view
        dead = self._ledger.dead_thoughts(None if own else view)
        messages = project(self._ledger, None if own else view, dead)
        by_id = {message.id: message for message in messages}
        named = by_id if len(by_id) == len(messages) else dict[str, Message]()
        self._whole = self._newest = _Measured(view, named, dead, self._context.weighed(messages, self._info))
        return self._whole

    def _exchanged(self, known: _Measured, view: View) -> _Measured | None:
        """The sizes of a view that shows the same entries as a known one; None if it does not."""
        ledger = self._ledger
        if known.weighed.cleared or len(view) != len(known.view):
            return None
        others = compress(count(), map(is_not, known.view, view))
        places = [at for at in others if known.view[at] != view[at]]
        if len(places) > MOST_CHANGED * len(view):
            return None
        if not all(self._only_form(known.view[at], view[at]) for at in places):
            return None
        dead = ledger.dead_thoughts(view)
        if dead != known.dead:
            other = dead ^ known.dead
            places = sorted({*places, *(at for at, entry in enumerate(view) if entry.id in other)})
        around = self._with_their_messages(view, places)
        before = messages_of(ledger, [known.view[at] for at in around], known.dead)
        after = messages_of(ledger, [view[at] for at in around], dead)
        if any(known.messages.get(message.id) != message for message in before):
            return None  # in its place it is not what it is alone
        messages = known.messages.copy()
        for message in before:
            del messages[message.id]
        messages.update((message.id, message) for message in after)
        weighed = self._context.monitor.exchanged(known.weighed, before, after, self._info)
        return _Measured(view, messages, dead, weighed)

    def _only_form(self, form: ViewEntry, other: ViewEntry) -> bool:
        """Whether two forms of one entry make messages that differ in nothing but content."""
        entry = self._ledger.entries.get(form.id)
        plain = entry is not None and entry.kind in ("result", "call", "text", "reasoning")
        return plain and form.id == other.id and form.kind in _FORMS and other.kind in _FORMS

    def _with_their_messages(self, view: View, places: Collection[int]) -> Sequence[int]:
        """The places of all entries of the messages that have these."""
        entries = self._ledger.entries

        def owner(at: int) -> str:
            entry = entries.get(view[at].id)
            return entry.message if entry is not None else view[at].id

        around: list[int] = []
        for index in places:
            if around and index <= around[-1]:
                continue
            mine = owner(index)
            start = end = index
            while start and owner(start - 1) == mine:
                start -= 1
            while end + 1 < len(view) and owner(end + 1) == mine:
                end += 1
            around += range(start, end + 1)
        return around
