"""Braces in globs: rules and searches, which may not import each other, expand them alike."""

from __future__ import annotations

import re

from swecli.lazy_pattern import lazy_pattern

_BRACES = lazy_pattern(r"((?:[^\\]|\\.)*?)(?<!\\)\{([^{}\\]*,[^{}\\]*)\}(.*)", re.DOTALL)
MOST_ALTERNATIVES = 1_000
"""Patterns that the braces of one may stand for."""


def without_braces(pattern: str, most: int = MOST_ALTERNATIVES) -> list[str]:
    """The patterns that ``{a,b}`` expands to: gitignore has no braces, but all other globs do. Braces without a comma
    or after a backslash are literal.

    Raises:
        ValueError: they are more than ``most``.
    """
    patterns = [pattern]
    while any(matches := [_BRACES.fullmatch(alternative) for alternative in patterns]):
        patterns = [
            f"{match[1]}{part}{match[3]}" if match else alternative
            for alternative, match in zip(patterns, matches, strict=True)
            for part in (match[2].split(",") if match else ("",))
        ]
        if len(patterns) > most:
            raise ValueError(f"its braces stand for more than {most} patterns")
    return patterns
