"""The tail: what the model should know right now, after the newest message and never part of the history."""

from __future__ import annotations

import re
from collections.abc import Iterable

from swecli.core.context_management.gate import percent
from swecli.core.context_management.prompts import mode_note, note
from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.events import Budget, Mode

_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}
_NOTE_TAG = re.compile(r"<(/?swecli-note)", re.IGNORECASE)


def tail_text(
    *,
    mode: Mode = "default",
    todos: Iterable[Todo] = (),
    budget: Budget | None = None,
    git: str = "",
    notes: Iterable[str] = (),
) -> str:
    """The tail of one request; empty when there is nothing to say.

    ``budget`` is the newest measure: the model is told of it from the warning level on. ``git`` is the state of
    the work tree in a line or two. What comes from outside can't end the note early.
    """
    parts = [mode_note(mode), _todo_text(todos), f"Git: {git}" if git else "", usage_note(budget), *notes]
    text = "\n\n".join(part for part in parts if part)
    return note(_NOTE_TAG.sub(r"<\\\1", text)) if text else ""


def usage_note(budget: Budget | None) -> str:
    """What the model is told about a context that fills up; empty below the warning level."""
    if budget is None or budget.level == "ok":
        return ""
    return (
        f"The context window is {percent(budget)} % full. Read narrow ranges, keep output short, and bring what you "
        "are doing to a state that can be picked up again."
    )


def _todo_text(todos: Iterable[Todo]) -> str:
    lines = [f"{_MARKS[todo.status]} {todo.text}" for todo in todos]
    return "\n".join(["Your todo list:", *lines]) if lines else ""
