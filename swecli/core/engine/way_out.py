"""The door of a session: its measure, and what is left of the cap on tokens."""

from __future__ import annotations

from swecli.core.context_management.door import Door
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Services


def tokens_left(services: Services, recorder: Recorder) -> int | None:
    """Tokens that the session may still use, below 0 where an answer went past the cap; None = no cap."""
    cap = services.limits.max_tokens
    return None if cap is None else cap - recorder.state.tokens


def door_of(services: Services, recorder: Recorder) -> Door:
    """What every request of the session goes through."""
    return Door(services.context, lambda: tokens_left(services, recorder))
