"""Answers that repeat themselves without end: a period of text, again and again. Pure."""

from __future__ import annotations

from msgspec import Struct, field

from swecli.core.llm.types import ReasoningDelta, StreamEvent, TextDelta, ToolArgsDelta

LEAST_ROUNDS = 8
"""Repetitions of a period that are endless, if they are long enough together."""
LEAST_TEXT, LEAST_ARGUMENTS = 3_000, 24_000
"""Characters of the repetitions; more in arguments, because a file may be monotonous on purpose."""
LEAST_ANYWHERE = 600
"""The same in the shortest answers."""
_STEP = 1_000
"""Characters between two searches."""


class _Tail(Struct):
    """The end of one part of an answer."""

    least: int
    text: str = ""
    new: int = 0
    """Characters since the newest search."""


class EndlessText(Struct):
    """Watches the parts of one answer. ``least_text`` and ``least_arguments`` are as the constants."""

    least_text: int = LEAST_TEXT
    least_arguments: int = LEAST_ARGUMENTS
    _tails: dict[int, _Tail] = field(default_factory=dict[int, _Tail])

    @classmethod
    def of_answer(cls, tokens: int) -> EndlessText:
        """For an answer of at most so many tokens: in a short one, a quarter of its text or half of its arguments is
        enough, because a slow model would otherwise fill all of it. 0: unknown."""
        if not tokens:
            return cls()
        return cls(min(LEAST_TEXT, max(LEAST_ANYWHERE, tokens)), min(LEAST_ARGUMENTS, max(LEAST_ANYWHERE, 2 * tokens)))

    def feed(self, event: StreamEvent) -> str:
        """Returns the period that a part repeats without end; empty if there is none."""
        match event:
            case TextDelta(part=part, text=text) | ReasoningDelta(part=part, text=text):
                tail = self._tails.setdefault(part, _Tail(self.least_text))
            case ToolArgsDelta(part=part, text=text):
                tail = self._tails.setdefault(part, _Tail(self.least_arguments))
            case _:
                return ""
        tail.text = (tail.text + text)[-tail.least :]
        tail.new += len(text)
        if tail.new < min(_STEP, tail.least // 3) or len(tail.text) < tail.least:
            return ""
        tail.new = 0
        period = smallest_period(tail.text)
        return tail.text[-period:] if period * LEAST_ROUNDS <= len(tail.text) else ""


def smallest_period(text: str) -> int:
    """The smallest number of characters after which a text repeats itself to its end; its length if it does not."""
    matched = 0
    prefixes = [0] * len(text)
    for index in range(1, len(text)):
        while matched and text[index] != text[matched]:
            matched = prefixes[matched - 1]
        matched += text[index] == text[matched]
        prefixes[index] = matched
    return len(text) - matched
