"""A bounded look at a project's files."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.core.context_management.instructions import read_head

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MAX_ENTRIES = 20_000
MAX_SECONDS = 3.0
MAX_FILE_BYTES = 128 * 1024
MAX_TOTAL_BYTES = 4 * 1024 * 1024

_GUIDE = "OPENCLI.md"
"""What is made from the facts is none of them."""

_KEPT_HIDDEN = frozenset((".github", ".gitlab", ".circleci", ".ci", ".buildkite", ".woodpecker"))
_GENERATED = frozenset(
    (
        "node_modules", "bower_components", "__pycache__", "venv", "env", "virtualenv", "site-packages",
        "dist", "build", "target", "out", "coverage", "htmlcov", "vendor", "third_party", "Pods", "DerivedData",
        "_build", "deps", "bin", "obj",
    )
)  # fmt: skip
_MAYBE_SOURCE = frozenset(("build", "target", "out", "env", "bin", "obj", "deps", "vendor", "third_party", "coverage"))
"""Often generated, often not: left out only when git ignores them or they hold no file that looks like source."""


class Scan:
    """The files of one project, listed once, and read on demand within a total number of bytes.

    Directories that are generated, hidden or ignored by the root's ``.gitignore`` are left out; links to
    directories are not followed.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: list[str] = []
        self.directories: list[str] = []
        self.complete = True
        self._bytes_left = MAX_TOTAL_BYTES
        self._texts: dict[str, str] = {}
        self._ends = time.monotonic() + MAX_SECONDS
        self._list()
        self._known = frozenset(self.files)

    def has(self, path: str) -> bool:
        return path in self._known

    def first(self, *paths: str) -> str | None:
        """The first of these files that is there."""
        return next((path for path in paths if path in self._known), None)

    def at_root(self) -> list[str]:
        return [path for path in self.files if "/" not in path]

    def ending(self, *suffixes: str) -> list[str]:
        """Files whose name ends so, the shallowest first."""
        return [path for path in self.files if path.endswith(suffixes)]

    def text(self, path: str) -> str:
        """The head of a file as text; empty when it is not there, can't be read or the bounds are used up."""
        if path in self._texts:
            return self._texts[path]
        if path not in self._known or self._bytes_left <= 0 or time.monotonic() > self._ends:
            self.complete = self.complete and path not in self._known
            return ""
        try:
            head = read_head(self.root / path, min(MAX_FILE_BYTES, self._bytes_left), self.root)
        except OSError:
            text = ""
        else:
            text = "" if "\0" in head.text else head.text
            self._bytes_left -= min(head.size, MAX_FILE_BYTES)
        self._texts[path] = text
        return text

    def _list(self) -> None:
        """Breadth first, so that what is cut by a bound is deep down."""
        ignored = _ignore_rules(self.root)
        waiting = deque([""])
        count = 0
        while waiting:
            folder = waiting.popleft()
            for entry in _entries(self.root / folder):
                count += 1
                if count > MAX_ENTRIES or time.monotonic() > self._ends:
                    self.complete = False
                    return
                path = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_dir(follow_symlinks=False):
                    if not _left_out(entry) and not (ignored and ignored.match_file(f"{path}/")):
                        self.directories.append(path)
                        waiting.append(path)
                elif path != _GUIDE and entry.is_file() and not (ignored and ignored.match_file(path)):
                    self.files.append(path)


def _entries(directory: Path) -> Iterable[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            # A name that can't be printed has no place in a document.
            return sorted((entry for entry in entries if entry.name.isprintable()), key=lambda entry: entry.name)
    except OSError:
        return ()


def _left_out(entry: os.DirEntry[str]) -> bool:
    name = entry.name
    if name.startswith("."):
        return name not in _KEPT_HIDDEN
    if name.endswith(".egg-info") or (name in _GENERATED and name not in _MAYBE_SOURCE):
        return True
    if name not in _MAYBE_SOURCE:
        return False
    sources = (".py", ".go", ".rs", ".js", ".ts", ".sh", ".c", ".h", ".java", ".rb", ".ex", ".md")
    return not any(child.name.endswith(sources) for child in _entries(Path(entry.path)))


def _ignore_rules(root: Path) -> GitIgnoreSpec | None:
    try:
        lines = read_head(root / ".gitignore", MAX_FILE_BYTES, root).text.splitlines()
    except OSError:
        return None
    from pathspec import GitIgnoreSpec

    good: list[str] = []
    for line in lines:
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:
            continue
        good.append(line)
    return GitIgnoreSpec.from_lines(good)
