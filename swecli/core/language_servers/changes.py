"""Files changed on disk since a server was last notified, including changes by commands, other programs and undo."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Final

from swecli.core.language_servers.definitions import SKIPPED

MOST_FILES: Final = 20_000
"""Maximum number of examined names; changes beyond it go unnoticed."""
_CREATED, _CHANGED, _DELETED = 1, 2, 3

Stamp = tuple[int, int]


class FileSnapshot:
    """The files with certain extensions below a folder, as of the last look. Blocks on the disk."""

    def __init__(self, root: Path, endings: Collection[str], marks: Collection[str] = ()) -> None:
        """``marks`` are names of other relevant files, such as a project's configuration."""
        self._root = str(root)
        self._endings = tuple(endings)
        self._marks = frozenset(marks)
        self._known: dict[str, Stamp] = {}

    def look(self) -> list[tuple[str, int]]:
        """Files created (1), changed (2) or deleted (3) since the last look."""
        now = self._files()
        changes = [
            (path, _CHANGED if path in self._known else _CREATED)
            for path, stamp in now.items()
            if self._known.get(path) != stamp
        ]
        changes += [(path, _DELETED) for path in self._known if path not in now]
        self._known = now
        return changes

    def _files(self) -> dict[str, Stamp]:
        found: dict[str, Stamp] = {}
        folders, left = [self._root], MOST_FILES
        while folders and left > 0:
            try:
                with os.scandir(folders.pop()) as entries:
                    for entry in entries:
                        left -= 1
                        if entry.is_dir(follow_symlinks=False):
                            if entry.name not in SKIPPED:
                                folders.append(entry.path)
                        elif entry.name.lower().endswith(self._endings) or entry.name in self._marks:
                            status = entry.stat()
                            found[entry.path] = (status.st_mtime_ns, status.st_size)
            except OSError:
                continue  # gone meanwhile, or not ours to read
        return found
