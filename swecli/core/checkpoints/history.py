"""Record of a session's file changes, and their sum. Methods block on the disk: call them in a thread."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct, structs
from msgspec.structs import replace

from swecli.core.checkpoints import journal
from swecli.core.checkpoints.built import BUILT
from swecli.core.checkpoints.generated import LEFT_OUT, USUAL, GeneratedFiles, GeneratedFolders, is_below
from swecli.core.checkpoints.journal import Change, Operation, OperationKind, Origin
from swecli.core.checkpoints.restore import (
    Plan,
    Recent,
    Target,
    chosen,
    nothing_to_undo,
    outcome,
    plan_reversal,
    restore,
    settle_broken,
)
from swecli.core.checkpoints.shadow import Shadow, Sizes
from swecli.core.checkpoints.store import Blobs, Image, Rows, capture, stored, too_large
from swecli.core.protocol.blocks import DiffBlock
from swecli.core.protocol.events import FilesRestored, LeftFile
from swecli.core.workspace.atomic_write import sweep_temporary
from swecli.core.workspace.line_diff import count_changes
from swecli.core.workspace.text_file import decode

MOST_FILES = 200
"""Files whose texts are read."""
MOST_COMPARED = 1_000
"""Pairs of texts compared to count lines; beyond that only files are counted."""
MOST_BYTES = 1_000_000
"""Bytes of one shown text; a larger file is only named."""


class Difference(Struct, frozen=True):
    """``files`` are changed files by path (absolute), ``more`` counts the rest, without the ``generated`` ones.
    ``reason`` says why the changes are unknown, if so."""

    files: tuple[DiffBlock, ...] = ()
    more: int = 0
    reason: str = ""
    generated: GeneratedFiles = GeneratedFiles()


COUNTED_FILES = 2
"""Files of an undo whose changed lines are counted."""


class Span(Struct, frozen=True):
    path: str
    before: Image
    after: Image


def spans(operations: Iterable[Operation]) -> list[Span]:
    """First and last state of each path; ``operations`` newest first. Unchanged paths are omitted, and so are folders:
    their files represent them."""
    by_path: dict[str, Span] = {}
    for operation in operations:
        for change in operation.active:
            later = by_path.get(change.path)
            by_path[change.path] = Span(change.path, change.before, later.after if later else change.after)
    changed = (span for span in by_path.values() if not span.before.same(span.after))
    return sorted(
        (span for span in changed if {span.before.kind, span.after.kind} != {"absent", "folder"}),
        key=lambda span: span.path,
    )


def _edited(operations: Iterable[Operation]) -> set[str]:
    return {change.path for operation in operations if operation.origin.kind == "edit" for change in operation.active}


def difference(connection: sqlite3.Connection, session: str, rules: GeneratedFolders, below: str = "") -> Difference:
    """A session's changes. ``below`` (absolute) restricts them to that place, and then includes generated folders. A
    file edited by name never counts as generated."""
    operations = journal.operations(connection, session, ("edit", "command"))
    edited = _edited(operations)
    by_path = {span.path: span for span in spans(operations) if not below or is_below(span.path, below)}
    reasons = {path: span.after.note or span.before.note for path, span in by_path.items()}
    folders = [path for path, why in reasons.items() if why in LEFT_OUT]
    for path, why in reasons.items():
        if why in USUAL:
            del by_path[path]
    listed, generated = rules.split((path for path in by_path if path not in edited), below)
    unrecorded = tuple(folder for folder in folders if folder not in generated.folders)
    generated = replace(generated, unrecorded=unrecorded)
    shown = [path for path in by_path if path in edited.union(listed)]
    files = tuple(_block(connection, by_path[path]) for path in shown[:MOST_FILES])
    return Difference(files, len(shown) - len(files), generated=generated)


class RunChanges(Struct, frozen=True):
    """What one run of the program changed: ``changed`` has the files by path (absolute), the newest change last, and
    whether each existed before the run; ``recorded`` also has the paths whose changes are undone or cancel out."""

    changed: Mapping[str, bool]
    recorded: frozenset[str] = frozenset()


def changed_files(operations: Sequence[Operation], rules: GeneratedFolders) -> dict[str, bool]:
    """Files that differ because of the operations (newest first), the newest change last, and whether each existed
    before. Generated files count only if an edit named them."""
    edited = _edited(operations)
    by_path = {span.path: span for span in spans(operations) if (span.after.note or span.before.note) not in USUAL}
    listed = edited.union(rules.split(path for path in by_path if path not in edited)[0])
    newest = dict.fromkeys(change.path for operation in operations for change in operation.active)
    paths = [path for path in reversed(newest) if path in by_path and path in listed]
    return {path: by_path[path].before.kind != "absent" for path in paths}


class ChangedSince(Struct, frozen=True):
    """How many files differ, and their lines, as far as their texts are stored."""

    files: int = 0
    added: int = 0
    removed: int = 0


def changed_since(
    connection: sqlite3.Connection, session: str, rules: GeneratedFolders, turns: Iterable[int]
) -> dict[int, ChangedSince]:
    """Changes since each turn, without generated files."""
    operations = journal.operations(connection, session, ("edit", "command"))
    edited = _edited(operations)
    others = {change.path for operation in operations for change in operation.active} - edited
    counted = edited.union(rules.split(others)[0])
    by_path: dict[str, Span] = {}
    lines: dict[str, tuple[int, int]] = {}
    sums: dict[int, ChangedSince] = {}
    at, compared = 0, 0
    for turn in sorted(set(turns), reverse=True):
        touched: set[str] = set()
        while at < len(operations) and operations[at].origin.turn >= turn:
            for change in operations[at].active:
                if change.path in counted:
                    later = by_path.get(change.path)
                    by_path[change.path] = Span(change.path, change.before, later.after if later else change.after)
                    touched.add(change.path)
            at += 1
        for path in touched:
            span = by_path[path]
            kinds = {span.before.kind, span.after.kind}
            left_out = (span.after.note or span.before.note) in USUAL
            if span.before.same(span.after) or kinds == {"absent", "folder"} or left_out:
                lines.pop(path, None)
                continue
            compared += 1
            lines[path] = _counted(connection, span) if compared <= MOST_COMPARED else (0, 0)
        sums[turn] = ChangedSince(
            len(lines), sum(added for added, _ in lines.values()), sum(removed for _, removed in lines.values())
        )
    return sums


def _counted(connection: sqlite3.Connection, span: Span) -> tuple[int, int]:
    (old, why_old), (new, why_new) = _text(connection, span.before), _text(connection, span.after)
    return (0, 0) if why_old or why_new else count_changes(old or "", new or "")


def _block(connection: sqlite3.Connection, span: Span) -> DiffBlock:
    old, why_old = _text(connection, span.before)
    new, why_new = _text(connection, span.after)
    note = why_new or why_old
    if note:  # without one of the texts, no changed line is known
        old, new = (None if image.kind == "absent" else "" for image in (span.before, span.after))
    elif old == new:
        note = f"mode {span.before.mode:o} -> {span.after.mode:o}"
    return DiffBlock(span.path, old, new, note)


def _text(connection: sqlite3.Connection, image: Image) -> tuple[str | None, str]:
    """The text of a file, and why it is not shown; None if there was no file."""
    if image.kind == "absent":
        return None, ""
    if image.kind == "link":
        return None, f"a link to {image.target}"
    if image.kind != "file":
        return None, image.note or f"a {image.kind}"
    if not image.kept:
        return None, image.note or "its text was not stored"
    data = stored(connection, image.content)
    if data is None:
        return None, "its text is no longer stored"
    if len(data) > MOST_BYTES:
        return None, f"{len(data):,} bytes, too large to show"
    text = decode(data)
    return (None, f"binary, {len(data):,} bytes") if text.looks_binary else (text.text, "")


_MAX_EDITED = 16_000_000
"""Bytes of a file stored for a tool's edit: more than any tool edits."""
FORGOTTEN: str = "The oldest changes of this session were forgotten, because the checkpoint store was full."
UNFINISHED = "the first copy of the workspace was incomplete when it ran"


class CheckpointOptions(Struct, frozen=True):
    """``file`` limits the bytes of a file copied for commands, ``total`` all stored bytes (compressed), ``days`` the
    age of a session's changes, ``entries`` the files of one tree."""

    file: int = 2_000_000
    total: int = 500_000_000
    days: int = 30
    entries: int = 100_000
    own_names: tuple[str, ...] = ()
    """Patterns of the user's for names of files that may hold secrets."""


class Running(Struct, frozen=True):
    """A begun operation: its id, the earlier state of named paths, and whether the trees are watched."""

    id: int
    kind: OperationKind
    before: tuple[tuple[str, Image], ...]
    watched: bool = False


def _only_byproducts(made: Plan, rules: GeneratedFolders) -> bool:
    """Whether the plan concerns only generated files, and hidden folders with nothing else in them, such as pytest's
    ``.benchmarks``."""
    listed, _ = rules.split(step.path for step in made.steps)
    empty = {step.path for step in made.steps if step.now.kind == "folder" and step.then.kind == "absent"}
    return all(path in empty and os.path.basename(path).startswith(".") for path in listed)


class FileHistory:
    """File history over one store. Commands and scans run one at a time; edits may come from other threads."""

    def __init__(
        self,
        rows: Rows,
        session: str,
        roots: Sequence[str],
        options: CheckpointOptions,
        own: tuple[str, ...] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._rows = rows
        self.problems: tuple[str, ...] = rows.problems
        """What went wrong on opening the store, for the user."""
        self._session = session
        self._roots = tuple(roots)
        self._clock = clock
        self._stop = threading.Event()
        self._blobs = Blobs(options.total)
        self._options = options
        self._shadow = Shadow(
            rows, self._blobs, roots, Sizes(options.file, options.entries), own, self._stop.is_set, options.own_names
        )
        self._running: set[int] = set()
        self._begun: set[int] = set()
        """Edits and commands of this run."""

    def open(self) -> None:
        """Take over from earlier processes: the copy of the trees, and interrupted operations."""
        self._shadow.load()
        self.problems += settle_broken(self._rows, frozenset(self._running))
        with self._rows.read() as connection:
            broken = journal.broken(connection, frozenset(self._running))
        commands = [operation for operation in broken if operation.kind == "command"]
        scanned = self._shadow.scan() if commands else []
        with self._rows.write() as connection:
            for operation in broken:
                seen = scanned if commands and operation is commands[-1] else []
                changes = [Change(operation.id, each.path, each.before, each.after) for each in seen]
                self._close(connection, operation.id, operation.kind, operation.changes, changes, "unsure")

    def first_copy(self) -> None:
        """Bring the copy of the trees up to date, and drop what exceeds age or size. Temporary files left in the trees
        by killed writers are removed."""
        with self._rows.write() as connection:
            journal.prune(connection, self._clock(), self._options.days)
            self._blobs.sweep(connection)
        self._make_room()
        self._shadow.scan(again=True)
        for folder in self._shadow.temporary:
            sweep_temporary(Path(folder))
        self._shadow.temporary.clear()

    @property
    def not_covered(self) -> tuple[LeftFile, ...]:
        """Paths of the trees not covered for commands, and why, as of the last scan."""
        return tuple(LeftFile(path, why) for path, why in sorted(self._shadow.left_out.items()))

    def why_too_large(self, path: str) -> str:
        """Why the file as it is now would not be copied for a command; empty if its size does not prevent that."""
        limit = self._options.file
        try:
            status = os.lstat(path)
        except OSError:
            return ""
        return too_large(limit) if stat.S_ISREG(status.st_mode) and status.st_size > limit else ""

    def newly_left_out(self) -> list[LeftFile]:
        """Unexpected uncovered paths that no session has reported yet; marks them as reported."""
        unusual = {
            os.fsencode(file.path): file for file in self.not_covered if file.why == BUILT or file.why not in USUAL
        }
        if not unusual:
            return []
        with self._rows.write() as connection:
            known = {row[0] for row in connection.execute("SELECT path FROM told")}
            connection.executemany("INSERT INTO told VALUES (?)", [(path,) for path in unusual.keys() - known])
        return [file for path, file in unusual.items() if path not in known]

    def stop(self) -> None:
        self._stop.set()

    def close(self) -> None:
        self._rows.close()

    # --- recording -------------------------------------------------------------------------------------------

    def begin(self, origin: Origin, paths: Iterable[str], *, watch: bool, note: str = "") -> Running:
        """Record the state of ``paths``, and with ``watch`` of the trees, before an operation changes them."""
        started = self._clock()
        if watch:
            self._make_room()
            self._shadow.scan(again=True)
        with self._rows.write() as connection:
            operation = journal.begin(connection, origin, started, note)
            self._running.add(operation)
            self._begun.add(operation)
            before = tuple((path, self._captured(connection, path, origin.kind)) for path in _with_new_folders(paths))
            journal.record(connection, (Change(operation, path, image, image) for path, image in before))
        return Running(operation, origin.kind, before, watch)

    def end(self, running: Running) -> tuple[Change, ...]:
        if running.watched:
            self._make_room()
        scanned = self._shadow.scan() if running.watched else []
        with self._rows.write() as connection:
            changes = [Change(running.id, change.path, change.before, change.after) for change in scanned]
            placeholders = tuple(Change(running.id, path, image, image) for path, image in running.before)
            self._running.discard(running.id)
            return self._close(connection, running.id, running.kind, placeholders, changes, "done")

    def _captured(self, connection: sqlite3.Connection, path: str, kind: OperationKind) -> Image:
        edited = kind == "edit"
        limit = _MAX_EDITED if edited else self._options.file
        image = capture(path, lambda data, digest: self._blobs.keep(connection, data, digest, always=edited), limit)
        return replace(image, twin=path) if image.twin else image

    def _close(
        self,
        connection: sqlite3.Connection,
        operation: int,
        kind: OperationKind,
        named: Iterable[Change],
        scanned: Iterable[Change],
        state: Literal["done", "unsure"],
    ) -> tuple[Change, ...]:
        """``named`` are changes whose outcome is read now; ``scanned`` are complete changes."""
        changes = {change.path: change for change in scanned}
        same: list[Change] = []
        for change in named:
            if change.path in changes:
                continue
            after = self._captured(connection, change.path, kind)
            if after.same(change.before):
                same.append(change)
            else:
                changes[change.path] = replace(change, after=after)
        journal.forget(connection, same)
        journal.record(connection, changes.values())
        journal.end(connection, operation, state, self._clock() if state == "done" else None)
        return tuple(changes.values())

    def _operations(self, *kinds: OperationKind) -> list[Operation]:
        with self._rows.read() as connection:
            return journal.operations(connection, self._session, kinds)

    # --- undo and redo ---------------------------------------------------------------------------------------

    def undo(self, target: Target) -> FilesRestored:
        """Undo changes to paths that were not changed since. The last change is the newest one beyond the byproducts of
        tests and builds, if there is one."""
        operations = chosen(self._operations("edit", "command"), target)
        skipped: list[LeftFile] = []
        byproducts: tuple[tuple[Operation, ...], Plan] | None = None
        rules = GeneratedFolders(self._roots)
        groups = (
            [[operation] for operation in operations] if target.scope == "last" else [operations] if operations else []
        )
        for group in groups:
            made = plan_reversal(group, None if target.scope == "call" else self._others(group, rules))
            if target.scope == "last" and made.steps and not made.conflicts and _only_byproducts(made, rules):
                byproducts = byproducts or (tuple(group), made)  # the user does not mean byproducts of tests
            elif made.steps or made.conflicts or (target.scope != "last" and made.not_covered):
                made = replace(made, not_covered=(*skipped, *made.not_covered))
                return self._carry_out("undo", tuple(group), made)
            else:
                skipped += made.not_covered
        if byproducts is not None:
            return self._carry_out("undo", *byproducts)
        reason = (
            nothing_to_undo(target) if not skipped else "These changes are not tracked, so swecli can't revert them."
        )
        return FilesRestored("undo", not_covered=tuple(skipped), reason=" ".join((reason, *self.problems)))

    def rewind(self, turn: int, name: str) -> FilesRestored:
        """Undo the changes of ``turn`` and later ones. ``unwind`` finds them by ``name``."""
        group, made = self._since(turn)
        return self._carry_out("undo", group, made, name) if group else FilesRestored("undo")

    def preview(self, turn: int) -> FilesRestored:
        """The result ``rewind`` would have now."""
        group, made = self._since(turn)
        return outcome("undo", group, made, ())

    def _since(self, turn: int) -> tuple[tuple[Operation, ...], Plan]:
        operations = chosen(self._operations("edit", "command"), Target("since", turn))
        return tuple(operations), plan_reversal(operations, self._others(operations, GeneratedFolders(self._roots)))

    def _others(self, group: Sequence[Operation], rules: GeneratedFolders) -> dict[int, frozenset[str]]:
        """By operation, the paths that another session changed meanwhile; generated files belong to nobody."""
        with self._rows.read() as connection:
            shared = journal.shared(connection, group)
        return {operation: frozenset(rules.split(paths)[0]) for operation, paths in shared.items()}

    def unwind(self, name: str, turn: int) -> FilesRestored:
        """Redo what a rewind undid, after undoing changes of turns after ``turn``."""
        since = self.rewind(turn + 1, f"{name}-since")
        rewound = next((operation for operation in self._operations("undo") if operation.origin.item == name), None)
        if rewound is None:
            return structs.replace(since, direction="redo")
        done = self._carry_out("redo", (rewound,), plan_reversal([rewound]))
        return _merged(since, done)

    def redo(self) -> FilesRestored:
        for operation in self._operations("undo"):
            made = plan_reversal([operation])
            if made.steps or made.conflicts:
                return self._carry_out("redo", (operation,), made)
        return FilesRestored("redo", reason=" ".join(("This session has nothing to redo.", *self.problems)))

    def _carry_out(
        self, direction: Literal["undo", "redo"], group: tuple[Operation, ...], made: Plan, name: str = ""
    ) -> FilesRestored:
        if not made.steps:
            return outcome(direction, group, made, ())
        newest = group[0].origin
        origin = Origin(self._session, newest.turn, name or newest.item, direction, newest.title)
        with self._rows.write() as connection:
            operation = journal.begin(connection, origin, self._clock())
            self._running.add(operation)
            changes = {step.path: Change(operation, step.path, step.now, step.then) for step in made.steps}
            journal.record(connection, changes.values())
            for step in made.steps:
                journal.revert(connection, operation, step.undoes)
        failed = restore(made.steps, self._content)
        done = self._counted(outcome(direction, group, made, failed), made)
        try:
            with self._rows.write() as connection:
                missed = {listed.path for listed in failed}
                journal.forget(connection, (change for path, change in changes.items() if path in missed))
                if direction == "redo":
                    for path in changes.keys() - missed:
                        journal.revive(connection, group[0].id, path)
                journal.end(connection, operation)
        except sqlite3.Error as error:  # the next start completes the record from the state of the files
            text = f"The record of this could not be completed ({error}). Restart swecli before the next undo or redo."
            return structs.replace(done, reason=text)
        self._running.discard(operation)
        return done

    def _counted(self, done: FilesRestored, made: Plan) -> FilesRestored:
        """The result with the changed lines of its files, if they are few."""
        if len(done.files) > COUNTED_FILES:
            return done
        steps, files = {step.path: step for step in made.steps}, list(done.files)
        with self._rows.read() as connection:
            for index, file in enumerate(files):
                step = steps[file.path]
                before, after = (step.then, step.now) if done.direction == "undo" else (step.now, step.then)
                (old, why_old), (new, why_new) = _text(connection, before), _text(connection, after)
                if not why_old and not why_new:
                    added, removed = count_changes(old or "", new or "")
                    files[index] = structs.replace(file, added=added, removed=removed)
        return structs.replace(done, files=tuple(files))

    def _content(self, digest: str) -> bytes | None:
        try:
            with self._rows.read() as connection:
                return stored(connection, digest)
        except sqlite3.Error:
            return None

    def recent(self, limit: int) -> Recent:
        return Recent(tuple(self._operations("edit", "command")[:limit]), self.not_covered)

    def changed_since(self, turns: Sequence[int]) -> dict[int, ChangedSince]:
        with self._rows.read() as connection:
            return changed_since(connection, self._session, GeneratedFolders(self._roots), turns)

    def difference(self, below: str = "") -> Difference:
        with self._rows.read() as connection:
            return difference(connection, self._session, GeneratedFolders(self._roots), below)

    def created(self) -> tuple[str, ...]:
        """Absolute paths of the files that edits by name have created and that are still new."""
        operations = self._operations("edit", "command")
        edited = _edited(operations)
        new = (span for span in spans(operations) if span.before.kind == "absent" and span.after.kind == "file")
        return tuple(span.path for span in new if span.path in edited)

    def run_changes(self) -> RunChanges:
        if not self._begun:
            return RunChanges({})
        with self._rows.read() as connection:
            operations = journal.operations(connection, self._session, ("edit", "command"))
            recorded = journal.touched(connection, self._begun)
        begun = [operation for operation in operations if operation.id in self._begun]
        return RunChanges(changed_files(begun, GeneratedFolders(self._roots)), recorded)

    # --- pruning ---------------------------------------------------------------------------------------------

    def _make_room(self) -> None:
        """Forget the oldest changes if the store is nearly full. Not during a scan: what it replaces in the tree's copy
        is not part of a recorded change yet."""
        with self._rows.read() as connection:
            if self._blobs.total(connection) <= self._options.total * 9 // 10:
                return
        with self._rows.write() as connection:
            self._blobs.sweep(connection)
            while self._blobs.total(connection) > self._options.total * 9 // 10:
                own = not journal.forget_oldest(connection, self._session)
                if own and not journal.forget_oldest_of(connection, self._session, self._running):
                    return
                if own and FORGOTTEN not in self.problems:
                    self.problems += (FORGOTTEN,)
                self._blobs.sweep(connection)


def _merged(first: FilesRestored, then: FilesRestored) -> FilesRestored:
    """Both results as one; for a path in both, the second counts."""
    files = {file.path: file for file in (*first.files, *then.files)}
    left = {file.path: file for file in (*first.conflicts, *then.conflicts)}
    missed = {file.path: file for file in (*first.not_covered, *then.not_covered)}
    return FilesRestored(
        then.direction,
        (*first.operations, *then.operations),
        tuple(file for path, file in files.items() if path not in left),
        tuple(left.values()),
        tuple(missed.values()),
        then.reason or first.reason,
    )


def _with_new_folders(paths: Iterable[str]) -> list[str]:
    """The paths, and the missing folders above them."""
    result: dict[str, None] = {}
    for path in paths:
        folder = os.path.dirname(path)
        while folder not in result and not os.path.lexists(folder):
            result[folder] = None
            folder = os.path.dirname(folder)
        result[path] = None
    return list(result)


class LazyHistory:
    """A history opened on first use. ``make`` is called in a thread, once; ``tell`` gets what went wrong on opening."""

    def __init__(self, make: Callable[[], FileHistory], tell: Callable[[str], None]) -> None:
        self._make = make
        self._tell = tell
        self._told = False
        self._opening: asyncio.Task[FileHistory] | None = None

    @property
    def begun(self) -> bool:
        return self._opening is not None

    @property
    def ready(self) -> FileHistory | None:
        task = self._opening
        if task is None or not task.done() or task.cancelled() or task.exception() is not None:
            return None
        return task.result()

    async def get(self) -> FileHistory:
        """The opened record. An error on opening is raised each time."""
        if self._opening is None:
            self._opening = asyncio.create_task(asyncio.to_thread(self._opened))
        history = await asyncio.shield(self._opening)
        if not self._told:
            self._told = True
            for problem in history.problems:
                self._tell(problem)
        return history

    def _opened(self) -> FileHistory:
        history = self._make()
        history.open()
        return history
