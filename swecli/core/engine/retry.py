"""When a failed request is tried again, and after how long. Pure."""

from __future__ import annotations

from swecli.core.llm.types import ProviderError

BASE = 0.5
CAP = 8.0
LONGEST_ASKED = 60.0
"""Seconds. A server that asks for a longer wait is not waited for: the user decides."""


def retry_delay(error: ProviderError, attempt: int, limit: int, jitter: float) -> float | None:
    """Seconds to wait before attempt ``attempt + 1``, or None to give up.

    A ``Retry-After`` of the server is honoured up to a minute; otherwise exponential with full jitter
    (``jitter`` in 0..1).
    """
    if not error.retryable or attempt > limit:
        return None
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= LONGEST_ASKED else None
    return min(CAP, BASE * 2.0 ** (attempt - 1)) * (0.5 + 0.5 * jitter)
