"""The provider's prompt cache: causes of misses, tokens served in a session, and money saved."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import zip_longest
from typing import Final, Literal

from msgspec import Struct, structs
from msgspec.structs import replace

from swecli.core.context_management.counter import texts_of
from swecli.core.context_management.prompt import digest_of
from swecli.core.llm.json_values import compact
from swecli.core.llm.types import SHORTEST_CACHE, ModelRequest
from swecli.core.protocol.budget import ASSISTANT, CALLS, REASONING, RESULTS, SYSTEM, USER, tools_of
from swecli.core.protocol.context_events import BY_HAND, PromptPart, ViewEntry
from swecli.core.protocol.events import (
    CacheBreak,
    CompactionCompleted,
    CompactionRedone,
    CompactionUndone,
    ContextEdited,
    Event,
    ModelChanged,
    ModelResponded,
    PromptPrefix,
    RewindUndone,
    Rewound,
    SessionStarted,
    StepEnded,
    StepStarted,
)
from swecli.core.protocol.messages import (
    DroppedThoughts,
    Message,
    ProviderReport,
    ReasoningPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from swecli.core.protocol.provider_reports import NO_REASON, miss_words, newly_dropped

EFFORT: Final = "effort"
"""Component of a miss caused by a change of the reasoning effort."""

LEAST_EXPECTED = 5_000
"""Tokens. A shorter prompt may be below a provider's minimum for caching (4,096 at most)."""

MISSED_SHARE = 0.5
"""A smaller share of the expected tokens from the cache is a miss. Finer detection is impossible: some providers cache
in steps and on several machines."""

STEP = 128
"""Tokens. Providers cache in steps of this size; smaller differences are not misses."""

FRESH_SLACK = 0.25
"""Relative error of the size of new content, which is known from its characters only."""

BUILT_ANEW: Final = "the system prompt was built anew"

BreakKind = Literal[
    "model",
    "tools",
    "instructions",
    "settings",
    "compaction",
    "clearing",
    "undo",
    "rewind",
    "edit",
    "refused",
    "expired",
    "provider",
    "defect",
]


class PrefixChange(Struct, frozen=True):
    """The first change of a prompt from the request before: ``part`` of ``component`` as in ``CacheBreak``. ``cause``
    is a clause."""

    kind: BreakKind
    cause: str
    component: str = ""
    part: str = ""


class CacheMiss(Struct, frozen=True):
    """``tokens`` were computed again although they had been sent before."""

    change: PrefixChange
    tokens: int

    @property
    def kind(self) -> BreakKind:
        return self.change.kind

    @property
    def cause(self) -> str:
        return self.change.cause

    @property
    def event(self) -> CacheBreak:
        change = self.change
        return CacheBreak(change.cause, self.tokens, change.kind, change.component, change.part)


class WatchedRequest(Struct, frozen=True):
    """One request as the watch compares it. ``at`` is when it was sent, in Unix seconds; ``names`` gives the component
    of a system block by its text; ``view`` is the model's view behind the messages."""

    model: str
    request: ModelRequest
    view: tuple[ViewEntry, ...]
    at: float
    names: Mapping[str, str]
    ttl: float = SHORTEST_CACHE
    """Seconds for which the provider keeps an unused prompt."""


class SentPrompt(Struct, frozen=True):
    """The newest recorded request, of ``tokens`` tokens. ``reads``: its model's cache has served tokens before.
    ``since`` is the later rewrite of the conversation, if any."""

    model: str
    prefix: PromptPrefix
    at: float
    tokens: int
    reads: bool
    since: PrefixChange | None = None


class _Known(Struct, frozen=True):
    """A request to compare others with."""

    model: str
    prefix: PromptPrefix
    messages: tuple[Message, ...]
    view: tuple[ViewEntry, ...]
    at: float
    since: PrefixChange | None = None
    built_anew: str = ""
    """Why the system prompt of the next request is another one, as a clause; empty if the texts tell."""


class CacheWatch:
    """Follows the requests of one session."""

    def __init__(self) -> None:
        self._previous: _Known | None = None
        self._expected = 0
        self._cleared = 0
        """Tokens of the newest request that the provider cleared by itself."""
        self._hits: set[str] = set()
        """Models with a provider that reported cache reads or writes."""
        self._summaries: set[str] = set()
        self.newest: ModelRequest | None = None
        """The request observed last in this run."""

    @property
    def prefix(self) -> PromptPrefix | None:
        """Prefix of the request observed last."""
        return self._previous.prefix if self._previous is not None else None

    def resume(
        self, sent: SentPrompt, messages: tuple[Message, ...], view: tuple[ViewEntry, ...], built_anew: str = ""
    ) -> None:
        """Continue a session: compares the next request with the newest one of the earlier run, of which the
        conversation is the rest. ``built_anew`` is the reason for a changed system prompt, as a clause."""
        self._previous = _Known(sent.model, sent.prefix, messages, view, sent.at, sent.since, built_anew)
        self._expected = sent.tokens
        self._summaries |= {entry.id for entry in view if entry.kind == "summary"}
        if sent.reads:
            self._hits.add(sent.model)

    def observe(self, watched: WatchedRequest, usage: Usage | None, reduced: str = "") -> CacheMiss | None:
        """Record a request and its reported usage. Returns the miss, if it was one. ``reduced`` says what the request
        as sent left out of earlier messages."""
        previous, request, before = self._previous, watched.request, self.newest
        unchanged = (
            before is not None and request.first_tools == before.first_tools and _texts(request) == _texts(before)
        )
        prefix = (
            structs.replace(previous.prefix, effort=request.effort)
            if previous is not None and unchanged
            else prefix_of(request, watched.names)
        )
        now = _Known(watched.model, prefix, request.messages, watched.view, watched.at)
        self._previous, self.newest = now, request
        summaries = self._summaries.copy()
        self._summaries |= {entry.id for entry in watched.view if entry.kind == "summary"}
        expected, cleared = self._expected, self._cleared
        total = usage.input_total if usage else None
        read = usage.cache_read if usage else None
        self._expected = total or 0
        self._cleared = (usage.cleared or 0) if usage else 0
        known = watched.model in self._hits
        if usage is not None and (usage.cache_read or usage.cache_write):
            self._hits.add(watched.model)
        if previous is None or not expected:
            return None
        change = _changed(previous, now, summaries)
        if change is not None:
            # After an undo or a switch back the prompt may still be in the cache, which is not a miss.
            fresh = _fresh_share(watched, previous.messages) * (total or expected)
            missed = round((total or expected) - fresh) - (read or 0)
            return CacheMiss(change, missed) if missed >= (STEP + FRESH_SLACK * fresh if read else 1) else None
        sent_again = min(expected, total) if total else expected
        missed = max(0, sent_again - (read or 0))
        if read is None or not known or expected < LEAST_EXPECTED or read >= MISSED_SHARE * sent_again:
            return None
        if reduced:
            return CacheMiss(PrefixChange("refused", reduced), missed)
        idle = max(0.0, watched.at - previous.at)
        return CacheMiss(_unseen(previous, now, self._cleared > cleared, idle if idle >= watched.ttl else 0), missed)


def _unseen(before: _Known, now: _Known, cleared: bool, idle: float) -> PrefixChange:
    """Reason for a miss of an unchanged prefix. ``idle`` is seconds, 0 while too few for the provider to forget."""
    if cleared:
        return PrefixChange("clearing", "the provider removed old results", RESULTS)
    if now.prefix.effort != before.prefix.effort:
        old, new = before.prefix.effort or "default", now.prefix.effort or "default"
        return PrefixChange("settings", f"the effort changed from {old} to {new}", EFFORT)
    if idle:
        return PrefixChange("expired", f"the cache expired: {_minutes(idle)} between two requests")
    return PrefixChange("provider", "cause unknown")


def _fresh_share(watched: WatchedRequest, before: Sequence[Message]) -> float:
    """The share of a request that was never sent before, by the characters of its new messages. A summary is not new:
    it replaces sent content."""
    request = watched.request
    known = {*(message.id for message in before), *(entry.id for entry in watched.view if entry.kind == "summary")}
    sizes = [sum(len(text) for part in message.parts for text in texts_of(part)) for message in request.messages]
    fresh = sum(size for size, message in zip(sizes, request.messages, strict=True) if message.id not in known)
    fixed = sum(map(len, _texts(request)))
    fixed += sum(len(tool.description) + len(compact(tool.parameters)) for tool in request.tools)
    return fresh / max(1, sum(sizes) + fixed)


def _texts(request: ModelRequest) -> tuple[str, ...]:
    return tuple(block.text for block in request.system)


def prefix_of(request: ModelRequest, names: Mapping[str, str]) -> PromptPrefix:
    """Prefix of a request; ``names`` gives the component of a system block by its text."""
    tools = tuple(
        PromptPart(tool.name, digest_of(compact([tool.description, tool.parameters])), tool.source)
        for tool in request.first_tools
    )
    system = tuple(PromptPart(names.get(text, SYSTEM), digest_of(text)) for text in _texts(request))
    return PromptPrefix(tools, system, request.effort)


def _changed(before: _Known, now: _Known, summaries: set[str]) -> PrefixChange | None:
    """The first changed section, and the cause."""
    if now.model != before.model:
        return PrefixChange("model", f"the model changed from {before.model} to {now.model}")
    system = _system_change(before, now)
    if system is not None and before.built_anew:
        return system
    if now.prefix.tools != before.prefix.tools:
        return _tool_change(before.prefix.tools, now.prefix.tools)
    if system is not None:
        return system
    if before.since is not None:
        return before.since
    position = first_difference(before.messages, now.messages)
    if position is None:
        return None
    kind, cause = _edited(before.view, now.view, summaries)
    return PrefixChange(kind, cause, _component(before.messages, position), _first_entry(before.view, now.view))


def _system_change(before: _Known, now: _Known) -> PrefixChange | None:
    if now.prefix.system == before.prefix.system:
        return None
    pairs = zip_longest(before.prefix.system, now.prefix.system)
    old, new = next((earlier, other) for earlier, other in pairs if earlier != other)
    changed = new if new is not None and new not in before.prefix.system else old or new
    name = changed.name if changed is not None else SYSTEM
    cause = f"the {name} changed" if not before.built_anew else f"{BUILT_ANEW}: {before.built_anew}"
    return PrefixChange("instructions", cause, name)


def _tool_change(before: Sequence[PromptPart], now: Sequence[PromptPart]) -> PrefixChange:
    old, new = {tool.name: tool for tool in before}, {tool.name: tool for tool in now}
    lists = (
        ("added", [name for name in new if name not in old]),
        ("removed", [name for name in old if name not in new]),
        ("changed", [name for name in new if name in old and new[name] != old[name]]),
    )
    parts = [f"{verb} {_listed(names)}" for verb, names in lists if names]
    first, second = next((earlier, other) for earlier, other in zip_longest(before, now) if earlier != other)
    tool = second if second is not None and (first is None or second.name not in old) else first
    assert tool is not None
    cause = f"the tools changed: {'; '.join(parts) or 'their order'}"
    return PrefixChange("tools", cause, tools_of(tool.source), tool.name)


def _listed(names: Sequence[str], most: int = 3) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def first_difference(before: Sequence[Message], now: Sequence[Message]) -> tuple[int, int] | None:
    """The message and its part at which a conversation first differs; None if it has only grown. The last message may
    have grown, too."""
    last = len(before) - 1
    same_until = last if last > 0 and before[:last] == now[:last] else 0
    for index, old in enumerate(before[same_until:], same_until):
        new = now[index] if index < len(now) else None
        if old is new:
            continue
        if new is None or old.role != new.role:
            return index, 0
        same = next((n for n, part in enumerate(old.parts) if new.parts[n : n + 1] != (part,)), len(old.parts))
        if same < len(old.parts) or (index < last and len(new.parts) > same):
            return index, same
    return None


def _component(messages: Sequence[Message], position: tuple[int, int]) -> str:
    """The component at a place of the conversation."""
    message = messages[position[0]]
    part = next(iter(message.parts[position[1] :]), None)
    match part:
        case ToolResultPart():
            return RESULTS
        case ToolCallPart():
            return CALLS
        case ReasoningPart():
            return REASONING
        case _:
            return ASSISTANT if message.role == "assistant" else USER


def _first_entry(before: Sequence[ViewEntry], now: Sequence[ViewEntry]) -> str:
    """The first changed entry of the view, by its earlier id."""
    old, new = next(((earlier, other) for earlier, other in zip_longest(before, now) if earlier != other), (None, None))
    entry = old or new
    return entry.id if entry is not None else ""


def _edited(before: Sequence[ViewEntry], now: Sequence[ViewEntry], summaries: set[str]) -> tuple[BreakKind, str]:
    """The edit of the conversation, found from the model's view before and after."""
    old, new = {entry.id: entry for entry in before}, {entry.id: entry for entry in now}
    chosen = _chosen(old, now)
    if chosen:
        return "edit", chosen
    added = [entry.id for entry in now if entry.kind == "summary" and entry.id not in old]
    removed = [entry.id for entry in before if entry.kind == "summary" and entry.id not in new]
    if added:
        redone = all(entry in summaries for entry in added)
        return ("undo", "a compaction was redone") if redone else ("compaction", "the conversation was compacted")
    stubbed = sum(entry.kind == "stub" and old.get(entry.id, entry).kind == "live" for entry in now)
    restored = sum(entry.kind == "live" and old.get(entry.id, entry).kind == "stub" for entry in now)
    covers = {entry.id: len(entry.sources) for entry in now if entry.kind == "summary" and entry.id in old}
    if removed or restored or any(covered < len(old[name].sources) for name, covered in covers.items()):
        return "undo", "a compaction was undone"
    if any(covered > len(old[name].sources) for name, covered in covers.items()):
        return "undo", "a compaction was redone"
    if stubbed:
        return "clearing", f"{stubbed} old results and arguments were cleared to free space"
    missing = [number for number, entry in enumerate(before) if entry.id not in new]
    if missing and missing == list(range(missing[0], len(before))):
        return "rewind", "the conversation was rewound"
    return "edit", "the conversation was edited"


def _chosen(old: Mapping[str, ViewEntry], now: Sequence[ViewEntry]) -> str:
    """The user's edits of single items since, as a clause; empty if something else changed first."""
    changed = next((entry for entry in now if old.get(entry.id) != entry), None)
    if changed is None or changed.rule != BY_HAND:
        return ""
    verbs = {"dropped": "dropped", "stub": "offloaded", "live": "restored"}
    mine = [entry for entry in now if entry.rule == BY_HAND and old.get(entry.id) != entry]
    counts = Counter(verbs[entry.kind] for entry in mine if entry.kind in verbs)
    return f"you {_listed([f'{verb} {count}' for verb, count in counts.items()])} of the conversation's items"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds < 7_200 else f"{seconds / 3_600:.0f} hours"


# Tokens served by the provider's prompt cache in a session, by request, and the money saved. A reduction of events.


KEPT = 10_000
"""Newest requests to remember."""
KEPT_MISSES = 1_000

PriceOf = Callable[[str, Usage], str | None]


class RecordedMiss(Struct, frozen=True):
    """One miss. ``at`` is Unix seconds; the last three are as in ``CacheBreak``."""

    turn: int
    at: float
    cause: str
    tokens: int
    kind: str = ""
    component: str = ""
    part: str = ""


class CachedRequest(Struct, frozen=True):
    """One model request with reported usage. ``at`` is Unix seconds, ``cost`` US dollars as a decimal string, None
    while it is unknown; ``misses`` are its misses."""

    turn: int
    at: float
    usage: Usage
    model: str = ""
    cost: str | None = None
    misses: tuple[RecordedMiss, ...] = ()
    dropped: tuple[DroppedThoughts, ...] = ()
    """Thoughts that this request lost at the provider, beyond those of the request before."""
    diagnosis: str = ""
    """The provider's reason for a miss of this request, as a clause; empty if it named none."""


def miss_cost(request: CachedRequest, tokens: int, price: PriceOf) -> Decimal | None:
    """Extra cost of a miss of ``tokens`` tokens over reading them from the cache, in US dollars; None if a price is
    unknown."""
    written = tokens if request.usage.cache_write else None
    again = price(request.model, Usage(input_total=tokens, cache_read=0, cache_write=written, output_total=0))
    cached = price(request.model, Usage(input_total=tokens, cache_read=tokens, output_total=0))
    extra = _difference(again, cached)
    return None if extra is None else max(Decimal(0), extra)


def saving(request: CachedRequest, price: PriceOf) -> Decimal | None:
    """US dollars saved by the cache for a request, minus the cost of writing to it; None if the price or the cached
    part is unknown."""
    if request.usage.cache_read is None:
        return None
    asked = structs.replace(request.usage, cost=None, output_total=0, reasoning=None)
    plain = structs.replace(asked, cache_read=0, cache_write=None)
    return _difference(price(request.model, plain), price(request.model, asked))


def _difference(more: str | None, less: str | None) -> Decimal | None:
    try:
        return None if more is None or less is None else Decimal(more) - Decimal(less)
    except InvalidOperation:
        return None


class Money(Struct, frozen=True):
    """US dollars ``saved`` by the cache, and ``lost`` to misses. Excludes requests and misses of unknown price."""

    saved: Decimal = Decimal(0)
    lost: Decimal = Decimal(0)
    priced: int = 0
    """Requests with a known saving."""
    unpriced: int = 0
    lost_unpriced: int = 0
    """Number of misses of unknown price."""

    def plus(self, request: CachedRequest, price: PriceOf) -> Money:
        if request.usage.cache_read is None:
            return self
        amount = saving(request, price)
        costs = [miss_cost(request, miss.tokens, price) for miss in request.misses]
        return Money(
            self.saved + (amount or 0),
            self.lost + sum((cost for cost in costs if cost is not None), Decimal(0)),
            self.priced + (amount is not None),
            self.unpriced + (amount is None),
            self.lost_unpriced + sum(cost is None for cost in costs),
        )


class CacheMoney:
    """Adds up the savings of a session, some requests at a time; prices each request once."""

    def __init__(self, price: PriceOf) -> None:
        self._price = price
        self._sum = Money()
        self._next = 0

    def of(self, history: CacheHistory, most: int) -> tuple[Money, bool]:
        """The sum so far after pricing at most ``most`` requests, and whether it is complete. The newest request may
        still get a miss, so it is priced each time."""
        stop = min(history.count - 1, max(self._next, history.first) + most)
        for request in history.slice(self._next, stop):
            self._sum = self._sum.plus(request, self._price)
        self._next = max(self._next, stop)
        done = self._next >= history.count - 1
        newest = history.slice(history.count - 1, history.count) if done and history.count else []
        total = self._sum
        for request in newest:
            total = total.plus(request, self._price)
        return total, done


class CacheTotals(Struct, frozen=True):
    """Tokens of all requests with a reported cache: ``read`` of ``asked`` came from it."""

    requests: int = 0
    asked: int = 0
    read: int = 0
    misses: int = 0
    missed: int = 0
    """Tokens of all misses."""

    @property
    def share(self) -> float:
        return min(1.0, self.read / self.asked) if self.asked else 0.0


class CacheHistory:
    """Newest last."""

    def __init__(self) -> None:
        self._requests: deque[CachedRequest] = deque(maxlen=KEPT)
        self._misses: deque[RecordedMiss] = deque(maxlen=KEPT_MISSES)
        self._model = ""
        self._coming: tuple[RecordedMiss, ...] = ()
        """Misses that belong to the next request."""
        self._answered = False
        """Whether the newest request's step is still open; misses that arrive now belong to it."""
        self.silent = 0
        """Number of answers without token counts."""
        self.count = 0
        """Number of requests so far, including forgotten ones."""
        self.revision = 0
        """Increases with every change here."""
        self.totals = CacheTotals()
        self.prefix: PromptPrefix | None = None
        """Prefix of the newest request."""
        self._sent_at = 0.0
        self._sent: SentPrompt | None = None
        self._readers: set[str] = set()
        self._dropped: tuple[DroppedThoughts, ...] = ()
        """Thoughts that the newest request lost, with those of earlier ones."""
        self._newest: dict[str, CachedRequest] = {}
        """The newest request to each model since the conversation was last rewritten."""

    def held(self, model: str, since: float) -> int:
        """Tokens of the conversation's beginning that a model's provider probably still has in its cache: those of its
        newest request, if that was answered after ``since`` (Unix seconds)."""
        newest = self._newest.get(model)
        if newest is None or newest.at < since or model not in self._readers:
            return 0
        return newest.usage.input_total or 0

    @property
    def requests(self) -> tuple[CachedRequest, ...]:
        return tuple(self._requests)

    @property
    def misses(self) -> tuple[RecordedMiss, ...]:
        return tuple(self._misses)

    @property
    def sent(self) -> SentPrompt | None:
        """The newest request, for a session that continues; None if the record lacks its prefix."""
        if self._sent is None or self.prefix is None:
            return None
        return replace(self._sent, prefix=self.prefix)

    @property
    def first(self) -> int:
        """The number of the first remembered request, counted from 0."""
        return self.count - len(self._requests)

    def slice(self, start: int, stop: int) -> list[CachedRequest]:
        """Requests by their number, counted from 0; skips forgotten ones."""
        first = self.first  # indexing a deque is quick near both ends; iterating to an index is not
        return [self._requests[number - first] for number in range(max(start, first), min(stop, self.count))]

    def apply(self, event: Event) -> None:
        match event.body:
            case SessionStarted(model=model) | ModelChanged(model=model):
                self._model = model
            case StepStarted():
                self._sent_at = event.ts
            case ModelResponded(usage=usage, report=report):
                self._responded(event, usage, report or ProviderReport())
            case StepEnded(cost=cost):
                if self._answered:
                    self._requests[-1] = replace(self._requests[-1], cost=cost)
                    self.revision += 1
                self._answered = False
            case PromptPrefix() as prefix:
                self.prefix = prefix
            case CacheBreak() as miss:
                self._missed(
                    RecordedMiss(event.turn, event.ts, miss.cause, miss.tokens, miss.kind, miss.component, miss.part)
                )
            case _:
                change = _rewrite(event)
                if change is not None:
                    self._newest.clear()
                if change is not None and self._sent is not None and self._sent.since is None:
                    self._sent = replace(self._sent, since=change)

    def _responded(self, event: Event, usage: Usage | None, report: ProviderReport) -> None:
        dropped, self._dropped = newly_dropped(self._dropped, report.dropped), report.dropped
        if usage is None or not usage.input_total:
            self._sent = None
            self.silent += 1
            self.revision += 1
            return
        diagnosis = miss_words(report.miss) if report.miss and report.miss not in NO_REASON else ""
        self._requests.append(
            CachedRequest(event.turn, event.ts, usage, self._model, None, self._coming, dropped, diagnosis)
        )
        self.count += 1
        self.revision += 1
        self._coming, self._answered = (), True
        if usage.cache_read is not None:
            now = self.totals
            self.totals = replace(
                now,
                requests=now.requests + 1,
                asked=now.asked + usage.input_total,
                read=now.read + min(usage.cache_read, usage.input_total),
            )
        self._newest[self._model] = self._requests[-1]
        if usage.cache_read or usage.cache_write:
            self._readers.add(self._model)
        reads = self._model in self._readers
        self._sent = SentPrompt(self._model, PromptPrefix(), self._sent_at or event.ts, usage.input_total, reads)

    def _missed(self, miss: RecordedMiss) -> None:
        self._misses.append(miss)
        self.revision += 1
        self.totals = replace(self.totals, misses=self.totals.misses + 1, missed=self.totals.missed + miss.tokens)
        if self._answered:
            newest = self._requests[-1]
            self._requests[-1] = replace(newest, misses=(*newest.misses, miss))
        else:
            self._coming = (*self._coming, miss)


def _rewrite(event: Event) -> PrefixChange | None:
    """The rewrite of sent content by an event, if any."""
    match event.body:
        case CompactionCompleted(strategies=("clearing",), item=item):
            return PrefixChange("clearing", "old results and arguments were cleared to free space", "", item)
        case CompactionCompleted(item=item):
            return PrefixChange("compaction", "the conversation was compacted", "", item)
        case CompactionUndone(item=item):
            return PrefixChange("undo", "a compaction was undone", "", item)
        case CompactionRedone(item=item):
            return PrefixChange("undo", "a compaction was redone", "", item)
        case ContextEdited(entries=(first, *_)):
            return PrefixChange("edit", "you changed the conversation's items", "", first.id)
        case Rewound(item=item, scope=scope, name=name) if name and scope != "files":
            return PrefixChange("rewind", "the conversation was rewound", "", item)
        case RewindUndone():
            return PrefixChange("rewind", "a rewind was undone")
        case _:
            return None
