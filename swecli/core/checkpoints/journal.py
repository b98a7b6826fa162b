"""Record of changes: a session's operations, their changes, and which of them were undone."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.checkpoints.store import Image, decoded
from swecli.core.workspace.process_tree import is_running

OperationKind = Literal["edit", "command", "undo", "redo"]
State = Literal["open", "done", "unsure"]
"""``open`` while it runs; ``unsure`` if it was killed, so that its changes were found only later."""


class Origin(Struct, frozen=True):
    """Source of a change: ``item`` is the tool call's id, ``title`` a path or a command."""

    session: str
    turn: int
    item: str
    kind: OperationKind
    title: str


class Change(Struct, frozen=True):
    operation: int
    path: str
    before: Image
    after: Image


class Operation(Struct, frozen=True):
    """A recorded operation. ``started`` and ``ended`` are Unix seconds, if known; ``active`` are its changes not yet
    undone."""

    id: int
    origin: Origin
    started: float
    state: State
    note: str
    active: tuple[Change, ...]
    ended: float | None = None


def begin(connection: sqlite3.Connection, origin: Origin, at: float, note: str = "") -> int:
    cursor = connection.execute(
        "INSERT INTO operations(session, turn, item, kind, title, started, pid, state, note)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, 'open', ?)",
        (origin.session, origin.turn, origin.item, origin.kind, _text(origin.title), at, os.getpid(), note),
    )
    return int(cursor.lastrowid or 0)


def record(connection: sqlite3.Connection, changes: Iterable[Change]) -> None:
    """Store changes; one for the same path replaces the earlier one."""
    connection.executemany(
        "INSERT OR REPLACE INTO changes(operation, path, before, after, before_sha256, after_sha256)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        [
            (
                change.operation,
                os.fsencode(change.path),
                change.before.encoded(),
                change.after.encoded(),
                digest_of(change.before),
                digest_of(change.after),
            )
            for change in changes
        ],
    )


def inherit(connection: sqlite3.Connection, parent: str, child: str) -> None:
    """Copy a session's completed operations to another one, including their undos."""
    rows = connection.execute(f"{_OPERATIONS} AND state != 'open' ORDER BY id", (parent,)).fetchall()
    _copy(connection, connection, child, rows, lambda path: path)


def move(source: sqlite3.Connection, target: sqlite3.Connection, session: str, folders: Sequence[str], new: str) -> int:
    """Copy a session's operations from another store, inside its transaction. Paths in one of the ``folders``
    become paths in the workspace's ``new`` place. Returns their number; the source is unchanged."""
    rows = source.execute(f"{_OPERATIONS} ORDER BY id", (session,)).fetchall()
    target.executemany(
        "INSERT OR IGNORE INTO blobs(sha256, size, packed, data) VALUES (?, ?, ?, ?)",
        source.execute(_BLOBS, (session,)),
    )
    _copy(source, target, session, rows, lambda path: _moved(path, folders, new))
    return len(rows)


_OPERATIONS = "SELECT id, turn, item, kind, title, started, pid, state, note, ended FROM operations WHERE session = ?"
_BLOBS = """
    SELECT sha256, size, packed, data FROM blobs b WHERE EXISTS (
        SELECT 1 FROM operations o JOIN changes c ON c.operation = o.id
        WHERE o.session = ? AND (c.before_sha256 = b.sha256 OR c.after_sha256 = b.sha256)
    )
"""


def _moved(path: str, folders: Sequence[str], new: str) -> str:
    inside = next((folder for folder in folders if path == folder or path.startswith(folder.rstrip("/") + "/")), None)
    return path if inside is None else new.rstrip("/") + path[len(inside.rstrip("/")) :]


def _copy(
    source: sqlite3.Connection,
    target: sqlite3.Connection,
    session: str,
    rows: Iterable[Sequence[Any]],
    moved: Callable[[str], str],
) -> None:
    """Add operations to ``session``, with their changes and their undos among each other."""
    copies: dict[int, int] = {}
    for identifier, *rest in rows:
        added = target.execute(
            "INSERT INTO operations(session, turn, item, kind, title, started, pid, state, note, ended)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (session, *rest),
        )
        copy = copies[identifier] = int(added.lastrowid or 0)
        changes = source.execute(
            "SELECT path, before, after FROM changes WHERE operation = ?", (identifier,)
        ).fetchall()
        record(target, (_change(copy, os.fsdecode(path), before, after, moved) for path, before, after in changes))
    for identifier, copy in copies.items():
        reverts = source.execute("SELECT path, by FROM reverts WHERE reverted = ?", (identifier,)).fetchall()
        target.executemany(
            "INSERT INTO reverts(reverted, path, by) VALUES (?, ?, ?)",
            [(copy, os.fsencode(moved(os.fsdecode(path))), copies[by]) for path, by in reverts if by in copies],
        )


def _change(operation: int, path: str, before: str, after: str, moved: Callable[[str], str]) -> Change:
    images = (replace(image, twin="\0".join(map(moved, image.names))) for image in (decoded(before), decoded(after)))
    return Change(operation, moved(path), *images)


def forget(connection: sqlite3.Connection, changes: Iterable[Change]) -> None:
    for change in changes:
        key = (change.operation, os.fsencode(change.path))
        connection.execute("DELETE FROM changes WHERE operation = ? AND path = ?", key)
        connection.execute("DELETE FROM reverts WHERE by = ? AND path = ?", key)


def end(connection: sqlite3.Connection, operation: int, state: State = "done", at: float | None = None) -> None:
    """Record the end of an operation, ``at`` Unix seconds if it is known; one without changes is removed."""
    if connection.execute("SELECT 1 FROM changes WHERE operation = ? LIMIT 1", (operation,)).fetchone():
        connection.execute("UPDATE operations SET state = ?, ended = ? WHERE id = ?", (state, at, operation))
    else:
        connection.execute("DELETE FROM operations WHERE id = ?", (operation,))


def revert(connection: sqlite3.Connection, by: int, changes: Iterable[Change]) -> None:
    """Mark changes as undone by an operation. Undoing an undo makes its changes active again."""
    for change in changes:
        path = os.fsencode(change.path)
        connection.execute(
            "INSERT OR REPLACE INTO reverts(reverted, path, by) VALUES (?, ?, ?)", (change.operation, path, by)
        )


def revive(connection: sqlite3.Connection, undo: int, path: str) -> None:
    """Make the changes of a path that ``undo`` had undone active again."""
    connection.execute("DELETE FROM reverts WHERE by = ? AND path = ?", (undo, os.fsencode(path)))


def operations(connection: sqlite3.Connection, session: str, kinds: Sequence[OperationKind]) -> list[Operation]:
    """The session's completed operations of these kinds with active changes, newest first."""
    marks = ",".join("?" * len(kinds))
    rows = connection.execute(
        f"""
        SELECT o.id, o.turn, o.item, o.kind, o.title, o.started, o.state, o.note, o.ended, c.path, c.before, c.after
        FROM operations o JOIN changes c ON c.operation = o.id
        WHERE o.session = ? AND o.kind IN ({marks}) AND o.state != 'open'
        AND NOT EXISTS (SELECT 1 FROM reverts r WHERE r.reverted = o.id AND r.path = c.path)
        ORDER BY o.id DESC, c.path
        """,
        (session, *kinds),
    ).fetchall()
    by_operation: dict[int, tuple[tuple[object, ...], list[Change]]] = {}
    for row in rows:
        path = os.fsdecode(bytes(row[9]))
        by_operation.setdefault(row[0], (row, []))[1].append(Change(row[0], path, decoded(row[10]), decoded(row[11])))
    return [_operation(session, row, changes) for row, changes in by_operation.values()]


def _operation(session: str, row: Sequence[object], changes: Sequence[Change]) -> Operation:
    identifier, turn, item, kind, title, started, state, note, ended = row[:9]
    assert isinstance(identifier, int)
    assert isinstance(turn, int)
    assert isinstance(started, float)
    reached: State = "unsure" if state == "unsure" else "done"
    return Operation(
        identifier,
        Origin(session, turn, str(item), _kind(kind), str(title)),
        started,
        reached,
        str(note),
        tuple(changes),
        ended if isinstance(ended, float) else None,
    )


_OTHERS = """
    SELECT id, kind, started, ended FROM operations
    WHERE session != ? AND state = 'done' AND kind IN ('edit', 'command') AND started < ? AND ended > ?
"""
_BOTH = """
    SELECT c.path FROM changes c JOIN changes d ON d.operation = ? AND d.path = c.path WHERE c.operation = ?
    AND NOT EXISTS (SELECT 1 FROM reverts r WHERE r.reverted = d.operation AND r.path = d.path)
"""


def shared(connection: sqlite3.Connection, group: Sequence[Operation]) -> dict[int, frozenset[str]]:
    """By command, its paths that another session changed while it ran, so that it is unknown whose change it recorded.
    Only for operations of one session.

    A command that ran all the time, such as a server, claims nothing against a shorter one. Operations that a fork took
    over are not those of another session.
    """
    spans = [
        (operation.id, operation.started, operation.ended)
        for operation in group
        if operation.origin.kind == "command" and operation.ended
    ]
    if not spans:
        return {}
    session = group[0].origin.session
    window = max(ended for _, _, ended in spans), min(started for _, started, _ in spans)
    others = connection.execute(_OTHERS, (session, *window)).fetchall()
    own = {row[0] for row in connection.execute("SELECT started FROM operations WHERE session = ?", (session,))}
    others = [other for other in others if other[2] not in own]
    result: dict[int, frozenset[str]] = {}
    for identifier, started, ended in spans:
        paths: set[str] = set()
        for other, kind, began, stopped in others:
            meanwhile = began < ended and started < stopped
            if meanwhile and (kind == "edit" or not (began < started and ended < stopped)):
                paths.update(os.fsdecode(bytes(row[0])) for row in connection.execute(_BOTH, (other, identifier)))
        if paths:
            result[identifier] = frozenset(paths)
    return result


_KINDS: dict[object, OperationKind] = {"edit": "edit", "command": "command", "undo": "undo", "redo": "redo"}


def _kind(stored: object) -> OperationKind:
    return _KINDS.get(stored, "command")


def touched(connection: sqlite3.Connection, operations: Iterable[int]) -> frozenset[str]:
    """Paths that these operations changed, including changes undone since."""
    rows = [
        row
        for operation in operations
        for row in connection.execute("SELECT path FROM changes WHERE operation = ?", (operation,))
    ]
    return frozenset(os.fsdecode(bytes(row[0])) for row in rows)


class Broken(Struct, frozen=True):
    """An operation left open by a killed process, with the changes recorded until then."""

    id: int
    kind: OperationKind
    pid: int
    changes: tuple[Change, ...]


def broken(connection: sqlite3.Connection, running: frozenset[int]) -> list[Broken]:
    """Operations whose process is dead; ``running`` are this process's own."""
    rows = connection.execute("SELECT id, kind, pid FROM operations WHERE state = 'open' ORDER BY id").fetchall()
    left: list[Broken] = []
    for identifier, kind, pid in rows:
        if identifier in running or (pid != os.getpid() and is_running(int(pid))):
            continue
        recorded = connection.execute(
            "SELECT path, before, after FROM changes WHERE operation = ?", (identifier,)
        ).fetchall()
        changes = tuple(
            Change(identifier, os.fsdecode(bytes(path)), decoded(before), decoded(after))
            for path, before, after in recorded
        )
        left.append(Broken(identifier, _kind(kind), int(pid), changes))
    return left


def half_written(connection: sqlite3.Connection) -> set[tuple[str, int]]:
    """Folders in which killed processes were writing files, each with the id of the process."""
    writing = [operation for operation in broken(connection, frozenset()) if operation.kind != "command"]
    return {(os.path.dirname(change.path), operation.pid) for operation in writing for change in operation.changes}


def prune(connection: sqlite3.Connection, now: float, days: float) -> None:
    """Forget the operations of sessions without changes for that many ``days``. A clock that jumped ahead must not make
    everything old, so the time counts as at most a week after the latest start or change of an earlier day.

    ``now`` is in Unix seconds."""
    today = int(now // DAY)
    (latest,) = connection.execute(_LATEST, {"before": today, "day": DAY}).fetchone()
    connection.execute("INSERT OR IGNORE INTO starts VALUES (?)", (today,))
    if latest is None:
        return
    connection.execute(
        "DELETE FROM operations WHERE session IN"
        " (SELECT session FROM operations GROUP BY session HAVING max(started) < ?)",
        (min(now, (latest + MAX_GAP) * DAY) - days * DAY,),
    )


DAY = 86_400
MAX_GAP = 7
"""Days by which the clock may be ahead of what the record knows."""
_LATEST = """
    SELECT max(day) FROM (
        SELECT day FROM starts UNION ALL SELECT CAST(started / :day AS INTEGER) FROM operations
    ) WHERE day < :before
"""


def forget_oldest(connection: sqlite3.Connection, but: str) -> bool:
    """Forget the least recently used session, except ``but``. False if there is none."""
    row = connection.execute(
        "SELECT session FROM operations WHERE session != ? GROUP BY session ORDER BY max(started) LIMIT 1", (but,)
    ).fetchone()
    if row is None:
        return False
    connection.execute("DELETE FROM operations WHERE session = ?", (row[0],))
    return True


_LEAST_KEPT = 5
"""Changes of a session that are never forgotten to make room."""


def forget_oldest_of(connection: sqlite3.Connection, session: str, but: Collection[int]) -> bool:
    """Forget the oldest change of a session, except those in ``but``. False if only its newest ones are left."""
    rows = connection.execute("SELECT id FROM operations WHERE session = ? ORDER BY id", (session,)).fetchall()
    oldest = next((int(name) for (name,) in rows[:-_LEAST_KEPT] if name not in but), None)
    if oldest is None:
        return False
    connection.execute("DELETE FROM operations WHERE id = ?", (oldest,))
    return True


def digest_of(image: Image) -> str | None:
    return image.content if image.kind == "file" and image.kept else None


def _text(value: str) -> str:
    return value.encode("utf-8", "replace").decode("utf-8")
