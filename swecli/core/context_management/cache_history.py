"""What became of the prompt cache in a session: a reduction of its events."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from swecli.core.protocol.events import CacheBreak, Event, ModelResponded
from swecli.core.protocol.usage import Usage

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
        """Take in one event."""
        match event.body:
            case ModelResponded(usage=Usage() as usage) if usage.input_total:
                self._requests.append(CachedRequest(event.turn, event.ts, usage))
            case CacheBreak(cause=cause, tokens=tokens):
                self._misses.append(RecordedMiss(event.turn, event.ts, cause, tokens))
                self.missed_tokens += tokens
            case _:
                pass
