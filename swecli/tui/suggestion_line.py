"""A suggestion of the sentinel in words, in the one line above the prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swecli.figures import tokens

if TYPE_CHECKING:
    from swecli.core.protocol.events import ContextSuggested

SEPARATOR = " · "
LEAST = 16
"""Cells in which a reason still says something."""


def suggestion_words(body: ContextSuggested, take: str, silence: str, width: int) -> str:
    """As much of it as fits into ``width`` cells: the action stays longest. ``take`` and ``silence`` are the keys."""
    freed = f", -{tokens(body.freed)}" if body.freed else ""
    act, never = f"{take}: {body.action}{freed}", f"{silence}: never"
    room = width - len(SEPARATOR.join(("", act, never)))
    candidates = (
        (body.reason, act, f"{never} again"),
        (body.reason, act, never),
        (f"{body.reason[: max(LEAST, room) - 1].rstrip(' :“`')}…", act, never),
        (act, f"{never} again"),
        (act, never),
        (act, silence),
        (act,),
        (f"{take}: {body.action}",),
    )
    lines = (SEPARATOR.join(parts) for parts in candidates)
    return next((line for line in lines if len(line) <= width), "")
