"""The ways back: what an undo or a redo would do, and carrying it out."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from swecli.core.checkpoints import journal
from swecli.core.checkpoints.blobs import Rows, stored
from swecli.core.checkpoints.journal import Broken, Change, Operation, Origin
from swecli.core.checkpoints.plan import Listed, Plan, plan
from swecli.core.checkpoints.report import Restored, outcome
from swecli.core.checkpoints.restore import present, restore
from swecli.core.checkpoints.targets import Target, chosen, nothing


class WayBack:
    """Over one store, for one session. ``running`` are the operations of this process that have not ended: what is
    carried out here is added to them meanwhile."""

    def __init__(self, rows: Rows, session: str, running: set[int], clock: Callable[[], float]) -> None:
        self._rows = rows
        self._session = session
        self._running = running
        self._clock = clock

    def undo(self, target: Target) -> Restored:
        """Take changes back, as far as nobody changed the paths since."""
        with self._rows.read() as connection:
            operations = chosen(journal.operations(connection, self._session, ("edit", "command")), target)
        skipped: list[Listed] = []
        groups = [[one] for one in operations] if target.scope == "last" else [operations] if operations else []
        for group in groups:
            made = planned(group, sure=target.scope == "call")
            if made.steps or made.conflicts or (target.scope != "last" and made.not_covered):
                made = replace(made, not_covered=(*skipped, *made.not_covered))
                return self._carry_out("undo", tuple(group), made)
            skipped += made.not_covered
        reason = nothing(target) if not skipped else "What could be taken back is not covered."
        return Restored("undo", not_covered=tuple(skipped), reason=reason)

    def redo(self) -> Restored:
        """Take the newest undo back."""
        with self._rows.read() as connection:
            undone = journal.operations(connection, self._session, ("undo",))
        for one in undone:
            made = planned([one], sure=True)
            if made.steps or made.conflicts:
                return self._carry_out("redo", (one,), made)
        return Restored("redo", reason="Nothing was undone in this session that could be done again.")

    def _carry_out(self, direction: Literal["undo", "redo"], group: tuple[Operation, ...], made: Plan) -> Restored:
        if not made.steps:
            return outcome(direction, group, made, ())
        origin = Origin(self._session, group[0].origin.turn, group[0].origin.item, direction, group[0].origin.title)
        with self._rows.write() as connection:
            operation = journal.begin(connection, origin, self._clock())
            self._running.add(operation)
            changes = {step.path: Change(operation, step.path, step.now, step.then) for step in made.steps}
            journal.record(connection, changes.values())
            for step in made.steps:
                journal.revert(connection, operation, step.undoes)
        failed = restore(made.steps, self._content)
        with self._rows.write() as connection:
            missed = {listed.path for listed in failed}
            journal.forget(connection, (change for path, change in changes.items() if path in missed))
            if direction == "redo":
                for path in changes.keys() - missed:
                    journal.revive(connection, group[0].id, path)
            journal.end(connection, operation)
            self._running.discard(operation)
        return outcome(direction, group, made, failed)

    def _content(self, digest: str) -> bytes | None:
        with self._rows.read() as connection:
            return stored(connection, digest)


def planned(group: Sequence[Operation], *, sure: bool) -> Plan:
    """What takes operations back, newest first, as the disk is now. What may be the user's own, because swecli was
    killed meanwhile, is a conflict unless the user is ``sure``."""
    unsure: dict[str, Listed] = {}
    changes: list[Change] = []
    for operation in group:
        for change in operation.active:
            if operation.state == "unsure" and not sure:
                item = operation.origin.item
                why = f"swecli was killed while {item} ran, so this may be your own; /undo {item} takes it back"
                unsure.setdefault(change.path, Listed(change.path, why))
            elif change.path not in unsure:
                changes.append(change)
    expected = {change.path: change.after for change in reversed(changes)}
    made = plan(changes, present(expected))
    return replace(made, conflicts=(*made.conflicts, *unsure.values()))


def end_broken(connection: sqlite3.Connection, operation: Broken) -> None:
    """End an undo or redo that was cut off: what reached its end counts, the rest was not done."""
    changes = operation.changes
    now = present({change.path: change.after for change in changes})
    missed = [change for change in changes if not now[change.path].same(change.after)]
    if operation.kind == "redo":
        for change in changes:
            if change not in missed:
                row = connection.execute(
                    "SELECT reverted FROM reverts WHERE by = ? AND path = ?",
                    (operation.id, os.fsencode(change.path)),
                ).fetchone()
                if row is not None:
                    journal.revive(connection, int(row[0]), change.path)
    journal.forget(connection, missed)
    journal.end(connection, operation.id)
