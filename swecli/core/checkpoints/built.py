"""Folders of build results that nobody ignores, recognised by how much changes in them at once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

from swecli.core.git import repository_of, tracked_names

BUILT = "generated"
"""Why such a folder is not tracked, as part of a sentence for the user."""
HEAVY_BYTES, HEAVY_FILES = 32_000_000, 3_000
"""Changes in one folder, found by one scan, from which on it may be such a folder."""
_MAIN_SHARE = 0.8
"""Share of a folder's changes from which on they count as those of a folder in it."""
_SAMPLES = 16
_MOST_LISTED = 2_000
"""Entries of a folder that are looked at for samples."""


class ChangedFolders:
    """How much a scan has found to be changed below each folder of one root."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._bytes: Counter[str] = Counter()
        self._files: Counter[str] = Counter()
        self._due = 1
        """Multiple of the limits from which on folders are looked at again."""

    def add(self, path: str, size: int) -> str:
        """Count a changed file. Returns a folder that holds build results, if there is one now; empty if not."""
        folder, top = os.path.dirname(path), ""
        while len(folder) > len(self._root):
            self._bytes[folder] += size
            self._files[folder] += 1
            folder, top = os.path.dirname(folder), folder
        if not top or not self._is_heavy(top, self._due):
            return ""
        built = self._main(top)
        if self._is_built(built):
            return built
        self._due *= 2
        return ""

    def _is_heavy(self, folder: str, times: int = 1) -> bool:
        return self._bytes[folder] >= HEAVY_BYTES * times or self._files[folder] >= HEAVY_FILES * times

    def _main(self, folder: str) -> str:
        """The deepest folder in which most of the changes are."""
        while True:
            inside = [name for name in self._files if os.path.dirname(name) == folder]
            counted = self._bytes if self._bytes[folder] >= HEAVY_BYTES else self._files
            largest = max(inside, key=lambda name: counted[name], default="")
            if not largest or counted[largest] < _MAIN_SHARE * counted[folder]:
                return folder
            folder = largest

    def _is_built(self, folder: str) -> bool:
        """Whether a folder holds results rather than sources: git tracks nothing of it, or, without git, most of its
        files are binary."""
        repository = repository_of(self._root)
        if repository is not None:
            below = os.path.relpath(folder, repository) + "/"
            known = tracked_names(self._root)
            return known is not None and not any(name.startswith(below) for name in known)
        samples = list(_samples(folder))
        return bool(samples) and sum(samples) >= len(samples) / 2


def _samples(folder: str) -> Iterator[bool]:
    """Whether files spread over a folder are binary."""
    paths: list[str] = []
    for where, folders, files in os.walk(folder):
        folders.sort()
        paths += (os.path.join(where, name) for name in sorted(files))
        if len(paths) >= _MOST_LISTED:
            break
    for path in paths[:: max(1, len(paths) // _SAMPLES)][:_SAMPLES]:
        try:
            with open(path, "rb") as file:
                yield b"\0" in file.read(4_096)
        except OSError:
            continue
