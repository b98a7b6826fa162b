"""Changes of the conversation as the model sees it: compactions undone and redone, single items edited by the user."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from swecli.core.context_management.compaction.options import EntrySizes
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.edits import Edited, edited
from swecli.core.context_management.fitting import Fitted, Room, as_references, with_references
from swecli.core.context_management.projection import project
from swecli.core.context_management.view_stack import View
from swecli.core.engine.meter import Meter
from swecli.core.engine.model_access import Connection
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.settings import Settings
from swecli.core.llm.types import ModelClient, ModelInfo
from swecli.core.protocol.commands import ChangeContext
from swecli.core.protocol.context_events import ContextChange
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionRedone,
    CompactionUndone,
    ContextEdited,
    ContextEditPlanned,
    Notice,
    NoticeLevel,
)
from swecli.core.protocol.messages import Usage
from swecli.figures import plural


class ContextChanges:
    """Made between turns, as far as the model's window has room for what comes back."""

    def __init__(
        self, context: ContextManager, settings: Settings, recorder: Recorder, connection: Connection, meter: Meter
    ) -> None:
        self._context = context
        self._settings = settings
        self._recorder = recorder
        self._connection = connection
        self._meter = meter

    def undo(self, item: str = "") -> None:
        """Undo compactions back to and including that of ``item`` (empty: the newest), as far as the window has room
        for what they removed."""
        ledger, client = self._recorder.ledger, self._connection.client
        wanted = item or ledger.undoable or ""
        if wanted not in ledger.compactions[0]:
            why = f"Compaction {item} is not active." if item else "There is no compaction to undo."
            self._notice(f"{why} /compact history lists all.", "warning")
            return
        room = self.room(client.info) if client is not None else None
        size = room.now.used if room is not None else 0
        if completed := self._of_earlier_run(ledger.undoable, client):
            self._adopt_view(ledger.replaced_view, completed.tokens_before, client)
            room = self.room(client.info) if client is not None else None
        fitted = room.without(wanted) if room is not None else _whole(ledger.view_without(wanted))
        if fitted is None:
            if completed:
                self._adopt_view(ledger.view, size, client)
            self._notice(
                "Cannot undo the compaction: what every request has and your newest message fill the window. "
                "/recall finds what was removed; /model switches to a model with a larger window.",
                "warning",
            )
            return
        done: list[str] = []
        while wanted in ledger.compactions[0] and (newest := ledger.undoable) is not None:
            view = fitted.view if newest == wanted and not fitted.whole else ()
            self._recorder.emit(CompactionUndone(newest, view))
            done.append(newest)
        back = "/compact redo reapplies it." if len(done) == 1 else f"/compact redo {done[0]} reapplies them."
        self._report_moved("undone", len(done), size, back, fitted)

    def undone(self, item: str) -> Fitted | None:
        """The view if the compaction of this item, and all later ones, were undone; None if it can't be. Without a
        model all of it comes back."""
        client, ledger = self._connection.client, self._recorder.ledger
        return self.room(client.info).without(item) if client is not None else _whole(ledger.view_without(item))

    def room(self, info: ModelInfo, back: Iterable[str] = ()) -> Room:
        """How much of a view fits in this model's window; the entries of ``back`` stay word for word."""
        return Room(self._context, self._recorder.ledger, info, self._settings.now.compaction, back)

    def redo(self, item: str = "") -> None:
        """Redo compactions up to and including that of ``item`` (empty: the last one undone), and as many more as the
        context needs to fit again."""
        ledger, client = self._recorder.ledger, self._connection.client
        wanted = item or ledger.redoable or ""
        if wanted not in ledger.compactions[1]:
            why = f"Compaction {item} was not undone, or later work replaced it."
            self._notice(why if item else "There is no compaction to redo.", "warning")
            return
        now, done = self._meter.size(), list[str]()
        size = now.used if now is not None else 0
        if (again := self.redone(wanted)) is not None:
            wanted = again[0]
        if completed := self._of_earlier_run(ledger.redoable, client):
            self._adopt_view(completed.view, completed.tokens_after, client)
        while wanted in ledger.compactions[1] and ledger.redoable is not None:
            done.append(ledger.redoable)
            self._recorder.emit(CompactionRedone(ledger.redoable))
        back = "/compact undo undoes it." if len(done) == 1 else f"/compact undo {done[0]} undoes them."
        self._report_moved("redone", len(done), size, back)

    def redone(self, item: str) -> tuple[str, Fitted] | None:
        """The last compaction that a redo of this item would redo, and the view then; None if it was not undone, or
        without a model."""
        client = self._connection.client
        return self.room(client.info).again(item) if client is not None else None

    def _of_earlier_run(self, item: str | None, client: ModelClient | None) -> CompactionCompleted | None:
        """This compaction if an earlier run measured it with the present model and memory still holds it."""
        state = self._recorder.state
        names = (self._connection.name, client.info.ref) if client is not None else ()
        for event in reversed(self._recorder.facts.held):
            if isinstance(event.body, CompactionCompleted) and event.body.item == item:
                asked = next((name for seq, name, _ in reversed(state.models) if seq < event.seq), None)
                return event.body if event.seq < state.started_seq and asked in names else None
        return None

    def _adopt_view(self, view: View, tokens: int, client: ModelClient | None) -> None:
        """Adopt the known size of this view, which may be another one than the present."""
        if client is not None and tokens > 0:
            self._context.adopt_size(project(self._recorder.ledger, view), Usage(input_total=tokens), client.info)

    def _report_moved(self, how: str, count: int, before: int, back: str, fitted: Fitted | None = None) -> None:
        """Report undone or redone compactions, the size of the context ``before`` and after, and the way ``back``."""
        what = f"Compaction {how}" if count == 1 else f"{count} compactions {how}"
        extent = f" {fitted.extent}" if fitted is not None and not fitted.whole else ""
        now, sizes = self._meter.size(), ""
        if now is not None:
            sizes = f": {before:,} to {now.used:,} tokens"
        if now is not None and now.used == before:
            sizes = f": still {before:,} tokens, " + ("as nothing more fits" if extent else "as large as before")
        self._notice(f"{what}{extent}{sizes}. {back}")
        if now is not None:
            self._meter.publish(now)

    # --- single items -----------------------------------------------------------------------------------------

    def change(self, wish: ChangeContext) -> None:
        """Apply the user's changes to single items: all of them, or none and report why."""
        recorder, client = self._recorder, self._connection.client
        if client is None:
            self._notice("Nothing was changed: no model is connected to measure the context.", "warning")
            return
        done = self._edited(wish.changes, client.info)
        refused = [refusal.reason for refusal in done.refusals]
        if refused:
            more = f" ({len(refused) - 1} more failed too)" if len(refused) > 1 else ""
            self._notice(f"Nothing was changed: {refused[0]}{more}", "warning")
            return
        if not done.changes_anything:
            self._notice("Nothing was changed: the items already have this state.")
            return
        if wish.later:
            planned = {change.id: change for change in (*recorder.state.planned, *wish.changes)}
            recorder.emit(ContextEditPlanned(tuple(planned.values())))
            waiting = plural(len(planned), "change")
            self._notice(f"{waiting} will be made with the next compaction (/compact, or when the context is full).")
            return
        if too_much := self._make(done, client.info):
            self._notice(f"Nothing was changed: {too_much}", "warning")
            return
        self._meter.measure()

    def make_planned(self, info: ModelInfo) -> None:
        """Make the user's changes that waited for a compaction, as far as their items are still in view."""
        recorder, ledger = self._recorder, self._recorder.ledger
        if not recorder.state.planned:
            return
        here = {entry.id for entry in ledger.view}
        wanted = [change for change in recorder.state.planned if change.id in here]
        recorder.emit(ContextEditPlanned())
        done = self._edited(wanted, info)
        if done.refusals:
            possible = [change for change in wanted if all(change != refusal.change for refusal in done.refusals)]
            done = self._edited(possible, info)
        if done.changes_anything and not done.refusals and (too_much := self._make(done, info)):
            self._notice(f"The changes that waited were not made: {too_much}", "warning")

    def _edited(self, changes: Sequence[ContextChange], info: ModelInfo) -> Edited:
        return edited(self._recorder.ledger, changes, EntrySizes(self._context.monitor, info))

    def _make(self, done: Edited, info: ModelInfo) -> str:
        """Record changes to single items, with references for old results where what comes back has no room. Returns
        why they can't be made, or an empty text."""
        ledger, context = self._recorder.ledger, self._context
        references = 0
        if too_much := self._does_not_fit(done.view, info):
            fitted = self.room(info, done.restored).shorten(done.view)
            if fitted is None:
                return too_much
            done, references = with_references(done, fitted), fitted.references
        before, after = (context.measure(project(ledger, view), info).used for view in (ledger.view, done.view))
        self._recorder.emit(ContextEdited(done.made, done.entries, done.pinned, done.unpinned, before, after))
        if references:
            self._notice(f"Room for what came back: {as_references(references)}.")
        return ""

    def _does_not_fit(self, view: View, info: ModelInfo) -> str:
        """Excess of this view over the model's window, as a sentence; empty if it fits or is no larger than the current
        view."""
        context, ledger = self._context, self._recorder.ledger
        after, now = context.measure(project(ledger, view), info), context.measure(project(ledger), info)
        if after.level != "block" or after.used <= now.used:
            return ""
        over = max(1, after.upper - after.block_at)
        likely = f"{after.used:,}" if after.upper == after.used else f"about {after.used:,}, at most {after.upper:,}"
        return (
            f"with the restored items the context has {likely} tokens, up to {over:,} more than fit: "
            f"{info.ref} has room for {after.block_at:,}."
        )

    def _notice(self, text: str, level: NoticeLevel = "info") -> None:
        self._recorder.emit(Notice(text, level, "context"))


def _whole(view: View | None) -> Fitted | None:
    return None if view is None else Fitted(view, 0)
