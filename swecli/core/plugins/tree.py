"""A plugin's folder as content: copied without what may lead out of it, hashed, compared with another version."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

MOST_FILES: Final = 20_000
MOST_BYTES: Final = 200_000_000
"""Of a whole plugin."""
_LEFT_OUT: Final = frozenset((".git", "__pycache__", ".DS_Store"))
MOST_DIFF_LINES: Final = 2_000


class PluginError(Exception):
    """A plugin, its source or a marketplace can't be used. One sentence; nothing was changed."""


def copied(source: Path, target: Path) -> tuple[str, ...]:
    """Copy a plugin's folder to ``target``, which does not exist, as files that only their owner may read and nobody
    may write. Links to files inside the folder become files. Returns what was left out, as clauses.

    Raises:
        PluginError: it is too large.
        OSError: it can't be read or written; ``target`` may be incomplete.
    """
    root = os.path.realpath(source)
    notes: list[str] = []
    files, size = 0, 0
    pending = [""]
    while pending:
        folder = pending.pop()
        destination = target / folder
        destination.mkdir(parents=True, mode=0o700)
        with os.scandir(os.path.join(root, folder)) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                name = os.path.join(folder, entry.name)
                if entry.name in _LEFT_OUT or entry.name.endswith(".pyc"):
                    continue
                if not entry.name.isprintable():
                    notes.append(f"{name!r} has a name with control characters")
                elif entry.is_dir(follow_symlinks=False):
                    pending.append(name)
                elif (content := _content(entry, root)) is None:
                    notes.append(f"{name} is a link or no ordinary file")
                else:
                    files, size = files + 1, size + len(content)
                    if files > MOST_FILES or size > MOST_BYTES:
                        limit = f"{MOST_FILES:,} files or {MOST_BYTES // 1_000_000} MB"
                        raise PluginError(f"{source} has more than {limit}, so it was not added.")
                    runs = bool(entry.stat().st_mode & stat.S_IXUSR)
                    (destination / entry.name).write_bytes(content)
                    os.chmod(destination / entry.name, 0o500 if runs else 0o400)
    for folder, _, _ in os.walk(target, topdown=False):
        os.chmod(folder, 0o500)
    return tuple(notes)


def _content(entry: os.DirEntry[str], root: str) -> bytes | None:
    """The bytes of a file, or of the file inside the folder that a link leads to; None for anything else."""
    path = os.path.realpath(entry.path)
    if not path.startswith(f"{root}/"):
        return None
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(descriptor, "rb") as file:
        state = os.fstat(file.fileno())
        return file.read(MOST_BYTES + 1) if stat.S_ISREG(state.st_mode) else None


def tree_digest(root: Path, entry: Mapping[str, Any]) -> str:
    """SHA-256 of names, content and right to be run of all files, and of what a marketplace adds. A link counts by its
    target.

    Raises:
        OSError: a file can't be read.
    """
    total = hashlib.sha256(json.dumps(entry, sort_keys=True).encode())
    for name, path in _files(root):
        state = os.lstat(path)
        if stat.S_ISLNK(state.st_mode):
            kind, content = "link", os.fsencode(os.readlink(path))
        else:
            kind, content = "program" if state.st_mode & stat.S_IXUSR else "file", path.read_bytes()
        total.update(json.dumps([name, kind, hashlib.sha256(content).hexdigest()]).encode("utf-8", "surrogatepass"))
    return total.hexdigest()


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    """All files with their names in the folder, in order of the names."""
    paths: dict[str, Path] = {}

    def failed(error: OSError) -> None:
        raise error

    for folder, folders, files in os.walk(root, onerror=failed):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in (*files, *links):
            path = Path(folder, name)
            paths[os.path.relpath(path, root)] = path
    return iter(sorted(paths.items()))


def removed(root: Path) -> None:
    """Remove a copy with everything in it; nothing if there is none.

    Raises:
        OSError: something can't be removed.
    """
    if not root.is_dir() or root.is_symlink():
        return
    for folder, _, _ in os.walk(root):
        os.chmod(folder, 0o700)
    shutil.rmtree(root)


class FileChange(Struct, frozen=True):
    """A file that differs between two versions; ``diff`` is a unified diff, empty if it is not text."""

    name: str
    what: str
    diff: str


def changes(old: Path, new: Path) -> tuple[FileChange, ...]:
    """The files that differ, in order of their names.

    Raises:
        OSError: a file can't be read.
    """
    before, after = dict(_files(old)), dict(_files(new))
    differences: list[FileChange] = []
    for name in sorted(before.keys() | after.keys()):
        first, second = (
            path.read_bytes() if path is not None else None for path in (before.get(name), after.get(name))
        )
        runs = [path is not None and os.access(path, os.X_OK) for path in (before.get(name), after.get(name))]
        if first == second and runs[0] == runs[1]:
            continue
        what = "new" if first is None else "removed" if second is None else "changed"
        differences.append(FileChange(name, what, _diff(name, first or b"", second or b"")))
    return tuple(differences)


def _diff(name: str, old: bytes, new: bytes) -> str:
    if b"\0" in old or b"\0" in new:
        return ""
    before, after = (text.decode("utf-8", "replace").splitlines() for text in (old, new))
    lines = list(difflib.unified_diff(before, after, f"old/{name}", f"new/{name}", lineterm=""))
    more = len(lines) - MOST_DIFF_LINES
    return "\n".join(lines if more <= 0 else [*lines[:MOST_DIFF_LINES], f"[{more:,} more lines]"])
