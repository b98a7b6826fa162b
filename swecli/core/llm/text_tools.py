"""Tools for models without tool support: described in the prompt, called and answered as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, field, structs
from msgspec.structs import replace

from swecli.core.llm.errors import WireError
from swecli.core.llm.json_values import JsonObject, compact
from swecli.core.llm.protocols.arguments import arguments_object
from swecli.core.llm.protocols.base import new_call_id
from swecli.core.llm.text_calls import (
    BLOCKS,
    CLOSE,
    END_FUNCTION,
    FENCE,
    FUNCTION,
    MARKS,
    OPEN,
    Split,
    TextCall,
    block_calls,
    function_calls,
    known_name,
    read_calls,
    split_calls,
)
from swecli.core.llm.types import CallText, Failed, Finished, ModelRequest, StreamEvent, SystemBlock, TextDelta
from swecli.core.llm.unusual_calls import cut_call, spelled_calls
from swecli.core.protocol.messages import Message, Part, Stop, TextPart, ToolCallPart
from swecli.lazy_pattern import lazy_pattern

_Read = Callable[[str, Collection[str]], tuple[TextCall, ...]]
_BEGINNINGS = (*MARKS, FENCE)
_SIGNS = "".join(sorted({mark[0] for mark in _BEGINNINGS if not mark[0].isalpha()}))
_LETTERS = [
    f"{re.escape(mark[:size])}{'' if size == 3 else '$'}" for mark in MARKS if mark[0].isalpha() for size in (3, 2, 1)
]
_BEGINNING = lazy_pattern("|".join((f"[{re.escape(_SIGNS)}]", *_LETTERS)))
"""What a text has in which a mark begins, perhaps only at its end."""
_HEAD = 400
"""Characters of a call that contain the name of its tool, if it comes first."""
_TOOL_NAME = lazy_pattern(
    r"""(?:["'](?:name|tool|tool_name|function)["']\s*:\s*["']|<function=|invoke name="|to=(?:functions\.)?)"""
    r"""([\w.-]{1,100})["'>\s]"""
)
_NO_TOOLS = lazy_pattern(
    r"(?:does not|doesn't) support (?:the use of )?(?:tools?|(?:tool|function)[- ](?:calls?|calling|use))\b"
    r"|(?:\btools?|(?:tool|function)[- ](?:calls?|calling|use))[`'\"]? (?:is|are) not (?:supported|enabled|available)"
    r"|(?:\bfunctions|function calling) (?:(?:is|are) )?(?:unsupported|not support)"
    r"|(?:unsupported|unrecognized|unknown) (?:request )?(?:param|argument|field)[^\n]{0,20}[:'\"` ]tools\b(?!\.)"
    r"|support tool use|tool choice requires --enable-auto-tool-choice|tools param requires --jinja"
    r"|cannot use tools with stream",
    re.IGNORECASE,
)
_State = Literal["start", "text", "tag", "fence", "code", "hold"]


def refuses_tools(error: WireError) -> bool:
    """Whether the server reports that the model, as configured, can't be given tools."""
    return error.kind in ("bad_request", "not_found", "server") and _NO_TOOLS.search(error.words) is not None


class TextCallStream:
    """Converts text of an answer into calls. All other events pass unchanged."""

    def __init__(self, tools: Collection[str]) -> None:
        self._tools = frozenset(tools)
        self._parts: dict[int, _Text] = {}

    def feed(self, event: StreamEvent) -> Sequence[StreamEvent]:
        match event:
            case TextDelta(part=part, text=text):
                known = self._parts.get(part)
                if known is None:
                    known = self._parts[part] = _Text(self._tools)
                shown = known.feed(text)
                told = () if not shown else (event,) if shown == text else (TextDelta(part, shown),)
                return (*told, CallText(part, call, known.name)) if (call := known.call_text()) else told
            case Finished(message=message):
                shown = [index for index, text in self._parts.items() if text.shown]
                changed = with_calls(message, self._tools, shown)
                return (*self._rest(changed), Finished(changed))
            case Failed():
                return (*self._rest(None), event)
            case _:
                return (event,)

    def _rest(self, message: Message | None) -> Iterator[StreamEvent]:
        for index, text in self._parts.items():
            part = message.parts[index] if message is not None and index < len(message.parts) else None
            whole = part.text if isinstance(part, TextPart) else text.all if message is None else ""
            shown = text.shown
            if len(whole) > len(shown) and whole.startswith(shown):
                yield TextDelta(index, whole[len(shown) :])


def with_calls(message: Message, tools: Collection[str], shown: Collection[int] = ()) -> Message:
    """The message with the calls in its text as separate parts; unchanged if it has none or has native calls. Of an
    answer cut at the output limit, only the call that was cut is taken, for the model to hear of it. Parts of which
    something was ``shown`` stay, even empty."""
    response = message.response
    if message.tool_calls or response is None or not response.complete:
        return message
    cut = response.stop.kind == "length"
    parts: list[Part] = []
    calls: list[Part] = []
    for part in message.parts:
        split = _split(part.text, tools, cut=cut) if isinstance(part, TextPart) else None
        if split is not None:
            part = TextPart(split.text)
            calls += [ToolCallPart(new_call_id(), call.name, call.arguments) for call in split.calls]
        parts.append(part)
    if not calls:
        return message
    if parts and isinstance(parts[-1], TextPart) and not parts[-1].text and len(parts) - 1 not in shown:
        parts.pop()
    stop = response.stop if cut else Stop("tool_use", response.stop.raw, response.stop.detail)
    return structs.replace(message, parts=(*parts, *calls), response=structs.replace(response, stop=stop))


def _split(text: str, tools: Collection[str], *, cut: bool) -> Split | None:
    if cut:
        return cut_call(text, tools)
    return split_calls(text, tools) or spelled_calls(text, tools)


class _Text(Struct):
    """The text of one part. ``pieces`` have been emitted, ``held`` has not."""

    tools: frozenset[str]
    pieces: list[str] = field(default_factory=list[str])
    held: str = ""
    state: _State = "start"
    searched: int = 0
    """Characters of ``held`` already searched for the end."""
    told: int = 0
    """Characters of ``held`` that ``call_text`` has returned."""
    name: str = ""
    """The tool of the first call in ``held``, as soon as it is written."""

    @property
    def shown(self) -> str:
        return "".join(self.pieces)

    @property
    def all(self) -> str:
        return self.shown + self.held

    def feed(self, text: str) -> str:
        if self.state == "text" and not self.held and not _BEGINNING.search(text):
            self.pieces.append(text)
            return text
        self.held += text
        released = ""
        while (size := self._step()) is not None:
            released += self.held[:size]
            self.held, self.searched = self.held[size:], 0
        self.pieces.append(released)
        if released:
            self.told, self.name = max(0, self.told - len(released)), ""
        return released

    def call_text(self) -> str:
        """The text that is held back as a possible call, without what was returned before."""
        if self.state not in ("tag", "fence", "hold") or (self.state == "fence" and "{" not in self.held):
            return ""
        if not self.name and (match := _TOOL_NAME.search(self.held[:_HEAD])) is not None:
            self.name = known_name(match[1], self.tools)
        new, self.told = self.held[self.told :], len(self.held)
        return new

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
        if self.state == "tag":
            tag = next((tag for tag in BLOCKS if self.held.startswith(tag)), "")
            if tag:
                return self._ended(BLOCKS[tag], len(tag), block_calls)
            return self._ended(END_FUNCTION, 0, function_calls)
        if self.state == "fence":
            return self._in_fence()
        if self.state == "code":
            return self._in_code()
        return None

    def _in_text(self) -> int | None:
        if not self.held:
            return None
        starts = [(self.held.find(mark), mark) for mark in _BEGINNINGS]
        earliest = min(((at, mark) for at, mark in starts if at >= 0), default=None)
        if earliest is not None:
            self.state = "fence" if earliest[1] == FENCE else "tag" if earliest[1] in (*BLOCKS, FUNCTION) else "hold"
            return earliest[0]
        return len(self.held) - max(_overlap(self.held, mark) for mark in _BEGINNINGS) or None

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
    if mark[0] not in text[1 - len(mark) :]:
        return 0
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


_MOST_CHARACTERS = 5.2
"""Characters of English and JSON in a token, at most: no tokenizer packs a prompt more tightly."""
_LEAST_TOKENS = 6.5
"""Characters in a token where a report says that the prompt was not read as a whole: it counts nothing."""


def tools_dropped(body: JsonObject, message: Message) -> bool:
    """Whether the server left the tools of this request's body out of the prompt, as chat templates without a place for
    them do: its own count is too small for a prompt with them. Reliable only for a server's first answer, because some
    servers do not count what they have in their cache."""
    usage = message.response.usage if message.response is not None else None
    native = body.get("tools")
    if usage is None or usage.input_total is None or not native or message.tool_calls:
        return False
    tools = len(compact(native))
    rest = len(compact(body)) - tools
    return rest / _LEAST_TOKENS < usage.input_total < (rest + tools) / _MOST_CHARACTERS and tools > rest / 3


def uncounted(message: Message) -> Message:
    """The answer without the size of its prompt: one without the tools is no measure of a request with them."""
    response = message.response
    if response is None or response.usage is None:
        return message
    return replace(message, response=replace(response, usage=replace(response.usage, input_total=None)))


def as_text(request: ModelRequest) -> ModelRequest:
    """The request without native tools: the system prompt describes them, calls and results are text."""
    lines = [
        compact({"name": tool.name, "description": tool.description, "arguments": _in_words(tool.parameters)})
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


def _in_words(schema: Mapping[str, Any]) -> JsonObject:
    """The parameters of a tool, each with its type and meaning in a few words: a JSON schema is half as long again. A
    parameter with a structure of its own keeps its schema."""
    required = schema.get("required", ())
    words: JsonObject = {}
    for name, value in schema.get("properties", {}).items():
        if not set(value) <= {"type", "description"} or not isinstance(value.get("type"), str):
            words[name] = value
            continue
        kind = value["type"] if name in required else f"{value['type']}, optional"
        words[name] = f"{kind}: {value['description']}" if value.get("description") else kind
    return words


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
        parts.extend((*result.images, *result.documents))
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
