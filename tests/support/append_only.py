"""Whether each request of a conversation begins with the bytes of the one before, and whether the provider's cache was
read as far as that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.loopback import Received
from tests.support.prompt_caches import AnthropicCache, BlockCache, Charged, NewestPrefix, size
from tests.support.wire import compact, without_cache_marks

_FIXED = ("model", "system", "instructions", "systemInstruction", "tools")
_LISTS = ("messages", "input", "contents")
_BRACKETS = 12
"""Most tokens of what closes a text, which the caches of servers of tests count: role and call of a result."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One answered request as a cache sees it. ``number`` is its place among all that were received, from 1;
    ``forgotten`` are the tokens at its end that no breakpoint can cover."""

    number: int
    fixed: str
    items: tuple[str, ...]
    """The conversation. Each part of a message is an item, because the newest message may grow."""
    forgotten: int = 0

    def continues(self, other: Sent) -> bool:
        *earlier, newest = other.items
        end = len(earlier)
        same = self.fixed == other.fixed and list(self.items[:end]) == earlier and len(self.items) > end
        return same and self.items[end].startswith(newest.removesuffix('"}'))  # a text may grow


def answered(requests: Sequence[Received]) -> list[Sent]:
    return [_sent(request, number) for number, request in enumerate(requests, 1) if request.status == 200]


def _sent(request: Received, number: int) -> Sent:
    body = without_cache_marks(request.body)
    listed: Sequence[Mapping[str, Any]] = next((body[name] for name in _LISTS if name in body), ())
    items = tuple(part for item in listed for part in _parts(item))
    last = listed[-1] if listed else {}
    forgotten = sum(map(size, last["content"])) + size({"role": "system"}) if last.get("clear_at") else 0
    return Sent(number, compact([body.get(name) for name in _FIXED]), items, forgotten)


def _parts(item: Mapping[str, Any]) -> list[str]:
    key = next((name for name in ("content", "parts") if isinstance(item.get(name), list)), "")
    if not key:
        return [compact(item)]
    return [compact({name: value for name, value in item.items() if name != key}), *map(compact, item[key])]


def beginnings(requests: Sequence[Sent]) -> list[str]:
    """For each request that continues no earlier one what it changed. Those of a subagent continue each other."""
    newest: list[Sent] = []
    begun: list[str] = []
    for now in requests:
        before = next((one for one in reversed(newest) if now.continues(one)), None)
        if before is None:
            begun.append(_change(newest[-1], now) if newest else "")
        else:
            newest.remove(before)
        newest.append(now)
    return begun


def _change(before: Sent, now: Sent) -> str:
    if before.fixed != now.fixed:
        at = next((at for at, (one, other) in enumerate(zip(before.fixed, now.fixed, strict=False)) if one != other), 0)
        old, new = (sent.fixed[max(0, at - 100) : at + 200] for sent in (before, now))
        return f"request {now.number}: {old!r} became {new!r}"
    at = next(
        (at for at, (one, other) in enumerate(zip(before.items, now.items, strict=False)) if one != other),
        len(now.items),
    )
    return f"request {now.number}, item {at}: {before.items[at : at + 1]} became {now.items[at : at + 1]}"


def unread(requests: Sequence[Sent], cache: AnthropicCache | BlockCache | NewestPrefix) -> list[str]:
    """The requests for which the cache was read less than it could have been, each with the tokens."""
    charges = cache.charges
    assert len(charges) == len(requests)
    wrong: list[str] = []
    for at, now in enumerate(requests):
        before = next((one for one in range(at - 1, -1, -1) if now.continues(requests[one])), None)
        if before is None:
            continue
        most = _readable(cache, requests[before], charges[before], newest=before == at - 1)
        if charges[at].read < most:
            wrong.append(f"request {now.number}: {charges[at].read} of {most}")
    return wrong


def _readable(cache: object, sent: Sent, charged: Charged, *, newest: bool) -> int:
    match cache:
        case BlockCache():
            return max(0, (charged.total - _BRACKETS) // cache.step * cache.step)
        case NewestPrefix():
            return charged.total - _BRACKETS if newest else 0
        case _:
            return charged.total - sent.forgotten
