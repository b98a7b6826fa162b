"""When a failed request is tried again, and after how long. Pure."""

from __future__ import annotations

from swecli.core.llm.types import ProviderError

BASE = 0.5
CAP = 8.0
LONGEST_ASKED = 60.0
"""Seconds. A server that asks for a longer wait is not waited for: the user decides."""


def retry_delay(error: ProviderError, attempt: int, limit: int, jitter: float) -> float | None:
    """Seconds to wait before attempt ``attempt + 1``, or None to give up.

    A ``Retry-After`` of the server is honoured up to a minute; otherwise the delay is anything up to a bound that
    doubles (``jitter``, 0..1, is its share), so that programs that failed together do not come back together.
    """
    if not error.retryable or attempt > limit:
        return None
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= LONGEST_ASKED else None
    return min(CAP, BASE * 2.0 ** (attempt - 1)) * jitter


def why_not_again(error: ProviderError) -> str:
    """What the user should know where the wait that the server asks for is too long; else nothing."""
    if not error.retryable or error.retry_after is None or error.retry_after <= LONGEST_ASKED:
        return ""
    return f"The server asks to wait {duration(error.retry_after)}."


def duration(seconds: float) -> str:
    """In the largest unit that fits, rounded up."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{-(-seconds // size):.0f} {unit}"
    return f"{-(-seconds // 1):.0f} s"
