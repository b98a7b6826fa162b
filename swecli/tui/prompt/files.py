"""The list of files that ``@`` completes, read in a thread and kept for a while."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

FRESH = 15.0
"""Seconds for which a list is used before it is read again."""

LIMIT = 200_000
"""Paths that are offered at most."""

SKIPPED = frozenset((".git", ".hg", ".svn", ".venv", "node_modules", "__pycache__", ".tox", ".mypy_cache"))


def walk(root: Path) -> list[str]:
    """Files below ``root`` as relative paths, without the directories that nobody mentions."""
    found: list[str] = []
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in SKIPPED)
        base = os.path.relpath(folder, root)
        prefix = "" if base == "." else f"{base}/"
        found.extend(prefix + name for name in sorted(files))
        if len(found) >= LIMIT:
            return found[:LIMIT]
    return found


def with_folders(paths: Sequence[str]) -> tuple[str, ...]:
    """The paths and the directories they are in (with a trailing slash), each once: paths may name directories too."""
    folders: dict[str, None] = {}
    for path in paths:
        place = path.rfind("/")
        while place > 0:
            folder = path[: place + 1]
            if folder in folders:
                break
            folders[folder] = None
            place = path.rfind("/", 0, place)
    return tuple(dict.fromkeys((*paths, *folders)))


class FileIndex:
    """Paths of the workspace. ``read`` is called in a thread."""

    def __init__(self, read: Callable[[], Sequence[str]], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._clock = clock
        self._read_at = -FRESH
        self._running: asyncio.Task[None] | None = None
        self.paths: tuple[str, ...] = ()

    def refresh(self, then: Callable[[], None]) -> None:
        """Read again if the list is old; ``then`` is called in the event loop once it is new."""
        if self._clock() - self._read_at < FRESH or (self._running is not None and not self._running.done()):
            return
        self._running = asyncio.create_task(self._load(then))

    async def _load(self, then: Callable[[], None]) -> None:
        try:
            paths = await asyncio.to_thread(self._read)
        except OSError:
            paths = ()
        self.paths = with_folders(paths)
        self._read_at = self._clock()
        then()
