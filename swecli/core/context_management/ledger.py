"""The context ledger: an append-only list of everything said, and the model's view over it.

Both are reductions of the session's events. The request that leaves is a function of the view alone, so that
what compaction removes stays in the ledger and can be brought back.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from msgspec.structs import replace

from swecli.core.protocol.blocks import TerminalBlock
from swecli.core.protocol.events import (
    Body,
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
from swecli.core.protocol.messages import (
    Message,
    Origin,
    Part,
    ReasoningPart,
    Response,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from swecli.core.spill import SpillHandle, SpillStore, weight_of

KEPT = 40
"""Touches of one file that are remembered; the newest."""


@dataclass(frozen=True, slots=True)
class Touch:
    """The model read or changed a file in item ``item`` at ``at`` (Unix seconds), after which the file's bytes had
    the hash ``sha256``; None = it was gone. Lines ``first`` to ``last`` were shown; both are 0 for a change."""

    item: str
    sha256: str | None
    at: float
    first: int = 0
    last: int = 0

    @property
    def is_read(self) -> bool:
        return self.first > 0


class ReadSet:
    """Every file that the model has read or changed. Items that are not in ``present`` do not count: the model does
    not know of them any more, because the conversation was rewound."""

    def __init__(self) -> None:
        self._touches: dict[str, list[Touch]] = {}

    def read(self, body: FileRead, at: float) -> None:
        self._add(body.path, Touch(body.item, body.sha256, at, body.first, body.last))

    def changed(self, body: FileChanged, at: float) -> None:
        self._add(body.path, Touch(body.item, body.after, at))

    def _add(self, path: str, touch: Touch) -> None:
        touches = self._touches.pop(path, [])  # the newest file is the last one
        touches.append(touch)
        del touches[:-KEPT]
        self._touches[path] = touches

    def last(self, path: str, present: Collection[str]) -> Touch | None:
        """The newest touch of a file; None when the model has never seen it."""
        touches = self._touches.get(path, ())
        return next((touch for touch in reversed(touches) if touch.item in present), None)

    def same_reading(self, path: str, first: int, last: int, sha256: str, live: Collection[str]) -> Touch | None:
        """An earlier read of the same lines of the same bytes whose text the model still has before it."""
        for touch in reversed(self._touches.get(path, ())):
            if (
                touch.is_read
                and (touch.first, touch.last, touch.sha256) == (first, last, sha256)
                and touch.item in live
            ):
                return touch
        return None

    def attached(self, path: str, first: int, last: int, sha256: str, items: Collection[str]) -> Touch | None:
        """Where these lines of these bytes were shown as a part of more, in one of these items."""
        for touch in reversed(self._touches.get(path, ())):
            inside = touch.is_read and touch.first <= first and last <= touch.last
            if inside and touch.sha256 == sha256 and touch.item in items:
                return touch
        return None

    def outdated(self) -> frozenset[str]:
        """Items that show a file as it is no longer: it was read or changed in another form since."""
        return frozenset(
            touch.item
            for touches in self._touches.values()
            for touch in touches
            if touch.is_read and touch.sha256 != touches[-1].sha256
        )

    def visible(self, live: Collection[str], present: Collection[str]) -> Iterator[tuple[str, Touch]]:
        """Files of which the model still has text before it, newest first, with their newest touch."""
        for path in reversed(list(self._touches)):
            touch = self.last(path, present)
            if touch is not None and any(one.item in live for one in self._touches[path]):
                yield path, touch


View = tuple[ViewEntry, ...]

LONG: Final = 1_000
"""Characters from which on a body is evicted at all: a shorter one takes about as much as what stands for it."""
AT_ONCE: Final = 4
"""Bodies that are evicted in one go, a tenth of a millisecond each."""
IN_MEMORY: Final = 1_000_000
"""Compressed bytes of bodies that were evicted which stay in memory."""

Parts = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class _Evicted:
    outline: Parts
    store: SpillStore[Parts]
    handle: SpillHandle


class EntryBody:
    """The parts of one entry, the same whether they are in memory or not."""

    __slots__ = ("_held",)

    def __init__(self, parts: Parts) -> None:
        self._held: Parts | _Evicted = parts

    @property
    def parts(self) -> Parts:
        """All of it; read from the store where it is there. What can't be read back says so."""
        held = self._held
        if not isinstance(held, _Evicted):
            return held
        try:
            return held.store.get(held.handle)
        except OSError as error:
            return tuple(_unreadable(part, error) for part in held.outline)

    @property
    def outline(self) -> Parts:
        """The parts, with empty texts where reading them would take the store."""
        held = self._held
        return held.outline if isinstance(held, _Evicted) else held

    def evict(self, store: SpillStore[Parts]) -> None:
        """Keep an outline in memory only."""
        held = self._held
        if not isinstance(held, _Evicted):
            self._held = _Evicted(tuple(stubbed(part, "") for part in held), store, store.put(held))

    def restore(self) -> None:
        held = self._held
        if isinstance(held, _Evicted):
            self._held = self.parts
            held.store.forget(held.handle)


def stubbed(part: Part, text: str) -> Part:
    """The part with another text in place of what it says, for a call that of its arguments."""
    match part:
        case ToolResultPart():
            return replace(part, text=text, images=())
        case ToolCallPart():
            return replace(part, arguments=text)
        case _:
            return TextPart(text)


def _unreadable(part: Part, error: OSError) -> Part:
    text = f"this can't be read back ({error}); the record of the session still has it"
    return stubbed(part, json.dumps({"unreadable": text}) if isinstance(part, ToolCallPart) else f"[{text}]")


class Bodies:
    """The long bodies of one conversation, by the ids of their entries."""

    def __init__(self) -> None:
        self._store = SpillStore[Parts](IN_MEMORY)
        self._here: dict[str, EntryBody] = {}
        self._evicted: dict[str, EntryBody] = {}
        self._leaving: deque[str] = deque()

    def add(self, entry: str, body: EntryBody) -> None:
        if weight_of(body.outline) >= LONG:
            self._here[entry] = body

    def see(self, live: Collection[str]) -> None:
        """The model has these entries before it and no others: what it has not may go, what it has comes back."""
        for entry in [entry for entry in self._evicted if entry in live]:
            body = self._here[entry] = self._evicted.pop(entry)
            body.restore()
        self._leaving = deque(entry for entry in self._here if entry not in live)

    def evict(self, most: int = AT_ONCE) -> None:
        """Put some of the bodies away that may go, so that no step takes long."""
        for _ in range(min(most, len(self._leaving))):
            entry = self._leaving.popleft()
            body = self._evicted[entry] = self._here.pop(entry)
            body.evict(self._store)


def bodies_of(messages: Sequence[Message], prefix: str = "") -> Iterator[Body]:
    """The events of a conversation, in order. Results without a call are left out. With ``prefix`` all ids are new
    ones that begin with it; else those of the messages are kept."""
    open_calls: dict[str, str] = {}
    for number, message in enumerate(messages):
        name = f"{prefix}.{number}" if prefix else message.id or f"h{number}"
        if message.role == "user":
            yield ItemStarted(name, "user")
            yield ItemCompleted(name, "ok", message.parts)
        elif message.role == "assistant":
            items: list[str] = []
            for place, part in enumerate(message.parts):
                item = f"{name}.{place}"
                items.append(item)
                yield ItemStarted(item, _kind(part), part.name if isinstance(part, ToolCallPart) else "")
                if isinstance(part, ToolCallPart):
                    yield ItemCheckpointed(item, part)
                    open_calls[part.call_id] = item
                else:
                    yield ItemCompleted(item, "ok", (part,))
            made = message.response or Response(Origin("unknown", "", ""))
            yield ModelResponded(
                name, tuple(items), made.origin, made.stop, made.usage, made.response_id, made.complete
            )
        else:
            for result in message.tool_results:
                item = open_calls.pop(result.call_id, "")
                if item:
                    yield ItemCompleted(item, "error" if result.is_error else "ok", (result,))


def _kind(part: Part) -> ItemKind:
    match part:
        case TextPart():
            return "text"
        case ReasoningPart():
            return "reasoning"
        case ToolCallPart() | ToolResultPart():
            return "tool"
        case _:
            return "opaque"


MISSING_RESULT = "No result: the call was not executed."
INTERRUPTED = "interrupted"
"""``Stop.detail`` of an answer that the user cut short."""

INTERRUPTION_NOTE = "[The user interrupted your previous answer; what you had written until then is above.]"
CUT_NOTE = "[Your previous answer was cut off by a failure of the connection; what had arrived is above.]"
GO_ON_NOTE = (
    "[Your previous answer was cut off by a failure of the connection. Go on exactly where it stops, without repeating "
    "what is above; none of its tool calls was executed.]"
)
CONTINUATION = "[The conversation continues.]"


SUMMARY_MARK = "<compacted"
"""What the text that takes the place of older messages begins with."""

_NOTES = frozenset((INTERRUPTION_NOTE, CUT_NOTE, GO_ON_NOTE, CONTINUATION))


def restored(messages: Sequence[Message], environment: str) -> Iterator[tuple[int, str, tuple[Message, ...]]]:
    """Stretches of a conversation: a number, the text of a summary (or none), and the messages that follow it.

    What a projection adds to messages, the ``environment`` and notes about answers that were cut, is taken away again.
    """
    text, said, number = "", list[Message](), 0
    for message in messages:
        if message.role == "user":
            message = replace(message, parts=tuple(part for part in message.parts if not _added(part, environment)))
            if not message.parts:
                continue
        if message.role == "user" and message.text.startswith(SUMMARY_MARK):
            yield number, text, tuple(said)
            text, number = message.text, number + 1
            said.clear()
        else:
            said.append(message)
    yield number, text, tuple(said)


def _added(part: object, environment: str) -> bool:
    return isinstance(part, TextPart) and (part.text == environment or part.text in _NOTES)


EntryKind = Literal["user", "attachment", "note", "text", "reasoning", "call", "result", "opaque"]
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
    body: EntryBody
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
    call_body: EntryBody | None
    body: EntryBody
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


# --- what undo and projection keep ------------------------------------------------------------------------
_Piece = slice | View
"""A stretch of the later view, or entries that are not in it."""


class ViewStack:
    """Views by the items of the compactions that replaced them, the newest on top. Long sessions compact a hundred
    times, and every view names all that is in it: only the newest is kept whole."""

    def __init__(self, views: Iterable[tuple[str, View]] = ()) -> None:
        self._items: list[str] = []
        self._older: list[tuple[_Piece, ...]] = []
        self._top: View = ()
        for item, view in views:
            self.push(item, view)

    @property
    def item(self) -> str | None:
        """The item of the view on top; None where there is none."""
        return self._items[-1] if self._items else None

    @property
    def view(self) -> View:
        """The view on top; empty where there is none."""
        return self._top

    def push(self, item: str, view: View) -> None:
        if self._items:
            self._older.append(_pieces(self._top, view))
        self._items.append(item)
        self._top = view

    def pop(self) -> tuple[str, View]:
        """Take the view on top.

        Raises:
            IndexError: there is none.
        """
        item, view = self._items.pop(), self._top
        self._top = _joined(self._older.pop(), view) if self._older else ()
        return item, view

    def clear(self) -> None:
        self._items.clear()
        self._older.clear()
        self._top = ()

    def all(self) -> list[tuple[str, View]]:
        views = [self._top]
        for pieces in reversed(self._older):
            views.append(_joined(pieces, views[-1]))
        return list(zip(self._items, reversed(views), strict=True)) if self._items else []


def _pieces(old: View, new: View) -> tuple[_Piece, ...]:
    """``old`` in terms of ``new``."""
    places = {entry.id: place for place, entry in enumerate(new)}
    pieces: list[slice | list[ViewEntry]] = []
    for entry in old:
        place, last = places.get(entry.id), pieces[-1] if pieces else None
        if place is None or not (new[place] is entry or new[place] == entry):
            if isinstance(last, list):
                last.append(entry)
            else:
                pieces.append([entry])
        elif isinstance(last, slice) and last.stop == place:
            pieces[-1] = slice(last.start, place + 1)
        else:
            pieces.append(slice(place, place + 1))
    return tuple(tuple(piece) if isinstance(piece, list) else piece for piece in pieces)


def _joined(pieces: Iterable[_Piece], new: View) -> View:
    return tuple(entry for piece in pieces for entry in (new[piece] if isinstance(piece, slice) else piece))


@dataclass(slots=True)
class Settled:
    """The beginning of a conversation that nothing said later can change, and what has to be known of it.

    ``entries`` of the view are in it. ``answer`` is the newest answer in it, ``users`` how many user messages follow
    that; ``has_environment``: the environment is in it; ``ids`` are its call ids.
    """

    rewrites: int
    entries: int = 0
    messages: list[Message] = field(default_factory=lambda: [])
    ids: set[str] = field(default_factory=lambda: set())
    answer: Message | None = None
    users: int = 0
    has_environment: bool = False


@dataclass(frozen=True, slots=True)
class Projected:
    """The messages of one revision of a ledger's view, and what of them the next revision can reuse."""

    revision: int
    messages: tuple[Message, ...]
    settled: Settled


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
        self._frozen: View | None = ()
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
        """``rewrites`` at the last look for bodies that may be evicted."""

    @property
    def view(self) -> View:
        if self._frozen is None:  # made when it is looked at: a long history is taken in without a copy at each entry
            self._frozen = tuple(self._view)
        return self._frozen

    def live_items(self) -> set[str]:
        """Items of which the model has something before it word for word, files attached to a summary included."""
        live = {self.entries[one.id].item for one in self._view if one.kind == "live" and one.id in self.entries}
        return live | self.summary_items()

    def present_items(self) -> set[str]:
        """Items that the model knows of: in the view, as a stub, or behind a summary."""
        shown = (entry for one in self._view for entry in (one.id, *one.sources))
        return {self.entries[entry].item for entry in shown if entry in self.entries} | self.summary_items()

    def summary_items(self) -> set[str]:
        """Items of compactions whose text is in the view."""
        return {entry.id for entry in self._view if entry.kind == "summary"}

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
            case FileRead(item=item) as read if item in self.entries or item in self.summary_items():
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
        record = ItemRecord(
            body.item, kind, name, body.status, call, EntryBody(body.parts), event.turn, _exit_status(body)
        )
        self.items[body.item] = record
        if (kind == "user" or kind == "attachment" or kind == "note") and body.parts:
            self._add(Entry(body.item, kind, body.item, body.item, record.body, name, event.turn, event.ts))
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

    def _call_body(self, item: str, opened: OpenItem | None) -> EntryBody | None:
        """The call of an item, the same for its entry and its record; None where it has none."""
        known = self.entries.get(item)
        if known is not None and known.kind == "call":
            return known.body
        return EntryBody((opened.part,)) if opened and isinstance(opened.part, ToolCallPart) else None

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
    def replaced_view(self) -> View:
        """The view that the newest compaction in force took the place of; empty where there is none."""
        return self._undo.view

    @property
    def redoable(self) -> str | None:
        """Item of the compaction that was undone last."""
        return self._redo.item

    def _swap(self, source: ViewStack, target: ViewStack) -> None:
        """Exchange the view for an older or newer one; what was said since stays at its end."""
        if source.item is None:
            return
        item, restored = source.pop()
        order = {entry: number for number, entry in enumerate(self.entries)}
        newest = max((order.get(entry, -1) for entry in _covered(restored)), default=-1)  # a view may leave entries out
        later = [entry for entry in self.view if order.get(entry.id, -1) > newest]
        target.push(item, self.view)
        self._set_view((*restored, *later))

    def evict(self) -> None:
        """Let go of some of what the model no longer sees: it is read back when it is asked for."""
        if self._seen != self.rewrites:
            self._seen = self.rewrites
            self._bodies.see({entry.id for entry in self._view if entry.kind == "live"})
        self._bodies.evict()

    def _set_view(self, view: View) -> None:
        self._view, self._frozen = list(view), view
        self.revision += 1
        self.rewrites += 1


def _exit_status(body: ItemCompleted) -> int | None:
    return next((block.exit_status for block in body.blocks if isinstance(block, TerminalBlock)), None)


def _before(view: View, item: str, order: Mapping[str, int]) -> View | None:
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
