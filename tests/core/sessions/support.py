"""Events for the tests of the store."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from swecli.core.protocol.events import Event, ItemCheckpointed, ItemCompleted, ItemDelta, ItemStarted, TurnStarted
from swecli.core.protocol.messages import TextPart
from swecli.core.sessions.database import open_database
from swecli.core.sessions.store import SessionStore
from swecli.core.workspace.process_tree import Process


def fact(session: str, seq: int, text: str = "text", *, ts: float = 1.0) -> Event:
    return Event(seq, ts, session, 1, ItemCheckpointed(f"item-{seq}", TextPart(text)))


def delta(session: str, seq: int) -> Event:
    return Event(seq, 1.0, session, 1, ItemDelta(f"item-{seq}", "piece"))


def user_turn(session: str, seq: int, text: str, *, ts: float = 1.0) -> list[Event]:
    """A message of the user, as three facts."""
    bodies = (
        ItemStarted("u1", "user"),
        ItemCompleted("u1", "ok", (TextPart(text),)),
        TurnStarted("u1"),
    )
    return [Event(seq + number, ts, session, 1, body) for number, body in enumerate(bodies)]


def open_store(path: Path, process: Process | None = None, clock: Callable[[], float] = time.time) -> SessionStore:
    return SessionStore(open_database(path), process=process, clock=clock)
