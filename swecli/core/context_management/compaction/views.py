"""Candidate views: what the model would see after each way of compacting. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from swecli.core.context_management.compaction.options import ImportanceStrategy
from swecli.core.context_management.compaction.sizes import EntrySizes
from swecli.core.context_management.compaction.tail import message_starts
from swecli.core.context_management.ledger import Ledger
from swecli.core.protocol.events import ViewEntry
from swecli.core.protocol.messages import TextPart

LONG = 400
"""Characters from which on an answer counts as long."""


def covered(view: Iterable[ViewEntry]) -> tuple[str, ...]:
    """Ledger ids that these entries stand for, those behind summaries included."""
    ids: list[str] = []
    for entry in view:
        ids.extend(entry.sources or (entry.id,))
    return tuple(dict.fromkeys(ids))


def current_request(ledger: Ledger, view: Sequence[ViewEntry]) -> ViewEntry | None:
    """The user's newest message in the view: it stays the last message of the user, word for word."""
    for entry in reversed(view):
        known = ledger.entries.get(entry.id)
        if known is not None and known.kind == "user":
            return ViewEntry("live", entry.id)
    return None


def replaced(
    ledger: Ledger,
    view: Sequence[ViewEntry],
    start: int,
    summary_id: str,
    text: str,
    keep: AbstractSet[str] = frozenset(),
) -> tuple[ViewEntry, ...]:
    """The view with everything before ``start`` replaced by one text, the current request and what is in ``keep``
    kept."""
    request = current_request(ledger, view)
    stays = keep | {request.id} if request is not None else keep
    kept = [
        ViewEntry("live", entry.id) if entry.id not in keep else entry for entry in view[:start] if entry.id in stays
    ]
    sources = tuple(one for one in covered(view[:start]) if one not in stays)
    return (ViewEntry("summary", summary_id, text, sources), *kept, *view[start:])


def recent_start(ledger: Ledger, view: Sequence[ViewEntry], keep_recent: int) -> int:
    """Index at which the last ``keep_recent`` messages begin."""
    starts = message_starts(ledger, view)
    return starts[-keep_recent] if len(starts) > keep_recent else 0


def important(
    ledger: Ledger, view: Sequence[ViewEntry], options: ImportanceStrategy, keep: AbstractSet[str] = frozenset()
) -> tuple[tuple[ViewEntry, ...], tuple[str, ...]]:
    """The view without the messages below the threshold, and the ids of what was dropped."""
    starts = message_starts(ledger, view)
    ends = [*starts[1:], len(view)]
    recent = recent_start(ledger, view, options.keep_recent)
    recent_text = " ".join(_text(ledger, entry) for entry in view[recent:])
    kept: list[ViewEntry] = []
    dropped: list[str] = []
    for start, end in zip(starts, ends, strict=True):
        group = view[start:end]
        stays = start >= recent or any(entry.id in keep for entry in group)
        if stays or _score(ledger, group, recent_text, options) >= options.min_score_threshold:
            kept.extend(group)
        else:
            dropped.extend(covered(group))
    return tuple(kept), tuple(dropped)


def _score(ledger: Ledger, group: Sequence[ViewEntry], recent_text: str, options: ImportanceStrategy) -> float:
    known = [ledger.entries[entry.id] for entry in group if entry.id in ledger.entries]
    if not known or any(entry.kind == "user" for entry in known):
        return options.user_message_score
    if any(entry.kind in ("call", "result") for entry in known):
        return options.tool_use_score
    text = " ".join(_text(ledger, entry) for entry in group)
    words = {word for word in text.split() if len(word) > 6 and any(mark in word for mark in "._/()")}
    if any(word in recent_text for word in words):
        return 1.0
    return options.assistant_message_score * (1.0 if len(text) >= LONG else 0.4)


def _text(ledger: Ledger, entry: ViewEntry) -> str:
    known = ledger.entries.get(entry.id)
    if known is None:
        return entry.text
    return " ".join(part.text for part in known.parts if isinstance(part, TextPart))


def shrunk(
    ledger: Ledger, view: Sequence[ViewEntry], sizes: EntrySizes, largest: int, keep: AbstractSet[str] = frozenset()
) -> tuple[ViewEntry, ...]:
    """The view with every entry above ``largest`` tokens replaced by its beginning, unless it is in ``keep``: the last
    resort for a single thing that is larger than the room there is."""
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
        note = f"\n[… {size:,} tokens in all, cut to make room; id {entry.id} …]\n"
        result.append(ViewEntry("stub", entry.id, text[:share] + note + text[-share // 4 :]))
    return tuple(result)
