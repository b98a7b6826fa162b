"""The files of a project: listed once, read on demand, within bounds of time, number and bytes."""

from __future__ import annotations

import os
import re
import time
from collections import Counter, deque
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from swecli.core.context_management.instructions import read_head
from swecli.core.retrieval.definitions import SOURCE_ENDINGS, definitions, ending_of
from swecli.core.retrieval.index import kind_of
from swecli.core.workspace.walk import GENERATED, IgnoreRules

MAX_ENTRIES = 20_000
MAX_SECONDS = 3.0
MAX_FILE_BYTES = 128 * 1024
MAX_TOTAL_BYTES = 4 * 1024 * 1024
MAX_LINES = 15
MAX_OUTLINED = 40

FILE_NAME = "OPENCLI.md"

_KEPT_HIDDEN = frozenset((".github", ".gitlab", ".circleci", ".ci", ".buildkite", ".woodpecker"))
_GENERATED = GENERATED | {
    *("bower_components", "virtualenv", "site-packages", "dist", "htmlcov", "Pods", "DerivedData", "_build")
}
_MAYBE_SOURCE = frozenset(["build", "target", "out", "env", "bin", "obj", "deps", "vendor", "third_party", "coverage"])
"""Often generated, often not: left out only when they hold no file that looks like source."""

_FIRST_TEXT = re.compile(r"\A(?:#!.*\n)?\s*(?:[rRuU]?\"\"\"|'''|/\*\*?|//[/!]?|#)\s*(?:\*\s*)?([^\n\"]{3,160})")


class Scan:
    """The files of one project, the shallowest first, without those that are generated, hidden or ignored.

    Links to directories are not followed. ``complete`` is False once a bound cut something short.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: list[str] = []
        self.directories: set[str] = set()
        self.complete = True
        self._bytes_left = MAX_TOTAL_BYTES
        self._texts: dict[str, str] = {}
        self._ends = time.monotonic() + MAX_SECONDS
        self._list()
        self._known = frozenset(self.files)
        self._listing = "\n".join(self.files)

    def has(self, path: str) -> bool:
        return path in self._known

    def first(self, *paths: str) -> str | None:
        return next((path for path in paths if path in self._known), None)

    def matching(self, pattern: str) -> list[re.Match[str]]:
        """Files whose whole path fits the regular expression, in which ``.`` is no end of line."""
        return list(re.finditer(rf"^(?:{pattern})$", self._listing, re.MULTILINE)) if pattern else []

    def text(self, path: str) -> str:
        """Beginning of a file; empty when it is missing, binary, unreadable or beyond the bounds."""
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
        """Breadth first, so that what a bound cuts is deep down."""
        rules = IgnoreRules(self.root)
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
                is_folder = entry.is_dir(follow_symlinks=False)
                if rules.entry_ignored(path, is_folder) or path == FILE_NAME:
                    continue
                if is_folder and not _left_out(entry):
                    self.directories.add(path)
                    waiting.append(path)
                elif entry.is_file():
                    self.files.append(path)

    def structure(self) -> tuple[str, ...]:
        """At most ``MAX_LINES`` lines: the directories with the most files, opened where all children fit."""
        inside = Counter(str(folder) for path in self.files for folder in PurePosixPath(path).parents)
        at_root = [path for path in self.files if "/" not in path]
        biggest = sorted(inside.keys() - {"."}, key=lambda path: (-inside[path], path))
        shown = set([path for path in biggest if "/" not in path][: MAX_LINES - 1])
        for path in biggest:
            if path in shown and inside[path] >= 4:
                opened = shown | {child for child in inside if child.rpartition("/")[0] == path}
                shown = opened if len(opened) < MAX_LINES else shown
        if not shown:
            more = f" and {len(at_root) - 12} more" if len(at_root) > 12 else ""
            return (", ".join(f"`{path}`" for path in at_root[:12]) + more,) if at_root else ()
        lines = [f"`{path}/`: {count_files(inside[path])}{self._kinds(path)}" for path in sorted(shown)]
        return (*lines, f"`./`: {count_files(len(at_root))}") if at_root else tuple(lines)

    def _kinds(self, folder: str) -> str:
        ends = Counter(ending_of(path) for path in self.files if path.startswith(f"{folder}/"))
        usual = sorted((end for end in ends if end), key=lambda end: (-ends[end], end))
        return f" ({', '.join(usual[:2])})" if usual else ""

    def outline(self) -> tuple[str, ...]:
        """Lines ``path: first line of its documentation [names it defines]`` of source files."""
        lines: list[str] = []
        for path in [path for path in self.files if kind_of(path) == "source"][:MAX_OUTLINED]:
            if content := self.text(path).strip():
                about = _FIRST_TEXT.match(content)
                names = [name for name, _ in definitions(path, content) if name[0] != "_" and not name.isupper()]
                said = about[1].strip().rstrip("*/").strip() if about else ""
                defines = f" [{', '.join(names[:8])}]" if names else ""
                lines.append(f"{path}: {said}{defines}".rstrip(": "))
        return tuple(lines)


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
    if name in _MAYBE_SOURCE:
        kinds = SOURCE_ENDINGS | {".md"}
        return not any(ending_of(child.name) in kinds for child in _entries(Path(entry.path)))
    return name in _GENERATED or name.endswith(".egg-info")


def count_files(number: int) -> str:
    return "1 file" if number == 1 else f"{number} files"
