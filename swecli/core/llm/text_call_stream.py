"""Following a stream for tool calls that are written as text: what may be one is held back until it is clear."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from swecli.core.llm.protocols.transcript import new_call_id
from swecli.core.llm.text_calls import CLOSE, FENCE, OPEN, read_calls, split_calls
from swecli.core.llm.types import Failed, Finished, StreamEvent, TextDelta
from swecli.core.protocol.messages import Message, Part, Stop, TextPart, ToolCallPart

_State = Literal["start", "text", "tag", "fence", "code", "hold"]


class TextCallStream:
    """Turns the text of an answer into calls where it is some. All other events pass as they are."""

    def __init__(self, tools: Collection[str]) -> None:
        self._tools = frozenset(tools)
        self._parts: dict[int, _Text] = {}

    def feed(self, event: StreamEvent) -> Iterator[StreamEvent]:
        """The events that follow from one event of the model."""
        match event:
            case TextDelta(part=part, text=text):
                shown = self._parts.setdefault(part, _Text(self._tools)).feed(text)
                if shown:
                    yield TextDelta(part, shown)
            case Finished(message=message):
                changed = with_calls(message, self._tools)
                yield from self._rest(changed)
                yield Finished(changed)
            case Failed():
                yield from self._rest(None)
                yield event
            case _:
                yield event

    def _rest(self, message: Message | None) -> Iterator[StreamEvent]:
        """What was held back and is text after all."""
        for index, text in self._parts.items():
            part = message.parts[index] if message is not None and index < len(message.parts) else None
            whole = part.text if isinstance(part, TextPart) else text.all if message is None else ""
            if len(whole) > len(text.shown) and whole.startswith(text.shown):
                yield TextDelta(index, whole[len(text.shown) :])


def with_calls(message: Message, tools: Collection[str]) -> Message:
    """The message with the calls in its text as parts of their own; unchanged where there are none, where it has
    other calls, or where it was cut."""
    response = message.response
    if message.tool_calls or response is None or not response.complete or response.stop.kind == "length":
        return message
    parts: list[Part] = []
    calls: list[Part] = []
    for part in message.parts:
        split = split_calls(part.text, tools) if isinstance(part, TextPart) else None
        if split is not None:
            part = TextPart(split.text)
            calls += [ToolCallPart(new_call_id(), call.name, call.arguments) for call in split.calls]
        parts.append(part)
    if not calls:
        return message
    if parts and isinstance(parts[-1], TextPart) and not parts[-1].text:
        parts.pop()  # nothing of it was shown, so its place is free
    stop = Stop("tool_use", response.stop.raw, response.stop.detail)
    return replace(message, parts=(*parts, *calls), response=replace(response, stop=stop))


@dataclass(slots=True)
class _Text:
    """The text of one part. ``shown`` has been given out, ``held`` has not."""

    tools: frozenset[str]
    shown: str = ""
    held: str = ""
    state: _State = "start"
    searched: int = 0
    """Characters of ``held`` in which the end was already looked for."""

    @property
    def all(self) -> str:
        return self.shown + self.held

    def feed(self, text: str) -> str:
        """What is certain to be text."""
        self.held += text
        released = ""
        while (size := self._step()) is not None:
            released += self.held[:size]
            self.held, self.searched = self.held[size:], 0
        self.shown += released
        return released

    def _step(self) -> int | None:
        """One decision: how much of ``held`` is released (0 where only the state changed); None to wait."""
        if self.state == "start":
            lead = self.held.lstrip()
            if not lead:
                return None
            self.state = "hold" if lead[0] in "{[" else "text"
            return 0
        if self.state == "text":
            return self._in_text()
        if self.state == "tag":
            return self._ended(CLOSE, len(OPEN))
        if self.state == "fence":
            return self._in_fence()
        if self.state == "code":
            return self._in_code()
        return None

    def _in_text(self) -> int | None:
        if not self.held:
            return None
        starts = [(self.held.find(mark), mark) for mark in (OPEN, FENCE)]
        found = min(((at, mark) for at, mark in starts if at >= 0), default=None)
        if found is not None:
            self.state = "tag" if found[1] == OPEN else "fence"
            return found[0]
        return len(self.held) - max(_overlap(self.held, OPEN), _overlap(self.held, FENCE)) or None

    def _in_fence(self) -> int | None:
        """Only a block that begins like JSON may be a call; any other is shown as it comes."""
        _, line, content = self.held.partition("\n")
        lead = content.lstrip()
        if line and lead and lead[0] in "{[":
            return self._ended(f"\n{FENCE}", len(self.held) - len(content))
        if not lead and len(self.held) < 200:
            return None
        self.state = "code"
        return len(FENCE)

    def _in_code(self) -> int | None:
        end = self.held.find(FENCE)
        if end >= 0:
            self.state = "text"
            return end + len(FENCE)
        return len(self.held) - _overlap(self.held, FENCE) or None

    def _ended(self, mark: str, start: int) -> int | None:
        """At the end of a block that may be a call: if it is one, all the rest waits for the end of the answer."""
        end = self.held.find(mark, max(start, self.searched - len(mark)))
        if end < 0:
            self.searched = len(self.held)
            return None
        if read_calls(self.held[start:end], self.tools):
            self.state = "hold"
            return 0
        self.state = "text"
        return end + len(mark)


def _overlap(text: str, mark: str) -> int:
    """Length of the longest beginning of ``mark`` that ``text`` ends with."""
    return next((size for size in range(min(len(mark) - 1, len(text)), 0, -1) if text.endswith(mark[:size])), 0)
