"""The context ledger: an append-only list of everything said, and the model's view over it.

Both are reductions of the session's events. The request that leaves is a function of the view alone, so that
what compaction removes stays in the ledger and can be brought back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from swecli.core.context_management.body import Bodies, Body
from swecli.core.context_management.history_bodies import bodies_of
from swecli.core.context_management.read_set import ReadSet, summary_items
from swecli.core.context_management.restoring import restored
from swecli.core.context_management.view_stack import ViewStack
from swecli.core.protocol.blocks import TerminalBlock
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionRedone,
    CompactionUndone,
    ContextRestored,
    Event,
    FileChanged,
    FileRead,
    ItemCheckpointed,
    ItemCompleted,
    ItemKind,
    ItemsOffloaded,
    ItemStarted,
    ItemStatus,
    ModelResponded,
    Rewound,
    SessionStarted,
    ViewEntry,
)
from swecli.core.protocol.messages import Part, ToolCallPart

if TYPE_CHECKING:
    from swecli.core.context_management.projection import Projected

EntryKind = Literal["user", "text", "reasoning", "call", "result", "opaque"]
RESULT = ".result"
"""Suffix of the ledger id of a tool call's result; the call itself has the item's id."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One ledger entry. ``message`` groups the entries of one assistant message; ``source`` is the tool's
    name; ``item`` the protocol item it came from; ``created`` is Unix seconds."""

    id: str
    kind: EntryKind
    item: str
    message: str
    body: Body
    source: str
    turn: int
    created: float

    @property
    def parts(self) -> tuple[Part, ...]:
        """What was said; of what the model no longer sees it may be read from a disk."""
        return self.body.parts


@dataclass(slots=True)
class OpenItem:
    """An item between its start and its terminal event."""

    id: str
    kind: ItemKind
    name: str
    part: Part | None = None
    running: bool = False


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """A finished item."""

    id: str
    kind: ItemKind
    name: str
    status: ItemStatus
    call_body: Body | None
    body: Body
    turn: int = 0
    exit_status: int | None = None
    """Of a command that ran to its end."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """What came out; of what the model no longer sees it may be read from a disk."""
        return self.body.parts

    @property
    def call(self) -> ToolCallPart | None:
        """The call as the model wrote it; the same holds for it."""
        parts = self.call_body.parts if self.call_body is not None else ()
        return next((part for part in parts if isinstance(part, ToolCallPart)), None)


class Ledger:
    """Reduction of events. ``entries`` and ``items`` only grow; ``view`` is what the model sees, in order."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.items: dict[str, ItemRecord] = {}
        self.open: dict[str, OpenItem] = {}
        self.responses: dict[str, ModelResponded] = {}
        self.changes: list[FileChanged] = []
        self.files = ReadSet()
        """What the model has seen of files."""
        self.stored: dict[str, str] = {}
        """References of results that are stored outside of the context, by item."""
        self._view: list[ViewEntry] = []
        self._frozen: tuple[ViewEntry, ...] | None = ()
        self.environment: str = ""
        self.revision: int = 0
        """Changes with each change of the view."""
        self.rewrites: int = 0
        """Changes when the view changes in another way than by growing at its end."""
        self.projected: Projected | None = None
        """The messages of the view; kept by ``project``, for itself."""
        self._undo = ViewStack()
        self._redo = ViewStack()
        self._response_of: dict[str, str] = {}
        self._bodies = Bodies()
        self._seen = 0
        """``rewrites`` at the last look for bodies that may be put away."""

    @property
    def view(self) -> tuple[ViewEntry, ...]:
        """What the model sees, in order."""
        if self._frozen is None:  # made when it is looked at: a long history is taken in without a copy at each entry
            self._frozen = tuple(self._view)
        return self._frozen

    def apply(self, event: Event) -> None:
        """Take in one event; deltas and events that concern no message change nothing."""
        match event.body:
            case SessionStarted(environment=environment) if environment and not self.environment:
                self.environment = environment
                self._set_view(self.view)
            case ItemStarted(item=item, kind=kind, name=name):
                self.open[item] = OpenItem(item, kind, name)
            case ItemCheckpointed(item=item, part=part, running=running) if item in self.open:
                self.open[item].part = part
                self.open[item].running = running
            case ItemCompleted() as body:
                self._complete(body, event)
            case ModelResponded() as body:
                self._respond(body, event)
            case FileChanged() as change:
                self.changes.append(change)
                if change.item in self.entries:
                    self.files.changed(change, event.ts)
            case FileRead(item=item) as read if item in self.entries or item in summary_items(self.view):
                self.files.read(read, event.ts)
            case ItemsOffloaded(items=items):
                self.stored.update((offloaded.item, offloaded.ref) for offloaded in items)
            case Rewound(item=item):
                self._rewind(item)
            case ContextRestored() as body:
                self._restore(body, event)
            case CompactionCompleted(item=item, view=view):
                self._undo.push(item, self.view)
                self._redo.clear()
                self._set_view(view)
            case CompactionUndone():
                self._swap(self._undo, self._redo)
            case CompactionRedone():
                self._swap(self._redo, self._undo)
            case _:
                pass

    def _complete(self, body: ItemCompleted, event: Event) -> None:
        opened = self.open.pop(body.item, None)
        kind = opened.kind if opened else "user"
        name = opened.name if opened else ""
        call = self._call_body(body.item, opened)
        record = ItemRecord(body.item, kind, name, body.status, call, Body(body.parts), event.turn, _exit_status(body))
        self.items[body.item] = record
        if kind == "user" and body.parts:
            self._add(Entry(body.item, "user", body.item, body.item, record.body, name, event.turn, event.ts))
        elif kind == "tool" and body.item in self._response_of:
            self._add_result(record, self._response_of[body.item], event)

    def _respond(self, body: ModelResponded, event: Event) -> None:
        self.responses[body.message] = body
        for item in body.items:
            self._response_of[item] = body.message
            record, opened = self.items.get(item), self.open.get(item)
            kind = record.kind if record else opened.kind if opened else None
            if kind == "tool":
                call = record.call_body if record else self._call_body(item, opened)
                if call is not None:
                    name = next((part.name for part in call.outline if isinstance(part, ToolCallPart)), "")
                    self._add(Entry(item, "call", item, body.message, call, name, event.turn, event.ts))
                    if record:
                        self._add_result(record, body.message, event)
            elif record and record.parts and kind in ("text", "reasoning", "opaque"):
                self._add(Entry(item, kind, item, body.message, record.body, "", event.turn, event.ts))

    def _call_body(self, item: str, opened: OpenItem | None) -> Body | None:
        """The call of an item, the same for its entry and its record; None where it has none."""
        known = self.entries.get(item)
        if known is not None and known.kind == "call":
            return known.body
        return Body((opened.part,)) if opened and isinstance(opened.part, ToolCallPart) else None

    def _add_result(self, record: ItemRecord, message: str, event: Event) -> None:
        if record.parts:
            entry_id = record.id + RESULT
            entry = Entry(entry_id, "result", record.id, message, record.body, record.name, event.turn, event.ts)
            self._add(entry)

    def _add(self, entry: Entry) -> None:
        if entry.id in self.entries:
            return
        self.entries[entry.id] = entry
        self._bodies.add(entry.id, entry.body)
        self._view.append(ViewEntry("live", entry.id))
        self._frozen = None
        self.revision += 1

    def _restore(self, body: ContextRestored, event: Event) -> None:
        """Take the view of a snapshot. What was said until then can't be told from what is missing, so no compaction of
        before can be undone."""
        self._undo.clear()
        self._redo.clear()
        self._set_view(())
        for number, text, said in restored(body.messages, self.environment):
            if text:
                self._view.append(ViewEntry("summary", f"{body.item}.s{number}", text))
            for one in bodies_of(said, f"{body.item}.{number}"):
                self.apply(replace(event, body=one))
        self._set_view((*self._view, *body.later))

    def _rewind(self, item: str) -> None:
        """Take back an entry and all that came after it, for every view that an undo could bring back as well.

        A summary may stand before the entry and tell of what came after it: then it goes, and the view is that of
        before its compaction.
        """
        cut = next((number for number, entry in enumerate(self.view) if entry.id == item), None)
        if cut is None:
            return
        order = {entry: number for number, entry in enumerate(self.entries)}
        kept = [(done, before) for done, view in self._undo.all() if (before := _before(view, item, order)) is not None]
        view = _before(self.view, item, order)
        if view is None:
            view = kept.pop()[1] if kept else self.view[:cut]
        self._undo = ViewStack(kept)
        self._redo.clear()
        self._set_view(view)

    @property
    def undoable(self) -> str | None:
        """Item of the newest compaction that is in force."""
        return self._undo.item

    @property
    def redoable(self) -> str | None:
        """Item of the compaction that was undone last."""
        return self._redo.item

    def _swap(self, source: ViewStack, target: ViewStack) -> None:
        """Exchange the view for an older or newer one; what was said since stays at its end."""
        if source.item is None:
            return
        item, restored = source.pop()
        known = set(_covered(restored))
        later = [entry for entry in self.view if entry.id in self.entries and entry.id not in known]
        target.push(item, self.view)
        self._set_view((*restored, *later))

    def put_away(self) -> None:
        """Let go of some of what the model no longer sees: it is read back when it is asked for."""
        if self._seen != self.rewrites:
            self._seen = self.rewrites
            self._bodies.see({entry.id for entry in self._view if entry.kind == "live"})
        self._bodies.put_away()

    def _set_view(self, view: tuple[ViewEntry, ...]) -> None:
        self._view, self._frozen = list(view), view
        self.revision += 1
        self.rewrites += 1


def _exit_status(body: ItemCompleted) -> int | None:
    return next((block.exit_status for block in body.blocks if isinstance(block, TerminalBlock)), None)


def _before(view: tuple[ViewEntry, ...], item: str, order: Mapping[str, int]) -> tuple[ViewEntry, ...] | None:
    """The part of a view before an entry, all of it where the entry is not in it; None where a summary in that part
    stands for the entry or for later ones."""
    part = view[: next((n for n, entry in enumerate(view) if entry.id == item), len(view))]
    first = order.get(item, len(order))
    tells_of_later = any(order.get(source, -1) >= first for entry in part for source in entry.sources)
    return None if tells_of_later else part


def _covered(view: Iterable[ViewEntry]) -> Iterable[str]:
    for entry in view:
        yield entry.id
        yield from entry.sources
