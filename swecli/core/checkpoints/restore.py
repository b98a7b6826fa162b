"""Undo and redo of file changes: choosing operations, planning, and executing without following links."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import sqlite3
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.checkpoints import journal
from swecli.core.checkpoints.generated import is_below
from swecli.core.checkpoints.journal import Broken, Change, Operation
from swecli.core.checkpoints.store import Image, Rows, capture, stored
from swecli.core.protocol.events import FilesRestored, LeftFile, Restoration, RestoredFile
from swecli.core.workspace.atomic_write import PREFIX, Folder, StaleFileError, atomic_write
from swecli.core.workspace.text_file import READ_FLAGS
from swecli.figures import cut_line


class Step(Struct, frozen=True):
    """Change ``path`` from ``now`` to ``then``. ``undoes`` are the changes that this undoes."""

    path: str
    now: Image
    then: Image
    undoes: tuple[Change, ...]

    @property
    def relinks(self) -> bool:
        return any(change.before.twin != change.after.twin for change in self.undoes)


class Plan(Struct, frozen=True):
    """Plan of an undo. Changes already undone by other means are not in it."""

    steps: tuple[Step, ...] = ()
    conflicts: tuple[LeftFile, ...] = ()
    not_covered: tuple[LeftFile, ...] = ()


class _Path(Struct):
    now: Image
    state: Image
    undoes: list[Change] = field(default_factory=list[Change])
    blocked: bool = False


CHANGED_SINCE = "changed since"


def plan(changes: Iterable[Change], present: Mapping[str, Image]) -> Plan:
    """Plan to undo ``changes`` (newest first). ``present`` is the current state of each path."""
    paths: dict[str, _Path] = {}
    conflicts: list[LeftFile] = []
    uncovered: list[LeftFile] = []
    for change in changes:
        at = paths.setdefault(change.path, _Path(present[change.path], present[change.path]))
        if at.blocked:
            continue
        why = _uncovered(change)
        if why:
            at.blocked = True
            uncovered.append(LeftFile(change.path, why))
        elif at.state.same(change.after):
            if not at.undoes:
                at.now = change.after  # the same state, plus the file's other names
            at.state = change.before
            at.undoes.append(change)
        elif not at.state.same(change.before):
            at.blocked = True
            conflicts.append(LeftFile(change.path, "no longer exists" if at.state.kind == "absent" else CHANGED_SINCE))
    steps = tuple(Step(path, at.now, at.state, tuple(at.undoes)) for path, at in paths.items() if at.undoes)
    return Plan(steps, tuple(conflicts), tuple(uncovered))


def _uncovered(change: Change) -> str:
    """Why the change can't be undone, because something was not stored; empty if it can."""
    before, after = change.before, change.after
    if before.kind == after.kind == "file" and before.content == after.content:
        return ""  # only its mode or its names changed
    if not before.kept:
        return before.note or "its content was not stored"
    if not after.kept:
        return f"redo could not restore its current content: {after.note or 'its content was not stored'}"
    return ""


Scope = Literal["last", "turn", "since", "call", "path"]


class Target(Struct, frozen=True):
    """Selection of operations. ``last`` is the newest edit or command that changed files. ``turn``: one turn, the
    newest for 0. ``since``: that turn and later ones. ``call``: one tool call by its id. ``path``: the newest change of
    a file, or below a folder; an absolute path."""

    scope: Scope = "last"
    turn: int = 0
    name: str = ""


def chosen(operations: Sequence[Operation], target: Target) -> list[Operation]:
    """The selected operations, newest first, with the selected changes. ``last`` selects all: the first one that can be
    undone is meant."""
    match target.scope:
        case "last":
            return list(operations)
        case "turn":
            turn = target.turn or (operations[0].origin.turn if operations else 0)
            return [operation for operation in operations if operation.origin.turn == turn]
        case "since":
            return [operation for operation in operations if operation.origin.turn >= target.turn]
        case "call":
            return [operation for operation in operations if operation.origin.item == target.name]
        case "path":
            for operation in operations:
                inside = tuple(change for change in operation.active if is_below(change.path, target.name))
                if inside:
                    return [replace(operation, active=inside)]
            return []


def nothing_to_undo(target: Target) -> str:
    match target.scope:
        case "turn" if target.turn:
            return f"Turn {target.turn} changed no files, or its changes are already undone."
        case "call":
            return f"Call {target.name} changed no files in this session, or its changes are already undone."
        case "path":
            return f"This session has no change of {target.name} to undo."
        case _:
            return "This session has no file changes to undo."


Content = Callable[[str], bytes | None]
"""Stored bytes of a hash."""
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | (READ_FLAGS & ~os.O_RDONLY)
_MAX_COMPARED = 1 << 30
"""Bytes of the largest file that is compared."""


class _Refused(Exception):
    """The step was refused; the message says why."""


def restore(steps: Sequence[Step], content: Content) -> tuple[LeftFile, ...]:
    """Execute the steps, each only if its path still has the expected state. Returns those not executed."""
    failed: dict[str, str] = {}
    with _accessible(steps):
        for step in _ordered(steps):
            try:
                _do(step, content)
            except _Refused as refused:
                failed[step.path] = str(refused)
            except (StaleFileError, FileExistsError):
                failed[step.path] = CHANGED_SINCE
            except OSError as error:
                failed[step.path] = _reason(error)
    for step in sorted(steps, key=lambda step: step.path, reverse=True):
        if step.then.kind == "folder" and step.path not in failed:
            with contextlib.suppress(OSError):
                _set_mode(step.path, step.then.mode)
    return tuple(LeftFile(path, why) for path, why in failed.items())


def _ordered(steps: Sequence[Step]) -> Iterator[Step]:
    """Removals first, the deepest first; then folders from the top; then their contents."""
    going = [step for step in steps if step.then.kind == "absent"]
    folders = [step for step in steps if step.then.kind == "folder"]
    rest = [step for step in steps if step.then.kind not in ("absent", "folder")]
    yield from sorted(going, key=lambda step: step.path, reverse=True)
    yield from sorted(folders, key=lambda step: step.path)
    # A file with several names after those with one: it may be linked to one of them.
    yield from sorted(rest, key=lambda step: (bool(step.then.twin), step.path))


@contextlib.contextmanager
def _accessible(steps: Sequence[Step]) -> Generator[None]:
    """Make unwritable folders around the changed paths writable for the duration."""
    opened: list[tuple[str, int]] = []
    wanted = {step.path for step in steps}
    for folder in sorted({os.path.dirname(step.path) for step in steps}):
        with contextlib.suppress(OSError):
            status = os.lstat(folder)
            if folder in wanted and status.st_mode & 0o700 != 0o700 and status.st_uid == os.geteuid():
                opened.append((folder, status.st_mode & 0o7777))
                _set_mode(folder, status.st_mode & 0o7777 | 0o700)
    yield
    for folder, mode in reversed(opened):
        with contextlib.suppress(OSError):
            _set_mode(folder, mode)


def _do(step: Step, content: Content) -> None:
    path, now, then = step.path, step.now, step.then
    folder = os.path.dirname(path)
    if os.path.realpath(folder) != folder:
        raise _Refused("its path now contains a link")
    current = _now(path, now)
    linked = _is_linked(path, current, then) if step.relinks else True
    if current.same(then) and linked:
        return
    # A folder's mode may be temporarily open.
    if not (current.same(now) or current.kind == now.kind == "folder" or current.same(then)):
        raise _Refused(CHANGED_SINCE)
    if then.kind == "folder" and current.kind == "folder":
        return  # its mode is set at the end, when its contents are complete
    if then.kind == "file" and not linked and _link(path, current, then):
        return
    if then.kind == "file" and current.kind == "file" and linked and not (current.twin and not then.twin):
        _rewrite(path, current, then, content)
        return
    data = _bytes_of(then, content) if then.kind == "file" else b""
    _remove(path, current)
    match then.kind:
        case "file":
            _create(path, data, then.mode)
        case "folder":
            with Folder(Path(path).parent) as folder:
                folder.make_folder(os.path.basename(path))
        case "link":
            with Folder(Path(path).parent) as folder:
                folder.make_link(os.path.basename(path), then.target)
        case _:
            pass


def _rewrite(path: str, current: Image, then: Image, content: Content) -> None:
    if current.content != then.content:
        data = _bytes_of(then, content)
        if not current.mode & 0o200:
            _set_mode(path, current.mode | 0o200)
        atomic_write(Path(path), data, current.content)
    _set_mode(path, then.mode)


def _create(path: str, data: bytes, mode: int) -> None:
    """Create a file that must not exist, whole at every moment. Not synced: its bytes are in the store as well, and a
    command may have removed thousands."""
    with Folder(Path(path).parent) as folder:
        name, temporary = os.path.basename(path), f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        descriptor = folder.open(temporary, _CREATE_FLAGS)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fchmod(stream.fileno(), mode)
            try:
                folder.link(temporary, name)
            except FileExistsError:
                raise
            except OSError:  # a file system without hard links
                if folder.exists(name):
                    raise
                folder.rename(temporary, name)
        finally:
            folder.remove(temporary)


def _bytes_of(image: Image, content: Content) -> bytes:
    data = content(image.content)
    if data is None:
        raise _Refused("its stored content is missing or damaged")
    return data


def _remove(path: str, current: Image) -> None:
    if current.kind == "absent":
        return
    with Folder(Path(path).parent) as folder:
        if current.kind != "folder":
            folder.remove(os.path.basename(path))
            return
        try:
            folder.remove_folder(os.path.basename(path))
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise _Refused("the folder now contains other files") from error
            raise


def _is_linked(path: str, current: Image, then: Image) -> bool:
    """Whether the file has other names exactly if it should, one of them as before."""
    others = [name for name in then.names if name != path]
    if not then.twin:
        return not current.twin
    return not others or any(_inode_of(name) == _inode_of(path) != "" for name in others)


def _link(path: str, current: Image, then: Image) -> bool:
    """Make ``path`` a further name of a file that it was a name of. False if none has the wanted content yet: then the
    path gets a file of its own."""
    for other in then.names:
        if other == path or os.path.dirname(other) != os.path.realpath(os.path.dirname(other)):
            continue
        if not _now(other, then).same(then):
            continue
        if current.kind == "folder":
            _remove(path, current)
        temporary = os.path.join(os.path.dirname(path), f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}")
        os.link(other, temporary, follow_symlinks=False)
        os.replace(temporary, path)
        return True
    return False


def _inode_of(path: str) -> str:
    try:
        status = os.lstat(path)
    except OSError:
        return ""
    return f"{status.st_dev}:{status.st_ino}"


def _set_mode(path: str, mode: int) -> None:
    """Set the permission bits of ``path`` itself, never of a link's target."""
    try:
        descriptor = os.open(path, READ_FLAGS)
    except PermissionError:
        if not os.path.islink(path):
            os.chmod(path, mode)
        return
    try:
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "its folder no longer exists"
    text = error.strerror or str(error)
    return f"{text[:1].lower()}{text[1:]}"


def present(expected: Mapping[str, Image]) -> dict[str, Image]:
    """Current states of paths, without storing anything, read in the same way as the expected images."""
    images: dict[str, Image] = {}
    for path, image in expected.items():
        plain = os.path.realpath(os.path.dirname(path)) == os.path.dirname(path)
        images[path] = _now(path, image) if plain else Image("other", note="its path now contains a link")
    return images


def _now(path: str, like: Image) -> Image:
    return capture(path, lambda data, digest: True, _MAX_COMPARED, secret=like.content.startswith("?"))


class Recent(Struct, frozen=True):
    """Operations that can be undone. ``not_covered`` are paths not covered for commands, with the reason."""

    operations: tuple[Operation, ...] = ()
    not_covered: tuple[LeftFile, ...] = ()
    reason: str = ""


def named(operation: Operation) -> str:
    """An operation on one line: its id and description."""
    return f"{operation.origin.item} {cut_line(operation.origin.title, 60)}".strip()


def outcome(
    direction: Literal["undo", "redo"], chosen: tuple[Operation, ...], made: Plan, failed: tuple[LeftFile, ...]
) -> FilesRestored:
    missed = {listed.path for listed in failed}
    done = [
        step
        for step in made.steps
        if step.path not in missed and (step.relinks or not step.now.same(step.then))  # not what only came and went
    ]
    return FilesRestored(
        direction,
        tuple(named(operation) for operation in chosen),
        tuple(RestoredFile(step.path, _how(step)) for step in done),
        (*made.conflicts, *failed),
        made.not_covered,
    )


def _how(step: Step) -> Restoration:
    if step.then.kind == "absent":
        return "removed"
    if step.then.kind == step.now.kind and step.then.content == step.now.content and step.then.kind != "link":
        return "mode restored" if step.then.mode != step.now.mode else "link restored"
    return "restored"


def plan_reversal(group: Sequence[Operation], others: Mapping[int, Container[str]] | None = None) -> Plan:
    """Plan to undo operations, newest first, for the current state of the disk. Changes that may be somebody else's are
    conflicts: those found after swecli was killed, and the paths of ``others``, which another session changed while the
    operation of that id ran. With None, the user is sure, and there are none."""
    unsure: dict[str, LeftFile] = {}
    changes: list[Change] = []
    for operation in group:
        for change in operation.active:
            why = "" if others is None else _why_unsure(operation, change.path in others.get(operation.id, ()))
            if why:
                unsure.setdefault(change.path, LeftFile(change.path, why))
            elif change.path not in unsure:
                changes.append(change)
    expected = {change.path: change.after for change in reversed(changes)}
    made = plan(changes, present(expected))
    return replace(made, conflicts=(*made.conflicts, *unsure.values()))


def _why_unsure(operation: Operation, is_shared: bool) -> str:
    """Why a change may be somebody else's, as a clause; empty if it is the operation's."""
    item = operation.origin.item
    if operation.state == "unsure":
        return f"swecli was killed while {item} ran, so this may be your own; /undo {item} reverts it"
    if is_shared:
        return f"another session changed it while {item} ran; /undo {item} reverts both changes"
    return ""


def settle_broken(rows: Rows, running: frozenset[int] = frozenset()) -> tuple[str, ...]:
    """Take back each undo and redo that a kill interrupted, of any session of the folder; ``running`` are this
    process's own. One transaction, so that of two starts at once only one does it and says it. Returns sentences for
    the user."""
    with rows.write() as connection:
        broken = [operation for operation in journal.broken(connection, running) if operation.kind in ("undo", "redo")]
        sentences = [_take_back(operation, lambda digest: stored(connection, digest)) for operation in reversed(broken)]
        for operation in broken:
            _end_broken(connection, operation)
    return tuple(filter(None, sentences))


def _take_back(operation: Broken, content: Content) -> str:
    """Bring files back to before an undo or redo that a kill interrupted: half of it is a state that nobody wanted, and
    the conversation knows nothing of it. One that was complete stays. Returns the sentence for the user; empty if no
    file had been changed."""
    changes = [change for change in operation.changes if not change.before.same(change.after)]
    now = present({change.path: change.after for change in changes})
    complete = all(now[change.path].same(change.after) for change in changes)
    # A folder gets its mode when everything in it is restored.
    made = [
        change for change in changes if now[change.path].kind == change.after.kind == "folder" != change.before.kind
    ]
    done = [change for change in changes if now[change.path].same(change.after) or change in made]
    if not done:
        return ""
    name = "a redo" if operation.kind == "redo" else "an undo or a rewind"
    if complete:
        back = "/undo" if operation.kind == "redo" else "/redo"
        return f"swecli was killed at the end of {name} of files. The files are changed; {back} reverts that."
    left = restore([Step(change.path, now[change.path], change.before, (change,)) for change in done], content)
    names = ", ".join(f"{file.path} ({file.why})" for file in left)
    return (
        f"swecli was killed during {name} of files. The files are as they were before it"
        f"{f', except {names}' if names else '; repeat it if you want it'}."
    )


def _end_broken(connection: sqlite3.Connection, operation: Broken) -> None:
    """End an interrupted undo or redo: completed steps count, the rest was not done."""
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
