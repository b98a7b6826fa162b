"""Events that sessions lost when a damaged database was recovered, derived from the rest."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from msgspec import Struct

_MAX_NAMED = 5
"""Sessions that a sentence names."""
_LEFT = """
    SELECT s.id, coalesce(nullif(s.name, ''), s.title), coalesce(e.events, 0),
        max(coalesce(e.newest, 0), coalesce(n.state_facts, 0)),
        coalesce(s.size, 0), coalesce(e.size, 0), coalesce(s.turns, 0)
    FROM sessions s
    LEFT JOIN (SELECT session_id, count(*) AS events, max(fact) AS newest, sum(length(CAST(body AS BLOB))) AS size
               FROM events WHERE :session IN ('', session_id) GROUP BY session_id) e ON e.session_id = s.id
    LEFT JOIN session_snapshots n ON n.session_id = s.id
    WHERE :session IN ('', s.id) ORDER BY s.updated DESC
"""


class Loss(Struct, frozen=True):
    """A session with missing events: ``left`` of ``least`` or more. Missing events at its end have no number."""

    session: str
    title: str
    left: int
    least: int

    def __str__(self) -> str:
        if not self.left:
            return "no events are left, unless they were deleted"
        if self.least > self.left:
            return f"{self.left:,} of at least {self.least:,} events are left"
        return f"{self.left:,} events are left of an unknown number"


def losses(connection: sqlite3.Connection, session: str = "") -> Sequence[Loss]:
    """Sessions with fewer events than were stored: events are numbered without gaps, and a session's row has the total
    bytes. Limited to one ``session`` if given.

    Raises:
        sqlite3.Error: the database can't be read.
    """
    result: list[Loss] = []
    for identifier, title, left, newest, stored, there, turns in connection.execute(_LEFT, {"session": session}):
        if newest > left or stored > there or (not left and turns):
            result.append(Loss(str(identifier), " ".join(str(title).split()), left, max(left, newest)))
    return result


def loss_sentence(lost: Sequence[Loss]) -> str:
    """The losses as a sentence; empty if there are none."""
    if not lost:
        return ""
    named = [f"{loss.session}{f' ({loss.title})' if loss.title else ''}: {loss}" for loss in lost[:_MAX_NAMED]]
    rest = f"; and {len(lost) - _MAX_NAMED:,} more" if len(lost) > _MAX_NAMED else ""
    return f"Events are missing in {'; '.join(named)}{rest}"
