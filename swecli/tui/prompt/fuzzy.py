"""Ranking of names by what was typed."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nsmallest


def score(query: str, name: str) -> tuple[int, int, str] | None:
    """Smaller is better; None when the letters of ``query`` don't occur in ``name`` in order.

    A name whose last part starts with the query comes first, then one that contains it, then scattered
    letters, the closest together first; shorter names win ties.
    """
    wanted, text = query.casefold(), name.casefold()
    if not wanted:
        return (0, len(name), name)
    base = text.rstrip("/").rsplit("/", 1)[-1]
    if base.startswith(wanted):
        return (0, len(name), name)
    if text.startswith(wanted):
        return (1, len(name), name)
    if wanted in base:
        return (2, len(name), name)
    if wanted in text:
        return (3, len(name), name)
    position = start = -1
    for letter in wanted:
        position = text.find(letter, position + 1)
        if position < 0:
            return None
        if start < 0:
            start = position
    return (4 + position - start, len(name), name)


def best(query: str, names: Iterable[str], limit: int) -> list[str]:
    """The ``limit`` best names, best first."""
    ranked = ((rank, name) for name in names if (rank := score(query, name)) is not None)
    return [name for _, name in nsmallest(limit, ranked)]
