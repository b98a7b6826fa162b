"""Messages of a snapshot as what they were made of: summaries, and what was said. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from swecli.core.context_management.notes import CONTINUATION, CUT_NOTE, GO_ON_NOTE, INTERRUPTION_NOTE
from swecli.core.protocol.messages import Message, TextPart

SUMMARY_MARK = "<compacted"
"""What the text that takes the place of older messages begins with."""

_NOTES = frozenset((INTERRUPTION_NOTE, CUT_NOTE, GO_ON_NOTE, CONTINUATION))


def restored(messages: Sequence[Message], environment: str) -> Iterator[tuple[int, str, tuple[Message, ...]]]:
    """Stretches of a conversation: a number, the text of a summary (or none), and the messages that follow it.

    What a projection adds to messages, the ``environment`` and notes about answers that were cut, is taken away again.
    """
    text, said, number = "", list[Message](), 0
    for message in messages:
        if message.role == "user":
            message = replace(message, parts=tuple(part for part in message.parts if not _added(part, environment)))
            if not message.parts:
                continue
        if message.role == "user" and message.text.startswith(SUMMARY_MARK):
            yield number, text, tuple(said)
            text, number = message.text, number + 1
            said.clear()
        else:
            said.append(message)
    yield number, text, tuple(said)


def _added(part: object, environment: str) -> bool:
    return isinstance(part, TextPart) and (part.text == environment or part.text in _NOTES)
