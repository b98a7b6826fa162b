"""What the model is told of a playbook: the lessons for a message of the user, and those for a failed call."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from swecli.core.context_management.note_topics import REPEATED_LESSONS
from swecli.core.context_management.prompts import harmless
from swecli.core.llm.foreign_calls import stored_arguments
from swecli.core.playbook import selection
from swecli.core.playbook.bullet import Bullet
from swecli.core.protocol.messages import ToolCallPart
from swecli.core.sessions.titles import line_of
from swecli.features.playbook.reading import Loaded

TITLE_LENGTH = 70
"""Most characters of a lesson in the line that reports it to the user."""


class Lesson(Struct, frozen=True):
    """Bullets and their text for the model; ``title`` reports a note with them to the user."""

    bullets: Sequence[Bullet]
    text: str
    title: str = ""
    topic: str = ""


def for_message(usable: Sequence[Bullet], message: str, told: Collection[str], announced: Collection[str]) -> Lesson:
    """The bullets that apply to a message, without those that the model was ``told``; perhaps none. The user knows
    those ``announced``."""
    shown = selection.fitting(selection.for_message(usable, message, known=told))
    if not shown:
        return Lesson((), "")
    fresh = [bullet for bullet in shown if bullet.id not in announced]
    text = harmless(selection.bullets_text(shown))
    return Lesson(shown, text, _named(fresh or shown), "" if fresh else REPEATED_LESSONS)


def for_failure(loaded: Loaded, call: ToolCallPart, name: str, text: str) -> Lesson | None:
    """The bullets on a failed call of the tool with this own ``name``, perhaps none; None if no bullet can be about
    it."""
    arguments = stored_arguments(call.name, call.arguments)
    command, path = arguments.get("command", ""), arguments.get("path", "")
    edits = name in ("edit_file", "write_file")
    if not isinstance(command, str) or not isinstance(path, str) or not (name == "run_command" or edits):
        return None
    chosen = selection.for_failure(loaded.usable, command, text, loaded.watch.relative(path) if edits else "")
    return Lesson(chosen, harmless(selection.bullets_text(chosen, selection.WITH_FAILURE)))


def _named(told: Sequence[Bullet]) -> str:
    """Notice for the user about bullets passed with a message, with their ids for the playbook screen."""
    ids = ", ".join(bullet.id for bullet in told)
    return (
        f"Playbook: {line_of(told[0].content, TITLE_LENGTH)} ({ids})"
        if len(told) == 1
        else f"Playbook: {len(told)} lessons ({ids})"
    )
