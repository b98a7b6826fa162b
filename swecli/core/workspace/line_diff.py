"""How many lines a change adds and removes."""

from __future__ import annotations

from collections import Counter
from difflib import SequenceMatcher
from io import StringIO

_EXACT_LINES = 1_000
"""Up to here the changed region is compared in order; beyond, as a multiset, whose cost is linear."""


def count_changes(old: str, new: str) -> tuple[int, int]:
    """Added and removed lines."""
    start = _common(old, new)
    start = old.rfind("\n", 0, start) + 1  # whole lines only
    end = min(_common(old[::-1], new[::-1]), len(old) - start, len(new) - start)
    # The text that both end with begins after a line end.
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
    kept = sum(block.size for block in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks())
    return len(after) - kept, len(before) - kept


def _common(one: str, other: str) -> int:
    """How many characters both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _lines(text: str) -> list[str]:
    """Lines with their LF; unlike ``splitlines`` no other character ends a line."""
    return list(StringIO(text, newline="\n"))
