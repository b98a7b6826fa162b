"""The provider's prompt cache: what it served in a session, and why it was missed."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from swecli.core.llm.types import ModelRequest, ToolSchema
from swecli.core.protocol.budget import SYSTEM
from swecli.core.protocol.events import CacheBreak, Event, ModelResponded, ViewEntry
from swecli.core.protocol.messages import Message, Usage

TTL_SECONDS = 300.0
"""How long providers keep a prompt that is not used again, at the least."""

LEAST_EXPECTED = 5_000
"""Tokens. A shorter prompt may be below the size from which on a provider keeps it (4,096 at most)."""

MISSED_SHARE = 0.5
"""Fewer of the expected tokens from the cache than this is a miss; less precision is not to be had, since some
providers keep prompts in steps and on several machines."""

BreakKind = Literal[
    "model", "tools", "instructions", "compaction", "clearing", "undo", "rewind", "edit", "expired", "provider"
]


@dataclass(frozen=True, slots=True)
class CacheMiss:
    """``cause`` is a sentence without its full stop; ``tokens`` had to be computed again although they had been sent
    before."""

    kind: BreakKind
    cause: str
    tokens: int


@dataclass(frozen=True, slots=True)
class WatchedRequest:
    """What the watch compares. ``at`` is when the request was sent, in Unix seconds; ``names`` gives the component of
    a system block by its text; ``view`` is the model's view that the messages were made from."""

    model: str
    request: ModelRequest
    view: tuple[ViewEntry, ...]
    at: float
    names: Mapping[str, str]


class CacheWatch:
    """Follows the requests of one session."""

    def __init__(self, ttl: float = TTL_SECONDS) -> None:
        self._ttl = ttl
        self._previous: WatchedRequest | None = None
        self._expected = 0
        self._hits: set[str] = set()
        """Models from whose cache something came before."""
        self._summaries: set[str] = set()

    def observe(self, watched: WatchedRequest, usage: Usage | None) -> CacheMiss | None:
        """Take in a request and what was reported for it. Returns the miss, if it was one."""
        previous, self._previous = self._previous, watched
        summaries = self._summaries.copy()
        self._summaries |= {entry.id for entry in watched.view if entry.kind == "summary"}
        expected = self._expected
        total = usage.input_total if usage else None
        read = usage.cache_read if usage else None
        self._expected = total or 0
        known = watched.model in self._hits
        if read:
            self._hits.add(watched.model)
        if previous is None or not expected:
            return None
        change = _changed(previous, watched, summaries)
        sent_again = min(expected, total) if total else expected
        missed = max(0, sent_again - (read or 0))
        if change is not None:
            # What an undo brings back may still be in the cache: then nothing was missed.
            return CacheMiss(*change, missed) if missed else None
        if read is None or not known or expected < LEAST_EXPECTED or read >= MISSED_SHARE * sent_again:
            return None
        idle = max(0.0, watched.at - previous.at)
        if idle >= self._ttl:
            return CacheMiss("expired", f"the cache expired: {_minutes(idle)} between two requests", missed)
        return CacheMiss("provider", "the provider did not find the prompt in its cache, for an unknown reason", missed)


def _changed(before: WatchedRequest, now: WatchedRequest, summaries: set[str]) -> tuple[BreakKind, str] | None:
    """The first section that is not as it was, and why."""
    if now.model != before.model:
        return "model", f"the model was switched from {before.model} to {now.model}"
    if now.request.tools != before.request.tools:
        return "tools", _tool_change(before.request.tools, now.request.tools)
    old_system = tuple(block.text for block in before.request.system)
    system = tuple(block.text for block in now.request.system)
    if system != old_system:
        names = {**before.names, **now.names}
        changed = next((text for text in (*system, *old_system) if (text in system) != (text in old_system)), "")
        return "instructions", f"the {names.get(changed, SYSTEM)} changed"
    if _is_prefix(before.request.messages, now.request.messages):
        return None
    return _edited(before.view, now.view, summaries)


def _tool_change(before: Sequence[ToolSchema], now: Sequence[ToolSchema]) -> str:
    old, new = {tool.name: tool for tool in before}, {tool.name: tool for tool in now}
    lists = (
        ("added", [name for name in new if name not in old]),
        ("removed", [name for name in old if name not in new]),
        ("changed", [name for name in new if name in old and new[name] != old[name]]),
    )
    parts = [f"{verb} {_listed(names)}" for verb, names in lists if names]
    return f"the tools changed: {'; '.join(parts) or 'their order'}"


def _listed(names: Sequence[str], most: int = 3) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def _is_prefix(before: Sequence[Message], now: Sequence[Message]) -> bool:
    """Whether the old messages are all there, at the beginning and with the same content."""
    if len(now) < len(before):
        return False
    return all(
        old is new or (old.role == new.role and old.parts == new.parts) for old, new in zip(before, now, strict=False)
    )


def _edited(before: Sequence[ViewEntry], now: Sequence[ViewEntry], summaries: set[str]) -> tuple[BreakKind, str]:
    """What was done to the conversation, from the model's view before and after."""
    old, new = {entry.id: entry for entry in before}, {entry.id: entry for entry in now}
    added = [entry.id for entry in now if entry.kind == "summary" and entry.id not in old]
    removed = [entry.id for entry in before if entry.kind == "summary" and entry.id not in new]
    if added:
        redone = all(entry in summaries for entry in added)
        return ("undo", "a compaction was redone") if redone else ("compaction", "the conversation was compacted")
    stubbed = sum(entry.kind == "stub" and old.get(entry.id, entry).kind == "live" for entry in now)
    restored = sum(entry.kind == "live" and old.get(entry.id, entry).kind == "stub" for entry in now)
    if removed or restored:
        return "undo", "a compaction was undone"
    if stubbed:
        return "clearing", f"{stubbed} old results and arguments were cleared to free space"
    gone = [number for number, entry in enumerate(before) if entry.id not in new]
    if gone and gone == list(range(gone[0], len(before))):
        return "rewind", "the conversation was rewound"
    return "edit", "the conversation was edited"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds < 7_200 else f"{seconds / 3_600:.0f} hours"


KEPT = 200
"""Requests and misses that are remembered, the newest ones."""


@dataclass(frozen=True, slots=True)
class CachedRequest:
    """One model request with reported usage. ``at`` is Unix seconds."""

    turn: int
    at: float
    usage: Usage


@dataclass(frozen=True, slots=True)
class RecordedMiss:
    """One miss that was noticed. ``at`` is Unix seconds."""

    turn: int
    at: float
    cause: str
    tokens: int


class CacheHistory:
    """Newest last."""

    def __init__(self) -> None:
        self._requests: deque[CachedRequest] = deque(maxlen=KEPT)
        self._misses: deque[RecordedMiss] = deque(maxlen=KEPT)
        self.missed_tokens = 0
        """Of all misses of the session."""

    @property
    def requests(self) -> tuple[CachedRequest, ...]:
        return tuple(self._requests)

    @property
    def misses(self) -> tuple[RecordedMiss, ...]:
        return tuple(self._misses)

    def apply(self, event: Event) -> None:
        match event.body:
            case ModelResponded(usage=Usage() as usage) if usage.input_total:
                self._requests.append(CachedRequest(event.turn, event.ts, usage))
            case CacheBreak(cause=cause, tokens=tokens):
                self._misses.append(RecordedMiss(event.turn, event.ts, cause, tokens))
                self.missed_tokens += tokens
            case _:
                pass
