"""Locations of memories: the paths that the model writes, and the files behind them.

``/memories`` is a folder of the project, ``/memories/user`` a folder of the user for every project. A path can't lead
anywhere else: it has no parent references, and none of its parts may be a link.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from msgspec import Struct

from swecli.core.config.trust import is_led_away
from swecli.core.workspace.text_file import decode, read_bytes
from swecli.lazy_pattern import lazy_pattern

ROOT = "/memories"
USER = "user"
NOTES = "session_notes.md"
"""File of swecli's own session notes."""
MAX_FILES = 200
"""Maximum files in each of the two folders."""
_MAX_PARTS = 8
_MAX_NAME = 120
_ENCODED = lazy_pattern(r"%(?:2[ef]|5c|25|00)", re.IGNORECASE)
"""A URL-encoded dot, slash, backslash, percent sign or NUL, which could escape the folder once decoded."""


class MemoryPathError(Exception):
    """The path is not a memory path; the message is one sentence that says what is."""


class MemoryOff(MemoryPathError):
    """The path stands for a place of this folder, whose memories count once the user trusts it."""


class Place(Struct, frozen=True):
    """``path`` is the normalised form of the model's path; ``base`` is the folder that contains all memories of its
    kind."""

    path: str
    file: Path
    base: Path

    @property
    def is_base(self) -> bool:
        return self.file == self.base


class MemoryFile(Struct, frozen=True):
    """One memory file. ``text`` is None if it is not text or too large."""

    place: Place
    size: int
    modified: float
    text: str | None


class MemoryPlaces(Struct, frozen=True):
    """The two folders; None for one that does not exist, as in an untrusted workspace."""

    project: Path | None
    user: Path | None

    def place(self, path: str) -> Place:
        """The location that a path means. A path without a leading slash is relative to ``/memories``.

        Raises:
            MemoryPathError: it leads out of the memories, through a link, or to a disabled kind.
        """
        parts = _parts(path)
        of_user = parts[:1] == (USER,)
        base = self.user if of_user else self.project
        if base is None:
            if of_user:
                raise MemoryPathError(f"{ROOT}/{USER} is off in this session.")
            raise MemoryOff(
                f"{ROOT} is off until the user trusts this folder (/memory on); {ROOT}/{USER} is available."
            )
        below = parts[1:] if of_user else parts
        _require_no_link(base, below, path)
        return Place("/".join((ROOT, *parts)), base.joinpath(*below), base)

    def files(self, limit: int) -> list[MemoryFile]:
        """All files by path, the project's first; texts of at most ``limit`` bytes are read."""
        memories: list[MemoryFile] = []
        for base, prefix in ((self.project, ROOT), (self.user, f"{ROOT}/{USER}")):
            if base is not None and not is_led_away(base):
                memories += islice(_below(base, base, prefix, limit), MAX_FILES)
        return memories

    def names(self, place: Place) -> list[str]:
        """Entries of a folder; folders end with a slash.

        Raises:
            OSError: the folder can't be listed.
        """
        with os.scandir(place.file) as entries:
            names = [
                f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name
                for entry in entries
                if not entry.name.startswith(".") and not entry.is_symlink()
            ]
        if place.path == ROOT and self.user is not None:
            names = [name for name in names if name != f"{USER}/"] + [f"{USER}/"]
        return sorted(names)


def _parts(path: str) -> tuple[str, ...]:
    typed = path.strip()
    shown = f"{typed[:100]!r}"
    if not typed:
        raise MemoryPathError(f"The path is empty; memories are below {ROOT}.")
    parts = [part for part in typed.split("/") if part not in ("", ".")]
    if typed.startswith("/") or parts[:1] == [ROOT[1:]]:
        if parts[:1] != [ROOT[1:]]:
            raise MemoryPathError(f"{shown} is not below {ROOT}, where all memories are.")
        parts = parts[1:]
    for part in parts:
        if part == ".." or _ENCODED.search(part) or part.startswith("~") or "\\" in part or not part.isprintable():
            raise MemoryPathError(f"{shown} is not a memory path: it contains {part[:40]!r}.")
        if part.startswith(".") or part != part.strip():
            raise MemoryPathError(f"{shown} contains the hidden name {part[:40]!r}; memories cannot be hidden.")
        if len(part.encode("utf-8", "replace")) > _MAX_NAME:
            raise MemoryPathError(f"A name in the path is longer than {_MAX_NAME} bytes.")
    if len(parts) > _MAX_PARTS:
        raise MemoryPathError(f"The path has more than {_MAX_PARTS} levels.")
    return tuple(parts)


def _require_no_link(base: Path, below: tuple[str, ...], typed: str) -> None:
    if is_led_away(base):
        raise MemoryPathError(f"{base} is reached through a link, so swecli neither reads nor writes it.")
    file = base
    for part in below:
        file /= part
        if file.is_symlink():
            raise MemoryPathError(f"{typed[:100]!r} passes a link ({part[:40]}), which may lead elsewhere.")


def _below(folder: Path, base: Path, prefix: str, limit: int) -> Iterator[MemoryFile]:
    try:
        with os.scandir(folder) as directory:
            entries = sorted(directory, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries[: 2 * MAX_FILES]:
        path = f"{prefix}/{entry.name}"
        if entry.name.startswith(".") or entry.is_symlink() or not entry.name.isprintable():
            continue
        if entry.is_dir(follow_symlinks=False):
            if path != f"{ROOT}/{USER}" and path.count("/") <= _MAX_PARTS:
                yield from _below(Path(entry.path), base, path, limit)
            continue
        try:
            state = entry.stat(follow_symlinks=False)
        except OSError:  # another session has removed it
            continue
        if stat.S_ISREG(state.st_mode):
            file = Path(entry.path)
            yield MemoryFile(Place(path, file, base), state.st_size, state.st_mtime, read_text(file, limit))


def read_text(file: Path, limit: int) -> str | None:
    """The text of a file; None if it is not text, too large, or unreadable."""
    try:
        data, _ = read_bytes(file, limit)
    except OSError:
        return None
    return None if b"\0" in data else decode(data).text
