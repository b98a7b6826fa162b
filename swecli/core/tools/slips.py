"""Texts that a model sends in place of a file's content, and that no such file should hold: recognised by their form,
so that a file is neither lost to a slip nor sent twice because of one."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import PurePath

from swecli.core.workspace.edit import left_out
from swecli.lazy_pattern import lazy_pattern

_PROSE = frozenset((".adoc", ".markdown", ".md", ".mdx", ".org", ".prompt", ".qmd", ".rmd", ".rst", ".txt", ""))
"""Files that may hold fences, diffs and the like as their text."""
_DIFFS = frozenset((".diff", ".patch", ".rej"))
_TABLES = frozenset((".csv", ".dat", ".log", ".out", ".tab", ".tsv"))
_FENCE = lazy_pattern(r"\s*(`{3,}|~{3,})[\w+#.-]*[ \t]*\n(.*\n)?\1\s*", re.DOTALL)
_DIFF = lazy_pattern(
    r"\s*(?:\*\*\* Begin Patch$|(?:diff --git .*\n(?:.*\n){0,6}?)?--- .+\n\+\+\+ .+\n@@ )", re.MULTILINE
)
_NUMBERED = lazy_pattern(r" *(\d+)\t")
_OMITS = lazy_pattern(r"\b(?:existing|rest|remaining|unchanged|as before|previous|original)\b", re.IGNORECASE)


def unfenced(name: str, content: str) -> str | None:
    """The text inside of the one code fence that a content consists of; None if it is none, or may be meant."""
    match = None if PurePath(name).suffix.lower() in _PROSE else _FENCE.fullmatch(content)
    inside = (match[2] or "") if match is not None else ""
    return inside if match is not None and not inside.startswith(match[1]) and f"\n{match[1]}" not in inside else None


def wrong_content(name: str, content: str, before: str) -> str:
    """Why a content is no text of the file ``name``, which held ``before``, in a clause and a sentence; empty if
    nothing speaks against it."""
    suffix = PurePath(name).suffix.lower()
    if suffix in _PROSE:
        return ""
    if suffix not in _DIFFS and _DIFF.match(content):
        return "content is a diff, not the file's text. Use edit_file or apply_patch, or send the whole text."
    if suffix not in _TABLES and _is_numbered(content):
        return "content has line numbers before its lines. Send it without them."
    if "\n" not in content and content.endswith("\\n"):
        return "content has \\n as two characters where line breaks belong. Send it with real line breaks."
    return omission(name, "content", content, (before,)) if before else ""


def omission(name: str, what: str, text: str, known: Collection[str]) -> str:
    """As ``wrong_content``, for a line that stands for others, unless it is in one of the ``known`` texts."""
    if PurePath(name).suffix.lower() in _PROSE:
        return ""
    for line in text.splitlines() if "..." in text or "\u2026" in text else ():
        if left_out(line) and _OMITS.search(line) and not any(line.strip() in known_text for known_text in known):
            return (
                f"the line {line.strip()[:80]!r} of {what} stands for text that it leaves out, and would take its "
                "place in the file. Send the whole text, or use edit_file for only the lines that change."
            )
    return ""


def _is_numbered(content: str) -> bool:
    lines = content.splitlines()
    matches = [_NUMBERED.match(line) for line in lines]
    numbers = [int(match[1]) for match in matches if match is not None]
    return 1 < len(numbers) == len(lines) and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
