"""The lines of a change, as data: hunks with context, numbers, and what changed within a line."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, Literal

CONTEXT: Final = 3
MAX_COMPARED: Final = 1_000
"""Lines of one change beyond which all of them are shown as replaced, without looking for equal ones between."""
MAX_WORDS: Final = 600
"""Characters of a line beyond which it is not compared word by word."""
_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")

Span = tuple[int, int, int, int]
"""Start and end of a change in the old text, then in the new one."""

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
    changes = _changes(before, after)
    for place, (i1, i2, j1, j2) in enumerate(changes):
        begin = max(shown_to, j1 - CONTEXT)
        if begin > shown_to:
            lines.append(DiffLine("~", begin - shown_to, ""))
        lines += [DiffLine(" ", number + 1, after[number]) for number in range(begin, j1)]
        lines += _change(before[i1:i2], after[j1:j2], i1, j1)
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


def _changes(before: list[str], after: list[str]) -> list[Span]:
    """What differs. Lines that occur once in both texts hold the two together; only what lies between them is
    compared in detail, so that large texts cost little."""
    out: list[Span] = []
    i = j = 0
    for anchor_i, anchor_j in [*_anchors(before, after), (len(before), len(after))]:
        out += _between(before, after, i, anchor_i, j, anchor_j)
        i, j = anchor_i + 1, anchor_j + 1
    return _merged(out)


def _anchors(before: list[str], after: list[str]) -> list[tuple[int, int]]:
    """Places of lines that are unique in both texts, in the longest order that both have in common."""
    counts = Counter(before)
    other = Counter(after)
    places = {line: number for number, line in enumerate(after) if other[line] == 1}
    pairs = [(i, places[line]) for i, line in enumerate(before) if counts[line] == 1 and line in places]
    ends: list[int] = []
    """Lowest last place of a rising sequence of each length."""
    holders: list[int] = []
    previous: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        previous.append(holders[length - 1] if length else -1)
        if length == len(ends):
            ends.append(place)
            holders.append(number)
        else:
            ends[length], holders[length] = place, number
    out: list[tuple[int, int]] = []
    number = holders[-1] if holders else -1
    while number >= 0:
        out.append(pairs[number])
        number = previous[number]
    return out[::-1]


def _between(before: list[str], after: list[str], i1: int, i2: int, j1: int, j2: int) -> list[Span]:
    while i1 < i2 and j1 < j2 and before[i1] == after[j1]:
        i1, j1 = i1 + 1, j1 + 1
    while i1 < i2 and j1 < j2 and before[i2 - 1] == after[j2 - 1]:
        i2, j2 = i2 - 1, j2 - 1
    if i1 == i2 and j1 == j2:
        return []
    if i1 == i2 or j1 == j2 or i2 - i1 + j2 - j1 > MAX_COMPARED:
        return [(i1, i2, j1, j2)]
    codes = SequenceMatcher(None, before[i1:i2], after[j1:j2]).get_opcodes()
    return [(i1 + a, i1 + b, j1 + c, j1 + d) for tag, a, b, c, d in codes if tag != "equal"]


def _merged(changes: list[Span]) -> list[Span]:
    """Changes that touch as one."""
    out: list[Span] = []
    for change in changes:
        if out and out[-1][1] == change[0] and out[-1][3] == change[2]:
            out[-1] = (out[-1][0], change[1], out[-1][2], change[3])
        else:
            out.append(change)
    return out


def _change(old: list[str], new: list[str], i: int, j: int) -> list[DiffLine]:
    paired = len(old) == len(new)
    gone = [DiffLine("-", i + n + 1, line, new[n] if paired else None) for n, line in enumerate(old)]
    come = [DiffLine("+", j + n + 1, line, old[n] if paired else None) for n, line in enumerate(new)]
    return gone + come
