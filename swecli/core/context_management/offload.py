"""Whether a tool result goes into the context whole or is stored with a reference in its place. Pure.

Two questions: is it the kind of output that is better looked at in parts (by size), and does it fit at all into
what is left of the window (admission, whatever the tool). Sizes are bytes of UTF-8, the rest is tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from swecli.core.context_management.budget import Limits, edge
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.events import ResultKind
from swecli.core.protocol.messages import Usage

GUARD = 1.1
"""Estimates may be a tenth too low."""
RESERVED = 200
"""Tokens kept for the result of each call that has not ended yet: a reference without an excerpt."""
MOST_CORRECTION = 2.0


@dataclass(frozen=True, slots=True)
class OffloadRules:
    """``threshold`` holds for output; ``failed`` for output of a command that failed, which the model needs;
    ``longest`` for everything."""

    threshold: int = 4_096
    failed: int = 16_384
    longest: int = 48_000


@dataclass(frozen=True, slots=True)
class ResultFacts:
    """A finished result. ``tokens`` is an estimate in the unit of the model at hand; None = not estimated,
    because its size decides already."""

    kind: ResultKind
    size: int
    failed: bool = False
    tokens: int | None = None


def too_large(result: ResultFacts, rules: OffloadRules) -> str:
    """Why the result is stored because of its size alone; empty when it may stay."""
    if result.kind == "stored":
        return ""
    threshold = max(rules.threshold, rules.failed) if result.failed else rules.threshold
    if result.kind == "output" and result.size > threshold:
        return f"larger than {threshold:,} bytes"
    if result.size > max(rules.longest, rules.threshold):
        return f"larger than {max(rules.longest, rules.threshold):,} bytes"
    return ""


def does_not_fit(result: ResultFacts, room: int | None) -> str:
    """Why the result is stored for want of room; empty when it fits. ``room`` is None when it is not known."""
    if room is None or result.tokens is None or result.tokens * GUARD <= room:
        return ""
    return f"about {result.tokens:,} tokens do not fit the {max(0, room):,} that are left"


def correction(budget: Budget, usage: Usage | None) -> float:
    """How much larger the newest request was than it was measured: what follows is measured with the same error."""
    reported = believed(budget, usage)
    return max(1.0, reported / budget.used) if reported and budget.used > 0 else 1.0


def believed(budget: Budget, usage: Usage | None) -> int:
    """What was reported of the newest request, where that can be; else 0."""
    reported = usage.input_total if usage is not None else None
    return reported if reported and reported <= MOST_CORRECTION * budget.used else 0


def room_left(
    budget: Budget, limits: Limits, *, usage: Usage | None, answer: int, results: int, open_calls: int
) -> int:
    """Tokens that one more result may take before the next request would reach the block level.

    ``budget`` measured the request that the running calls belong to, ``usage`` is what the provider reported for
    it. ``answer`` and ``results`` are the estimates of what came since, ``open_calls`` counts the calls besides
    this one that have not ended. May be negative.
    """
    request = budget.upper
    reported = believed(budget, usage)
    if reported:
        request = max(request, reported + budget.upper - budget.used)
    said = usage.output_total if usage is not None and usage.output_total else math.ceil(answer * GUARD)
    since = said + math.ceil(results * GUARD) + open_calls * RESERVED
    return edge(limits.block, budget.effective) - 1 - request - since


def excerpt_bytes(room: int | None) -> int | None:
    """How many bytes of a stored result may be shown in so much room; None = as many as usual.

    Text can take a token for every two bytes, and the reference itself takes some.
    """
    return None if room is None else max(0, (room - RESERVED) * 2)
