"""What swecli itself tells the model between messages: the topics of its notes, their form and their texts.

A note is an entry of the conversation. It is appended when it becomes true, stays where it is, and is superseded by the
next one on its topic, so that every request begins with the bytes of the one before: the newest models sign their
reasoning together with everything that precedes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.messages import NoteForm

MODE: Final = "mode"
PRESENCE: Final = "presence"
"""Whether the user can answer."""
USAGE: Final = "usage"
TOOLS: Final = "tools"
NEW_TOOLS: Final = "new tools"
CHANGED_TOOLS: Final = "changed tools"
"""Tools that are gone, back or different, for a model that reads their definitions elsewhere."""
LOOP: Final = "loop"
EMPTY: Final = "empty answer"
SEARCHES: Final = "web searches"
TODOS: Final = "todos"
SCRATCHPAD: Final = "scratchpad"
JOBS: Final = "jobs"
CHANGED_FILES: Final = "changed files"
LESSONS: Final = "lessons"
REPEATED_LESSONS: Final = "repeated lessons"
"""Lessons of the playbook that a notice has just shown to the user."""
SKILL_NEWS: Final = "skills"
INSTRUCTIONS: Final = "instructions of "
MEMORY_NEWS: Final = "memory of "
"""Both with the name of a file."""

_FORMS: Final[Mapping[str, NoteForm]] = {
    MODE: "stays",
    PRESENCE: "stays",
    USAGE: "stays",
    TOOLS: "stays",
    NEW_TOOLS: "stays",
    CHANGED_TOOLS: "stays",
    LOOP: "this turn",
    EMPTY: "this turn",
    SEARCHES: "stays",
}
"""A note for "this turn" is seen in the next step only: the model forgets it with the next message of the user, and
results of tools count as one (platform.claude.com, preserved-thinking/change-tools-or-instructions). What must hold
through a turn therefore stays, and its end is said."""


def changed_in_prompt(topic: str) -> str:
    """What of the system prompt a note on this topic supersedes, by name; empty if it supersedes nothing of it."""
    if topic in (LESSONS, SKILL_NEWS):
        return topic
    prefix = next((prefix for prefix in (INSTRUCTIONS, MEMORY_NEWS) if topic.startswith(prefix)), "")
    return topic.removeprefix(prefix) if prefix else ""


def is_shown(topic: str) -> bool:
    """Whether the user sees a note: others on a topic repeat what the screen shows elsewhere."""
    return not topic or bool(changed_in_prompt(topic))


def form_of(topic: str) -> NoteForm:
    """Form of a note on a topic; those without a topic, and those with names or words from elsewhere, are quoted."""
    return _FORMS.get(topic, "quoted")


USUAL_MODE: Final = (
    "The usual mode is on again: calls that change something are possible, with the user's approval where it is needed."
)
PRESENT: Final = "The user is here again: questions get an answer, and calls that need approval are shown to the user."
EMPTY_ANSWER: Final = "Your last answer had neither text nor a call. Make your next call, or give your answer as text."
"""With it, a model without chance in its choices does not give the same empty answer again."""


SEARCHES_USED: Final = "This turn's web searches are used up. Search no more; work with what you found."
"""For providers that know no cap for a whole turn."""
SEARCHES_AGAIN: Final = "A new turn has begun: web searches are possible again."

_MARKS: Final[Mapping[str, str]] = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


def todo_text(todos: Iterable[Todo]) -> str:
    """The open todo list; empty once every item is done."""
    listed = list(todos)
    if all(todo.status == "completed" for todo in listed):
        return ""
    return "\n".join(["Your todo list:", *(f"{_MARKS[todo.status]} {todo.text}" for todo in listed)])


def usage_text(share: float, *, can_compact: bool) -> str:
    """Statement that the context passed this share of the effective window (0..1)."""
    text = (
        f"More than {share:.0%} of the context window is used. Read narrow ranges, keep output short, and bring your "
        "work to a state that can be resumed."
    )
    return f"{text} Before large work, free space with compact_context." if can_compact else text
