"""Who has a session open: one live process at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import datetime
from random import Random

from swecli.core.protocol.events import ItemCompleted
from swecli.core.protocol.messages import TextPart
from swecli.core.workspace.process_tree import Process

TITLE_LENGTH = 80
"""Characters of the longest title."""

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_session_id(now: datetime, random: Random) -> str:
    """Local time and four random characters, such as ``2025-10-07-14-30-45-a1b2``: sorts by age."""
    return f"{now:%Y-%m-%d-%H-%M-%S}-{''.join(random.choices(_ALPHABET, k=4))}"


def title_of(message: ItemCompleted) -> str:
    """The title that the first message of a user gives its session: on one line."""
    text = " ".join(part.text for part in message.parts if isinstance(part, TextPart))
    line = " ".join(text.split())
    return storable(line if len(line) <= TITLE_LENGTH else f"{line[: TITLE_LENGTH - 1]}…")


def storable(text: str) -> str:
    """``text`` as UTF-8 can hold it: names of files may have lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")


class Leases:
    """The claims of ``process``, and those of others, over a connection of the caller. A claim of a process that no
    longer lives counts for nothing."""

    def __init__(self, process: Process, clock: Callable[[], float]) -> None:
        self._process = process
        self._clock = clock

    def holder(self, connection: sqlite3.Connection, session_id: str) -> Process | None:
        """The other live process that has the session open, if any."""
        query = "SELECT pid, process_started FROM leases WHERE session_id = ?"
        row = connection.execute(query, (session_id,)).fetchone()
        if row is None:
            return None
        try:
            process = Process(int(row[0]), str(row[1]))
        except ValueError:  # damaged: nobody's claim
            return None
        return process if process != self._process and process.alive else None

    def take(self, connection: sqlite3.Connection, session_id: str) -> None:
        connection.execute(
            "INSERT OR REPLACE INTO leases(session_id, pid, process_started, acquired) VALUES (?, ?, ?, ?)",
            (session_id, self._process.pid, self._process.started, self._clock()),
        )

    def release(self, connection: sqlite3.Connection, session_id: str) -> None:
        """Give the session back; nothing happens where this process doesn't hold it."""
        connection.execute(
            "DELETE FROM leases WHERE session_id = ? AND pid = ? AND process_started = ?",
            (session_id, self._process.pid, self._process.started),
        )
