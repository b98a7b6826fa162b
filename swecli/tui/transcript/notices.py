"""Events that become one line of their own in the transcript."""

from __future__ import annotations

from typing import Final

from swecli.core.protocol.events import (
    CacheBreak,
    ContextEdited,
    Event,
    ItemsOffloaded,
    JobChanged,
    ModeChanged,
    ModelChanged,
    Notice,
    RetryScheduled,
)
from swecli.tui.transcript.blocks import NoticeBlock

RETRY: Final = "retry"
"""Id of the line that says that a request is tried again; it goes when something happens."""

NOTICES: Final[tuple[type, ...]] = (
    Notice,
    RetryScheduled,
    ModeChanged,
    ModelChanged,
    ItemsOffloaded,
    ContextEdited,
    CacheBreak,
    JobChanged,
)


def notice_of(event: Event) -> NoticeBlock | None:
    """The line for an event of one of the ``NOTICES``; None where it says nothing that is not shown elsewhere."""
    key = f"notice-{event.seq}"
    match event.body:
        case Notice() as body:
            return NoticeBlock(key, body.text, body.level, body.hint)
        case RetryScheduled() as body:
            text = f"{body.reason} · attempt {body.attempt} of {body.limit} in {body.delay:.1f}s"
            return NoticeBlock(RETRY, text, "warning", "Esc stops the wait")
        case ModeChanged() as body:
            return NoticeBlock(key, f"Mode is now {body.mode}: {body.reason}", "warning") if body.reason else None
        case ModelChanged() as body:
            effort = f", effort {body.effort}" if body.effort else ""
            place = f" at {body.address}" if body.address else ""
            return NoticeBlock(key, f"Model is now {body.model}{place}{effort}") if body.switched else None
        case ItemsOffloaded() as body:
            tokens = sum(item.tokens for item in body.items)
            moved = _count(len(body.items), "item")
            return NoticeBlock(key, f"{moved} moved out of the context, {tokens:,} tokens freed")
        case ContextEdited() as body:
            return NoticeBlock(key, f"Context edited: {body.action}, {_count(len(body.items), 'item')}")
        case CacheBreak() as body:
            return NoticeBlock(key, f"Prompt cache missed ({body.tokens:,} tokens): {body.cause}")
        case JobChanged() as body:
            return _job(key, body)
        case _:
            return None


def _job(key: str, body: JobChanged) -> NoticeBlock:
    ended = "" if body.exit_status is None else f" with status {body.exit_status}"
    state = "runs in the background" if body.status == "running" else f"{body.status}{ended}"
    return NoticeBlock(key, f"Job {body.job} {state}: {body.command}", "warning" if body.exit_status else "info")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
