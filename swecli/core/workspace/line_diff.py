"""Line differences between two texts: which lines, and how many."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from io import StringIO

_EXACT_LINES = 1_000
"""Up to this size the changed region is compared in order; beyond it as a multiset, at linear cost."""
_MAX_COMPARED = 1_000
"""Lines of one change beyond which all count as replaced, without a search for equal ones between."""

Span = tuple[int, int, int, int]
"""Start and end of a change in the old text, then in the new one."""


def count_changes(old: str, new: str) -> tuple[int, int]:
    start = _common(old, new)
    start = old.rfind("\n", 0, start) + 1  # whole lines only
    end = min(_common(old[::-1], new[::-1]), len(old) - start, len(new) - start)
    # The common end of both texts begins after a line end.
    end = len(old) - next_line if (next_line := old.find("\n", len(old) - end) + 1) and end else 0
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    before, after = _lines(old), _lines(new)
    start, limit = 0, min(len(before), len(after))
    while start < limit and before[start] == after[start]:
        start += 1
    end = 0
    while end < limit - start and before[-1 - end] == after[-1 - end]:
        end += 1
    before, after = before[start : len(before) - end], after[start : len(after) - end]
    if len(before) > _EXACT_LINES or len(after) > _EXACT_LINES:
        had, has = Counter(before), Counter(after)
        return (has - had).total(), (had - has).total()
    common = sum(block.size for block in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks())
    return len(after) - common, len(before) - common


def _common(text: str, other: str) -> int:
    """Length of the common prefix in characters."""
    low, high = 0, min(len(text), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if text[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _lines(text: str) -> list[str]:
    """Lines with their LF; unlike with ``splitlines``, no other character ends a line."""
    return list(StringIO(text, newline="\n"))


def changed_spans(before: Sequence[str], after: Sequence[str]) -> list[Span]:
    """Changed spans. Lines that occur once in both texts are anchors; only the parts between them are compared in
    detail, so that large texts cost little."""
    out: list[Span] = []
    i = j = 0
    for anchor_i, anchor_j in [*_anchors(before, after), (len(before), len(after))]:
        out += _between(before, after, i, anchor_i, j, anchor_j)
        i, j = anchor_i + 1, anchor_j + 1
    return _merged(out)


def _anchors(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """Positions of lines unique in both texts, in their longest common order."""
    counts = Counter(before)
    other = Counter(after)
    places = {line: number for number, line in enumerate(after) if other[line] == 1}
    pairs = [(i, places[line]) for i, line in enumerate(before) if counts[line] == 1 and line in places]
    ends: list[int] = []
    """Lowest last position of a rising sequence of each length."""
    holders: list[int] = []
    previous: list[int] = []
    for number, (_, position) in enumerate(pairs):
        length = bisect_left(ends, position)
        previous.append(holders[length - 1] if length else -1)
        if length == len(ends):
            ends.append(position)
            holders.append(number)
        else:
            ends[length], holders[length] = position, number
    out: list[tuple[int, int]] = []
    number = holders[-1] if holders else -1
    while number >= 0:
        out.append(pairs[number])
        number = previous[number]
    return out[::-1]


def _between(before: Sequence[str], after: Sequence[str], i1: int, i2: int, j1: int, j2: int) -> list[Span]:
    while i1 < i2 and j1 < j2 and before[i1] == after[j1]:
        i1, j1 = i1 + 1, j1 + 1
    while i1 < i2 and j1 < j2 and before[i2 - 1] == after[j2 - 1]:
        i2, j2 = i2 - 1, j2 - 1
    if i1 == i2 and j1 == j2:
        return []
    if i1 == i2 or j1 == j2 or i2 - i1 + j2 - j1 > _MAX_COMPARED:
        return [(i1, i2, j1, j2)]
    codes = SequenceMatcher(None, before[i1:i2], after[j1:j2]).get_opcodes()
    return [(i1 + a, i1 + b, j1 + c, j1 + d) for tag, a, b, c, d in codes if tag != "equal"]


def _merged(changes: list[Span]) -> list[Span]:
    out: list[Span] = []
    for change in changes:
        if out and out[-1][1] == change[0] and out[-1][3] == change[2]:
            out[-1] = (out[-1][0], change[1], out[-1][2], change[3])
        else:
            out.append(change)
    return out
