"""Session notes: a file with fixed sections, shared by swecli, people and models.

A session knows which lines it wrote. It adds its new lines and removes its outdated ones; every other line stays,
whoever wrote it, and a line of its own that somebody removed or changed is not restored. So two sessions can write at
the same time, and a manual edit always wins.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from swecli.core.atomic_text import one_writer, write_whole
from swecli.features.memory.places import NOTES, read_text
from swecli.lazy_pattern import lazy_pattern

GOAL = "Current Goal"
DECISIONS = "Key Decisions"
FILES = "Files Modified"
TASK = "Current Task"
ISSUES = "Open Issues"
PATTERNS = "Code Patterns Discovered"

SECTIONS: Mapping[str, int] = MappingProxyType({GOAL: 2, DECISIONS: 8, FILES: 10, TASK: 2, ISSUES: 8, PATTERNS: 6})
"""The sections in order, with the maximum of swecli's own lines in each; the oldest are removed first."""
NEWEST_FIRST = (GOAL, TASK)
"""Sections with the newest line first; they contain sentences, the others lists."""
MAX_BYTES = 256_000
_NOT_SHARED = f"{NOTES}\n.*.lock\n.gitignore\n"
"""Notes are personal; other memories of a project may be shared."""

_HEADING = lazy_pattern(r"^### +(.+?)[ \t]*#*[ \t]*$")
_FENCE = lazy_pattern(r"^ {0,3}(`{3,}|~{3,})")
_RECORD = lazy_pattern(r"^<!-- swecli notes:([ 0-9a-f]*)-->[ \t]*$")
_RAN = lazy_pattern(r"^- (?:\[ \]|Test or build command:) `([^`]+)`(?: exits with status |$)")
"""A line about how a command ended."""

Lines = Mapping[str, Sequence[str]]
"""Lines by section."""


class NotesError(Exception):
    """The notes can't be written; one sentence. The file is unchanged."""


class _Section(Struct):
    """``name`` is empty for the part before the first heading."""

    name: str
    lines: list[str]


class NotesDocument:
    """The text of a notes file, edited line by line; unchanged parts render as they were."""

    def __init__(self, text: str = "", *, title: str = "") -> None:
        """``title`` is the first line of an empty document."""
        self._own: list[str] = []
        self._sections = [_Section("", [])]
        self._line_end = "\r\n" if "\r\n" in text else "\n"
        lines = (text if text.strip() else title).replace("\r\n", "\n").rstrip("\n").split("\n")
        quoted = _quoted(lines)
        for number, line in enumerate(lines):
            heading, record = None if number in quoted else _HEADING.match(line), _RECORD.match(line)
            if record is not None:
                self._own += record[1].split()
            elif heading is not None:
                self._sections.append(_Section(heading[1], [line]))
            else:
                self._sections[-1].lines.append(line)

    def render(self) -> str:
        """The complete text, with the marks of swecli's own lines in the last line."""
        present = {_mark(line) for section in self._sections for line in section.lines}
        own = [mark for mark in dict.fromkeys(self._own) if mark in present]
        record = [f"<!-- swecli notes: {' '.join(own)} -->"] if own else []
        body = "\n".join(line for section in self._sections for line in section.lines).rstrip("\n")
        return ("\n\n".join([*([body] if body else []), *record]) + "\n").replace("\n", self._line_end)

    def lines(self) -> dict[str, list[str]]:
        """Lines of each section, without headings and blank lines."""
        return {
            section.name: [line for line in section.lines[1:] if line.strip()]
            for section in self._sections
            if section.name
        }

    def plain(self) -> str:
        """The text for a reader: without the marks."""
        return "\n".join(line for section in self._sections for line in section.lines).strip()

    def has(self, name: str, line: str) -> bool:
        section = self._section(name)
        return section is not None and line in section.lines

    def add(self, name: str, line: str) -> None:
        """Insert one of swecli's lines, and remove the oldest of them beyond the limit."""
        section = self._section(name) or self._new_section(name)
        if name in NEWEST_FIRST:
            section.lines[1:1] = [line] if len(section.lines) > 1 else [line, ""]
        else:
            end = len(section.lines)
            while end > 1 and not section.lines[end - 1].strip():
                end -= 1
            section.lines[end:] = [line, *(section.lines[end:] or [""])]
        self._own.append(_mark(line))
        own = [candidate for candidate in section.lines[1:] if candidate.strip() and _mark(candidate) in self._own]
        surplus = own[SECTIONS[name] :] if name in NEWEST_FIRST else own[: max(0, len(own) - SECTIONS[name])]
        for surplus_line in surplus:
            section.lines.remove(surplus_line)

    def settle(self, now: Lines) -> None:
        """Remove failures noted by any session for commands that ``now`` has news about."""
        commands = {
            match[1] for name in (ISSUES, PATTERNS) for line in now.get(name, ()) if (match := _RAN.match(line))
        }
        for line in self.lines().get(ISSUES, ()):
            failed = _RAN.match(line)
            if failed and failed[1] in commands and _mark(line) in self._own and line not in now.get(ISSUES, ()):
                self.remove(ISSUES, line)

    def remove(self, name: str, line: str) -> None:
        """Remove a line if it is unchanged, and its section if empty."""
        section = self._section(name)
        if section is not None and line in section.lines[1:]:
            section.lines.remove(line)
            if not any(map(str.strip, section.lines[1:])):
                self._sections.remove(section)

    @property
    def longest(self) -> int:
        """Number of lines in the longest section."""
        return max((len(lines) for lines in self.lines().values()), default=0)

    def limit(self, most: int) -> None:
        """Keep only the newest lines of each section."""
        for section in self._sections:
            if section.name:
                filled = [line for line in section.lines[1:] if line.strip()]
                newest = filled[:most] if section.name in NEWEST_FIRST else filled[max(0, len(filled) - most) :]
                section.lines[1:] = [*newest, ""]

    def without_empty(self) -> NotesDocument:
        """The same document without empty sections."""
        slim = NotesDocument()
        slim._sections = [
            section for section in self._sections if not section.name or any(map(str.strip, section.lines[1:]))
        ]
        return slim

    def _section(self, name: str) -> _Section | None:
        return next((section for section in self._sections if section.name == name), None)

    def _new_section(self, name: str) -> _Section:
        """Insert the section in its usual place, after the last of its predecessors."""
        order = list(SECTIONS)
        earlier = order[: order.index(name)]
        index = max((n for n, other in enumerate(self._sections) if not other.name or other.name in earlier), default=0)
        before = self._sections[index].lines
        if before and before[-1].strip():
            before.append("")
        section = _Section(name, [f"### {name}", ""])
        self._sections.insert(index + 1, section)
        return section


def _quoted(lines: Sequence[str]) -> set[int]:
    """Numbers of the lines between two fences: no headings. A fence that nothing closes quotes nothing."""
    quoted: set[int] = set()
    opened, fence = -1, ""
    for number, line in enumerate(lines):
        mark = _FENCE.match(line)
        if mark is None:
            continue
        if not fence:
            opened, fence = number, mark[1]
        elif mark[1].startswith(fence):
            quoted.update(range(opened, number))
            fence = ""
    return quoted


def _mark(line: str) -> str:
    """First six hex digits of a line's SHA-256, to record the lines that swecli wrote."""
    return sha256(line.strip().encode("utf-8", "replace")).hexdigest()[:6] if line.strip() else ""


def merge(document: NotesDocument, before: Lines, now: Lines) -> None:
    """Replace a session's last written lines (``before``) by its current ones (``now``)."""
    document.settle(now)
    for name in SECTIONS:
        old, new = before.get(name, ()), now.get(name, ())
        for line in old:
            if line not in new:
                document.remove(name, line)
        for line in new:
            if line not in old and not document.has(name, line):
                document.add(name, line)


def write_notes(folder: Path, before: Lines, now: Lines, title: str) -> bool:
    """Merge the lines into the notes file of a memory folder. False if it already contains them. Not for the event
    loop.

    Raises:
        NotesError: the file can't be written, or is not a file that swecli writes.
    """
    path = folder / NOTES
    try:
        if any(os.path.islink(part) for part in (folder.parent, folder, path)):
            raise NotesError(f"{path} passes a link, so no notes are written there.")
        with one_writer(folder / f".{NOTES}"):
            present = read_text(path, MAX_BYTES)
            lossy = present is not None and any("\ud800" <= char <= "\udfff" for char in present)
            if lossy or (present is None and os.path.exists(path)):
                raise NotesError(f"{path} is not text of at most {MAX_BYTES:,} bytes, so no notes are written there.")
            if present is None and not any(now.values()):
                return False
            document = NotesDocument(present or "", title=title)
            merge(document, before, now)
            text = document.render()
            if text == (present or ""):
                return False
            write_whole(path, text)
            if not os.path.exists(ignore := folder / ".gitignore"):
                write_whole(ignore, _NOT_SHARED)
    except OSError as error:
        raise NotesError(f"cannot write {path} ({error.strerror or error}); notes are off for now.") from error
    return True
