"""Calls that a model writes as text, in the forms of the models that people run themselves."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator

from msgspec import Struct

from swecli.core.llm.foreign_calls import own_name
from swecli.core.llm.json_values import (
    JsonObject,
    compact,
    is_list,
    is_object,
    is_too_deep,
    parse_json,
    parse_loose,
    parse_object,
)
from swecli.lazy_pattern import lazy_pattern

OPEN, CLOSE = "<tool_call>", "</tool_call>"
"""Of Hermes, Qwen and many others, and of swecli's own description."""
BLOCKS = {
    OPEN: CLOSE,
    "<function_call>": "</function_call>",
    "<tools>": "</tools>",
    "<|tool_call|>": "<|/tool_call|>",
    "<|tool_call>": "<|/tool_call>",
}
"""Tags around JSON calls, the last two of Granite and Phi, with their ends."""
FUNCTION, END_FUNCTION = "<function=", "</function>"
"""Of Qwen Coder (with a tag for each parameter) and Llama (with JSON)."""
MISTRAL, LLAMA = "[TOOL_CALLS]", "<|python_tag|>"
"""From these on the rest of the answer is calls."""
DEEPSEEK = ("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>")
KIMI = ("<|tool_calls_section_begin|>", "<|tool_call_begin|>")
HARMONY = ("<|start|>", "<|channel|>", "to=functions.")
"""Of gpt-oss, whose messages name their recipient."""
INVOKE = ("<｜DSML｜", "<｜｜DSML｜｜", "<minimax:tool_call>", "<function_calls>", "<invoke name=")
"""Of newer DeepSeek models, MiniMax and others."""
FENCE = "```"

_NAMES = ("name", "tool", "tool_name", "function")
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_OTHERS = ("id", "type")
MARKS = (*BLOCKS, FUNCTION, MISTRAL, LLAMA, *DEEPSEEK, *KIMI, *HARMONY, *INVOKE)
_FUNCTION = lazy_pattern(r"\s*<function=([^>\s]{1,100})>")
_PARAMETER = lazy_pattern(r"<parameter=([^>\s]{1,100})>")
_NAMED = lazy_pattern(r"\s*(?:\[TOOL_CALLS\])?\s*([A-Za-z_][\w.-]{0,99})(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?\s*(?=\{)")
_BETWEEN = " \t\r\n;,"
_AFTER_CALLS = lazy_pattern(r"(?:\s|<\|(?:eom|eot)_id\|>|</s>)*\Z")
_NAME = r"([A-Za-z_][\w.-]{0,99}?)"
_DEEPSEEK = lazy_pattern(
    r"\s*(?:<｜tool▁calls▁begin｜>\s*)?<｜tool▁call▁begin｜>\s*(?:function\s*<｜tool▁sep｜>\s*)?"
    rf"{_NAME}\s*(?:<｜tool▁sep｜>\s*)?(?:```(?:json)?\s*)?(?=\{{)"
)
_KIMI = lazy_pattern(
    r"\s*(?:<\|tool_calls_section_begin\|>\s*)?<\|tool_call_begin\|>\s*(?:functions\.)?"
    rf"{_NAME}(?::\d+)?\s*<\|tool_call_argument_begin\|>\s*(?=\{{)"
)
_TO = rf"to=(?:functions\.)?{_NAME}\s*"
_HARMONY = lazy_pattern(
    r"\s*(?:<\|start\|>)?\s*(?:assistant)?\s*"
    rf"(?:{_TO}(?:<\|channel\|>\s*\w+)?|<\|channel\|>\s*\w+\s+{_TO})\s*"
    r"(?:<\|constrain\|>)?\s*(?:json|code)?\s*<\|message\|>\s*(?=\{)"
)
_AFTER_ROW = lazy_pattern(
    r"(?:\s|```|<｜tool▁calls?▁end｜>|<｜end▁of▁sentence｜>|<\|tool_call(?:s_section)?_end\|>"
    r"|<\|(?:call|end|return|im_end)\|>)*"
)
_WRAPPER = lazy_pattern(r"\s*</?[^<>]{1,40}>\s*")
_INVOKE = lazy_pattern(r"\s*<([^<>\s\"]{0,20}?)invoke\s+name=\"([^<>\"]{1,100})\"\s*>")
_SLOT = lazy_pattern(r"\s*<[^<>\s\"]{0,20}?parameter\s+name=\"([^<>\"]{1,100})\"(?:\s+string=\"(true|false)\")?\s*>")
_AFTER_SLOT = lazy_pattern(r"\s*(?:<[^<>\s\"]{0,20}?parameter\s|</[^<>\s\"]{0,20}?invoke>|\Z)")
_NAMED_PAIRS = lazy_pattern(rf"\s*{_NAME}\s*(?:<tool_sep>\s*)?(?=<arg_key>|\Z)")
_PAIR = lazy_pattern(r"<arg_key>([^<>]{1,100})</arg_key>\s*<arg_value>")
_AFTER_PAIR = lazy_pattern(r"\s*(?=<arg_key>|\Z)")
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


def known_name(name: str, tools: Collection[str]) -> str:
    """The tool of ``tools`` that a model calls ``name``; empty if there is none."""
    return name if name in tools else own if (own := own_name(name)) in tools else ""


def split_calls(text: str, tools: Collection[str]) -> Split | None:
    """Extract the calls from an answer; None if it has none."""
    return _tagged(text, tools) or _fenced(text, tools) or _alone(text, tools)


def read_calls(text: str, tools: Collection[str]) -> tuple[TextCall, ...]:
    """The calls in a piece of JSON; empty if it is anything else."""
    try:
        value = parse_loose(text)
    except ValueError:
        return ()
    calls = [_call(item, tools) for item in (value if is_list(value) else [value])]
    return tuple(call for call in calls if call is not None) if all(calls) else ()


def _tagged(text: str, tools: Collection[str]) -> Split | None:
    texts: list[str] = []
    calls: list[TextCall] = []
    position = failed = 0
    while failed < _MAX_MARKS:
        places = [(at, mark) for mark in MARKS if (at := text.find(mark, position)) >= 0]
        if not places:
            break
        start, mark = min(places)
        marked_calls, end = _marked(text, start, mark, tools)
        failed += not marked_calls
        texts.append(text[position : start if marked_calls else start + len(mark)])
        calls.extend(marked_calls)
        position = end if marked_calls else start + len(mark)
    if not calls:
        return None
    return Split(_joined([*texts, text[position:]]), tuple(calls))


def _marked(text: str, start: int, mark: str, tools: Collection[str]) -> tuple[tuple[TextCall, ...], int]:
    """The calls behind the mark at ``start``, and where they end."""
    inside = start + len(mark)
    if mark == MISTRAL:
        return _listed(text[inside:], tools), len(text)
    if mark == LLAMA:
        return _sequence(text[inside:], tools), len(text)
    for marks, head in ((DEEPSEEK, _DEEPSEEK), (KIMI, _KIMI), (HARMONY, _HARMONY)):
        if mark in marks:
            return _in_a_row(text, start, head, tools)
    if mark in INVOKE:
        return _invoked(text, start, tools)
    if mark == FUNCTION:
        for _, after in _ends(text, inside, END_FUNCTION):
            if calls := function_calls(text[start:after], tools):
                rest = text[after:]
                stray = len(rest) - len(rest.lstrip().removeprefix(CLOSE)) if rest.lstrip().startswith(CLOSE) else 0
                return calls, after + stray
        return (), inside
    for stop, after in _ends(text, inside, BLOCKS[mark]):
        if calls := block_calls(text[inside:stop], tools):
            return calls, after
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


def block_calls(text: str, tools: Collection[str]) -> tuple[TextCall, ...]:
    """The calls between two tags."""
    return read_calls(text, tools) or function_calls(text, tools) or _pairs(text, tools)


def _in_a_row(text: str, start: int, head: re.Pattern[str], tools: Collection[str]) -> tuple[tuple[TextCall, ...], int]:
    """Calls one after the other, and their end: ``head`` matches what comes before the JSON object of each, and the
    name in it."""
    calls: list[TextCall] = []
    position = start
    while (match := head.match(text, position)) is not None:
        value, end = _leading(text, match.end())
        name = known_name(match[match.lastindex or 0], tools)
        if not name or not is_object(value):
            return (), start
        calls.append(TextCall(name, compact(value)))
        after = _AFTER_ROW.match(text, end)
        position = after.end() if after is not None else end
    return tuple(calls), position


def _invoked(text: str, start: int, tools: Collection[str]) -> tuple[tuple[TextCall, ...], int]:
    """Calls as ``invoke`` tags, whose names may have a prefix, with a tag for each parameter; and their end."""
    calls: list[TextCall] = []
    wrapper = _WRAPPER.match(text, start) if _INVOKE.match(text, start) is None else None
    position = wrapper.end() if wrapper is not None else start
    while (match := _INVOKE.match(text, position)) is not None:
        arguments, position = _slots(text, match.end(), match[1])
        name = known_name(match[2], tools)
        if arguments is None or not name:
            return (), start
        calls.append(TextCall(name, compact(arguments)))
    closing = _WRAPPER.match(text, position) if wrapper is not None else None
    after = _AFTER_ROW.match(text, closing.end() if closing is not None else position)
    return tuple(calls), after.end() if after is not None else position


def _slots(text: str, position: int, prefix: str) -> tuple[JsonObject | None, int]:
    """The parameters of an ``invoke`` tag, and the end of the tag; None if they are not closed."""
    out: JsonObject = {}
    close = f"</{prefix}parameter>"
    while (match := _SLOT.match(text, position)) is not None:
        ends = _ends(text, match.end(), close)
        stop, position = next(((at, after) for at, after in ends if _AFTER_SLOT.match(text, after)), (-1, -1))
        if stop < 0 or not text.startswith(close, stop):
            return None, position
        out[match[1]] = _value(text[match.end() : stop], is_json=match[2] == "false")
    end = text.find(f"</{prefix}invoke>", position)
    if end < 0 and not text[position:].strip():
        return out, len(text)
    if end < 0 or text[position:end].strip():
        return None, position
    return out, end + len(prefix) + len("</invoke>")


def _value(text: str, *, is_json: bool) -> object:
    try:
        return parse_json(text) if is_json else text
    except ValueError:
        return text


def _pairs(text: str, tools: Collection[str]) -> tuple[TextCall, ...]:
    """The call of GLM: a name, and pairs of a key and a value; the tools correct numbers and lists written as text."""
    head = _NAMED_PAIRS.match(text)
    name = known_name(head[1], tools) if head is not None else ""
    if head is None or not name:
        return ()
    out: JsonObject = {}
    position = head.end()
    while (match := _PAIR.match(text, position)) is not None:
        for stop, after in _ends(text, match.end(), _END_VALUE):
            if (gap := _AFTER_PAIR.match(text, after)) is not None and after > stop:
                out[match[1].strip()] = text[match.end() : stop]
                position = gap.end()
                break
        else:
            return ()
    return (TextCall(name, compact(out)),) if not text[position:].strip() else ()


_END_VALUE = "</arg_value>"


def function_calls(text: str, tools: Collection[str]) -> tuple[TextCall, ...]:
    """``<function=NAME>`` with JSON or parameters, once or several times, and nothing else."""
    calls: list[TextCall] = []
    while (head := _FUNCTION.match(text)) is not None and (name := known_name(head[1], tools)):
        stop = text.find(f"{END_FUNCTION}\n{FUNCTION}", head.end())
        whole = text[head.end() : stop if stop >= 0 else len(text)].strip()
        body = whole.removesuffix(END_FUNCTION).strip()
        arguments = parse_object(body) if body.startswith("{") else _parameters(body)
        if arguments is None or not whole:
            return ()
        calls.append(TextCall(name, compact(arguments)))
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
    while (head := _NAMED.match(text, position)) is not None and (name := known_name(head[1], tools)):
        value, position = _leading(text, head.end())
        if not is_object(value):
            return ()
        calls.append(TextCall(name, compact(value)))
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
            (
                (match.start(), fenced_calls)
                for match in starts
                if (fenced_calls := read_calls(inside[match.end() :], tools))
            ),
            None,
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
    name = known_name(names[0], tools) if isinstance(names[0], str) else ""
    return TextCall(name, compact(arguments)) if name and arguments is not None and len(given) <= 1 else None


def _object(value: object) -> JsonObject | None:
    if isinstance(value, str):
        return parse_object(value)
    return value if is_object(value) else None
