"""Tracked copy of the workspace: the state of every path at the last scan, and the untracked paths."""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.checkpoints.built import BUILT, ChangedFolders
from swecli.core.checkpoints.generated import is_below
from swecli.core.checkpoints.journal import digest_of
from swecli.core.checkpoints.store import ABSENT, Blobs, Image, Rows, capture, decoded, unread
from swecli.core.permissions.paths import is_secret_in
from swecli.core.secret_names import secret_names
from swecli.core.workspace.atomic_write import PREFIX
from swecli.core.workspace.walk import GENERATED, IGNORE_FILES, IgnoreRules


class TrackedPaths:
    """Rules for one root. Verdicts on folders are cached, so that a scan needs no pattern matching."""

    def __init__(self, root: str, own: tuple[str, ...] = (), own_names: tuple[str, ...] = ()) -> None:
        self.root = root
        self._own = frozenset(own)
        self._own_names = own_names
        self.names = frozenset((".git", *map(os.path.basename, own)))
        """Names that may be untracked files, not only folders."""
        self._rules = IgnoreRules(Path(root))
        self._verdicts: dict[str, str] = {}

    def renew(self) -> None:
        self._rules = IgnoreRules(Path(self.root))
        self._verdicts.clear()

    def why_not(self, folder: str, name: str, is_folder: bool) -> str:
        """Why the entry is untracked; empty if it is tracked. ``folder`` is an absolute path below the root.

        Ignored files are tracked, ignored folders are not: those hold built or downloaded files.
        """
        if name == ".git":
            return "git's own data"
        path = f"{folder}/{name}"
        if path in self._own:
            return "swecli's own data"
        if not is_folder:
            return ""
        if name in GENERATED:
            return "generated folder"
        verdict = self._verdicts.get(path)
        if verdict is None:
            relative = os.path.relpath(path, self.root)
            ignored = self._rules.entry_ignored(relative.replace(os.sep, "/"), True)
            verdict = self._verdicts[path] = "ignored folder" if ignored else ""
        return verdict

    def is_secret(self, path: str) -> bool:
        """Whether the file's name suggests secrets: such a file is never copied without consent."""
        return is_secret_in(path, (self.root,), secret_names(self._own_names))


_RACY_NS = 50_000_000
"""Nanoseconds before a scan in which a further change may keep the same time."""
_COARSE_NS = 2_000_000_000
"""Nanoseconds for file systems with a resolution of one or two seconds."""
_BATCH = 200
_UNSURE = (-1, -1)
MOST_BYTES, MOST_SECONDS = 128_000_000, 10.0
"""What one scan reads at most once there is a copy of the tree; changes beyond are noted without their content."""
TOO_MUCH = "too much changed at once"
"""Why such a change is not stored."""

Stamp = tuple[int, int]
"""Change detection: times and size in one number, and the inode; for a folder, 0 and its mode."""


class _Seen(Struct, frozen=True):
    """A path that looks different or is gone (``status`` is None), and its rules. ``quiet``: not a change, only new
    knowledge about the path."""

    path: str
    seen_stamp: Stamp
    status: os.stat_result | None
    rules: TrackedPaths
    quiet: bool = False


class PathChange(Struct, frozen=True):
    path: str
    before: Image
    after: Image


class Sizes(Struct, frozen=True):
    """``file`` limits the bytes of a stored file, ``entries`` the entries of one tree."""

    file: int
    entries: int


class Stopped(Exception):
    """The scan was stopped early; its findings until then are kept."""


class Shadow:
    """The trees below ``roots``. Used by one thread at a time; ``stop`` ends a scan from another thread."""

    def __init__(
        self,
        rows: Rows,
        blobs: Blobs,
        roots: Sequence[str],
        sizes: Sizes,
        own: tuple[str, ...] = (),
        stop: Callable[[], bool] = lambda: False,
        own_names: tuple[str, ...] = (),
    ) -> None:
        self._rows = rows
        self._blobs = blobs
        self._sizes = sizes
        self._stop = stop
        tops = sorted(set(roots))
        separate = (root for root in tops if not any(root.startswith(f"{top}/") for top in tops))
        self._trees = [TrackedPaths(root, own, own_names) for root in separate]
        self._stamps: dict[str, dict[str, Stamp]] = {}
        self._images: dict[str, Image | str] = {}
        """State of each path at the last scan; raw text if it comes from an earlier process and was not needed yet."""
        self.left_out: dict[str, str] = {}
        """Untracked paths and the reasons, as of the last complete scan."""
        self._leaving: dict[str, str] = {}
        self.temporary: set[str] = set()
        """Folders with temporary files of edits, by this process or a killed one."""
        self._stale_rules = False
        self._built: set[str] = set()
        """Folders of build results that this scan has recognised."""
        self._left_bytes, self._deadline = math.inf, math.inf
        """What this scan may still read, and until when."""
        self._names: dict[str, set[str]] = {}
        """By device and inode, the paths of one file."""

    def load(self) -> None:
        with self._rows.read() as connection:
            rows = connection.execute("SELECT path, changed, inode, image FROM shadow").fetchall()
        for raw, changed, inode, image in rows:
            path = os.fsdecode(bytes(raw))
            folder, _, name = path.rpartition("/")
            self._stamps.setdefault(folder, {})[name] = (int(changed), int(inode))
            special = '"note"' in image or '"twin"' in image
            self._set(path, decoded(image) if special else image)

    def _known(self, path: str) -> Image:
        image = self._images.get(path, ABSENT)
        if isinstance(image, str):
            image = self._images[path] = decoded(image)
        return image

    def scan(self, *, again: bool = False) -> list[PathChange]:
        """Scan the trees and store what is new. ``again``: reread the ignore files first.

        Raises:
            Stopped: the scan was stopped from outside.
            sqlite3.Error: the store fails.
        """
        if again and self._stale_rules:
            for rules in self._trees:
                rules.renew()
            self._stale_rules = False
        names = {twin: tuple(paths) for twin, paths in self._names.items()}
        changes: list[PathChange] = []
        pending: list[_Seen] = []
        self._leaving = {}
        self._built.clear()
        first = not self._images
        self._left_bytes = math.inf if first else MOST_BYTES
        self._deadline = math.inf if first else time.monotonic() + MOST_SECONDS
        for rules in self._trees:
            for seen in self._walk(rules):
                pending.append(seen)
                if len(pending) >= _BATCH:
                    changes += self._take(pending)
                    pending.clear()
        changes += self._take(pending)
        if self._built:
            changes = self._without_built(changes)
        self._note_left_out()
        named = (
            PathChange(change.path, _with_names(change.before, names), _with_names(change.after, self._names))
            for change in changes
        )
        return [
            change
            for change in named
            if not change.before.same(change.after) or change.before.twin != change.after.twin
        ]

    def _walk(self, rules: TrackedPaths) -> Iterator[_Seen]:
        """Changed entries, including removed ones."""
        now = time.time_ns()
        beyond = f"beyond the first {self._sizes.entries:,} entries, which swecli scans"
        waiting: list[tuple[str, os.stat_result | None, bool]] = [(rules.root, None, self._is_beyond(rules.root))]
        entries, limit = 0, self._sizes.entries
        changed = ChangedFolders(rules.root)
        while waiting:
            if self._stop():
                raise Stopped
            folder, status, quiet = waiting.pop()
            if entries >= limit:
                yield from self._unscanned(folder, status, rules, beyond)
                continue
            before = self._stamps.get(folder, {})
            stamps: dict[str, Stamp] = {}
            whole, built = True, ""
            try:
                with os.scandir(folder) as listed:
                    for entry in listed:
                        if entry.name.startswith(PREFIX):
                            self.temporary.add(folder)
                            continue
                        if entries >= limit:
                            whole = False
                            break
                        is_folder = entry.is_dir(follow_symlinks=False)
                        try:
                            status = entry.stat(follow_symlinks=False)
                        except OSError:
                            continue  # removed between listing and reading
                        entries += 1
                        for seen in self._entry(entry, is_folder, status, rules, before, stamps, now, quiet=quiet):
                            yield seen
                            small = 0 < status.st_size <= self._sizes.file
                            if seen.path == entry.path and small and not is_folder and not built:
                                built = changed.add(entry.path, status.st_size)
                        if built:
                            break
                        if is_folder and entry.path not in self._leaving:
                            waiting.append((entry.path, status, quiet or self._is_beyond(entry.path)))
            except OSError:
                self._leaving[folder] = "can't be read"
                continue
            if built:
                self._stamps[folder] = {**before, **stamps}
                waiting = [item for item in waiting if not is_below(item[0], built)]
                yield from self._leave_built(built, rules)
                continue
            for name in before.keys() - stamps.keys():
                path = f"{folder}/{name}"
                yield from self._gone(path, rules, quiet=not whole and os.path.lexists(path))
            self._stamps[folder] = stamps
            if not whole:
                self._leaving[folder] = beyond
            if quiet or not whole:
                yield self._partial(folder, rules)

    def _leave_built(self, folder: str, rules: TrackedPaths) -> Iterator[_Seen]:
        """A folder recognised as one of build results, and what was stored of it."""
        self._built.add(folder)
        self._leaving[folder] = BUILT
        yield from self._inside_gone(folder, rules, quiet=True)
        with contextlib.suppress(OSError):
            status = os.lstat(folder)
            yield _Seen(folder, (0, status.st_mode), status, rules)

    def _without_built(self, changes: Sequence[PathChange]) -> list[PathChange]:
        """The changes without those in folders recognised meanwhile; a folder that is new is one change."""
        before: dict[str, Image] = {}
        remaining: list[PathChange] = []
        for change in changes:
            folder = next((folder for folder in self._built if is_below(change.path, folder)), "")
            if not folder:
                remaining.append(change)
            elif change.path == folder:
                before.setdefault(folder, change.before)
        new = (folder for folder, image in before.items() if image.kind == "absent")
        return [*remaining, *(PathChange(folder, ABSENT, self._known(folder)) for folder in new)]

    def _is_built(self, path: str) -> bool:
        """Whether an earlier scan recognised the folder as one of build results."""
        image = self._images.get(path, ABSENT)
        return isinstance(image, Image) and image.note == BUILT

    def _entry(
        self,
        entry: os.DirEntry[str],
        is_folder: bool,
        status: os.stat_result,
        rules: TrackedPaths,
        before: Mapping[str, Stamp],
        stamps: dict[str, Stamp],
        now: int,
        *,
        quiet: bool,
    ) -> Iterator[_Seen]:
        name = entry.name
        asks = is_folder or name in rules.names
        why = rules.why_not(entry.path.rpartition("/")[0], name, is_folder) if asks else ""
        if is_folder and not why and self._is_built(entry.path):
            why = BUILT
        if (why or not is_folder) and entry.path in self._stamps:
            yield from self._inside_gone(entry.path, rules, quiet=quiet)
        seen_stamp = (0, status.st_mode) if is_folder else (stamp(status), status.st_ino)
        if why:
            self._leaving[entry.path] = why
        elif not is_folder and is_racy(status, now):
            seen_stamp = _UNSURE
        stamps[name] = seen_stamp
        if seen_stamp == _UNSURE or before.get(name) != seen_stamp:
            own_file = bool(why) and not is_folder
            yield _Seen(entry.path, seen_stamp, status, rules, own_file or (quiet and name not in before))

    def _is_beyond(self, folder: str) -> bool:
        """Whether the last scan missed part of the folder because there were too many entries."""
        image = self._images.get(folder, ABSENT)
        return isinstance(image, Image) and image.note.startswith("beyond ")

    def _unscanned(self, folder: str, status: os.stat_result | None, rules: TrackedPaths, why: str) -> Iterator[_Seen]:
        """A folder that is no longer scanned."""
        self._leaving[folder] = why
        yield from self._inside_gone(folder, rules, quiet=True)
        if status is not None and not self._is_beyond(folder):
            yield _Seen(folder, (0, status.st_mode), status, rules, quiet=True)

    def _partial(self, folder: str, rules: TrackedPaths) -> _Seen:
        """A folder seen only in part, in this scan or the previous one: its own row counts."""
        try:
            status = os.lstat(folder)
        except OSError:
            return _Seen(folder, _UNSURE, None, rules, quiet=True)
        is_root = folder == rules.root and folder not in self._leaving
        return _Seen(folder, (0, status.st_mode), None if is_root else status, rules, quiet=True)

    def _gone(self, path: str, rules: TrackedPaths, *, quiet: bool) -> Iterator[_Seen]:
        yield _Seen(path, _UNSURE, None, rules, quiet)
        yield from self._inside_gone(path, rules, quiet=quiet)

    def _inside_gone(self, path: str, rules: TrackedPaths, *, quiet: bool) -> Iterator[_Seen]:
        for name in self._stamps.pop(path, {}):
            yield from self._gone(f"{path}/{name}", rules, quiet=quiet)

    def _take(self, batch: Sequence[_Seen]) -> list[PathChange]:
        changes: list[PathChange] = []
        if not batch:
            return changes
        with self._rows.write() as connection:
            for seen in batch:
                if self._built and any(seen.path.startswith(f"{folder}/") for folder in self._built):
                    seen = replace(seen, status=None, quiet=True)
                before = self._known(seen.path)
                after = self._image(connection, seen.path, seen.status, seen.rules) if seen.status else ABSENT
                self._remember(connection, seen.path, seen.seen_stamp, after)
                quiet = seen.quiet or (seen.status is not None and _was_unread(before, seen.status))
                if not quiet and (not before.same(after) or before.twin or after.twin):
                    changes.append(PathChange(seen.path, before, after))
                    self._stale_rules |= seen.path.rpartition("/")[2] in IGNORE_FILES
        return changes

    def _image(self, connection: sqlite3.Connection, path: str, status: os.stat_result, rules: TrackedPaths) -> Image:
        why = self._leaving.get(path)
        if why is not None:
            in_part = path in self._stamps and stat.S_ISDIR(status.st_mode)
            return Image("folder" if in_part else "other", stat.S_IMODE(status.st_mode), note=why)

        def keep(data: bytes, digest: str) -> bool:
            self._left_bytes -= len(data)
            return self._blobs.keep(connection, data, digest)

        if stat.S_ISREG(status.st_mode) and (self._left_bytes <= 0 or time.monotonic() > self._deadline):
            return replace(capture(path, keep, -1, status), note=TOO_MUCH)
        return capture(path, keep, self._sizes.file, status, secret=rules.is_secret(path))

    def _remember(self, connection: sqlite3.Connection, path: str, seen_stamp: Stamp, image: Image) -> None:
        key = os.fsencode(path)
        if image is ABSENT or image.kind == "absent":
            self._set(path, None)
            connection.execute("DELETE FROM shadow WHERE path = ?", (key,))
            return
        self._set(path, image)
        connection.execute(
            "INSERT OR REPLACE INTO shadow(path, changed, inode, image, sha256) VALUES (?, ?, ?, ?, ?)",
            (key, *seen_stamp, image.encoded(), digest_of(image)),
        )

    def _set(self, path: str, image: Image | str | None) -> None:
        before = self._images.pop(path, None)
        if isinstance(before, Image) and before.twin:
            self._names.get(before.twin, set()).discard(path)
        if image is not None:
            self._images[path] = image
            if isinstance(image, Image) and image.twin:
                self._names.setdefault(image.twin, set()).add(path)

    def _note_left_out(self) -> None:
        named = {path: image.note for path, image in self._images.items() if isinstance(image, Image) and image.note}
        # Replaced as a whole: another thread may be reading it.
        self.left_out = {**named, **self._leaving}


def stamp(status: os.stat_result) -> int:
    """Both times and the size in one number that fits a database."""
    return ((status.st_ctime_ns * 31 + status.st_mtime_ns) * 31 + status.st_size) & 0x7FFF_FFFF_FFFF_FFFF


def is_racy(status: os.stat_result, now: int) -> bool:
    """Whether another change after ``now`` may leave the file with the same change time."""
    coarse = status.st_ctime_ns % 1_000_000_000 == 0
    return status.st_ctime_ns >= now - (_COARSE_NS if coarse else _RACY_NS)


def _was_unread(image: Image, status: os.stat_result) -> bool:
    """Whether a file looks as it did when a scan left it unread for want of time: reading it now is no change."""
    return image.note == TOO_MUCH and (image.mode, image.content) == (stat.S_IMODE(status.st_mode), unread(status))


def _with_names(image: Image, names: Mapping[str, Iterable[str]]) -> Image:
    """The image with the names of its file instead of its inode."""
    return replace(image, twin="\0".join(sorted(names.get(image.twin, ())))) if image.twin else image
