"""Half answers in the store: one row grows with the text that streams in, and is emptied once the answer is whole.

A row of its own for each checkpoint would take up to thirty times the text; a row of the whole text would be written
again and again. So a row grows up to about a page of the database, and the next begins.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.protocol.codec import CodecError, decode_body, encode_body
from swecli.core.protocol.events import Event, ItemCheckpointed, ItemCompleted, ItemStarted
from swecli.core.protocol.messages import ReasoningPart, TextPart
from swecli.core.sessions.recovery import ADD_EVENT, Row

LIMIT = 3_000
"""Characters from which a row grows no more. A row that fits into a page takes one write a checkpoint."""

_BODY = "SELECT body FROM events WHERE session_id = ? AND seq = ?"
_CHANGE = "UPDATE events SET body = ? WHERE session_id = ? AND seq = ?"
_REMOVE = "DELETE FROM events WHERE session_id = ? AND seq = ?"


class Changed(Struct, frozen=True):
    """A row as it is now, and by how many characters its body has grown."""

    row: Row
    by: int


class HalfAnswers(Struct):
    """The text rows of one session's unfinished answers. Change a copy within a transaction; it counts once that is
    committed."""

    newest: Row | None = None
    """The session's newest row, if it has such a text."""
    rows: dict[tuple[str, str], tuple[Row, ...]] = field(default_factory=dict[tuple[str, str], tuple[Row, ...]])
    """By agent and item."""

    def copy(self) -> HalfAnswers:
        return HalfAnswers(self.newest, dict(self.rows))

    def stored(self, event: Event, row: Row) -> None:
        """Take in a row that was added."""
        self.newest, body = None, event.body
        if isinstance(body, ItemStarted) and body.kind in ("text", "reasoning"):
            self.rows[event.agent, body.item] = ()
        elif isinstance(body, ItemCheckpointed) and (event.agent, body.item) in self.rows:
            self.newest = row
            self.rows[event.agent, body.item] += (row,)

    def grow(self, connection: sqlite3.Connection, event: Event) -> Changed | None:
        """Put a checkpoint into the newest row if that has the text before it, also if it has it already, after a
        commit that was reported as failed; None if it needs a row of its own."""
        row, body = self.newest, event.body
        if row is None or not isinstance(body, ItemCheckpointed):
            return None
        rows = self.rows.get((event.agent, body.item), ())
        known = _read(connection, row) if rows and rows[-1] is row else None
        grown = continued(known.body, body) if known is not None else None
        if known is None or grown is None:
            return None
        changed = _change(connection, row, known, grown)
        self.newest = changed.row
        self.rows[event.agent, body.item] = (*rows[:-1], changed.row)
        return changed

    def end(self, connection: sqlite3.Connection, event: Event) -> Sequence[Changed]:
        """Empty the rows of an answer that the event holds whole."""
        body = event.body
        if not isinstance(body, ItemCompleted) or not (rows := self.rows.pop((event.agent, body.item), ())):
            return ()
        whole = "".join(part.text for part in body.parts if isinstance(part, TextPart | ReasoningPart))
        emptied: list[Changed] = []
        for row in rows:
            known = _read(connection, row)
            part, begins = (known.body.part, known.body.begins) if known is not None else (None, 0)
            if known is None or not isinstance(part, TextPart | ReasoningPart):
                continue
            if whole[begins : begins + len(part.text)] == part.text:
                empty = replace(known.body, part=replace(part, text=""), begins=0)
                body_now = encode_body(empty)
                changed = Changed((*row[:-2], body_now, row[-1]), len(body_now) - known.length)
                connection.execute(_REMOVE, row[:2])  # a row that is changed to a shorter one gives no room back
                connection.execute(ADD_EVENT, changed.row)
                emptied.append(changed)
        return emptied


def continued(known: ItemCheckpointed, body: ItemCheckpointed) -> ItemCheckpointed | None:
    """A checkpoint with the text of two, of which the second follows or repeats the first; None if it does not, or if
    they are too long for one. One that was emptied has all of its answer."""
    before, part = known.part, body.part
    if not isinstance(part, TextPart | ReasoningPart) or type(before) is not type(part) or known.item != body.item:
        return None
    assert isinstance(before, TextPart | ReasoningPart)
    if not before.text:
        return known
    offset = body.begins - known.begins
    shared = before.text[offset:] if 0 <= offset <= len(before.text) else None
    if shared is not None and shared.startswith(part.text):
        return known
    text = before.text[:offset] + part.text
    if shared is None or not part.text.startswith(shared) or len(text) > LIMIT:
        return None
    return replace(body, part=replace(part, text=text), begins=known.begins)


def has_grown(stored: str, event: Event) -> bool:
    """Whether a stored body is the event's checkpoint in a longer form, or emptied."""
    try:
        known = decode_body(stored)
    except (CodecError, TypeError, ValueError):
        return False
    if not isinstance(known, ItemCheckpointed) or not isinstance(event.body, ItemCheckpointed):
        return False
    return continued(known, event.body) is known


class _Stored(Struct, frozen=True):
    body: ItemCheckpointed
    length: int
    """Characters of its stored form."""


def _read(connection: sqlite3.Connection, row: Row) -> _Stored | None:
    """The checkpoint in a row; None if the row is gone or damaged."""
    stored = connection.execute(_BODY, row[:2]).fetchone()
    if stored is None:
        return None
    text = str(stored[0])
    try:
        body = decode_body(text)
    except (CodecError, TypeError, ValueError):
        return None
    return _Stored(body, len(text)) if isinstance(body, ItemCheckpointed) else None


def _change(connection: sqlite3.Connection, row: Row, before: _Stored, after: ItemCheckpointed) -> Changed:
    body = encode_body(after)
    if before.body is not after:
        connection.execute(_CHANGE, (body, *row[:2]))
    return Changed((*row[:-2], body, row[-1]), len(body) - before.length)
