"""Support for a sentence from the events that it cites: the sentence contains something that distinguishes them. Pure.

Advice that mentions a command or file is still advice. A sentence about this project contains more: the difference
between the command that worked and the one that failed, names from an error, or the user's own words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from swecli.core.playbook.likeness import words
from swecli.lazy_pattern import lazy_pattern


class Cited(Struct, frozen=True):
    """``failed`` and ``worked`` commands, signatures of ``errors``, and the user's words (``said``)."""

    failed: Sequence[str] = ()
    worked: Sequence[str] = ()
    errors: Sequence[str] = ()
    said: Sequence[str] = ()


def together(events: Iterable[Cited]) -> Cited:
    """Several events combined into one."""
    all_of = list(events)
    return Cited(
        [command for event in all_of for command in event.failed],
        [command for event in all_of for command in event.worked],
        [error for event in all_of for error in event.errors],
        [text for event in all_of for text in event.said],
    )


_TOKEN: Final = lazy_pattern(r"[A-Za-z0-9_-][\w./:@=<>-]*[\w=]|\d+")
_DIFFERENCE: Final = 0.75
_FROM_AN_ERROR: Final = 0.75
_FAILED_AND_DIFFERENT: Final = 0.65
_SAID: Final = 1.5
_SHARE_SAID: Final = 1.1
_MOST: Final = 2
_ANY: Final = 0.2
"""Bonus for a sentence with any such element."""


def support(content: str, cited: Cited) -> float:
    """The events' bonus for a sentence; 0 if they do not support it."""
    mine = _tokens((content,))
    failed, worked, errors = _tokens(cited.failed), _tokens(cited.worked), _tokens(cited.errors)
    new = mine & (worked - failed)
    total = _DIFFERENCE * min(_MOST, len(new))
    total += _FROM_AN_ERROR * min(_MOST, sum(not token.isalpha() or len(token) > 7 for token in mine & errors))
    total += _FAILED_AND_DIFFERENT * bool(new and mine & (failed - worked))
    statements = [set(words(statement)) for statement in cited.said]
    common = [(len(own & set(words(content))), len(own)) for own in statements]
    if any(shared >= 2 for shared, _ in common):
        total += _SAID + _SHARE_SAID * max(shared / max(3, size) for shared, size in common)
    return total + _ANY if total else 0.0


def _tokens(texts: Iterable[str]) -> set[str]:
    return {token.strip(".,;:()").casefold() for text in texts for token in _TOKEN.findall(text)}
