"""How many lines a change adds and removes."""

from __future__ import annotations

from collections import Counter
from difflib import SequenceMatcher
from io import StringIO

_EXACT_LINES = 1_000
"""Up to here the changed region is compared in order; beyond, as a multiset, whose cost is linear."""


def count_changes(old: str, new: str) -> tuple[int, int]:
    """Added and removed lines."""
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


def _lines(text: str) -> list[str]:
    """Lines with their LF; unlike ``splitlines`` no other character ends a line."""
    return list(StringIO(text, newline="\n"))
