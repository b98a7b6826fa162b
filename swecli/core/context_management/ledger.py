"""The context ledger: an append-only list of everything said, and the model's view of it.

Both are reductions of the session's events. Each request is a function of the view alone, so content removed by
compaction stays in the ledger and can be restored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.context_management.entry_bodies import Bodies, EntryBody
from swecli.core.context_management.prompts import SUMMARY_MARK
from swecli.core.context_management.read_set import ReadSet
from swecli.core.context_management.thoughts import Chain, Thoughts, chains, dead_in, root_of
from swecli.core.context_management.view_stack import View, Views, ViewStack
from swecli.core.protocol.blocks import TerminalBlock
from swecli.core.protocol.budget import TAIL
from swecli.core.protocol.context_events import BY_HAND, ModelView, ViewEntry
from swecli.core.protocol.events import (
    Body,
    CompactionCompleted,
    CompactionRedone,
    CompactionUndone,
    ContextEdited,
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
    PromptPrefix,
    RewindUndone,
    Rewound,
    SessionStarted,
    StepStarted,
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


def bodies_of(messages: Sequence[Message], prefix: str = "") -> Iterator[Body]:
    """The events of a conversation, in order. Results without a call are left out. With ``prefix`` all ids are new and
    begin with it; else the messages keep theirs."""
    open_calls: dict[str, str] = {}
    for number, message in enumerate(messages):
        name = f"{prefix}.{number}" if prefix else message.id or f"h{number}"
        if message.role == "user":
            yield ItemStarted(name, "note" if message.note else "user")
            yield ItemCompleted(name, "ok", message.parts)
        elif message.role == "assistant":
            items: list[str] = []
            for index, part in enumerate(message.parts):
                item = f"{name}.{index}"
                items.append(item)
                yield ItemStarted(item, _kind(part), part.name if isinstance(part, ToolCallPart) else "")
                if isinstance(part, ToolCallPart):
                    yield ItemCheckpointed(item, part)
                    open_calls[part.call_id] = item
                else:
                    yield ItemCompleted(item, "ok", (part,))
            yield _responded(name, items, message.response)
        else:
            for result in message.tool_results:
                item = open_calls.pop(result.call_id, "")
                if item:
                    yield ItemCompleted(item, "error" if result.is_error else "ok", (result,))


def _responded(name: str, items: Iterable[str], response: Response | None) -> ModelResponded:
    """The event that closes the response `name`; a message without one came from an unknown model."""
    made = response or Response(Origin("unknown", "", ""))
    return ModelResponded(
        name,
        tuple(items),
        made.origin,
        made.stop,
        made.usage,
        made.response_id,
        made.complete,
        report=made.report,
        effort=made.effort,
    )


def _bodies_named(message: Message, names: Sequence[str]) -> Iterator[Body]:
    """The events of one message, or of some parts of it, with these ledger ids for its parts."""
    parts: dict[str, list[Part]] = {}
    for name, part in zip(names, message.parts, strict=True):
        parts.setdefault(name, []).append(part)
    for name, group in parts.items():
        kind: ItemKind = "note" if message.note else "user" if message.role == "user" else _kind(group[0])
        item = name.removesuffix(RESULT)
        yield ItemStarted(item, kind, next((part.name for part in group if isinstance(part, _TOOL_PARTS)), ""))
        for call in group:
            if isinstance(call, ToolCallPart):
                yield ItemCheckpointed(item, call)
        rest = tuple(part for part in group if not isinstance(part, ToolCallPart))
        if rest:
            failed = any(isinstance(part, ToolResultPart) and part.is_error for part in rest)
            yield ItemCompleted(item, "error" if failed else "ok", rest)
    if message.role == "assistant":
        yield _responded(message.id, parts, message.response)


_TOOL_PARTS = (ToolCallPart, ToolResultPart)


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
"""``Stop.detail`` of an answer that the user interrupted."""

INTERRUPTION_NOTE = "[The user interrupted your previous answer; what you had written until then is above.]"
CUT_NOTE = "[Your previous answer was cut off by a failure of the connection; what had arrived is above.]"
GO_ON_NOTE = (
    "[Your previous answer was cut off by a failure of the connection. Continue exactly where it stops, without "
    "repeating what is above; none of its tool calls was executed.]"
)
CONTINUATION = "[The conversation continues.]"


APART = "\n\n"
"""Separator after text added before the user's words: most hosts join the parts of a message into one text."""

_NOTES = frozenset((INTERRUPTION_NOTE, CUT_NOTE, GO_ON_NOTE, CONTINUATION))


def restored(messages: Sequence[Message], environment: str) -> Iterator[tuple[int, str, tuple[Message, ...]]]:
    """Stretches of a conversation: a number, the text of a summary (or none), and the messages that follow it.

    Removes the projection's additions: the ``environment`` and notes about interrupted answers.
    """
    text, following, number = "", list[Message](), 0
    for message in messages:
        message = without_added(message, environment)
        if not message.parts:
            continue
        if message.role == "user" and message.text.startswith(SUMMARY_MARK):
            yield number, text, tuple(following)
            text, number = message.text, number + 1
            following.clear()
        else:
            following.append(message)
    yield number, text, tuple(following)


def without_added(message: Message, environment: str) -> Message:
    """A message without the projection's additions."""
    if message.role != "user":
        return message
    return replace(message, parts=tuple(part for part in message.parts if not _added(part, environment)))


def _added(part: object, environment: str) -> bool:
    if not isinstance(part, TextPart):
        return False
    text = part.text.removesuffix(APART)  # missing in earlier versions
    return text == environment or text in _NOTES


RECORD = ".record"
"""Suffix of the id of the record that stands behind the turns which a compaction by the provider kept."""
EntryKind = Literal["user", "attachment", "note", "text", "reasoning", "call", "result", "opaque"]
RESULT = ".result"
"""Suffix of the ledger id of a tool call's result; the call itself has the item's id."""


class Entry(Struct, frozen=True):
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
        """The content; of entries outside the model's view it may be read from disk."""
        return self.body.parts


def is_statement(entry: Entry) -> bool:
    """Whether it is a note on a topic, which is said again wherever it still holds."""
    return entry.kind == "note" and bool(entry.source)


def is_what_it_says(entry: Entry) -> bool:
    """Whether the parts match the entry's kind: if the beginning of a call is missing from the record, its result looks
    like a message of the user."""
    of_tool = entry.kind in ("call", "result", "attachment")
    return all(isinstance(part, _TOOL_PARTS) == of_tool for part in entry.body.outline)


class OpenItem(Struct):
    """An item between its start and its terminal event."""

    id: str
    kind: ItemKind
    name: str
    title: str = ""
    part: Part | None = None
    running: bool = False
    seq: int = 0
    """The event with ``part``."""


class ItemRecord(Struct, frozen=True):
    """A finished item."""

    id: str
    kind: ItemKind
    name: str
    status: ItemStatus
    call_body: EntryBody | None
    body: EntryBody
    turn: int = 0
    exit_status: int | None = None
    """Exit status of a command that completed."""
    at: float = 0.0
    """Time of completion, in Unix seconds."""
    title: str = ""
    """The user's input, if a command made the message from it."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The output; of items outside the model's view it may be read from disk."""
        return self.body.parts

    @property
    def call(self) -> ToolCallPart | None:
        """The call as the model wrote it; may be read from disk, too."""
        parts = self.call_body.parts if self.call_body is not None else ()
        return next((part for part in parts if isinstance(part, ToolCallPart)), None)


# --- caches of undo and projection ------------------------------------------------------------------------
def number_of(name: str) -> int:
    """Number in an item's id, so that no id is used again, not even of an item with an unreadable start."""
    return int(name[1:]) if name[1:].isdecimal() else 0


class Settled(Struct):
    """The immutable beginning of a conversation, with the facts that the rest depends on.

    It covers ``entries`` of the view. ``answer`` is the newest answer in it, ``users`` the number of user messages
    after that; ``has_environment``: the environment is in it; ``ids`` are its call ids.
    """

    rewrites: int
    entries: int = 0
    messages: list[Message] = field(default_factory=lambda: [])
    ids: set[str] = field(default_factory=lambda: set())
    answer: Message | None = None
    users: int = 0
    has_environment: bool = False


class Projected(Struct, frozen=True):
    """The messages of one revision of a ledger's view, and the part that the next revision can reuse."""

    revision: int
    messages: tuple[Message, ...]
    settled: Settled


class Shown(Struct):
    """What the first ``entries`` of the view show, so that only what it has grown by is looked at: items, the newest
    call of each tool that is there word for word, and the last entry made by a clearing or a summary."""

    rewrites: int
    entries: int = 0
    live: set[str] = field(default_factory=set[str])
    present: set[str] = field(default_factory=set[str])
    calls: dict[str, Entry] = field(default_factory=dict[str, Entry])
    made: ViewEntry | None = None


PASSED = 400
"""Entries of a view up to which passes over all of it are cheap enough for each turn."""
GROWN = 0.04
"""Share by which a longer one has to grow for another pass."""


class Passes(Struct):
    """When a pass over the whole view is due. In a long view few of its entries are new after a turn, so passes become
    rarer as the view grows, and their cost per turn does not."""

    rewrites: int = -1
    entries: int = 0

    def due(self, ledger: Ledger) -> bool:
        """Whether the view is short, was rewritten, or has grown enough since a pass was last due."""
        entries = len(ledger.view)
        grown = entries - self.entries >= self.entries * GROWN
        if entries > PASSED and self.rewrites == ledger.rewrites and not grown:
            return False
        self.rewrites, self.entries = ledger.rewrites, entries
        return True


class Ledger:
    """Reduction of events. ``entries`` and ``items`` only grow; ``view`` is the model's view, in order."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.items: dict[str, ItemRecord] = {}
        self.open: dict[str, OpenItem] = {}
        self.responses: dict[str, ModelResponded] = {}
        self.changes: list[FileChanged] = []
        self.files = ReadSet()
        """Files that the model has seen."""
        self.stored: dict[str, str] = {}
        """References of results stored outside the context, by item."""
        self._view: list[ViewEntry] = []
        self._frozen: tuple[int, View] = (0, ())
        """The view at a revision. Threads read it too, so what one of them made may be of an earlier revision."""
        self.environment: str = ""
        self.revision: int = 0
        """Increases with each change of the view."""
        self.rewrites: int = 0
        """Increases when the view changes other than by growing at its end."""
        self.projected: Projected | None = None
        """The messages of the view; a cache of ``project``."""
        self._shown = Shown(-1)
        self._left: tuple[int, int, frozenset[str]] = (-1, 0, frozenset())
        """Items outside the conversation, as of the first entries of the view as of ``rewrites``; a cache of
        ``left``."""
        self._undo = ViewStack()
        self._redo = ViewStack()
        self._rewinds: dict[str, Views] = {}
        """Views before each rewind, for an undo."""
        self.rewound: frozenset[str] = frozenset()
        """Entries that a rewind, or its undo, took back."""
        self._edits: list[ViewEntry] = []
        """The user's choices for single items, in order."""
        self._edits_in: dict[str, int] = {}
        """Number of these choices in each stacked view, by the item of its compaction."""
        self._whole: dict[str, View] = {}
        """Views that had no room when a compaction was undone, by its item: a redo stacks them again."""
        self.pinned: set[str] = set()
        """Entries that the user pinned: they stay word for word."""
        self.dropped: set[str] = set()
        """Entries that the user dropped, also those behind summaries."""
        self.depths: dict[str, int] = {}
        """How many times a summary's content went through a model, by its id: 2 for a summary of a summary, 0 if its
        text comes from the record alone."""
        self._response_of: dict[str, str] = {}
        self.thoughts = Thoughts()
        """Births of the model's thoughts."""
        self.bound: int | None = None
        """Fixed part (``root_of``) of the requests to the current model, if it binds thoughts to what precedes them:
        the conversation then has no dead thoughts. None for other models."""
        self._numbers: tuple[int, list[Chain]] = (0, [])
        """``chains`` of the view as of ``rewrites``."""
        self._dead: tuple[int, int, frozenset[str]] = (-1, 0, frozenset())
        """Dead thoughts among the first entries of the view as of ``rewrites``; a cache of ``dead_thoughts``."""
        self._bodies = Bodies()
        self._seen = 0
        """``rewrites`` at the last search for bodies to evict."""

    @property
    def view(self) -> View:
        revision, view = self._frozen
        if revision != (now := self.revision):  # built on access: a history is applied without a copy at each entry
            view = tuple(self._view)
            self._frozen = (now, view)
        return view

    @property
    def left(self) -> frozenset[str]:
        """Items that a rewind removed from the conversation: neither in the view nor behind a summary."""
        rewrites, known, left = self._left
        if rewrites != self.rewrites:
            known, left = len(self._view), frozenset[str]()
            # A summary without sources, from an old snapshot, may stand for any item.
            if all(entry.sources for entry in self._view if entry.kind == "summary"):
                told = {self.entries[name].item for name in _covered(self._view) if name in self.entries}
                left = frozenset(entry.item for entry in self.entries.values()) - told
        elif left and known < len(self._view):  # what was said since then is in the view
            left -= {self.entries[shown.id].item for shown in self._view[known:] if shown.id in self.entries}
        self._left = (self.rewrites, len(self._view), left)
        return left

    def bind(self, root: int | None) -> None:
        """Change what the current model binds thoughts to."""
        self.bound = root
        self.revision += 1
        self.rewrites += 1

    def dead_thoughts(self, view: Sequence[ViewEntry] | None = None) -> frozenset[str]:
        """Ids of the thoughts in the view (or in another one) that the current model would refuse; empty if it does not
        bind them."""
        root = self.bound
        if root is None or not self.thoughts.births:
            return frozenset()
        if view is not None:
            return dead_in(view, self.entries, chains(view, self.entries), self.thoughts, root)
        rewrites, known, dead = self._dead
        if rewrites != self.rewrites:
            known, dead = 0, frozenset[str]()
        if known < len(self._view):  # what was said since then is in its place
            dead |= dead_in(self._view, self.entries, self._chains(), self.thoughts, root, known)
            self._dead = (self.rewrites, len(self._view), dead)
        return dead

    def _chains(self) -> list[Chain]:
        rewrites, numbers = self._numbers
        numbers = chains(self._view, self.entries, numbers if rewrites == self.rewrites else ())
        self._numbers = (self.rewrites, numbers)
        return numbers

    def identified(self, end: int) -> tuple[int, ...]:
        """The numbers that identify the first ``end`` entries of the view, for ``ProviderSummary.stands_for``."""
        return tuple(dict.fromkeys(numbers[end - 1] for numbers in self._chains()))

    def live_items(self) -> AbstractSet[str]:
        """Items with some content word for word in the view, files attached to a summary included."""
        return self.shown.live

    def present_items(self) -> AbstractSet[str]:
        """Items known to the model: in the view, as a stub, or behind a summary."""
        return self.shown.present

    def newest_call(self, tool: str) -> ToolCallPart | None:
        """The newest call of a tool that the model sees word for word."""
        entry = self.shown.calls.get(tool)
        return next((part for part in entry.parts if isinstance(part, ToolCallPart)), None) if entry else None

    @property
    def shown(self) -> Shown:
        """What the view shows now."""
        shown = self._shown
        if shown.rewrites != self.rewrites:
            shown = self._shown = Shown(self.rewrites)
        begin = shown.entries
        added = self._view[begin:]
        for viewed in added:
            entry = self.entries.get(viewed.id)
            if viewed.kind == "live" and entry is not None:
                shown.live.add(entry.item)
                if entry.kind == "call":
                    shown.calls[entry.source] = entry
            if viewed.kind in ("stub", "summary"):
                shown.made = viewed
            if viewed.kind == "summary":
                shown.live.add(viewed.id)
                shown.present.add(viewed.id)
            for name in (viewed.id, *viewed.sources):
                if name not in self.dropped and name in self.entries:
                    shown.present.add(self.entries[name].item)
        shown.entries = begin + len(added)
        return shown

    def summary_items(self) -> set[str]:
        """Compactions with a summary in the view."""
        return {entry.id for entry in self._view if entry.kind == "summary"}

    def apply(self, event: Event) -> None:
        """Apply one event; deltas and events without content for a message change nothing."""
        match event.body:
            case SessionStarted(environment=environment) if environment and not self.environment:
                self.environment = environment
                self._set_view(self.view)
            case StepStarted(budget=budget):
                self.thoughts.vanishing = any(part.name == TAIL for part in budget.components)
            case PromptPrefix() as prefix:
                self.thoughts.learn_root(root_of(prefix))
            case ItemStarted(item=item, kind=kind, name=name, title=title):
                self.open[item] = OpenItem(item, kind, name, title)
            case ItemCheckpointed(item=item, running=running) as body if item in self.open:
                opened = self.open[item]
                before = opened.part.text if isinstance(opened.part, TextPart | ReasoningPart) else ""
                opened.part, opened.running, opened.seq = body.whole_part(before), running, event.seq
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
            case Rewound(item=item, scope=scope, name=name) if scope != "files":
                if name:
                    undo, redo = self._undo.copy(), self._redo.copy()
                    edits, edits_in, known = len(self._edits), dict(self._edits_in), len(self.entries)
                    self._rewinds[name] = Views(self.view, undo, redo, edits, edits_in, self.rewound, known)
                self._rewind(item)
            case RewindUndone(name=name) if name in self._rewinds:
                self._unwind(name)
            case ContextRestored() as body:
                self._restore(body, event)
            case CompactionCompleted(item=item, view=view, summary=summary):
                self._deepen(view, by_model=bool(summary))
                self._undo.push(item, self.view)
                self._edits_in[item] = len(self._edits)
                self._redo.clear()
                self._set_view(view)
            case CompactionUndone(item=item, view=view):
                self._swap(self._undo, self._redo)
                if view:
                    self._whole[item] = self.view
                    self._set_view(view)
            case CompactionRedone():
                self._swap(self._redo, self._undo)
            case ContextEdited() as body:
                self._edit(body)
            case _:
                pass

    def _complete(self, body: ItemCompleted, event: Event) -> None:
        opened = self.open.pop(body.item, None)
        kind = opened.kind if opened else "user"
        name = opened.name if opened else ""
        call = self._call_body(body.item, opened) if opened is None or kind == "tool" else None
        title = opened.title if opened is not None and kind == "user" and name == "command" else ""
        content = EntryBody(body.parts, event.seq)
        status = next((block.exit_status for block in body.blocks if isinstance(block, TerminalBlock)), None)
        record = ItemRecord(body.item, kind, name, body.status, call, content, event.turn, status, event.ts, title)
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
        self._bear(body)

    def _bear(self, body: ModelResponded) -> None:
        """Record what precedes the thoughts of an answer."""
        mine = {item for item in body.items if (entry := self.entries.get(item)) and entry.kind == "reasoning"}
        if not mine:
            self.thoughts.newest = []
            return
        numbers, before = self._chains()[0], dict[str, int]()
        for index in range(len(self._view) - 1, -1, -1):
            name = self._view[index].id
            if name in mine:
                before[name] = numbers[index - 1] if index else 0
                if len(before) == len(mine):
                    break
        self.thoughts.born(before, before)

    def _call_body(self, item: str, opened: OpenItem | None) -> EntryBody | None:
        """The call of an item, shared by its entry and its record; None without one."""
        known = self.entries.get(item)
        if known is not None and known.kind == "call":
            return known.body
        return EntryBody((opened.part,), opened.seq) if opened and isinstance(opened.part, ToolCallPart) else None

    def _add_result(self, record: ItemRecord, message: str, event: Event) -> None:
        if record.parts:
            entry_id = record.id + RESULT
            entry = Entry(entry_id, "result", record.id, message, record.body, record.name, event.turn, event.ts)
            self._add(entry)

    def _add(self, entry: Entry) -> None:
        if entry.id in self.entries:
            return
        self.entries[entry.id] = entry
        if entry.body.long:
            self._bodies.add(entry.id, entry.body)
        self._view.append(ViewEntry("live", entry.id))
        self.revision += 1

    def _restore(self, body: ContextRestored, event: Event) -> None:
        """Adopt the view of a snapshot. Earlier content is indistinguishable from missing content, so no earlier
        compaction can be undone."""
        self._undo.clear()
        self._redo.clear()
        self._rewinds.clear()
        self._edits.clear()
        self._whole.clear()
        self.pinned.clear()
        self.dropped.clear()
        if body.view is not None:
            self._take_view(body.view, body.messages, event)
            return
        self._set_view(())
        for number, text, following in restored(body.messages, self.environment):
            if text:
                self._view.append(ViewEntry("summary", f"{body.item}.s{number}", text))
            for restored_body in bodies_of(following, f"{body.item}.{number}"):
                self.apply(replace(event, body=restored_body, seq=0))  # no event has exactly these bodies
        self._set_view((*self._view, *body.later))

    def _take_view(self, view: ModelView, lost: Sequence[Message], event: Event) -> None:
        """Replace the view. ``lost`` are its messages that can't be read from the record."""
        names = {name for each in view.names for name in each}
        for name in names:
            self.entries.pop(name, None)
            self.items.pop(name, None)
        for message, mine in zip(lost, view.names, strict=True):
            for restored_body in _bodies_named(message, mine):
                self.apply(replace(event, body=restored_body, seq=0))
        for name in names:
            self.open.pop(name, None)
        for entry in [entry for entry in self.entries.values() if not self.is_sound(entry)]:
            del self.entries[entry.id]
        if names:
            self._put_in_order(view.entries, names)
        self._set_view(view.entries)
        self.pinned.update(name for name in view.pinned if name in self.entries)
        self.dropped.update(name for name in view.dropped if name in self.entries)

    def is_sound(self, entry: Entry) -> bool:
        """Whether it is a complete entry, not a fragment left by a gap in the record."""
        return is_what_it_says(entry) and (entry.kind != "result" or entry.item in self.entries)

    def _put_in_order(self, view: View, fresh: Collection[str]) -> None:
        """Move the ``fresh`` entries to their original places: after their predecessors in the view."""
        positions = {name: number for number, name in enumerate(self.entries)}
        newest, sort_keys = -1, dict[str, tuple[int, int]]()
        for number, entry in enumerate(view):
            if entry.id in fresh:
                sort_keys[entry.id] = (newest, number + 1)
            elif entry.id in positions:
                newest = max(newest, positions[entry.id])
        order = sorted(self.entries, key=lambda name: sort_keys.get(name, (positions[name], 0)))
        self.entries = {name: self.entries[name] for name in order}

    def _rewind(self, item: str) -> None:
        """Remove an entry and everything after it, from every view that an undo could restore as well.

        A summary before the entry may cover later content: then the view from before its compaction replaces it.
        """
        if not self.can_rewind(item):
            return
        order = self._order()
        self.rewound |= {name for name, number in order.items() if number >= order.get(item, len(order))}
        view, restorable = self._taken_back(item)
        self._undo = ViewStack(restorable)
        self._redo.clear()
        self._set_view(view)

    def _taken_back(self, item: str) -> tuple[View, list[tuple[str, View]]]:
        """The view that a rewind to before an entry leaves, and the views that an undo can then restore."""
        order = self._order()
        restorable = [
            (done, before) for done, view in self._undo.all() if (before := _before(view, item, order)) is not None
        ]
        view = _before(self.view, item, order)
        if view is None:
            cut = next((number for number, entry in enumerate(self.view) if entry.id == item), 0)
            view = restorable.pop()[1] if restorable else self.view[:cut]
        return view, restorable

    def view_rewound(self, item: str) -> View | None:
        """The view after a rewind to before an entry; None if the conversation can't go back there."""
        return self._taken_back(item)[0] if self.can_rewind(item) else None

    def view_unwound(self, name: str) -> View | None:
        """The view after the undo of a rewind; None if it is not known."""
        views = self._rewinds.get(name)
        return self._with_choices(views.view, views.edits) if views is not None else None

    def can_rewind(self, item: str) -> bool:
        """Whether the conversation can go back to before an entry: it is in the view, or in one that an undo of
        compactions could restore."""
        views = (self.view, *(view for _, view in self._undo.all()))
        return any(entry.id == item for view in views for entry in view)

    def view_before(self, item: str) -> View | None:
        """The view before an entry; None if it is not in the view, or a summary before it covers later entries."""
        if not any(entry.id == item for entry in self._view):
            return None
        return _before(self.view, item, self._order())

    def rewindable(self) -> set[str]:
        """All entries for which ``can_rewind`` is true."""
        return {entry.id for view in (self.view, *(view for _, view in self._undo.all())) for entry in view}

    def _unwind(self, name: str) -> None:
        """Restore the view from before a rewind; later rewinds vanish with their content."""
        views = self._rewinds.pop(name)
        for later in [later for later in self._rewinds if number_of(later) > number_of(name)]:
            del self._rewinds[later]
        self._undo, self._redo = views.undo, views.redo
        self.rewound = views.rewound.union(list(self.entries)[views.known :])
        self._edits_in.update(views.edits_in)
        self._set_view(self._with_choices(views.view, views.edits))

    def compactions_since(self, rewind: str) -> Sequence[str]:
        """Compactions in force that were made after a rewind, so that its undo takes them back."""
        views = self._rewinds.get(rewind)
        return [item for item in self._undo.items if item not in views.undo.items] if views is not None else []

    @property
    def undoable(self) -> str | None:
        """Item of the newest compaction in force."""
        return self._undo.item

    @property
    def replaced_view(self) -> View:
        """The view that the newest compaction in force replaced; empty without one."""
        return self._undo.view

    @property
    def redoable(self) -> str | None:
        """Item of the compaction undone last."""
        return self._redo.item

    def _deepen(self, view: View, *, by_model: bool) -> None:
        """Update the depths for a compaction that is about to replace the present view with this one."""
        present = {entry.id for entry in view}
        depths = (self.depths.get(item, 1) for item in self.summary_items() if item not in present)
        depth = 1 + max(depths, default=0) if by_model else 0
        for entry in view:
            if entry.kind == "summary":
                self.depths.setdefault(entry.id, depth)

    def _swap(self, source: ViewStack, target: ViewStack) -> None:
        """Exchange the view for an older or newer one; later content stays at its end."""
        if source.item is None:
            return
        item, restored = source.pop()
        before = self.view
        view = self._exchanged(item, restored, before)
        if item in self._whole:
            before = self._exchanged(item, self._whole.pop(item), before)
        target.push(item, before)
        self._edits_in[item] = len(self._edits)
        self._set_view(view)

    def _exchanged(self, item: str, restored: View, present: View) -> View:
        """An older or newer view, extended by the content and the user's choices added since it was stacked."""
        order = self._order()
        newest = max((order.get(entry, -1) for entry in _covered(restored)), default=-1)  # a view may omit entries
        behind = {
            name: ViewEntry("live", name)
            for entry in present
            for name in entry.sources  # a summary that an undo left in place, as not all of it had room
            if order.get(name, -1) > newest and name not in self.dropped
        }
        later = {entry.id: entry for entry in present if order.get(entry.id, -1) > newest}
        added = sorted((behind | later).values(), key=lambda entry: order[entry.id]) if behind else later.values()
        return self._with_choices((*restored, *added), self._edits_in.get(item, 0))

    def _with_choices(self, view: View, first: int) -> View:
        """A view with the user's choices from number ``first`` on, and with the pins."""
        if first >= len(self._edits) and not self.pinned:
            return view
        known = set(_covered(view))
        since = [edit for edit in self._edits[first:] if edit.id in known]
        whole = {entry.id for entry in view if entry.kind == "live"}
        there = {entry.id for entry in view if entry.kind != "dropped"}
        pinned = {pin for pin in self.pinned if pin in self.entries and pin in known}
        pairs = {name for pin in pinned for name in self._pair(pin) if name in self.entries}
        needed = (pinned - whole) | (pairs - there)
        since += [ViewEntry("live", name, rule=BY_HAND) for name in sorted(needed)]
        return with_entries(view, since, self._order()) if since else view

    def _pair(self, name: str) -> tuple[str, ...]:
        """The call and the result, if the entry is one of them."""
        entry = self.entries[name]
        return (entry.item, entry.item + RESULT) if entry.kind in ("call", "result") else ()

    def _order(self) -> dict[str, int]:
        return {entry: number for number, entry in enumerate(self.entries)}

    def _edit(self, body: ContextEdited) -> None:
        self.pinned.update(body.pinned)
        self.pinned.difference_update(body.unpinned)
        for entry in body.entries:
            (self.dropped.add if entry.kind == "dropped" else self.dropped.discard)(entry.id)
        if body.entries:
            self._edits += body.entries
            self._set_view(with_entries(self.view, body.entries, self._order()))

    @property
    def compactions(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Items of the compactions in force, oldest first, and of the undone ones, the last one first."""
        return tuple(self._undo.items), tuple(reversed(self._redo.items))

    def view_without(self, item: str) -> View | None:
        """The view if the compaction of this item, and all later ones, were undone; None if it is not in force."""
        return self._along(self._undo, item)

    def view_with(self, item: str) -> View | None:
        """The view if an undone compaction, and those between, were restored."""
        return self._along(self._redo, item)

    def _along(self, stack: ViewStack, item: str) -> View | None:
        if item not in stack.items:
            return None
        view = self.view
        for name, restored in reversed(stack.all()):
            view = self._exchanged(name, restored, view)
            if name == item:
                return view
        return None

    def finish_loading(self) -> None:
        """End of loading: the content was set directly rather than by events, so derive the rest."""
        self._frozen = (-1, ())
        for entry in self.entries.values():
            if entry.body.long:
                self._bodies.add(entry.id, entry.body)

    def evict(self) -> None:
        """Evict some of the content outside the model's view; it is read back on demand."""
        if self._seen != self.rewrites:
            self._seen = self.rewrites
            self._bodies.see({entry.id for entry in self._view if entry.kind == "live"})
        if self._bodies.leaving:
            self._bodies.evict()

    def _set_view(self, view: View) -> None:
        """Set the view, without entries lost in a gap of the record."""
        self._view = [entry for entry in view if entry.kind == "summary" or entry.id in self.entries]
        self.revision += 1
        self.rewrites += 1
        if len(self._view) == len(view):
            self._frozen = (self.revision, view)


def _before(view: View, item: str, order: Mapping[str, int]) -> View | None:
    """The part of a view before an entry, or all of it if the entry is not in it; None if a summary in that part covers
    the entry or later ones."""
    part = view[: next((n for n, entry in enumerate(view) if entry.id == item), len(view))]
    first = order.get(item, len(order))
    tells_of_later = any(order.get(source, -1) >= first for entry in part for source in entry.sources)
    return None if tells_of_later else part


def _covered(view: Iterable[ViewEntry]) -> Iterable[str]:
    for entry in view:
        yield entry.id
        yield from entry.sources


def with_entries(view: View, entries: Sequence[ViewEntry], order: Mapping[str, int]) -> View:
    """The view with these entries in place of those with the same ids. A missing one is inserted at its original place
    by ``order``, and summaries no longer cover it."""
    forms = {entry.id: entry for entry in entries}
    present = {entry.id for entry in view}
    missing = [entry for name, entry in forms.items() if name not in present]
    coming = sorted(missing, key=lambda entry: order.get(entry.id, -1), reverse=True)
    back = {entry.id for entry in missing}
    result: list[ViewEntry] = []
    for entry in view:
        if entry.kind != "summary":
            while coming and order.get(coming[-1].id, -1) < order.get(entry.id, -1):
                result.append(coming.pop())
        elif back:
            entry = replace(entry, sources=tuple(source for source in entry.sources if source not in back))
        result.append(forms.get(entry.id, entry))
    return (*result, *reversed(coming))
