"""Selection of what a compaction keeps: the newest messages, important ones, and the user's request. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct

from swecli.core.context_management.compaction.options import (
    Allowances,
    CompactionOptions,
    EntrySizes,
    ImportanceStrategy,
)
from swecli.core.context_management.ledger import RESULT, Ledger, is_statement
from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.messages import TextPart

LEAST_MESSAGES = 10
"""Messages to keep even above the allowance, up to twice its size."""
TAIL_SHARE = 0.15
"""Largest share of the verbatim tail in the whole."""
LONG = 400
"""Characters from which on an answer counts as long."""


def tail_allowance(options: CompactionOptions, allowances: Allowances, used: int) -> int:
    """Tokens of the newest messages to keep word for word."""
    if options.keep_recent_tokens is not None:
        return max(1, allowances.tail)
    return max(1, min(allowances.tail, int(used * TAIL_SHARE)))


def message_starts(ledger: Ledger, view: Sequence[ViewEntry]) -> list[int]:
    """Indexes of the view where a message begins, without cutting a pair of call and result. A note on a topic counts
    with the message before it: it was added to be read with that one."""
    starts: list[int] = []
    current: str | None = None
    for index, entry in enumerate(view):
        known = ledger.entries.get(entry.id)
        if known is not None and is_statement(known) and starts:
            continue
        owner = known.message if known else entry.id
        if owner != current:
            starts.append(index)
            current = owner
    return starts


def tail_start(
    ledger: Ledger, view: Sequence[ViewEntry], sizes: EntrySizes, allowance: int, recent: int = LEAST_MESSAGES
) -> int:
    """Index of the view where the verbatim tail begins: the most whole messages that fit ``allowance`` tokens, at least
    one, and ``recent`` if these take at most twice as much."""
    starts = message_starts(ledger, view)
    chosen = len(view)
    tokens = kept = 0
    end = len(view)
    for start in reversed(starts):
        size = sum(sizes.viewed(entry, ledger) for entry in view[start:end])
        limit = allowance if kept >= recent else 2 * allowance
        if kept > 0 and tokens + size > limit:
            break
        tokens, kept, chosen, end = tokens + size, kept + 1, start, start
    return chosen


def covered(view: Iterable[ViewEntry]) -> tuple[str, ...]:
    """Ledger ids behind these entries, those behind summaries included."""
    ids: list[str] = []
    for entry in view:
        ids.extend(entry.sources or (entry.id,))
    return tuple(dict.fromkeys(ids))


def current_request(ledger: Ledger, view: Sequence[ViewEntry]) -> ViewEntry | None:
    """The user's newest message in the view: it stays the last message of the user, word for word."""
    for entry in reversed(view):
        known = ledger.entries.get(entry.id)
        if known is not None and known.kind == "user" and entry.kind != "dropped":
            return ViewEntry("live", entry.id)
    return None


class Unread(Struct, frozen=True):
    """What the next request shows the model for the first time, besides the user's message: results of its newest
    answer's calls, and files attached since. ``ids`` are their entries and those of the calls; ``start`` is the index
    of the view where that answer, or the first of these files, begins."""

    ids: frozenset[str]
    start: int


def unread(ledger: Ledger, view: Sequence[ViewEntry]) -> Unread:
    answer, start = "", len(view)
    attached: set[str] = set()
    items: set[str] = set()
    for index in range(len(view) - 1, -1, -1):
        entry = ledger.entries.get(view[index].id)
        if entry is None or (answer and entry.message != answer):
            break
        if entry.kind in ("text", "reasoning", "call", "opaque"):
            answer = entry.message
            if entry.kind == "call":
                items.add(entry.item)
        elif entry.kind == "attachment":
            attached.add(entry.id)
            start = index
        if items:
            start = index
    return Unread(frozenset(attached).union(name for item in items for name in (item, item + RESULT)), start)


def is_answered(ledger: Ledger, view: Sequence[ViewEntry], request: str) -> bool:
    """Whether the model has written a text after the user's message ``request``."""
    for entry in reversed(view):
        known = ledger.entries.get(entry.id)
        if entry.id == request or known is None:
            return False
        if known.kind == "text" and not ledger.open:
            return True
    return False


def replaced(
    view: Sequence[ViewEntry],
    start: int,
    summary_id: str,
    text: str,
    request: str,
    keep: AbstractSet[str] = frozenset(),
) -> tuple[ViewEntry, ...]:
    """The view with one text in place of everything before ``start``, except ``request``, which is there word for word,
    and the entries in ``keep``."""
    stays = keep | {request}
    kept = [
        ViewEntry("live", entry.id) if entry.id not in keep else entry for entry in view[:start] if entry.id in stays
    ]
    sources = tuple(source for source in covered(view[:start]) if source not in stays)
    return (ViewEntry("summary", summary_id, text, sources), *kept, *view[start:])


def recent_start(ledger: Ledger, view: Sequence[ViewEntry], keep_recent: int) -> int:
    """Index at which the last ``keep_recent`` messages begin."""
    starts = message_starts(ledger, view)
    return starts[-keep_recent] if len(starts) > keep_recent else 0


def important(
    ledger: Ledger, view: Sequence[ViewEntry], options: ImportanceStrategy, keep: AbstractSet[str] = frozenset()
) -> Iterator[tuple[ViewEntry, ...]]:
    """Ever shorter views: without the messages below the threshold, then also without those of each next score, but
    with all that score as high as the user's."""
    starts = message_starts(ledger, view)
    recent = recent_start(ledger, view, options.keep_recent)
    recent_text = " ".join(_entry_text(ledger, entry) for entry in view[recent:])
    groups: list[tuple[float, Sequence[ViewEntry]]] = []
    for start, end in zip(starts, [*starts[1:], len(view)], strict=True):
        group = view[start:end]
        stays = start >= recent or any(entry.id in keep for entry in group)
        groups.append((math.inf if stays else _score(ledger, group, recent_text, options), group))
    scores = sorted({score for score, _ in groups if score != math.inf})
    limits = [options.min_score_threshold]
    limits += [score for score in (*scores, options.user_message_score) if score > options.min_score_threshold]
    length = len(view)
    for limit in dict.fromkeys(limits):
        if limit > max(options.min_score_threshold, options.user_message_score):
            return
        shorter = tuple(entry for score, group in groups if score >= limit for entry in group)
        if len(shorter) < length:
            length = len(shorter)
            yield shorter


def _score(ledger: Ledger, group: Sequence[ViewEntry], recent_text: str, options: ImportanceStrategy) -> float:
    known = [
        original
        for entry in group
        if (original := ledger.entries.get(entry.id)) is not None and not is_statement(original)
    ]
    if not known or any(entry.kind in ("user", "note") for entry in known):
        return options.user_message_score
    if any(entry.kind in ("call", "result", "attachment") for entry in known):
        return options.tool_use_score
    text = " ".join(_entry_text(ledger, entry) for entry in group)
    words = {word for word in text.split() if len(word) > 6 and any(mark in word for mark in "._/()")}
    if any(word in recent_text for word in words):
        return 1.0
    return options.assistant_message_score * (1.0 if len(text) >= LONG else 0.4)


def _entry_text(ledger: Ledger, entry: ViewEntry) -> str:
    known = ledger.entries.get(entry.id)
    if known is None:
        return entry.text
    return " ".join(part.text for part in known.parts if isinstance(part, TextPart))


def shrunk(
    ledger: Ledger, view: Sequence[ViewEntry], sizes: EntrySizes, largest: int, keep: AbstractSet[str] = frozenset()
) -> tuple[ViewEntry, ...]:
    """The view with every entry above ``largest`` tokens cut to its beginning, except those in ``keep``: the last
    resort for a single entry larger than the room."""
    result: list[ViewEntry] = []
    for entry in view:
        known = ledger.entries.get(entry.id)
        size = sizes.viewed(entry, ledger)
        if (
            known is None
            or entry.kind != "live"
            or entry.id in keep
            or size <= largest
            or known.kind in ("call", "user")
        ):
            result.append(entry)
            continue
        text = " ".join(getattr(part, "text", "") for part in known.parts)
        share = max(200, len(text) * largest // max(size, 1) // 2)
        note = f"\n[… {size:,} tokens in all, cut to free space; id {entry.id} …]\n"
        result.append(ViewEntry("stub", entry.id, text[:share] + note + text[-share // 4 :]))
    return tuple(result)
