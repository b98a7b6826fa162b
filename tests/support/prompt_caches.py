"""Prompt caches of providers over request bodies, each with its own rules; a test sets the clock.

Anthropic keeps everything before a breakpoint, for five minutes or an hour, and looks for kept prefixes at 20 content
blocks for each breakpoint. OpenAI keeps whole blocks of 1,024 tokens. llama.cpp keeps the newest prompt, whose common
prefix with the next one, to the token, is not evaluated again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from tests.support.wire import Body, without_cache_marks

CHARACTERS = 4
"""Characters of a token."""
LIFETIMES: Mapping[str, float] = {"5m": 300.0, "1h": 3_600.0, "30m": 1_800.0, "12h": 43_200.0}
"""Seconds."""
LOOKBACK = 20


def no_time() -> float:
    return 0.0


def canonical(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def size(value: object) -> int:
    """Tokens of a value."""
    return len(canonical(value)) // CHARACTERS + 1


@dataclass(frozen=True)
class Charged:
    """Tokens of a prompt by how they are billed. ``hour`` is the part of ``written`` that is kept for an hour."""

    read: int
    written: int
    plain: int
    hour: int = 0

    @property
    def total(self) -> int:
        return self.read + self.written + self.plain


@dataclass
class AnthropicCache:
    """``minimum`` is the smallest prefix in tokens that is kept. ``charges`` has one entry for each request."""

    clock: Callable[[], float] = no_time
    minimum: int = 512
    charges: list[Charged] = field(default_factory=list)
    _kept: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Digest of a prefix -> when it ends, and its lifetime in seconds."""

    def charge(self, body: Body) -> Charged:
        now, digest = self.clock(), sha256(canonical(body.get("model")).encode())
        ends: list[tuple[str, int]] = []
        marks: list[tuple[int, str]] = []
        tokens = 0
        for at, block in enumerate(blocks_of(body)):
            plain = without_cache_marks(block)
            digest.update(canonical(plain).encode())
            tokens += size(plain)
            ends.append((digest.hexdigest(), tokens))
            if isinstance(block, dict) and (mark := block.get("cache_control")):
                marks.append((at, mark.get("ttl", "5m")))
        read = self._read(ends, marks, now)
        written = hour = 0
        for at, ttl in marks:
            key, end = ends[at]
            if end < self.minimum:
                continue
            new = max(0, end - max(read, written + read))
            written += new
            hour += new if ttl == "1h" else 0
            seconds = LIFETIMES[ttl]
            self._kept[key] = (now + seconds, seconds)
        charged = Charged(read, written, tokens - read - written, hour)
        self.charges.append(charged)
        return charged

    def _read(self, ends: Sequence[tuple[str, int]], marks: Sequence[tuple[int, str]], now: float) -> int:
        """Tokens of the longest kept prefix, whose lifetime begins anew."""
        for mark, _ in reversed(marks):
            for at in range(mark, max(-1, mark - LOOKBACK), -1):
                key, end = ends[at]
                until, seconds = self._kept.get(key, (-1.0, 0.0))
                if until >= now:
                    self._kept[key] = (now + seconds, seconds)
                    return end
        return 0


def blocks_of(body: Body) -> Iterator[Any]:
    """The content blocks of a Messages request in the order of the cache: tools, system prompt, messages."""
    yield from body.get("tools", [])
    yield from _content(body.get("system", []))
    for message in body.get("messages", []):
        yield {"role": message["role"]}
        yield from _content(message.get("content", []))


def _content(value: object) -> Sequence[object]:
    return [{"type": "text", "text": value}] if isinstance(value, str) else value if isinstance(value, list) else []


@dataclass
class BlockCache:
    """OpenAI's cache: whole blocks of ``step`` tokens of the common prefix with any kept request."""

    clock: Callable[[], float] = no_time
    step: int = 1_024
    charges: list[Charged] = field(default_factory=list)
    _kept: list[tuple[float, str]] = field(default_factory=list)

    def charge(self, body: Body, prefix: Sequence[object]) -> Charged:
        text, now = "\n".join(map(canonical, prefix)), self.clock()
        ttl = (body.get("prompt_cache_options") or {}).get("ttl", "30m")
        shared = max((_common(text, kept) for until, kept in self._kept if until >= now), default=0)
        read = shared // CHARACTERS // self.step * self.step
        total = len(text) // CHARACTERS + 1
        written = max(0, total // self.step * self.step - read)
        self._kept = [entry for entry in self._kept if entry[0] >= now]
        self._kept.append((now + LIFETIMES[ttl], text))
        charged = Charged(read, written, total - read - written)
        self.charges.append(charged)
        return charged


@dataclass
class NewestPrefix:
    """llama.cpp's cache of one slot: the newest prompt, to the token. ``charges`` has what each request was
    evaluated for as ``plain``."""

    charges: list[Charged] = field(default_factory=list)
    _text: str = ""

    def charge(self, prefix: Sequence[object]) -> Charged:
        text = "\n".join(map(canonical, prefix))
        read = _common(text, self._text) // CHARACTERS
        self._text = text
        charged = Charged(read, 0, len(text) // CHARACTERS + 1 - read)
        self.charges.append(charged)
        return charged


def _common(text: str, other: str) -> int:
    """Characters of the common beginning."""
    low, high = 0, min(len(text), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text[:middle] == other[:middle] else (low, middle - 1)
    return low
