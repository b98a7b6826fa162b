"""The intended word behind a typing error."""

from __future__ import annotations

from collections.abc import Iterable


def edit_distance(one: str, other: str, most: int) -> int:
    """Letters to insert, delete, replace or swap with a neighbour to get from one word to the other; ``most`` + 1 if
    there are more than ``most``."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        earlier, before, row = before, row, [at]
        for column, its in enumerate(other, 1):
            cost = min(before[column] + 1, row[-1] + 1, before[column - 1] + (letter != its))
            if at > 1 and column > 1 and letter == other[column - 2] and one[at - 2] == its:
                cost = min(cost, earlier[column - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)


def nearest(word: str, words: Iterable[str]) -> str:
    """The word probably meant: the first with the fewest changes, if these are few for its length; empty without
    one."""
    most = allowed(word)
    best, least = "", most + 1
    for candidate in words:
        distance = edit_distance(word, candidate, min(most, least))
        if distance < least:
            best, least = candidate, distance
    return best


def allowed(word: str) -> int:
    """Most changes for a typing error: none in a word of two letters, one in six, two in a longer one."""
    return 0 if len(word) < 3 else 1 if len(word) < 7 else 2
