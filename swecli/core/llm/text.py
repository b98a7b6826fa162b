"""Text of a stream: split surrogate pairs, and reasoning between think tags."""

from __future__ import annotations

from typing import Literal

ThinkTags = Literal["keep", "split", "opened"]
"""Handling of ``<think>`` or ``<thought>`` in an answer: leave it in the text; extract a leading block as reasoning;
extract it if the prompt template has already written the opening tag."""

_ThinkState = Literal["start", "thinking", "gap", "text"]


def clean(text: str) -> str:
    """``text`` with surrogate pairs joined and lone surrogates replaced by U+FFFD, so that it is valid Unicode."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class SurrogateJoiner:
    """Joins pairs whose halves arrive in two pieces; a lone half becomes U+FFFD."""

    def __init__(self) -> None:
        self._high = ""

    def feed(self, text: str) -> str:
        """The certain text: all except a high half at the end."""
        if not text:
            return ""
        text = self._high + text
        self._high = ""
        if "\ud800" <= text[-1] <= "\udbff":
            text, self._high = text[:-1], text[-1]
        return clean(text)

    def end(self) -> str:
        """The held-back text."""
        high, self._high = self._high, ""
        return clean(high)


class ThinkSplitter:
    """Extracts a reasoning block from the beginning of an answer.

    Only a block at the very beginning counts: a tag inside an answer is text. Any possible beginning of a tag is held
    back.
    """

    _TAGS = {"<think>": "</think>", "<thought>": "</thought>", "<thinking>": "</thinking>"}

    def __init__(self, tags: ThinkTags) -> None:
        states: dict[ThinkTags, _ThinkState] = {"keep": "text", "split": "start", "opened": "thinking"}
        self._state: _ThinkState = states[tags]
        self._ends = tuple(self._TAGS.values())
        """Possible ends of the block: any closing tag if the template wrote the opening one."""
        self._held = ""

    def feed(self, text: str) -> tuple[str, str]:
        """The reasoning and answer text that ``text`` completes."""
        if self._state == "text":
            return "", text
        self._held += text
        if self._state == "start" and not self._started():
            return "", ""
        reasoning = self._reasoning() if self._state == "thinking" else ""
        if self._state == "gap":
            self._held = self._held.lstrip("\r\n")
            if self._held:
                self._state = "text"
        answer = ""
        if self._state == "text":
            answer, self._held = self._held, ""
        return reasoning, answer

    def end(self) -> tuple[str, str]:
        held, self._held = self._held, ""
        return (held, "") if self._state == "thinking" else ("", held)

    def _started(self) -> bool:
        lead = self._held.lstrip()
        opened = next((tag for tag in self._TAGS if lead.startswith(tag)), None)
        if opened is not None:
            self._state, self._held = "thinking", lead[len(opened) :]
            self._ends = (self._TAGS[opened],)
            return True
        if any(tag.startswith(lead) for tag in self._TAGS):
            return False
        self._state = "text"
        return True

    def _reasoning(self) -> str:
        found = [(at, end) for end in self._ends if (at := self._held.find(end)) >= 0]
        if found:
            at, end = min(found)
            reasoning, self._held = self._held[:at], self._held[at + len(end) :]
            self._state = "gap"
            return reasoning
        cut = len(self._held) - max(_overlap(self._held, end) for end in self._ends)
        reasoning, self._held = self._held[:cut], self._held[cut:]
        return reasoning


def _overlap(text: str, tag: str) -> int:
    """Length of the longest prefix of ``tag`` at the end of ``text``."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)
