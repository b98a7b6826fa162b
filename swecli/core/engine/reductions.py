"""Reductions of a session's events, and their stored form, with which a long session opens without reading all events
again. The events stay authoritative: a form written by other code, or a damaged one, is ignored."""

from __future__ import annotations

import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache as once
from pathlib import Path
from typing import Any, Final, TypeVar, cast, get_args, get_origin

import msgspec
from msgspec import Struct, field

from swecli.core.context_management import (
    cache,
    entry_bodies,
    forecast,
    ledger,
    thoughts,
    view_stack,
    work_log,
)
from swecli.core.context_management.cache import CachedRequest, CacheHistory, CacheTotals, RecordedMiss, SentPrompt
from swecli.core.context_management.entry_bodies import EntryBody, stubbed
from swecli.core.context_management.forecast import CompactionRecord, Mark, RequestTrend, Timeline, TurnPoint
from swecli.core.context_management.ledger import Entry, ItemRecord, Ledger, OpenItem
from swecli.core.context_management.read_set import ReadSet, Touch
from swecli.core.context_management.thoughts import Thoughts
from swecli.core.context_management.view_stack import Views, ViewStack
from swecli.core.context_management.work_log import WorkLog
from swecli.core.engine import state
from swecli.core.engine.state import SessionState
from swecli.core.protocol import blocks, budget, events, messages, provider_reports
from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.events import (
    MAIN,
    Event,
    FileChanged,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    ModelResponded,
    PromptPrefix,
    TurnStarted,
)
from swecli.core.protocol.messages import Part

_CODE: Final = (
    ledger,
    entry_bodies,
    view_stack,
    thoughts,
    state,
    cache,
    forecast,
    work_log,
    events,
    messages,
    blocks,
    budget,
    provider_reports,
)
"""Modules that define the reductions and their stored form."""

_OF_ITEMS: Final = (ItemStarted, ItemCheckpointed, ItemCompleted, TurnStarted)
"""More than half of all events. They affect no request, only the state and the ledger."""


class StaleState(ValueError):
    """Unusable stored reductions; the message says why."""


class Reductions(Struct):
    """The reductions of one session's events."""

    state: SessionState = field(default_factory=SessionState)
    ledger: Ledger = field(default_factory=Ledger)
    cache: CacheHistory = field(default_factory=CacheHistory)
    timeline: Timeline = field(default_factory=Timeline)
    trend: RequestTrend = field(default_factory=RequestTrend)
    work: WorkLog = field(default_factory=WorkLog)
    """Takes in new ledger entries on demand."""

    def apply(self, event: Event) -> None:
        """Apply one event; a subagent's affects the state alone. A delta only counts: its text comes again in facts."""
        self.state.apply(event)
        if event.agent == MAIN and not isinstance(event.body, ItemDelta):
            self.ledger.apply(event)
            if not isinstance(event.body, _OF_ITEMS):
                self.cache.apply(event)
                self.timeline.apply(event)
                self.trend.apply(event)


class Before(Struct, frozen=True):
    """The past before the newest events: the ``reductions`` of all events up to ``seq``, and the number of ``facts``
    among them."""

    reductions: Reductions
    seq: int
    facts: int


# --- stored form ------------------------------------------------------------------------------------------


class _Body(msgspec.Struct, array_like=True, frozen=True):
    """Parts of an entry; or, if only the record has them, event ``seq`` and ``parts`` with empty texts."""

    seq: int
    recorded: bool
    parts: tuple[Part, ...]


class _LedgerFields(msgspec.Struct):
    entries: dict[str, Entry]
    items: dict[str, ItemRecord]
    open: dict[str, OpenItem]
    responses: dict[str, ModelResponded]
    changes: list[FileChanged]
    files: ReadSet
    stored: dict[str, str]
    environment: str
    revision: int
    rewrites: int
    pinned: set[str]
    dropped: set[str]
    depths: dict[str, int]
    _view: list[ViewEntry]
    _undo: ViewStack
    _redo: ViewStack
    rewound: frozenset[str]
    _rewinds: dict[str, Views]
    _edits: list[ViewEntry]
    _edits_in: dict[str, int]
    _whole: dict[str, tuple[ViewEntry, ...]]
    _response_of: dict[str, str]
    thoughts: Thoughts


class _CacheFields(msgspec.Struct):
    _requests: deque[CachedRequest]
    _misses: deque[RecordedMiss]
    _model: str
    _coming: tuple[RecordedMiss, ...]
    _answered: bool
    silent: int
    count: int
    revision: int
    totals: CacheTotals
    prefix: PromptPrefix | None
    _sent_at: float
    _sent: SentPrompt | None
    _readers: set[str]
    _dropped: tuple[messages.DroppedThoughts, ...]
    _newest: dict[str, CachedRequest]


class _TimelineFields(msgspec.Struct):
    _points: deque[TurnPoint]
    _marks: deque[Mark]
    _compactions: dict[str, CompactionRecord]
    _triggers: dict[str, str]


class _TrendFields(msgspec.Struct):
    model: str
    prefix: int | None
    asked_at: float | None
    keeps: bool
    writes: bool
    _fixed: int
    _turn: int
    _source: str
    _sizes: deque[int]
    _answers: deque[int]
    _shares: deque[float]


class _StackFields(msgspec.Struct):
    _items: list[str]
    _older: list[list[Any]]
    _top: tuple[ViewEntry, ...]


class _Written(msgspec.Struct):
    code: str
    seq: int
    bodies: msgspec.Raw
    state: msgspec.Raw
    ledger: msgspec.Raw
    cache: msgspec.Raw
    timeline: msgspec.Raw
    trend: msgspec.Raw
    work: msgspec.Raw


T = TypeVar("T")

UNWRITTEN: Final = {
    Ledger: {"_frozen", "projected", "_left", "_bodies", "_seen", "bound", "_numbers", "_dead", "_shown"},
    CacheHistory: set[str](),
    Timeline: set[str](),
    RequestTrend: set[str](),
    ViewStack: set[str](),
}
"""Attributes derived from the others."""
FIELDS: Final[Mapping[type, type[msgspec.Struct]]] = {
    Ledger: _LedgerFields,
    CacheHistory: _CacheFields,
    Timeline: _TimelineFields,
    RequestTrend: _TrendFields,
    ViewStack: _StackFields,
}
"""Stored attributes of each class, by name."""


@once
def code() -> str:
    """Fingerprint of the code that makes the reductions, because other code may produce different ones."""
    found = 0
    for module in (*_CODE, None):
        path = Path(__file__ if module is None else module.__file__ or "")
        found = zlib.crc32(path.read_bytes(), found)
    return f"{found:08x}"


def written(reductions: Reductions) -> bytes:
    """The reductions in stored form. Long texts that the model does not see are replaced by their event."""
    told = reductions.ledger
    reductions.work.absorb(told)
    live = {id(told.entries[one.id].body) for one in told.view if one.kind == "live" and one.id in told.entries}
    places: dict[int, int] = {}
    found: list[EntryBody] = []

    def plain(value: object) -> object:
        match value:
            case EntryBody():
                place = places.setdefault(id(value), len(found))
                if place == len(found):
                    found.append(value)
                return place
            case ViewStack():
                return _fields_of(value)
            case ReadSet():
                return value.touches
            case deque():
                return [*cast("deque[object]", value)]
            case slice():
                stretch = cast("slice[int, int, None]", value)
                return [stretch.start, stretch.stop]
            case _:
                raise TypeError(f"{type(value).__name__} can't be written down")

    def raw(value: object) -> msgspec.Raw:
        return msgspec.Raw(msgspec.json.encode(value, enc_hook=plain))

    texts = {
        "state": raw(reductions.state),
        "ledger": raw(_fields_of(told)),
        "cache": raw(_fields_of(reductions.cache)),
        "timeline": raw(_fields_of(reductions.timeline)),
        "trend": raw(_fields_of(reductions.trend)),
        "work": raw(reductions.work),
    }
    bodies = raw([_body(one, id(one) in live) for one in found])
    return msgspec.json.encode(_Written(code(), reductions.state.seq, bodies, **texts))


def _fields_of(value: object) -> dict[str, Any]:
    return {name: vars(value)[name] for name in FIELDS[type(value)].__struct_fields__}


def _body(body: EntryBody, live: bool) -> _Body:
    recorded = body.seq > 0 and not live
    return _Body(body.seq, recorded, tuple(stubbed(part, "") for part in body.outline) if recorded else body.parts)


def decode_reductions(text: bytes, read: Callable[[int], tuple[Part, ...]]) -> tuple[Reductions, int]:
    """The stored reductions and the newest event in them. ``read`` returns the parts of an event.

    Raises:
        StaleState: other code wrote them, or they can't be read.
    """
    try:
        found = msgspec.json.decode(text, type=_Written)
        if found.code != code():
            raise StaleState("another version wrote it")
        bodies = [_whole(one, read) for one in msgspec.json.decode(found.bodies, type=list[_Body])]
        return _joined(found, bodies), found.seq
    except (msgspec.MsgspecError, ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
        raise StaleState(str(error)) from error


def _whole(body: _Body, read: Callable[[int], tuple[Part, ...]]) -> EntryBody:
    return EntryBody.of_record(body.parts, body.seq, read) if body.recorded else EntryBody(body.parts, body.seq)


def _joined(found: _Written, bodies: Sequence[EntryBody]) -> Reductions:
    def made(kind: Any, value: Any) -> Any:
        if kind is EntryBody:
            return bodies[int(value)]
        origin: Any = get_origin(kind) or kind
        if origin is ViewStack:
            return _stack(msgspec.convert(value, _StackFields))
        if origin is ReadSet:
            files = ReadSet()
            files.touches = msgspec.convert(value, dict[str, list[Touch]])
            return files
        if origin is deque:
            return deque(msgspec.convert(value, list[get_args(kind)[0]]))
        if origin is Counter:
            return Counter(cast("dict[str, int]", value))
        raise TypeError(f"cannot read {kind} back")

    def taken(value: T, text: msgspec.Raw) -> T:
        fields = msgspec.json.decode(text, type=FIELDS[type(value)], dec_hook=made)
        for name in fields.__struct_fields__:
            _put(vars(value), name, getattr(fields, name))
        return value

    told = taken(Ledger(), found.ledger)
    told.finish_loading()
    return Reductions(
        msgspec.json.decode(found.state, type=SessionState, dec_hook=made),
        told,
        taken(CacheHistory(), found.cache),
        taken(Timeline(), found.timeline),
        taken(RequestTrend(), found.trend),
        msgspec.json.decode(found.work, type=WorkLog, dec_hook=made),
    )


def _put(attributes: dict[str, Any], name: str, value: Any) -> None:
    if isinstance(value, deque):
        attributes[name].extend(value)  # keep the deque's maxlen
    else:
        attributes[name] = value


def _stack(fields: _StackFields) -> ViewStack:
    stack = ViewStack()
    for name in ("_items", "_top"):
        vars(stack)[name] = getattr(fields, name)
    older: Iterable[list[Any]] = getattr(fields, "_older")  # noqa: B009  # same name as the attribute
    vars(stack)["_older"] = [tuple(_piece(one) for one in pieces) for pieces in older]
    return stack


def _piece(value: list[Any]) -> slice | tuple[ViewEntry, ...]:
    """A slice of the later view, or entries."""
    if value and isinstance(value[0], int):
        return slice(value[0], value[1])
    return msgspec.convert(value, tuple[ViewEntry, ...])
