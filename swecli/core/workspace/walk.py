"""Walking a tree in a stable order without what is ignored. Links are entries, never followed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from swecli.core.workspace.ignore import IGNORE_FILES, IgnoreRules, ignore_root

_MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Entry:
    """``path`` is relative to where the walk started, with slashes; ``depth`` counts from 1."""

    path: str
    is_dir: bool
    depth: int
    is_file: bool = True
    """Whether it is a regular file."""


def walk(
    start: Path,
    roots: tuple[Path, ...],
    *,
    max_depth: int | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Entry]:
    """Entries below ``start``, a directory before what it holds. Unreadable directories are passed over.

    A directory that is itself ignored can be walked by naming it: rules from above it don't count then.
    """
    root = ignore_root(start, roots)
    rules = IgnoreRules(root)
    prefix = "" if start == root else start.relative_to(root).as_posix() + "/"
    if prefix and rules.ignored(prefix[:-1], True):
        rules, prefix = IgnoreRules(start, IGNORE_FILES), ""
    limit = min(max_depth or _MAX_DEPTH, _MAX_DEPTH)
    waiting: list[tuple[str, int]] = [("", 0)]
    while waiting and not stop():
        folder, depth = waiting.pop()
        if folder:
            yield Entry(folder, True, depth, is_file=False)
        if depth >= limit:
            continue
        deeper: list[tuple[str, int]] = []
        for name, is_dir, is_file in _entries(start / folder):
            path = f"{folder}/{name}" if folder else name
            if rules.entry_ignored(prefix + path, is_dir):
                continue
            if is_dir:
                deeper.append((path, depth + 1))
            else:
                yield Entry(path, False, depth + 1, is_file)
        waiting.extend(reversed(deeper))


def _entries(folder: Path) -> list[tuple[str, bool, bool]]:
    try:
        with os.scandir(folder) as entries:
            found = [
                (entry.name, entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False))
                for entry in entries
            ]
    except OSError:
        return []
    return sorted(found)
