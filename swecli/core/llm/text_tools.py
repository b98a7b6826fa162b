"""Tools for models without tool support: described in the prompt, called and answered as text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from typing import Literal

from msgspec import Struct, field, structs
from msgspec.structs import replace

from swecli.core.llm.json_values import JsonObject, compact, is_list, is_object, is_too_deep, parse_json, parse_object
from swecli.core.llm.protocols.arguments import arguments_object
from swecli.core.llm.protocols.base import new_call_id
from swecli.core.llm.types import Failed, Finished, ModelRequest, StreamEvent, SystemBlock, TextDelta
from swecli.core.protocol.messages import Message, Part, Stop, TextPart, ToolCallPart
from swecli.lazy_pattern import lazy_pattern

OPEN, CLOSE = "<tool_call>", "</tool_call>"
"""Of Hermes, Qwen and many others, and of swecli's own description."""
FUNCTION, END_FUNCTION = "<function=", "</function>"
"""Of Qwen Coder (with a tag for each parameter) and Llama (with JSON)."""
MISTRAL, LLAMA = "[TOOL_CALLS]", "<|python_tag|>"
"""From these on the rest of the answer is calls."""
FENCE = "```"

_NAMES = ("name", "tool", "tool_name", "function")
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_OTHERS = ("id", "type")
_MARKS = (OPEN, FUNCTION, MISTRAL, LLAMA)
_FUNCTION = lazy_pattern(r"\s*<function=([^>\s]{1,100})>")
_PARAMETER = lazy_pattern(r"<parameter=([^>\s]{1,100})>")
_NAMED = lazy_pattern(r"\s*(?:\[TOOL_CALLS\])?\s*([A-Za-z_][\w.-]{0,99})(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?\s*(?=\{)")
_BETWEEN = " \t\r\n;,"
_AFTER_CALLS = lazy_pattern(r"(?:\s|<\|(?:eom|eot)_id\|>|</s>)*\Z")
_FENCE_START = lazy_pattern(r"^```[\w-]*[ \t]*\n", re.MULTILINE)
_MAX_ENDS = 50
"""Candidate ends of a block that are tried, because its JSON may contain similar text."""
_MAX_MARKS = 500
"""Marks without a call behind them after which the rest is text."""


class TextCall(Struct, frozen=True):
    """``arguments`` is the text of a JSON object."""

    name: str
    arguments: str


class Split(Struct, frozen=True):
    """The remaining text, and the calls extracted from it."""

    text: str
    calls: tuple[TextCall, ...]


def split_calls(text: str, tools: Collection[str]) -> Split | None:
    """Extract the calls from an answer; None if it has none."""
    return _tagged(text, tools) or _fenced(text, tools) or _alone(text, tools)


def read_calls(text: str, tools: Collection[str]) -> tuple[TextCall, ...]:
    """The calls in a piece of JSON; empty if it is anything else."""
    try:
        value = parse_json(text)
    except ValueError:
        return ()
    calls = [_call(item, tools) for item in (value if is_list(value) else [value])]
    return tuple(call for call in calls if call is not None) if all(calls) else ()


def _tagged(text: str, tools: Collection[str]) -> Split | None:
    kept: list[str] = []
    calls: list[TextCall] = []
    position = failed = 0
    while failed < _MAX_MARKS:
        places = [(at, mark) for mark in _MARKS if (at := text.find(mark, position)) >= 0]
        if not places:
            break
        start, mark = min(places)
        found, end = _marked(text, start, mark, tools)
        failed += not found
        kept.append(text[position : start if found else start + len(mark)])
        calls.extend(found)
        position = end if found else start + len(mark)
    if not calls:
        return None
    return Split(_joined([*kept, text[position:]]), tuple(calls))


def _marked(text: str, start: int, mark: str, tools: Collection[str]) -> tuple[tuple[TextCall, ...], int]:
    """The calls behind the mark at ``start``, and where they end."""
    inside = start + len(mark)
    if mark == MISTRAL:
        return _listed(text[inside:], tools), len(text)
    if mark == LLAMA:
        return _sequence(text[inside:], tools), len(text)
    if mark == FUNCTION:
        for _, after in _ends(text, inside, END_FUNCTION):
            if found := _functions(text[start:after], tools):
                rest = text[after:]
                stray = len(rest) - len(rest.lstrip().removeprefix(CLOSE)) if rest.lstrip().startswith(CLOSE) else 0
                return found, after + stray
        return (), inside
    for stop, after in _ends(text, inside, CLOSE):
        if found := _block(text[inside:stop], tools):
            return found, after
    return (), inside


def _ends(text: str, start: int, close: str) -> Iterator[tuple[int, int]]:
    """Possible ends of a block, and where the rest begins. A model may omit the closing tag."""
    position = start
    for _ in range(_MAX_ENDS):
        stop = text.find(close, position)
        if stop < 0:
            break
        position = stop + len(close)
        yield stop, position
    yield len(text), len(text)


def _block(text: str, tools: Collection[str]) -> tuple[TextCall, ...]:
    return read_calls(text, tools) or _functions(text, tools)


def _functions(text: str, tools: Collection[str]) -> tuple[TextCall, ...]:
    """``<function=NAME>`` with JSON or parameters, once or several times, and nothing else."""
    calls: list[TextCall] = []
    while (head := _FUNCTION.match(text)) is not None and head[1] in tools:
        stop = text.find(f"{END_FUNCTION}\n{FUNCTION}", head.end())
        whole = text[head.end() : stop if stop >= 0 else len(text)].strip()
        body = whole.removesuffix(END_FUNCTION).strip()
        arguments = parse_object(body) if body.startswith("{") else _parameters(body)
        if arguments is None or not whole:
            return ()
        calls.append(TextCall(head[1], compact(arguments)))
        text = text[stop + len(END_FUNCTION) :] if stop >= 0 else ""
    return tuple(calls) if not text.strip() else ()


def _parameters(body: str) -> JsonObject | None:
    """Parameters as tags, their values as text: the tools correct numbers and lists written so."""
    heads = list(_PARAMETER.finditer(body))
    ends = [*(head.start() for head in heads[1:]), len(body)]
    out: JsonObject = {}
    for head, end in zip(heads, ends, strict=False):
        value = body[head.end() : end].rstrip()
        if not value.endswith(_END_PARAMETER):
            return None
        out[head[1]] = value.removesuffix(_END_PARAMETER).removeprefix("\n").removesuffix("\n")
    return out if not body[: heads[0].start() if heads else len(body)].strip() else None


_END_PARAMETER = "</parameter>"


def _listed(text: str, tools: Collection[str]) -> tuple[TextCall, ...]:
    """Mistral's calls: JSON, or a name before each object of arguments."""
    calls: list[TextCall] = []
    position = 0
    while (head := _NAMED.match(text, position)) is not None and head[1] in tools:
        value, position = _leading(text, head.end())
        if not is_object(value):
            return ()
        calls.append(TextCall(head[1], compact(value)))
    if not calls:
        return _sequence(text, tools)
    return tuple(calls) if _AFTER_CALLS.match(text, position) else ()


def _sequence(text: str, tools: Collection[str]) -> tuple[TextCall, ...]:
    """JSON calls one after the other, and nothing else."""
    calls: list[TextCall] = []
    position = 0
    while True:
        while position < len(text) and text[position] in _BETWEEN:
            position += 1
        if _AFTER_CALLS.match(text, position) is not None:
            return tuple(calls)
        value, end = _leading(text, position)
        made = [_call(item, tools) for item in (value if is_list(value) else [value])]
        if end == position or not all(made):
            return ()
        calls += [call for call in made if call is not None]
        position = end


def _leading(text: str, start: int) -> tuple[object, int]:
    """The JSON value at ``start`` and its end; ``start`` itself if there is none."""
    try:
        value, end = _JSON.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start
    return (None, start) if is_too_deep(text[start:end]) else (value, end)


_JSON = json.JSONDecoder()


def _fenced(text: str, tools: Collection[str]) -> Split | None:
    body, calls = text.rstrip(), list[TextCall]()
    while body.endswith(FENCE):
        inside = body[: -len(FENCE)]
        starts = list(_FENCE_START.finditer(inside))[-_MAX_ENDS:]
        hit = next(
            ((match.start(), found) for match in starts if (found := read_calls(inside[match.end() :], tools))), None
        )
        if hit is None:
            break
        body, calls = body[: hit[0]].rstrip(), [*hit[1], *calls]
    return Split(body, tuple(calls)) if calls else None


def _alone(text: str, tools: Collection[str]) -> Split | None:
    if not text.lstrip().startswith(("{", "[")):
        return None
    calls = read_calls(text, tools) or _sequence(text, tools)
    return Split("", calls) if calls else None


def _joined(pieces: list[str]) -> str:
    filled = [piece.strip("\n") for piece in pieces]
    return "\n".join(piece for piece in filled if piece.strip()).rstrip()


def _call(value: object, tools: Collection[str]) -> TextCall | None:
    if not is_object(value) or not value.keys() <= {*_NAMES, *_ARGUMENTS, *_OTHERS}:
        return None
    names = [value[key] for key in _NAMES if key in value]
    if len(names) != 1:
        return None
    if is_object(names[0]):  # the format of the native protocol
        return _call(names[0], tools) if not any(key in value for key in _ARGUMENTS) else None
    given = [value[key] for key in _ARGUMENTS if key in value]
    arguments = _object(given[0]) if given else {}
    if len(given) > 1 or arguments is None or not isinstance(names[0], str) or names[0] not in tools:
        return None
    return TextCall(names[0], compact(arguments))


def _object(value: object) -> JsonObject | None:
    if isinstance(value, str):
        return parse_object(value)
    return value if is_object(value) else None


_Read = Callable[[str, Collection[str]], tuple[TextCall, ...]]
_State = Literal["start", "text", "tag", "fence", "code", "hold"]


class TextCallStream:
    """Converts text of an answer into calls. All other events pass unchanged."""

    def __init__(self, tools: Collection[str]) -> None:
        self._tools = frozenset(tools)
        self._parts: dict[int, _Text] = {}

    def feed(self, event: StreamEvent) -> Iterator[StreamEvent]:
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
        for index, text in self._parts.items():
            part = message.parts[index] if message is not None and index < len(message.parts) else None
            whole = part.text if isinstance(part, TextPart) else text.all if message is None else ""
            shown = text.shown
            if len(whole) > len(shown) and whole.startswith(shown):
                yield TextDelta(index, whole[len(shown) :])


def with_calls(message: Message, tools: Collection[str]) -> Message:
    """The message with the calls in its text as separate parts; unchanged if it has none, has native calls, or was
    cut."""
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
    return structs.replace(message, parts=(*parts, *calls), response=structs.replace(response, stop=stop))


class _Text(Struct):
    """The text of one part. ``pieces`` have been emitted, ``held`` has not."""

    tools: frozenset[str]
    pieces: list[str] = field(default_factory=list[str])
    held: str = ""
    state: _State = "start"
    searched: int = 0
    """Characters of ``held`` already searched for the end."""

    @property
    def shown(self) -> str:
        return "".join(self.pieces)

    @property
    def all(self) -> str:
        return self.shown + self.held

    def feed(self, text: str) -> str:
        self.held += text
        released = ""
        while (size := self._step()) is not None:
            released += self.held[:size]
            self.held, self.searched = self.held[size:], 0
        self.pieces.append(released)
        return released

    def _step(self) -> int | None:
        """One decision: how much of ``held`` is released (0 if only the state changed); None to wait."""
        if self.state == "start":
            lead = self.held.lstrip()
            if not lead:
                return None
            self.state = "hold" if lead[0] in "{[" else "text"
            return 0
        if self.state == "text":
            return self._in_text()
        if self.state == "tag" and self.held.startswith(OPEN):
            return self._ended(CLOSE, len(OPEN), _block)
        if self.state == "tag":
            return self._ended(END_FUNCTION, 0, _functions)
        if self.state == "fence":
            return self._in_fence()
        if self.state == "code":
            return self._in_code()
        return None

    def _in_text(self) -> int | None:
        if not self.held:
            return None
        marks = (*_MARKS, FENCE)
        starts = [(self.held.find(mark), mark) for mark in marks]
        found = min(((at, mark) for at, mark in starts if at >= 0), default=None)
        if found is not None:
            self.state = "fence" if found[1] == FENCE else "tag" if found[1] in (OPEN, FUNCTION) else "hold"
            return found[0]
        return len(self.held) - max(_overlap(self.held, mark) for mark in marks) or None

    def _in_fence(self) -> int | None:
        """Only a block that begins like JSON may be a call; any other is shown at once."""
        _, line, content = self.held.partition("\n")
        lead = content.lstrip()
        if line and lead and lead[0] in "{[":
            return self._ended(f"\n{FENCE}", len(self.held) - len(content), read_calls)
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

    def _ended(self, mark: str, start: int, read: _Read) -> int | None:
        """Handle the end of a possible call: if it is one, the rest waits for the end of the answer."""
        end = self.held.find(mark, max(start, self.searched - len(mark)))
        if end < 0:
            self.searched = len(self.held)
            return None
        if read(self.held[start:end], self.tools):
            self.state = "hold"
            return 0
        self.state = "text"
        return end + len(mark)


def _overlap(text: str, mark: str) -> int:
    """Length of the longest prefix of ``mark`` at the end of ``text``."""
    return next((size for size in range(min(len(mark) - 1, len(text)), 0, -1) if text.endswith(mark[:size])), 0)


_INTRODUCTION = f"""\
# Tools

You can call the tools below. To call one, write a block like this, with nothing after it, and stop:

{OPEN}
{{"name": "tool_name", "arguments": {{"parameter": "value"}}}}
{CLOSE}

The block holds one JSON object: strings are quoted, line breaks in them written as \\n. Several blocks in a row are
several calls. Each result comes in the next message, between <tool_response> and </tool_response>. Never write a result
yourself. The tools, one JSON object a line:
"""


def as_text(request: ModelRequest) -> ModelRequest:
    """The request without native tools: the system prompt describes them, calls and results are text."""
    lines = [
        compact({"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)})
        for tool in request.tools
    ]
    system = (*request.system, SystemBlock(_INTRODUCTION + "\n".join(lines))) if lines else request.system
    messages = [_message(message) for message in request.messages]
    merged = list(_merged(messages))
    # Breakpoints stay with their messages.
    places = {message.id: index for index, message in enumerate(merged)}
    wanted = (request.messages[index].id for index in request.breakpoints if index < len(request.messages))
    breakpoints = tuple(sorted({places[name] for name in wanted if name in places}))
    return replace(request, system=system, tools=(), messages=tuple(merged), breakpoints=breakpoints)


def _message(message: Message) -> Message:
    if message.role == "assistant":
        return structs.replace(
            message, parts=tuple(_as_text(part, at, message) for at, part in enumerate(message.parts))
        )
    if message.role != "tool":
        return message
    parts: list[Part] = []
    for at, result in enumerate(message.tool_results):
        gap = "\n" if at else ""
        mark = " (error)" if result.is_error else ""
        parts.append(TextPart(f"{gap}<tool_response>\n{result.name}{mark}:\n{result.text}\n</tool_response>"))
        parts.extend(result.images)
    return structs.replace(message, role="user", parts=tuple(parts))


def _as_text(part: Part, at: int, message: Message) -> Part:
    if not isinstance(part, ToolCallPart):
        return part
    shown: JsonObject = {"name": part.name, "arguments": arguments_object(part.arguments, message)}
    gap = "\n" if at else ""
    return TextPart(f"{gap}{OPEN}\n{compact(shown)}\n{CLOSE}")


def _merged(messages: list[Message]) -> Iterator[Message]:
    """Merge consecutive user messages: many chat templates require alternating roles."""
    waiting: Message | None = None
    for message in messages:
        if waiting is not None and waiting.role == message.role == "user":
            waiting = structs.replace(message, parts=(*waiting.parts, TextPart("\n\n"), *message.parts))
            continue
        if waiting is not None:
            yield waiting
        waiting = message
    if waiting is not None:
        yield waiting
