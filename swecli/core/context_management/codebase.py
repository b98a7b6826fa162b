"""Parser for OPENCLI.md: its sections, and their facts about a project."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct, field

from swecli.lazy_pattern import lazy_pattern

TOP = "top"
"""Key of the text before the first section: title and first paragraph."""
_HEADING = lazy_pattern(r"^## +(.+?)[ \t]*#*[ \t]*$")
_FENCE = lazy_pattern(r"^ {0,3}(```+|~~~+)")
_SPAN = lazy_pattern(r"`([^`]+)`")
_PAIR = lazy_pattern(r"^[-*] +(?:\*\*)?([^:`]+?)(?:\*\*)?: +(.+)$")
_BRANCH = lazy_pattern(r"^([│| \u00a0]*)(?:[├└]──+[ \u00a0]*|[|`+]--+[ \u00a0]+)(\S+)")
"""A line of a drawn tree: what stands before its branch, and the name."""
_FOLDERS = ("structure", "project-structure", "layout")
_FILES = ("key-files", "important-files")
_PATTERNS = ("patterns", "code-patterns", "architecture-patterns")
_SUMMARY = (TOP, "project", "overview")


class Section(NamedTuple):
    """``key`` is the normalised heading; ``text`` the whole section with its heading."""

    key: str
    text: str


def sections(document: str) -> list[Section]:
    """Second-level sections in order, without empty ones."""
    result: list[Section] = []
    key, lines, fence = TOP, list[str](), ""
    for line in document.splitlines():
        mark = _FENCE.match(line)
        if mark and (not fence or line.strip().startswith(fence)):
            fence = "" if fence else mark[1]
        heading = None if fence or mark else _HEADING.match(line)
        if heading:
            result.append(Section(key, "\n".join(lines).strip()))
            key, lines = re.sub(r"\W+", "-", heading[1].lower()).strip("-"), []
        lines.append(line)
    result.append(Section(key, "\n".join(lines).strip()))
    return [section for section in result if section.text]


class GuideFacts(Struct):
    """``structure`` maps a folder to the files named in it, ``patterns`` a name to its place."""

    summary: str = ""
    structure: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    key_files: list[str] = field(default_factory=list[str])
    patterns: dict[str, str] = field(default_factory=dict[str, str])


def read_guide(text: str) -> GuideFacts:
    """Read the facts under the usual headings, whoever wrote them. Never fails."""
    guide = GuideFacts()
    paragraphs: list[str] = []
    for name, section in sections(text):
        lines = section.splitlines()
        bullets = [line.strip() for line in lines if line.lstrip().startswith(("- ", "* "))]
        spans = [match[1] for line in bullets if (match := _SPAN.search(line))]
        if name in _FILES:
            guide.key_files += [span for span in spans if span not in guide.key_files]
        elif name in _FOLDERS:
            guide.structure.update({span.rstrip("/") or ".": [] for span in spans})
            guide.structure.update(_tree(lines))
        elif name in _PATTERNS:
            pairs = [pair for line in bullets if (pair := _PAIR.match(line))]
            guide.patterns.update({pair[1].strip(): _place(pair[2].strip()) for pair in pairs})
        elif name in _SUMMARY:
            paragraphs += [line.strip() for line in lines if line.strip() and not line.startswith(("#", "<!--", "- "))]
    guide.summary = " ".join(paragraphs)
    for path in guide.key_files:
        folder, _, file = path.rpartition("/")
        files = guide.structure.setdefault(folder or ".", [])
        if file not in files:
            files.append(file)
    return guide


def _place(value: str) -> str:
    """A place without its marks as code, if it is nothing but that."""
    span = _SPAN.fullmatch(value)
    return span[1] if span else value


def _tree(lines: Sequence[str]) -> dict[str, list[str]]:
    """The folders of a tree drawn with branches, each with its files. A name is a folder if it ends with a slash, or if
    lines further in follow."""
    branches = [(len(match[1]), match[2]) for line in lines if (match := _BRANCH.match(line))]
    folders: dict[str, list[str]] = {}
    above: list[tuple[int, str]] = []
    for number, (column, name) in enumerate(branches):
        above = [(outer, folder) for outer, folder in above if outer < column]
        parent = above[-1][1] if above else "."
        path = name.rstrip("/") if parent == "." else f"{parent}/{name.rstrip('/')}"
        if name.endswith("/") or (number + 1 < len(branches) and branches[number + 1][0] > column):
            above.append((column, path))
            folders.setdefault(path, [])
        else:
            folders.setdefault(parent, []).append(name)
    return folders
