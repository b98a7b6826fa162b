"""The words that the shell makes of one with braces."""

from __future__ import annotations

import re

_BRACES = re.compile(r"([^{}]*)\{([^{}]*,[^{}]*)\}([^{}]*)", re.DOTALL)
_MOST = 64


def has_braces(plain: str) -> bool:
    """Whether the unquoted part of a word may be expanded."""
    return "{" in plain and ("," in plain or ".." in plain)


def expanded(word: str, home: str | None) -> list[str] | None:
    """The words, each with its tilde expanded where ``home`` is known; None where they are too many or of a form that
    is not understood, such as ranges."""
    pending, done = [word], list[str]()
    while pending and len(pending) + len(done) <= _MOST:
        item = pending.pop(0)
        match = _BRACES.fullmatch(item)
        if match is None:
            done.append(item)
        else:
            pending += [match.group(1) + choice + match.group(3) for choice in match.group(2).split(",")]
    if pending or any("{" in item for item in done):
        return None
    return [home + item[1:] if home is not None and re.match(r"~(?:/|$)", item) else item for item in done if item]
