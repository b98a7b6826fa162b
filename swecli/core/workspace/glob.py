"""Matching a path against a glob: ``*``, ``?``, ``[…]``, ``{a,b}`` and ``**`` for any number of directories."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache

_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_MAX_ALTERNATIVES = 64


class Glob:
    """A pattern without a slash is matched with the last name of a path, any other with the whole path,
    relative to where the search starts. A leading ``!`` turns the meaning round."""

    def __init__(self, pattern: str) -> None:
        self._negated = pattern.startswith("!")
        bare = pattern.removeprefix("!").removeprefix("./").rstrip("/")
        self._alternatives = tuple(_segments(one) for one in _expanded(bare))

    def matches(self, path: str) -> bool:
        """Whether the glob takes ``path`` (relative, slashes)."""
        parts = tuple(path.split("/"))
        return any(_match(alternative, parts) for alternative in self._alternatives) != self._negated


def _segments(pattern: str) -> tuple[str, ...]:
    if "/" not in pattern:
        return ("**", pattern)
    return tuple(part for part in pattern.split("/") if part)


def _expanded(pattern: str) -> list[str]:
    """The alternatives of braces, up to a limit; beyond it braces are taken as they stand."""
    found = [pattern]
    while True:
        match = next((hit for one in found if (hit := _BRACES.search(one))), None)
        if match is None or len(found) > _MAX_ALTERNATIVES:
            return found
        grown: list[str] = []
        for one in found:
            hit = _BRACES.search(one)
            if hit is None:
                grown.append(one)
            else:
                grown.extend(one[: hit.start()] + word + one[hit.end() :] for word in hit[1].split(","))
        found = grown


def _match(pattern: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    @cache
    def rest(at: int, part: int) -> bool:
        if at == len(pattern):
            return part == len(parts)
        if pattern[at] == "**":
            if at == len(pattern) - 1:
                return part < len(parts)
            return any(rest(at + 1, later) for later in range(part, len(parts) + 1))
        return part < len(parts) and fnmatchcase(parts[part], pattern[at]) and rest(at + 1, part + 1)

    return rest(0, 0)
