"""Text of a stream: split surrogate pairs, and reasoning between think tags."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

ThinkTags = Literal["keep", "split", "opened"]
"""Handling of ``<think>`` or ``<thought>`` in an answer: leave it in the text; extract a leading block as reasoning;
extract it if the prompt template has already written the opening tag. Unless tags stay, an answer that begins with a
channel of gpt-oss is split into its channels."""

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
        self._channels: ChannelSplitter | None = None

    def feed(self, text: str) -> tuple[str, str]:
        """The reasoning and answer text that ``text`` completes."""
        if self._channels is not None:
            return self._channels.feed(text)
        if self._state == "text":
            return "", text
        self._held += text
        if self._state == "start" and not self._started():
            return "", ""
        if self._channels is not None:
            pending, self._held = self._held, ""
            return self._channels.feed(pending)
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
        if self._channels is not None:
            return self._channels.end()
        pending, self._held = self._held, ""
        return (pending, "") if self._state == "thinking" else ("", pending)

    def _started(self) -> bool:
        lead = self._held.lstrip()
        opened = next((tag for tag in self._TAGS if lead.startswith(tag)), None)
        if opened is not None:
            self._state, self._held = "thinking", lead[len(opened) :]
            self._ends = (self._TAGS[opened],)
            return True
        if lead.startswith(_STARTS):
            self._channels, self._held = ChannelSplitter(), lead
        elif any(tag.startswith(lead) for tag in (*self._TAGS, *_STARTS)):
            return False
        self._state = "text"
        return True

    def _reasoning(self) -> str:
        reasoning, end, self._held = _until(self._held, self._ends)
        if end:
            self._state = "gap"
        return reasoning


_STARTS = ("<|channel|>", "<|start|>assistant")
_MESSAGE = "<|message|>"
_STOPS = ("<|end|>", "<|return|>", "<|start|>")
_LONGEST_HEADER = 300


class ChannelSplitter:
    """Splits an answer of gpt-oss whose server leaves the channels in the text.

    Messages of the channel ``analysis`` are reasoning, all others are answer text; their headers are removed. From a
    message to a tool on, everything is text, because calls are read from there.
    """

    def __init__(self) -> None:
        self._state: Literal["header", "reasoning", "text", "rest"] = "header"
        self._held = ""
        self._thought = self._said = False

    def feed(self, text: str) -> tuple[str, str]:
        """The reasoning and answer text that ``text`` completes."""
        self._held += text
        reasoning = answer = ""
        while True:
            state = self._state
            piece = self._header() if state == "header" else self._body()
            if "reasoning" in (state, self._state):
                reasoning += piece
            else:
                answer += piece
            if self._state == state:
                return reasoning, answer

    def end(self) -> tuple[str, str]:
        pending, self._held = self._held, ""
        return (pending, "") if self._state == "reasoning" else ("", pending)

    def _header(self) -> str:
        """Read the header of a message. Returns the gap between its text and that of earlier ones."""
        header, mark, rest = self._held.partition(_MESSAGE)
        if not mark and len(header) <= _LONGEST_HEADER:
            return ""
        if not mark or "to=" in header:
            self._state = "rest"
            return ""
        self._held = rest
        if header.partition("<|channel|>")[2].strip().startswith("analysis"):
            self._state, before, self._thought = "reasoning", self._thought, True
        else:
            self._state, before, self._said = "text", self._said, True
        return "\n\n" if before else ""

    def _body(self) -> str:
        """The certain text of the running message."""
        piece, stop, self._held = _until(self._held, () if self._state == "rest" else _STOPS)
        if stop:
            self._state = "header"
            self._held = stop + self._held if stop == "<|start|>" else self._held
        return piece


def _until(text: str, marks: Collection[str]) -> tuple[str, str, str]:
    """The text before the first of the marks, that mark, and the rest; without a mark the certain text, nothing, and
    what may be the beginning of one."""
    places = [(at, mark) for mark in marks if (at := text.find(mark)) >= 0]
    if places:
        at, mark = min(places)
        return text[:at], mark, text[at + len(mark) :]
    cut = len(text) - max((_overlap(text, mark) for mark in marks), default=0)
    return text[:cut], "", text[cut:]


def _overlap(text: str, tag: str) -> int:
    """Length of the longest prefix of ``tag`` at the end of ``text``."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)
