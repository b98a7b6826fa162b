"""Stops automatic compaction that makes no progress, and says why."""

from __future__ import annotations

from dataclasses import dataclass, field

PROGRESS = 0.05
"""A compaction must free this share of what there was. Summaries have to free much more to be taken at all; a batch of
clearing that frees this much costs no model call."""
ATTEMPTS = 2
WINDOW = 10
MOST_IN_WINDOW = 3


@dataclass(slots=True)
class Breaker:
    """Counts automatic compactions by model step."""

    failures: int = 0
    steps: list[int] = field(default_factory=list)

    def record(self, step: int, before: int, after: int) -> None:
        """One compaction that was applied."""
        self.steps.append(step)
        self.failures = 0 if after <= before * (1 - PROGRESS) else self.failures + 1

    def record_failure(self) -> None:
        """One that was not applied."""
        self.failures += 1

    def reset(self) -> None:
        """The user acted: try again."""
        self.failures = 0
        self.steps.clear()

    def open(self, step: int) -> str | None:
        """Why automatic compaction must stop, or None."""
        if self.failures >= ATTEMPTS:
            return f"{self.failures} compactions in a row freed less than {PROGRESS:.0%}"
        recent = [one for one in self.steps if step - one < WINDOW]
        if len(recent) >= MOST_IN_WINDOW:
            return f"{len(recent)} compactions within {WINDOW} model steps"
        return None
