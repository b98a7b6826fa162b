"""The lines of a change, as data: hunks with context, numbers, and what changed within a line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, Literal

from swecli.core.workspace.line_diff import changed_spans

CONTEXT: Final = 3
MAX_WORDS: Final = 600
"""Characters of a line beyond which it is not compared word by word."""
_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")

Sign = Literal[" ", "+", "-", "~"]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a diff. ``number`` counts from 1 in the new text, for removed lines in the old one. The sign
    ``~`` marks lines left out between two hunks; ``pair`` is the other half of a changed line."""

    sign: Sign
    number: int
    text: str
    pair: str | None = None


@dataclass(frozen=True, slots=True)
class TextDiff:
    lines: tuple[DiffLine, ...]
    added: int
    removed: int
    note: str = ""


def text_diff(old: str, new: str) -> TextDiff:
    """The lines that differ, with ``CONTEXT`` lines around each change."""
    before, after = _lines(old), _lines(new)
    note = ""
    if old.endswith("\n") != new.endswith("\n") and old and new:
        note = "newline added at the end" if new.endswith("\n") else "newline at the end removed"
    if _all_crlf(before) and _all_crlf(after):
        before, after = [line.removesuffix("\r") for line in before], [line.removesuffix("\r") for line in after]
    lines: list[DiffLine] = []
    added = removed = 0
    shown_to = 0
    """Lines of the new text that have been shown or left out so far."""
    changes = changed_spans(before, after)
    for place, (i1, i2, j1, j2) in enumerate(changes):
        begin = max(shown_to, j1 - CONTEXT)
        if begin > shown_to:
            lines.append(DiffLine("~", begin - shown_to, ""))
        lines += [DiffLine(" ", number + 1, after[number]) for number in range(begin, j1)]
        lines += change_lines(before[i1:i2], after[j1:j2], i1, j1)
        removed += i2 - i1
        added += j2 - j1
        limit = changes[place + 1][2] if place + 1 < len(changes) else len(after)
        shown_to = min(limit, j2 + CONTEXT)
        lines += [DiffLine(" ", number + 1, after[number]) for number in range(j2, shown_to)]
    if shown_to < len(after) and lines:
        lines.append(DiffLine("~", len(after) - shown_to, ""))
    return TextDiff(tuple(lines), added, removed, note)


def one_sided(text: str, sign: Literal["+", "-"]) -> TextDiff:
    """A new file, or a deleted one."""
    lines = tuple(DiffLine(sign, number, line.removesuffix("\r")) for number, line in enumerate(_lines(text), 1))
    return TextDiff(lines, len(lines) if sign == "+" else 0, len(lines) if sign == "-" else 0)


def changed_words(text: str, other: str) -> list[tuple[int, int]]:
    """The parts of ``text`` (start and end) that are not in ``other``; none where the lines have little in common."""
    if max(len(text), len(other)) > MAX_WORDS:
        return []
    words, others = _WORD.findall(text), _WORD.findall(other)
    matcher = SequenceMatcher(None, others, words, autojunk=False)
    if matcher.ratio() < 0.4:
        return []
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    return [(starts[j1], starts[j2]) for tag, _, _, j1, j2 in matcher.get_opcodes() if tag != "equal" and j2 > j1]


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _all_crlf(lines: list[str]) -> bool:
    return all(line.endswith("\r") for line in lines[:-1])


def change_lines(old: list[str], new: list[str], i: int, j: int) -> list[DiffLine]:
    """One change as lines. ``i`` and ``j`` are the lines before it in the old text and in the new one."""
    paired = len(old) == len(new)
    gone = [DiffLine("-", i + n + 1, line, new[n] if paired else None) for n, line in enumerate(old)]
    come = [DiffLine("+", j + n + 1, line, old[n] if paired else None) for n, line in enumerate(new)]
    return gone + come
