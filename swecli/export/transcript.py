"""A session for a reader: its facts as turns of entries. Pure; cuts and escapes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.events import (
    MAIN,
    AgentEnded,
    CompactionCompleted,
    CompactionFailed,
    ContextEdited,
    Event,
    FilesRestored,
    HookRan,
    ItemCompleted,
    ItemStarted,
    MemoryLoaded,
    ModeChanged,
    ModelChanged,
    ModelResponded,
    Notice,
    RewindUndone,
    Rewound,
    ScratchpadChanged,
    SessionStarted,
    StepEnded,
    StepStarted,
    TodosChanged,
    TurnEnded,
    TurnStarted,
    tag_of,
)
from swecli.core.protocol.hook_words import hook_line
from swecli.core.protocol.messages import (
    DocumentPart,
    ImagePart,
    ReasoningPart,
    TextPart,
    ToolResultPart,
    Usage,
    added,
)
from swecli.core.protocol.turns import Item, Turns
from swecli.event_lines import completed_line, restored_line
from swecli.figures import cut, plural

EntryKind = Literal["user", "shell", "attachment", "answer", "reasoning", "tool", "note", "notice"]


class Entry(Struct, frozen=True):
    """One message or action. ``title`` is the target of a call or the visible part of a note; ``text`` the message, for
    a call the result for the model; ``arguments`` its raw JSON."""

    kind: EntryKind
    text: str = ""
    name: str = ""
    title: str = ""
    status: str = "ok"
    detail: str = ""
    arguments: str = ""
    decision: str = ""
    """Reason why it ran or did not: the user's answer."""
    duration: float | None = None
    blocks: tuple[DisplayBlock, ...] = ()
    images: tuple[ImagePart, ...] = ()
    documents: tuple[DocumentPart, ...] = ()
    level: Literal["info", "warning", "error"] = "info"
    asked: int = 0
    """Number of a call, in the order in which the model asked for them."""


class ContextPoint(Struct, frozen=True):
    """The context at a request: tokens of the request, tokens from the cache, and the room for them."""

    used: int
    effective: int
    cached: int = 0
    compacted_from: int = 0
    """Tokens before a compaction right before this request; 0 = no compaction."""


class Turn(Struct):
    """One turn; number 0 holds everything before the first. ``later`` are entries between its end and the next turn;
    ``context`` that of its requests, in order."""

    number: int
    at: float
    entries: list[Entry] = field(default_factory=list[Entry])
    later: list[Entry] = field(default_factory=list[Entry])
    context: list[ContextPoint] = field(default_factory=list[ContextPoint])
    outcome: str = ""
    reason: str = ""
    duration: float = 0.0
    usage: Usage | None = None
    costs: list[str | None] = field(default_factory=list[str | None])
    """US dollars of each request as decimal strings; None = unknown."""

    @property
    def cost(self) -> Decimal | None:
        """US dollars of the turn; None if a part of it is unknown."""
        return total_cost(self.costs)


class Heading(Struct, frozen=True):
    """The top of a transcript. Times are Unix seconds."""

    session: str
    title: str
    cwd: str
    model: str
    created: float
    updated: float
    swecli: str = ""


class Transcript(Struct, frozen=True):
    heading: Heading
    turns: tuple[Turn, ...]
    unreadable: int = 0
    """Number of unreadable events."""

    @property
    def cost(self) -> Decimal | None:
        """US dollars of all turns; None if a part of it is unknown."""
        return total_cost([cost for turn in self.turns for cost in turn.costs])

    @property
    def usage(self) -> Usage:
        total = Usage()
        for turn in self.turns:
            total = added(total, turn.usage) if turn.usage is not None else total
        return total


def total_cost(costs: Sequence[str | None]) -> Decimal | None:
    """The sum of decimal numbers; None without any, or if one is unknown."""
    try:
        return sum((Decimal(cost) for cost in costs if cost is not None), Decimal(0)) if all(costs) and costs else None
    except InvalidOperation:  # from an edited file
        return None


def heading_of(events: Sequence[Event], title: str = "") -> Heading:
    """From the events alone; ``title`` is the session's own name, if any."""
    first = next((event.body for event in events if isinstance(event.body, SessionStarted)), None)
    newest = first
    model = first.model if first is not None else ""
    for event in events:
        if event.agent == MAIN and isinstance(event.body, SessionStarted | ModelChanged):
            model = event.body.model or model
            newest = event.body if isinstance(event.body, SessionStarted) else newest
    times = [event.ts for event in events if event.ts > 0] or [0.0]
    return Heading(
        session=events[0].session if events else "",
        title=title or _first_words(events),
        cwd=first.cwd if first is not None else "",
        model=model,
        created=times[0],
        updated=times[-1],
        swecli=newest.swecli if newest is not None else "",
    )


def _first_words(events: Iterable[Event]) -> str:
    users: set[str] = set()
    for event in events:
        if event.agent == MAIN and isinstance(event.body, ItemStarted) and event.body.kind == "user":
            users.add(event.body.item)
        elif isinstance(event.body, ItemCompleted) and event.body.item in users:
            words = " ".join(" ".join(part.text for part in event.body.parts if isinstance(part, TextPart)).split())
            if words:
                return cut(words, 80)
    return ""


class _Reading:
    """Takes events in order; ``turns`` is the result."""

    def __init__(self) -> None:
        self.turns: list[Turn] = [Turn(0, 0.0)]
        self.unreadable = 0
        self._items = Turns()
        self._unended: list[Item] = []
        """Items of turns that ended before them: their ends are unreadable."""
        self._held: list[tuple[set[str], Entry]] = []
        """Searches of the provider, which end within an answer, and the texts that began before and have not ended."""
        self._said: dict[str, str] = {}
        """The first words of the user's messages by item, as names for rewinds."""
        self._compacted = 0
        self._replaced: set[str] = set()
        """Texts in place of items that are already told."""
        self._cwd = ""
        self._restored: FilesRestored | None = None
        """Not reported yet: a rewind reports its restored files itself."""

    @property
    def _turn(self) -> Turn:
        return self.turns[-1]

    def take(self, event: Event) -> None:
        body = event.body
        if isinstance(body, TurnEnded) and event.agent == MAIN:
            self._unended += self._open
        item = self._items.apply(event)
        if tag_of(body) == "unreadable":
            self.unreadable += 1
        if event.agent != MAIN:
            self._of_agent(event)
            return
        self._tell_restored(told=isinstance(body, Rewound | RewindUndone))
        if isinstance(body, SessionStarted):
            self._cwd = body.cwd
        match body:
            case FilesRestored():
                self._restored = body
            case TurnStarted():
                self.turns.append(Turn(event.turn, event.ts))
            case TurnEnded():
                self._turn.outcome, self._turn.reason, self._turn.duration = body.outcome, body.reason, body.duration
            case ItemCompleted() if item is not None:
                self._completed(item)
            case StepStarted(budget=budget):
                self._turn.context.append(ContextPoint(budget.used, budget.effective, compacted_from=self._compacted))
                self._compacted = 0
            case ModelResponded(usage=usage) if usage is not None and self._turn.context:
                last = self._turn.context[-1]
                used = usage.input_total or last.used
                self._turn.context[-1] = replace(last, used=used, cached=min(used, usage.cache_read or 0))
            case StepEnded(usage=usage, cost=cost):
                self._turn.costs.append(cost)
                if usage is not None:
                    self._turn.usage = added(self._turn.usage or Usage(), usage)
            case _:
                self._notice(event)

    def _completed(self, item: Item) -> None:
        entry = _entry_of(item)
        if entry is None:
            return
        if entry.kind == "user":
            self._said[item.id] = " ".join((entry.title or entry.text).split())[:60]
        if entry.text.strip() or entry.blocks or entry.images or entry.kind == "tool":
            self._add_in_order(entry)
        self._release(item.id)

    def _add_in_order(self, entry: Entry) -> None:
        """Add a completed entry, a search behind the texts before it."""
        texts = {item.id for item in self._open if item.kind in ("text", "reasoning")}
        if entry.kind == "tool" and texts:
            self._held.append((texts, entry))
        else:
            self._add(entry)

    @property
    def _open(self) -> list[Item]:
        return [item for item in self._items.items.values() if item.agent == MAIN]

    def _release(self, ended: str) -> None:
        for texts, _ in self._held:
            texts.discard(ended)
        while self._held and not self._held[0][0]:
            self._add(self._held.pop(0)[1])

    def _replacements(self, view: Sequence[ViewEntry]) -> str:
        """What the model reads in place of other items, each text once."""
        texts = [entry.text for entry in view if entry.kind in ("summary", "stub") and entry.text]
        new = [text for text in dict.fromkeys(texts) if text not in self._replaced]
        self._replaced.update(new)
        return "\n\n".join(new)

    def _is_called(self, tool: str) -> bool:
        """Whether a call of the tool is running, which shows the change itself."""
        return any(item.name == tool for item in self._open)

    def _of_agent(self, event: Event) -> None:
        """Of subagents only their cost: their report is the result of the call that began them."""
        if isinstance(event.body, StepEnded):
            self._turn.costs.append(event.body.cost)
            if event.body.usage is not None:
                self._turn.usage = added(self._turn.usage or Usage(), event.body.usage)

    def _tell_restored(self, *, told: bool) -> None:
        restored, self._restored = self._restored, None
        if restored is not None and not told and (line := restored_line(restored, self._cwd)):
            self._add(Entry("notice", line))

    def _notice(self, event: Event) -> None:
        level: Literal["info", "warning", "error"] = "info"
        match event.body:
            case Notice(level=level) as notice:
                line = notice.line
            case MemoryLoaded(text=text):
                self._add(Entry("note", text, title="Memories in the system prompt"))
                return
            case ScratchpadChanged(text=text) if text and not self._is_called("scratchpad"):
                self._add(Entry("note", text, title="Scratchpad"))
                return
            case TodosChanged(todos=todos) if todos and not self._is_called("update_todos"):
                self._add(Entry("note", "\n".join(f"{todo.status}: {todo.text}" for todo in todos), title="Todos"))
                return
            case ContextEdited(entries=entries) if text := self._replacements(entries):
                self._add(Entry("note", text, title="In place of removed items"))
                return
            case CompactionCompleted() as body:
                self._compacted = body.tokens_before
                line = completed_line(body)
                if text := self._replacements(body.view):
                    self._add(Entry("note", text, title="In place of earlier messages"))
            case CompactionFailed(reason=reason):
                line, level = f"Could not compact: {reason}", "warning"
            case SessionStarted(resumed=False, environment=text) if text:
                self._add(Entry("note", text, title="Environment"))
                return
            case SessionStarted(resumed=True, swecli=version):
                line = f"Session continued, swecli {version}."
            case ModeChanged(mode=mode):
                line = f"Mode: {mode}"
            case ModelChanged(model=model, switched=True):
                line = f"Model: {model}"
            case Rewound(item=item, scope=scope, reason=reason):
                message = self._said.get(item, "")
                target = f"to before {f'“{message}”' if message else item}"
                rest = f". {reason}" if scope == "files" else ": later entries no longer count."
                line = f"{'Files rewound' if scope == 'files' else 'Rewound'} {target}{rest}"
                line = f"{line} {reason}" if reason and scope == "both" else line
            case RewindUndone(reason=reason):
                line = f"Rewind undone: the later entries count again. {reason}".strip()
            case AgentEnded(agent=agent, steps=steps, tokens=tokens):
                line = f"Subagent {agent} ended after {plural(steps, 'step')} and {tokens:,} tokens."
            case HookRan() as ran:
                line, level = hook_line(ran), "warning" if ran.outcome == "problem" else "info"
            case _:
                return
        entry = Entry("notice", line, level=level)
        if line and not (isinstance(event.body, SessionStarted) and self._newest() == entry):  # skip repetitions
            self._add(entry)

    def _add(self, entry: Entry) -> None:
        """Add an entry; a call goes before later ones that ended first."""
        entries = self._turn.later if self._turn.outcome else self._turn.entries
        index = len(entries)
        while entry.asked and index and entries[index - 1].asked > entry.asked:
            index -= 1
        entries.insert(index, entry)

    def _newest(self) -> Entry | None:
        entries = self._turn.later or self._turn.entries
        return entries[-1] if entries else None

    def end(self) -> None:
        """Close incomplete entries: the session was cut off, or is still running."""
        self._tell_restored(told=False)
        for _, entry in self._held:
            self._add(entry)
        for entry in filter(None, map(_entry_of, (*self._unended, *self._open))):
            if entry.kind == "tool":
                self._add(replace(entry, status="interrupted", detail="no result"))
            elif entry.text.strip():
                self._add(replace(entry, status="interrupted", detail="not complete"))


_KINDS: dict[str, EntryKind] = {
    "user": "user",
    "attachment": "attachment",
    "text": "answer",
    "reasoning": "reasoning",
    "tool": "tool",
    "note": "note",
}
_DECISIONS = {
    "once": "allowed once",
    "always": "always allowed",
    "reject": "rejected",
    "edit": "edited",
    "cancelled": "cancelled",
}


def _entry_of(item: Item) -> Entry | None:
    """The entry of an item, open or ended; None if it is not shown."""
    kind = "shell" if (item.kind, item.name) == ("user", "shell") else _KINDS.get(item.kind)
    if kind is None:
        return None
    resolved, body, decision = item.resolved, item.ended, ""
    if resolved is not None:
        who = "" if resolved.by == "user" else f" ({resolved.by})"
        note = f": {resolved.note}" if resolved.note else ""
        decision = f"{_DECISIONS.get(resolved.choice, resolved.choice)}{who}{note}"
    entry = Entry(
        kind,
        item.text,
        item.name,
        item.title,
        arguments=item.call.arguments if item.call is not None else "",
        decision=decision,
        asked=item.number if kind == "tool" else 0,
    )
    if body is None:
        return entry
    texts = [part.text for part in body.parts if isinstance(part, TextPart | ReasoningPart | ToolResultPart)]
    images = [part for part in body.parts if isinstance(part, ImagePart)]
    documents: list[DocumentPart] = []
    for part in body.parts:
        if isinstance(part, ToolResultPart):
            images += part.images
            documents += part.documents
    return replace(
        entry,
        text=("\n" if kind in ("user", "tool") else "").join(texts),
        status=body.status,
        detail=body.detail,
        duration=body.duration,
        blocks=tuple(block for block in body.blocks if not (isinstance(block, TextBlock) and not block.text)),
        images=tuple(images),
        documents=tuple(documents),
    )


def transcript_of(events: Sequence[Event], title: str = "") -> Transcript:
    """The transcript of a session's facts, in order. ``title`` is the session's own name, if any."""
    reading = _Reading()
    for event in events:
        reading.take(event)
    reading.end()
    turns = [turn for turn in reading.turns if turn.entries or turn.number]
    return Transcript(heading_of(events, title), tuple(turns), reading.unreadable)
