"""The price of each change that a user can make to a session's context, before it is made. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from swecli.core.context_management.compaction.options import EntrySizes
from swecli.core.context_management.compaction.plan import Price, change_costs
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.edit_effects import effect_of_view
from swecli.core.context_management.edits import Effect
from swecli.core.context_management.projection import project
from swecli.core.context_management.thoughts import sent_thoughts
from swecli.core.context_management.view_stack import View
from swecli.core.engine.compaction_plans import CompactionPlans
from swecli.core.engine.context_changes import ContextChanges
from swecli.core.engine.inspection import Inspection
from swecli.core.engine.model_access import Connection
from swecli.core.engine.recorder import Recorder
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.context_events import ContextChange
from swecli.figures import plural


class EditPrices:
    """Each method returns None if the change is not possible now, or no model is connected."""

    def __init__(
        self,
        context: ContextManager,
        price: Price,
        recorder: Recorder,
        connection: Connection,
        plans: CompactionPlans,
        changes: ContextChanges,
        inspection: Inspection,
    ) -> None:
        self._context = context
        self._price = price
        self._recorder = recorder
        self._connection = connection
        self._plans = plans
        self._changes = changes
        self._inspection = inspection

    def changes(self, changes: Sequence[ContextChange]) -> Effect | None:
        """Of changes of single items."""
        picture = self._inspection.picture()
        return self._inspection.effect(picture, changes) if picture is not None else None

    def rewind(self, item: str) -> Effect | None:
        """Of a rewind of the conversation to before a message."""
        return self.view(self._recorder.ledger.view_rewound(item))

    def rewind_undo(self) -> Effect | None:
        """Of the undo of the newest rewind."""
        newest = next(reversed(self._recorder.state.rewinds), None)
        return self.view(self._recorder.ledger.view_unwound(newest.name)) if newest is not None else None

    def undo(self, item: str = "") -> Effect | None:
        """Of the undo of the compaction with this item (empty: the newest) and of all later ones."""
        fitted = self._changes.undone(item or self._recorder.ledger.undoable or "")
        return self.view(fitted.view) if fitted is not None else None

    def redo(self, item: str = "") -> Effect | None:
        """Of the redo of the compaction with this item (empty: the one undone last), and of those that go with it."""
        again = self._changes.redone(item or self._recorder.ledger.redoable or "")
        return self.view(again[1].view) if again is not None else None

    def fold(self, names: Sequence[str], summary: str) -> Effect | str | None:
        """Of folding these items into a few lines; a sentence if they can't be."""
        draft = self._plans.draft()
        if draft is None:
            return None
        return draft.place(names, ()) or self.view(draft.arranged(summary, fold=True).view)

    def clearing(self) -> Effect | None:
        """Of freeing space without a model."""
        return self.view(self._plans.freed())

    def switch(self, model: str) -> Effect | None:
        """Of a switch to another model, by the user's name for it."""
        client, other = self._connection.client, self._connection.look_at(model)
        if client is None or other is None or other.ref == client.info.ref or not self._recorder.ledger.view:
            return None
        return switch_effect(self._context, self._price, self._recorder, client.info, other)

    def view(self, view: View | None) -> Effect | None:
        """Of this view in place of the present one."""
        client = self._connection.client
        if client is None or view is None:
            return None
        ledger, context, info = self._recorder.ledger, self._context, client.info
        after = context.measure(project(ledger, view), info)
        before = context.measure(project(ledger), info)

        def costs(before: int, after: int, rewritten: int) -> tuple[str | None, str | None]:
            return change_costs(self._price, info.ref, before, after, rewritten)

        return effect_of_view(ledger, view, before, after, EntrySizes(context.monitor, info), info, costs)


def switch_effect(
    context: ContextManager, price: Price, recorder: Recorder, info: ModelInfo, other: ModelInfo
) -> Effect:
    """Effect of a switch from one model to another: each gets only its own thoughts, and reads from its own cache. The
    first one's come back when it answers again."""
    ledger = recorder.ledger
    mine, theirs = context.project_for(ledger, info), context.project_for(ledger, other)
    before = context.weigh(context.aside(mine, info, ""), info).used
    after = context.weigh(context.aside(theirs, other, ""), other).used
    rewritten = max(0, after - recorder.cache.held(other.ref, recorder.clock() - other.cache_seconds))
    cost, _ = change_costs(price, other.ref, before, after, rewritten)
    lost, regained = sent_thoughts(mine, info.name).keys(), sent_thoughts(theirs, other.name).keys()
    if info.name == other.name:  # the same model elsewhere can't read them
        regained = set[int]()
    return Effect(before, after, rewritten, cost, None, thoughts=len(lost - regained), regained=len(regained - lost))


def switch_words(effect: Effect, before: str) -> str:
    """What becomes of the thoughts when another model follows ``before`` (``provider/name``), as sentences; empty
    without any."""
    parts: list[str] = []
    if effect.thoughts:
        one = effect.thoughts == 1
        parts.append(
            f"It can't read {plural(effect.thoughts, 'thought')} of {before}; "
            f"{'it comes' if one else 'they come'} back with that model."
        )
    if effect.regained:
        parts.append(
            f"{plural(effect.regained, 'thought')} of its own {'comes' if effect.regained == 1 else 'come'} back."
        )
    return " ".join(parts)
