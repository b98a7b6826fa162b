"""The copy of a workspace's trees: what every path was at the last look, so that it is known what a command changed.

Only what the file system says to have changed is read again. A file that changed so shortly before a look that
another change might bear the same time is read at the next look in any case.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from swecli.core.checkpoints.blobs import Blobs, Rows
from swecli.core.checkpoints.covered import Covered
from swecli.core.checkpoints.image import ABSENT, Image, capture, decoded
from swecli.core.checkpoints.journal import digest_of
from swecli.core.workspace.atomic_write import PREFIX
from swecli.core.workspace.ignore import IGNORE_FILES

_RACY_NS = 50_000_000
"""Nanoseconds before a look in which a change may still be followed by one with the same time."""
_BATCH = 200
_UNSURE = (-1, -1)

Sight = tuple[int, int]
"""Time of the last change of any kind (nanoseconds) and inode; of a folder, 0 and its mode."""


_Seen = tuple[str, Sight, os.stat_result | None, Covered]
"""A path, how it looks, its status (None: it is gone), and the rules that hold for it."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A path that is not what it was at the look before."""

    path: str
    before: Image
    after: Image


@dataclass(frozen=True, slots=True)
class Sizes:
    """``file`` is bytes of the largest file that is stored, ``entries`` the most that one tree may have."""

    file: int
    entries: int


class Stopped(Exception):
    """The look was ended early; what it found until then is kept."""


class Shadow:
    """The trees below ``roots``. Used by one thread at a time; a look can be ended from another through ``stop``."""

    def __init__(
        self,
        rows: Rows,
        blobs: Blobs,
        roots: Sequence[str],
        sizes: Sizes,
        own: tuple[str, ...] = (),
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._rows = rows
        self._blobs = blobs
        self._sizes = sizes
        self._stop = stop
        tops = sorted(set(roots))
        self._covered = [Covered(root, own) for root in tops if not any(root.startswith(f"{top}/") for top in tops)]
        self._sights: dict[str, dict[str, Sight]] = {}
        self._images: dict[str, Image] = {}
        self.left_out: dict[str, str] = {}
        """Paths that are not covered, and why, as of the last whole look."""
        self._leaving: dict[str, str] = {}
        self.temporary: set[str] = set()
        """Folders with temporary files of edits, of this process or of one that was killed."""
        self._stale_rules = False
        self._names: dict[str, set[str]] = {}
        """By device and inode, the paths that are one file."""

    @property
    def known(self) -> Mapping[str, Image]:
        """What each path was at the last look."""
        return self._images

    def load(self) -> None:
        """Take over what an earlier process found."""
        with self._rows.read() as connection:
            rows = connection.execute("SELECT path, changed, inode, image FROM shadow").fetchall()
        for raw, changed, inode, image in rows:
            path = os.fsdecode(bytes(raw))
            folder, _, name = path.rpartition("/")
            self._sights.setdefault(folder, {})[name] = (int(changed), int(inode))
            self._set(path, decoded(image))

    def look(self, *, again: bool = False) -> list[Difference]:
        """Look at the trees and store what is new. ``again``: ignore files are read anew first.

        Raises:
            Stopped: the look was ended from outside.
            sqlite3.Error: the store fails.
        """
        if again and self._stale_rules:
            for covered in self._covered:
                covered.renew()
            self._stale_rules = False
        names = {twin: tuple(paths) for twin, paths in self._names.items()}
        found: list[Difference] = []
        pending: list[_Seen] = []
        self._leaving = {}
        for covered in self._covered:
            for one in self._walk(covered):
                pending.append(one)
                if len(pending) >= _BATCH:
                    found += self._take(pending)
                    pending.clear()
        found += self._take(pending)
        self._note_left_out()
        named = (
            Difference(one.path, _with_names(one.before, names), _with_names(one.after, self._names)) for one in found
        )
        return [one for one in named if not one.before.same(one.after) or one.before.twin != one.after.twin]

    def _walk(self, covered: Covered) -> Iterator[_Seen]:
        """Entries that are not as they were, the status None for those that are gone."""
        racy = time.time_ns() - _RACY_NS
        waiting, entries, limit = [covered.root], 0, self._sizes.entries
        while waiting:
            if self._stop():
                raise Stopped
            folder = waiting.pop()
            before = self._sights.get(folder, {})
            now: dict[str, Sight] = {}
            try:
                with os.scandir(folder) as listed:
                    for entry in listed:
                        name, is_folder = entry.name, entry.is_dir(follow_symlinks=False)
                        why = covered.why_not(folder, name, is_folder) if is_folder or name == ".git" else ""
                        try:
                            status = entry.stat(follow_symlinks=False)
                        except OSError:
                            continue  # gone between being listed and being looked at
                        if is_folder:
                            sight: Sight = (0, status.st_mode)
                        else:
                            sight = (status.st_ctime_ns, status.st_ino)
                        if name.startswith(PREFIX):
                            self.temporary.add(folder)
                            continue
                        entries += 1
                        if (why or not is_folder) and entry.path in self._sights:
                            yield from self._inside_gone(entry.path, covered)
                        if why or entries > limit:
                            self._leaving[entry.path] = why or f"beyond the {limit:,} entries that are looked at"
                            if before.get(name) != sight or not why:
                                yield entry.path, sight, status, covered
                            now[name] = sight
                            continue
                        if is_folder:
                            waiting.append(entry.path)
                        elif sight[0] >= racy:
                            now[name] = _UNSURE
                            yield entry.path, _UNSURE, status, covered
                            continue
                        now[name] = sight
                        if before.get(name) != sight:
                            yield entry.path, sight, status, covered
            except OSError:
                self._leaving[folder] = "can't be read"
                continue
            for name in before.keys() - now.keys():
                yield from self._gone(f"{folder}/{name}", covered)
            self._sights[folder] = now

    def _gone(self, path: str, covered: Covered) -> Iterator[_Seen]:
        yield path, _UNSURE, None, covered
        yield from self._inside_gone(path, covered)

    def _inside_gone(self, path: str, covered: Covered) -> Iterator[_Seen]:
        for name in self._sights.pop(path, {}):
            yield from self._gone(f"{path}/{name}", covered)

    def _take(self, batch: Iterable[_Seen]) -> list[Difference]:
        batch = list(batch)
        found: list[Difference] = []
        if not batch:
            return found
        with self._rows.write() as connection:
            for path, sight, status, covered in batch:
                before = self._images.get(path, ABSENT)
                after = self._image(connection, path, status, covered) if status is not None else ABSENT
                self._remember(connection, path, sight, after)
                if not before.same(after) or before.twin or after.twin:
                    found.append(Difference(path, before, after))
                    self._stale_rules |= path.rpartition("/")[2] in IGNORE_FILES
        return found

    def _image(self, connection: sqlite3.Connection, path: str, status: os.stat_result, covered: Covered) -> Image:
        why = self._leaving.get(path)
        if why is not None:
            return Image("other", stat.S_IMODE(status.st_mode), note=why)

        def keep(data: bytes, digest: str) -> bool:
            return self._blobs.keep(connection, data, digest)

        return capture(path, keep, self._sizes.file, status, secret=covered.is_secret(path))

    def _remember(self, connection: sqlite3.Connection, path: str, sight: Sight, image: Image) -> None:
        key = os.fsencode(path)
        if image is ABSENT or image.kind == "absent":
            self._set(path, None)
            connection.execute("DELETE FROM shadow WHERE path = ?", (key,))
            return
        self._set(path, image)
        connection.execute(
            "INSERT OR REPLACE INTO shadow(path, changed, inode, image, sha256) VALUES (?, ?, ?, ?, ?)",
            (key, *sight, image.encoded(), digest_of(image)),
        )

    def _set(self, path: str, image: Image | None) -> None:
        before = self._images.pop(path, None)
        if before is not None and before.twin:
            self._names.get(before.twin, set()).discard(path)
        if image is not None:
            self._images[path] = image
            if image.twin:
                self._names.setdefault(image.twin, set()).add(path)

    def _note_left_out(self) -> None:
        named = {path: image.note for path, image in self._images.items() if image.note}
        # Replaced as a whole: another thread may be reading it.
        self.left_out = {**named, **self._leaving}


def _with_names(image: Image, names: Mapping[str, Iterable[str]]) -> Image:
    """The image with the names of its file in place of its inode."""
    return replace(image, twin="\0".join(sorted(names.get(image.twin, ())))) if image.twin else image
