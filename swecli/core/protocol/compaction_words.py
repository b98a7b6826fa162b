"""What is said of a compaction or a clearing, the same in every front-end. Pure."""

from __future__ import annotations

from typing import Final

from swecli.core.protocol.events import CompactionCompleted, CompactionStarted
from swecli.figures import percent

CLEARING: Final = ("clearing",)
"""The strategies of a batch that only cleared old results: no compaction, for everything is still in its place."""

_MEANS: Final = {
    "chain": "old results first, then a summary",
    "summarization": "a summary",
    "summary": "a summary",
    "hook": "a hook's summary",
    "record": "the record",
    "clearing": "clearing old results",
    "truncation": "dropping the oldest messages",
    "importance": "dropping the least important messages",
    "shrinking": "shortening long entries",
}


def started_words(body: CompactionStarted) -> str:
    """How full the context is and what is tried, after "Compacting the context: "."""
    full = f"{_percent(body.tokens_before, body.effective)} full, " if body.effective else ""
    return f"{full}{body.tokens_before:,} tokens; {_means((body.strategy,))}"


def completed_line(body: CompactionCompleted) -> str:
    """What was done, as one line, and how to take it back."""
    size = f"{body.tokens_before:,} to {body.tokens_after:,} tokens"
    saved = f"{max(0, body.tokens_before - body.tokens_after):,} saved"
    share = ""
    if body.effective:
        before, after = (_percent(tokens, body.effective) for tokens in (body.tokens_before, body.tokens_after))
        share = f" ({before} to {after} of the window)"
    if body.strategies == CLEARING:
        what = f"{body.cleared:,} results and arguments, " if body.cleared else ""
        return f"Old results cleared: {what}{size}, {saved}{share}. /compact undo restores them."
    messages = f"{body.messages_before:,} to {body.messages_after:,} messages"
    removed = f"{max(0, body.messages_before - body.messages_after):,} replaced"
    by = f" by {_means(body.strategies)}" if body.strategies else ""
    return f"Context compacted{by}: {size}, {saved}{share}; {messages}, {removed}. /compact undo restores it."


def _means(strategies: tuple[str, ...]) -> str:
    return " and ".join(_MEANS.get(name, name) for name in strategies)


def _percent(tokens: int, effective: int) -> str:
    return percent(tokens / effective)
