"""What the provider's prompt cache served in a session, request by request, and what that was worth. A reduction of
events."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from decimal import Decimal, InvalidOperation

from msgspec import Struct, structs
from msgspec.structs import replace

from swecli.core.context_management.cache import PrefixChange, SentPrompt
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
from swecli.core.protocol.messages import Usage

KEPT = 10_000
"""Requests that are remembered, the newest ones."""
KEPT_MISSES = 1_000

PriceOf = Callable[[str, Usage], str | None]


class RecordedMiss(Struct, frozen=True):
    """One miss that was noticed. ``at`` is Unix seconds; the last three are as in ``CacheBreak``."""

    turn: int
    at: float
    cause: str
    tokens: int
    kind: str = ""
    component: str = ""
    part: str = ""


class CachedRequest(Struct, frozen=True):
    """One model request with reported usage. ``at`` is Unix seconds, ``cost`` US dollars as a decimal string, None
    while it is unknown; ``misses`` are those that it met."""

    turn: int
    at: float
    usage: Usage
    model: str = ""
    cost: str | None = None
    misses: tuple[RecordedMiss, ...] = ()


def miss_cost(request: CachedRequest, tokens: int, price: PriceOf) -> Decimal | None:
    """US dollars that a miss of so many tokens cost more than reading them from the cache; None where a price is
    unknown."""
    written = tokens if request.usage.cache_write else None
    again = price(request.model, Usage(input_total=tokens, cache_read=0, cache_write=written, output_total=0))
    cached = price(request.model, Usage(input_total=tokens, cache_read=tokens, output_total=0))
    found = _difference(again, cached)
    return None if found is None else max(Decimal(0), found)


def saving(request: CachedRequest, price: PriceOf) -> Decimal | None:
    """US dollars that a request would have cost more without a cache, less what writing to it cost; None where the
    price or the cached part is unknown."""
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
    """US dollars: what the cache ``saved``, and what misses cost more than reading from it (``lost``). Requests and
    misses whose price is unknown are in neither."""

    saved: Decimal = Decimal(0)
    lost: Decimal = Decimal(0)
    priced: int = 0
    """Requests with a known saving."""
    unpriced: int = 0
    lost_unpriced: int = 0
    """Misses."""

    def plus(self, request: CachedRequest, price: PriceOf) -> Money:
        if request.usage.cache_read is None:
            return self
        found = saving(request, price)
        costs = [miss_cost(request, miss.tokens, price) for miss in request.misses]
        return Money(
            self.saved + (found or 0),
            self.lost + sum((cost for cost in costs if cost is not None), Decimal(0)),
            self.priced + (found is not None),
            self.unpriced + (found is None),
            self.lost_unpriced + sum(cost is None for cost in costs),
        )


class CacheMoney:
    """Adds up what the cache of a session was worth, some requests at a time: each is priced once."""

    def __init__(self, price: PriceOf) -> None:
        self._price = price
        self._sum = Money()
        self._next = 0

    def of(self, history: CacheHistory, most: int) -> tuple[Money, bool]:
        """The sum so far after pricing at most so many requests, and whether that is all of them. The newest request
        may still meet a miss, so it is priced each time."""
        stop = min(history.count - 1, max(self._next, history.first) + most)
        for request in history.slice(self._next, stop):
            self._sum = self._sum.plus(request, self._price)
        self._next = max(self._next, stop)
        done = self._next >= history.count - 1
        newest = history.slice(history.count - 1, history.count) if done and history.count else []
        found = self._sum
        for request in newest:
            found = found.plus(request, self._price)
        return found, done


class CacheTotals(Struct, frozen=True):
    """Tokens of all requests that told of a cache: ``read`` of ``asked`` came from it."""

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
        """Misses that the next request will meet."""
        self._answered = False
        """Whether the newest request's step has not ended: what comes is about it."""
        self.silent = 0
        """Answers without any token counts."""
        self.count = 0
        """Requests so far, those that are no longer remembered too."""
        self.revision = 0
        """Changes whenever anything here does."""
        self.totals = CacheTotals()
        self.prefix: PromptPrefix | None = None
        """What the newest request begins with."""
        self._sent_at = 0.0
        self._sent: SentPrompt | None = None
        self._readers: set[str] = set()

    @property
    def requests(self) -> tuple[CachedRequest, ...]:
        return tuple(self._requests)

    @property
    def misses(self) -> tuple[RecordedMiss, ...]:
        return tuple(self._misses)

    @property
    def sent(self) -> SentPrompt | None:
        """The newest request, for a session that goes on; None where the record does not tell what it began with."""
        if self._sent is None or self.prefix is None:
            return None
        return replace(self._sent, prefix=self.prefix)

    @property
    def first(self) -> int:
        """The number of the first request that is remembered, counted from 0."""
        return self.count - len(self._requests)

    def slice(self, start: int, stop: int) -> list[CachedRequest]:
        """Requests by their number, counted from 0; those that are not remembered are left out."""
        first = self.first  # a deque finds its places quickly from both ends; walking there would not
        return [self._requests[number - first] for number in range(max(start, first), min(stop, self.count))]

    def apply(self, event: Event) -> None:
        match event.body:
            case SessionStarted(model=model) | ModelChanged(model=model):
                self._model = model
            case StepStarted():
                self._sent_at = event.ts
            case ModelResponded(usage=usage):
                self._responded(event, usage)
            case StepEnded(cost=cost):
                if self._answered:
                    self._requests[-1] = replace(self._requests[-1], cost=cost)
                    self.revision += 1
                self._answered = False
            case PromptPrefix() as prefix:
                self.prefix = prefix
            case CacheBreak() as found:
                self._missed(
                    RecordedMiss(
                        event.turn, event.ts, found.cause, found.tokens, found.kind, found.component, found.part
                    )
                )
            case _:
                change = _rewrite(event)
                if change is not None and self._sent is not None and self._sent.since is None:
                    self._sent = replace(self._sent, since=change)

    def _responded(self, event: Event, usage: Usage | None) -> None:
        if usage is None or not usage.input_total:
            self._sent = None
            self.silent += 1
            self.revision += 1
            return
        self._requests.append(CachedRequest(event.turn, event.ts, usage, self._model, None, self._coming))
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
    """What an event did to what was sent before, if it did anything."""
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
            return PrefixChange("rewind", "a rewind was taken back")
        case _:
            return None
