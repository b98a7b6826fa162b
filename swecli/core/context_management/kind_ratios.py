"""A model's tokens per estimated one for each kind of content, learned from reports about mixtures of them.

A tokenizer that makes 10 % more of prose than the estimate may make 50 % more of a call's JSON. A compaction replaces
calls and results by prose, so one average of all would be wrong right after it. The estimate is a Kalman filter over
the kinds; pure, and small enough for plain loops.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from swecli.core.context_management.counter import MessageSize
from swecli.core.protocol.budget import CALLS, REASONING, RESULTS, SUMMARIES

LOWEST, HIGHEST = 0.5, 2.0
_KINDS: Final = {CALLS: 1, RESULTS: 2, REASONING: 3}
"""All else is prose, 0."""
_SUMMARY: Final = 4
"""What summaries differ by from other prose: those of one session are alike."""
_COUNT: Final = 5
OWN = 0.15
"""Standard deviation of the difference of a kind from the average."""
OF_SUMMARIES = 0.1
"""The same of summaries from other prose."""
NOISE_SHARE, NOISE_TOKENS = 0.1, 30.0
"""Standard deviation of a report: a share of it, as texts of one kind differ, and tokens for the borders of each
message."""


class KindRatios:
    """How much the kinds differ from the average of one model in one session, as shares of it."""

    def __init__(self) -> None:
        self._differences = [0.0] * _COUNT
        own = (*[OWN] * _SUMMARY, OF_SUMMARIES)
        self._spread = [[own[a] ** 2 if a == b else 0.0 for b in range(_COUNT)] for a in range(_COUNT)]
        self._learned = False

    def factor(self, size: MessageSize, average: float) -> float:
        """Tokens of a message per estimated one, where all content has ``average``."""
        if not self._learned or not size.total:
            return average
        more = 0.0
        for component, tokens in size.counts:
            more += self._differences[_KINDS.get(component, 0)] * tokens
            if component == SUMMARIES:
                more += self._differences[_SUMMARY] * tokens
        return min(HIGHEST, max(LOWEST, average * (1 + more / size.total)))

    def learn(self, sizes: Iterable[MessageSize], reported: float, average: float) -> None:
        """Learn from messages that have ``reported`` tokens together."""
        amounts, plain, count = [0.0] * _COUNT, 0.0, 0
        for size in sizes:
            count += 1
            for component, tokens in size.counts:
                plain += average * tokens
                amounts[_KINDS.get(component, 0)] += average * tokens
                if component == SUMMARIES:
                    amounts[_SUMMARY] += average * tokens
        if not any(amounts):
            return
        towards = [sum(row[b] * amounts[b] for b in range(_COUNT)) for row in self._spread]
        noise = (NOISE_SHARE * reported) ** 2 + count * NOISE_TOKENS**2
        whole = sum(amount * each for amount, each in zip(amounts, towards, strict=True)) + noise
        likely = plain + sum(amount * more for amount, more in zip(amounts, self._differences, strict=True))
        gains = [each / whole for each in towards]
        self._differences = [
            more + gain * (reported - likely) for more, gain in zip(self._differences, gains, strict=True)
        ]
        self._spread = [[self._spread[a][b] - gains[a] * towards[b] for b in range(_COUNT)] for a in range(_COUNT)]
        self._learned = True
