"""Who has a session open: one live process at a time."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from random import Random

from swecli.core.protocol.events import ItemCompleted
from swecli.core.protocol.messages import TextPart


@dataclass(frozen=True, slots=True)
class Process:
    """A process. ``started`` is an opaque text of its start time, empty where the system doesn't tell."""

    pid: int
    started: str

    @classmethod
    def current(cls) -> Process:
        return cls(os.getpid(), _start_time(os.getpid()))

    @property
    def alive(self) -> bool:
        """Whether this very process still runs (a process of another user counts as well)."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        except (OSError, OverflowError):
            return False
        now = _start_time(self.pid)
        return not now or not self.started or now == self.started


def _start_time(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return _start_time_by_ps(pid)
    # The program's name, in parentheses, may itself hold blanks and parentheses.
    fields = stat.rpartition(")")[2].split()
    if fields and fields[0] in ("Z", "X"):
        return "ended"
    return fields[19] if len(fields) > 19 else ""


def _start_time_by_ps(pid: int) -> str:
    try:
        answer = subprocess.run(
            ["ps", "-o", "lstart=", "-p", str(pid)],
            capture_output=True,
            text=True,
            timeout=2,
            check=False,
            stdin=subprocess.DEVNULL,
            env={"PATH": os.defpath, "LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout.strip()


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
        """Claim the session, whoever had it."""
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
