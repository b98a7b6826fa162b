"""The files of a project: listed once, read on demand, within limits of time, number and bytes."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from pathlib import Path, PurePosixPath

from swecli.core.context_management.instructions import read_head
from swecli.core.retrieval.definitions import SOURCE_ENDINGS, definitions, ending_of
from swecli.core.retrieval.index import kind_of
from swecli.core.workspace.walk import GENERATED, walk
from swecli.features.init.ecosystems import ecosystems
from swecli.figures import plural
from swecli.lazy_pattern import lazy_pattern

MAX_ENTRIES = 20_000
MAX_SECONDS = 3.0
MAX_FILE_BYTES = 128 * 1024
MAX_TOTAL_BYTES = 4 * 1024 * 1024
MAX_LINES = 15
MAX_OUTLINED = 40

FILE_NAME = "OPENCLI.md"

_LIKE_SOURCE = SOURCE_ENDINGS | {".md"}
_FIRST_TEXT = lazy_pattern(r"\A(?:#!.*\n)?\s*(?:[rRuU]?\"\"\"|'''|/\*\*?|//[/!]?|#)\s*(?:\*\s*)?([^\n\"]{3,160})")


class Scan:
    """The files of one project without generated, hidden or ignored ones. Links to directories are not followed.
    ``complete`` is False after a limit was reached."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.complete = True
        self._bytes_left = MAX_TOTAL_BYTES
        self._texts: dict[str, str] = {}
        self._ends = time.monotonic() + MAX_SECONDS
        files, folders = list[str](), set[str]()
        for count, entry in enumerate(walk(root, (root,), stop=self._is_late, skip=self._left_out)):
            if count >= MAX_ENTRIES:
                self.complete = False
                break
            if entry.is_dir:
                folders.add(entry.path)
            # Unprintable names are unfit for a document.
            elif entry.path.isprintable() and entry.path != FILE_NAME and os.path.isfile(root / entry.path):
                files.append(entry.path)
        self.complete = self.complete and not self._is_late()
        self.files, self.directories = files, folders
        self._listing = "\n".join(files)
        self._known = frozenset(files)
        self._names = frozenset(path.rpartition("/")[2] for path in files)
        self._ends = time.monotonic() + MAX_SECONDS  # a listing that took all of its time leaves the same for reading

    def has(self, path: str) -> bool:
        return path in self._known

    def named(self, name: str) -> bool:
        """Whether a file in any folder has this name."""
        return name in self._names

    def matching(self, pattern: str) -> list[re.Match[str]]:
        """Files with a whole path that matches the regular expression; ``.`` does not match a line end."""
        return list(re.finditer(rf"^(?:{pattern})$", self._listing, re.MULTILINE)) if pattern else []

    def text(self, path: str) -> str:
        """Beginning of a file; empty if it is missing, binary, unreadable or beyond the limits."""
        if path not in self._known or path in self._texts:
            return self._texts.get(path, "")
        if self._bytes_left <= 0 or self._is_late():
            self.complete = False
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

    def structure(self) -> tuple[str, ...]:
        """At most ``MAX_LINES`` lines: the directories with the most files, expanded if all children fit."""
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
        lines = [f"`{path}/`: {plural(inside[path], 'file')}{self._kinds(path)}" for path in sorted(shown)]
        return (*lines, f"`./`: {plural(len(at_root), 'file')}") if at_root else tuple(lines)

    def outline(self) -> tuple[str, ...]:
        """Lines ``path: first line of its documentation [names it defines]`` of source files."""
        lines: list[str] = []
        for path in [path for path in self.files if kind_of(path) == "source"][:MAX_OUTLINED]:
            if content := self.text(path).strip():
                about = _FIRST_TEXT.match(content)
                names = [name for name, _ in definitions(path, content) if name[0] != "_" and not name.isupper()]
                summary = about[1].strip().rstrip("*/").strip() if about else ""
                defines = f" [{', '.join(names[:8])}]" if names else ""
                lines.append(f"{path}: {summary}{defines}".rstrip(": "))
        return tuple(lines)

    def _is_late(self) -> bool:
        return time.monotonic() > self._ends

    def _left_out(self, folder: str) -> bool:
        name, folders = folder.rpartition("/")[2], ecosystems().folders
        if name.startswith("."):
            return name not in folders["hidden"]
        if name in folders["often_generated"]:
            return not any(ending_of(child.name) in _LIKE_SOURCE for child in (self.root / folder).glob("*"))
        return name in GENERATED | folders["generated"] or name.endswith(".egg-info") or not name.isprintable()

    def _kinds(self, folder: str) -> str:
        ends = Counter(ending_of(path) for path in self.files if path.startswith(f"{folder}/"))
        usual = sorted((end for end in ends if end), key=lambda end: (-ends[end], end))
        return f" ({', '.join(usual[:2])})" if usual else ""
