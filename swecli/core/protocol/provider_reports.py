"""The words for what a provider says about a request: dropped thoughts, and why a prompt was not in its cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from swecli.core.protocol.messages import DroppedThoughts, DropReason

_WHY: Mapping[DropReason, str] = {
    "prefix": "the messages before {them} changed",
    "model": "this model can't read {them}",
    "organization": "another organization made {them}",
    "user": "another user made {them}",
}


def dropped_words(dropped: DroppedThoughts) -> str:
    """For example "3 thoughts dropped by the provider: the messages before them changed"."""
    thoughts = "1 thought" if dropped.count == 1 else f"{dropped.count:,} thoughts"
    why = _WHY[dropped.reason].format(them="it" if dropped.count == 1 else "them")
    return f"{thoughts} dropped by the provider: {why}"


def newly_dropped(before: Sequence[DroppedThoughts], now: Sequence[DroppedThoughts]) -> tuple[DroppedThoughts, ...]:
    """The thoughts that a request lost in addition to those of the request before, which are reported each time."""
    known = {entry.reason: entry.count for entry in before}
    more = (DroppedThoughts(entry.reason, entry.count - known.get(entry.reason, 0)) for entry in now)
    return tuple(entry for entry in more if entry.count > 0)


_MISSES: Mapping[str, str] = {
    "model_changed": "the model changed",
    "system_changed": "the system prompt changed",
    "tools_changed": "the tools changed",
    "messages_changed": "earlier messages changed",
    "input_changed": "earlier messages or instructions changed",
    "context_compacted": "the conversation was compacted",
    "reasoning_effort_changed": "the effort changed",
    "prompt_cache_key_changed": "the cache key changed",
    "previous_message_not_found": "it has no record of the previous request",
    "comparison_response_not_found": "it has no record of the previous request",
    "unavailable": "it has no diagnosis",
}
"""Reasons of Anthropic (``diagnostics.cache_miss_reason``) and OpenAI (``prompt_cache_diagnostics``)."""
NO_REASON = frozenset(("previous_message_not_found", "comparison_response_not_found", "unavailable"))
"""Answers that name no cause."""


def miss_words(reason: str) -> str:
    """The provider's reason for a cache miss as a clause."""
    return _MISSES.get(reason, reason.replace("_", " "))


_EDITS = frozenset(("messages_changed", "input_changed", "context_compacted"))
_AGREEING: Mapping[str, frozenset[str]] = {
    "model": frozenset(("model_changed",)),
    "tools": frozenset(("tools_changed",)),
    "instructions": frozenset(("system_changed", "input_changed")),
    "settings": frozenset(("reasoning_effort_changed",)),
    **dict.fromkeys(("compaction", "clearing", "undo", "rewind", "edit", "refused"), _EDITS),
}
"""The provider's reasons that fit each kind of a miss; for all others nothing changed."""


def disagree(kind: str, reason: str, *, rewritten: bool) -> bool:
    """Whether the provider names another cause of a miss than swecli, by ``CacheBreak.kind`` (empty if it saw none).
    ``rewritten``: the conversation was rewritten since the request before, which may cost nothing."""
    if not reason or reason in NO_REASON:
        return False
    if not kind:
        return not rewritten
    return reason not in _AGREEING.get(kind, frozenset())
