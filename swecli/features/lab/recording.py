"""What a replay takes of a stored session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from swecli.core.llm.types import (
    ModelInfo,
)
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.events import (
    MAIN,
    Event,
    ModelResponded,
    SessionStarted,
    StepStarted,
    Unknown,
)


class NotReplayable(Exception):
    """The session lacks data for a replay; the message names it."""


class Recording(Struct, frozen=True):
    """Events of one session in order, without subagents', and the model from its measures. ``skipped`` counts
    unreadable events."""

    session: str
    events: tuple[Event, ...]
    info: ModelInfo
    protocol: str
    folder: Path
    """The session's folder. A compaction shows the model files of the working set as they are on disk now."""
    first: Budget
    skipped: int = 0

    @property
    def requests(self) -> int:
        return sum(isinstance(event.body, StepStarted) for event in self.events)

    @classmethod
    def of(cls, session: str, events: Sequence[Event]) -> Recording:
        """Raises NotReplayable: no request was ever measured, or no measure has the size of a window."""
        own = tuple(event for event in events if event.agent == MAIN)
        known = tuple(event for event in own if not isinstance(event.body, Unknown))
        budgets = [event.body.budget for event in known if isinstance(event.body, StepStarted)]
        if not budgets:
            raise NotReplayable(f"Session {session} has no model request to replay.")
        first = budgets[0]
        if first.window <= 0 or first.effective <= 0:
            raise NotReplayable(f"Session {session} does not record the size of its model's window.")
        started = next((event.body for event in known if isinstance(event.body, SessionStarted)), None)
        provider, _, name = (started.model if started else "").partition("/")
        info = ModelInfo(provider, name, first.window, first.window - first.effective, window_source="recorded")
        protocol = next((event.body.origin.protocol for event in known if isinstance(event.body, ModelResponded)), "")
        folder = Path(started.cwd) if started else Path("/")
        return cls(session, known, info, protocol, folder, first, len(own) - len(known))
