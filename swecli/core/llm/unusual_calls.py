"""Calls at the end of an answer in forms that no model should write, and calls that can't be read.

A turn must not end at a call: what is clearly meant as one becomes one, with the model's own text as its arguments if
they can't be read, so that the model gets an answer about it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection

from swecli.core.llm.json_values import JsonObject, compact, is_object, parse_loose
from swecli.core.llm.text_calls import BLOCKS, END_FUNCTION, FUNCTION, LLAMA, MISTRAL, Split, TextCall, known_name
from swecli.lazy_pattern import lazy_pattern

_LONGEST = 1_000_000
"""Characters of an answer that are examined."""
_LONGEST_CODE = 200_000
"""The same, for calls in Python."""
_JSON_NAME = lazy_pattern(r"""\s*\[?\s*\{\s*["'](?:name|tool|tool_name|function)["']\s*:\s*["']([\w.:-]{1,100})["']""")
_FENCE_START = lazy_pattern(r"^```(?:json|tool_call)?[ \t]*\n(?=\s*[\[{])", re.MULTILINE)
_FUNCTION_NAME = lazy_pattern(r"\s*<function=([\w.:-]{1,100})>")
_JSON_ARGUMENTS = lazy_pattern(r"""["'](?:arguments|parameters|args|input)["']\s*:\s*""")
_END_TAG = lazy_pattern(r"</([a-z_]{2,40})>\s*\Z")
_CHILD = lazy_pattern(r"\s*<(\w{1,60})>")
_NEXT_CHILD = lazy_pattern(r"\s*(?:<\w{1,60}>|\Z)")
_MAX_ENDS = 50
"""Candidate ends of a value that are tried, because it may contain similar text."""
_TOOL_CODE = lazy_pattern(r"^```(?:tool_code|tool_call)[ \t]*\n(.*)\n```\s*\Z", re.MULTILINE | re.DOTALL)
_ACTION = lazy_pattern(r"^Action:[ \t]*([\w.:-]{1,100})[ \t]*\n\s*Action Input:\s*(?=\{)", re.MULTILINE)
_THOUGHT = lazy_pattern(r"^Thought:", re.MULTILINE)
_PYTHON = lazy_pattern(r"^[ \t]*\[[A-Za-z_]\w*\(.*\)\]\s*\Z", re.MULTILINE | re.DOTALL)


def spelled_calls(text: str, tools: Collection[str]) -> Split | None:
    """The calls at the end of an answer as XML (Cline, Roo), Python (Gemma, Llama) or an action (ReAct), or the one
    call in tags that can't be read; None if there is none."""
    if len(text) > _LONGEST:
        return None
    tagged = _as_xml(text, tools) or _as_python(text, tools) or _as_action(text, tools) or _unreadable(text, tools)
    return tagged or _open_json(text, tools)


def cut_call(text: str, tools: Collection[str]) -> Split | None:
    """The call that an answer was cut in, without arguments; None if it was cut elsewhere."""
    split = _unreadable(text, tools) or _open_json(text, tools) if len(text) <= _LONGEST else None
    if split is None or any(text.rstrip().endswith(end) for end in (*BLOCKS.values(), END_FUNCTION)):
        return None
    return Split(split.text, tuple(TextCall(call.name, "{}") for call in split.calls))


def _as_xml(text: str, tools: Collection[str]) -> Split | None:
    end = _END_TAG.search(text, max(0, len(text.rstrip()) - 50))
    name = known_name(end[1], tools) if end is not None else ""
    if end is None or not name:
        return None
    start = 0 if text.startswith(f"<{end[1]}>") else text.find(f"\n<{end[1]}>") + 1
    inside = text[start + len(end[1]) + 2 : end.start()]
    given = _children(inside) if text.startswith(f"<{end[1]}>", start) else None
    return None if given is None else Split(text[:start].rstrip(), (TextCall(name, compact(given)),))


def _children(text: str) -> JsonObject | None:
    """The tags in a call and their values; None if there is anything else."""
    given: JsonObject = {}
    position = 0
    while (child := _CHILD.match(text, position)) is not None:
        close, at = f"</{child[1]}>", child.end()
        for _ in range(_MAX_ENDS):
            at = text.find(close, at)
            if at < 0 or _NEXT_CHILD.match(text, at + len(close)):
                break
            at += len(close)
        if at < 0 or not _NEXT_CHILD.match(text, at + len(close)):
            return None
        value = text[child.end() : at]
        given[child[1]] = value.removeprefix("\n").removesuffix("\n") if "\n" in value else value
        position = at + len(close)
    return None if not given or text[position:].strip() else given


def _as_python(text: str, tools: Collection[str]) -> Split | None:
    end = text[-50:].rstrip()
    if len(text) > _LONGEST_CODE or not end.endswith((")]", "\n```")):
        return None
    match = _TOOL_CODE.search(text) or _PYTHON.search(text)
    if match is None:
        return None
    try:
        body = ast.parse((match[1] if match.lastindex else match[0]).strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    values = [statement.value for statement in body if isinstance(statement, ast.Expr)]
    if len(values) == 1 and isinstance(values[0], ast.List):
        values = values[0].elts
    calls = [_python_call(value, tools) for value in values]
    whole = len(values) >= len(body) and calls and all(calls)
    return Split(text[: match.start()].rstrip(), tuple(call for call in calls if call)) if whole else None


def _python_call(value: ast.expr, tools: Collection[str]) -> TextCall | None:
    if not isinstance(value, ast.Call):
        return None
    if isinstance(value.func, ast.Name) and value.func.id == "print" and len(value.args) == 1 and not value.keywords:
        return _python_call(value.args[0], tools)
    func = value.func
    name = known_name(
        func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else "", tools
    )
    if not name or value.args:
        return None
    given: JsonObject = {}
    for keyword in value.keywords:
        try:
            given[keyword.arg or ""] = ast.literal_eval(keyword.value)
        except (ValueError, RecursionError):
            return None
    try:
        return TextCall(name, compact(given)) if "" not in given else None
    except (TypeError, ValueError):
        return None


def _as_action(text: str, tools: Collection[str]) -> Split | None:
    """The action that ends a ReAct answer. A thought or nothing precedes it, and no earlier action or observation: an
    explanation of the form, or made-up results, would have those."""
    match = _ACTION.search(text) if text.count("Action Input:") == 1 else None
    name = known_name(match[1], tools) if match is not None else ""
    if match is None or not name:
        return None
    before, given = text[: match.start()].rstrip(), text[match.end() :].strip().removesuffix("Observation:").rstrip()
    if (before and not _THOUGHT.search(before)) or "Observation:" in before or before.count("```") % 2:
        return None
    try:
        value = parse_loose(given)
    except ValueError:
        return None
    return Split(before, (TextCall(name, compact(value)),)) if is_object(value) else None


def _unreadable(text: str, tools: Collection[str]) -> Split | None:
    """The first of the blocks that end the answer, each beginning on a line of its own and outside of fences."""
    starts = [(at, tag) for tag in (*BLOCKS, FUNCTION) if (at := text.find(tag)) >= 0]
    start, tag = min(starts, default=(-1, ""))
    if start < 0 or text[text.rfind("\n", 0, start) + 1 : start].strip() or text.count("```", 0, start) % 2:
        return None
    block = text[start:] if tag == FUNCTION else text[start + len(tag) :]
    inside, closed, rest = block.partition(BLOCKS.get(tag, END_FUNCTION))
    rest = rest.strip()
    if rest and not rest.startswith((*BLOCKS, FUNCTION, *BLOCKS.values())):
        return None
    head = _JSON_NAME.match(inside) or _FUNCTION_NAME.match(inside)
    if head is None:
        return None
    name = known_name(head[1], tools) or head[1]
    alone = bool(closed) and not rest.startswith((*BLOCKS, FUNCTION))
    return Split(text[:start].rstrip(), (TextCall(name, _arguments(inside[head.end() :], mend=alone)),))


def _open_json(text: str, tools: Collection[str]) -> Split | None:
    """The call without tags that ends the answer, alone, in a fence or behind a mark, if its JSON can't be read."""
    marked = max((text.rfind(mark) + len(mark) for mark in (MISTRAL, LLAMA) if mark in text), default=0)
    fenced = max((match.end() for match in _FENCE_START.finditer(text)), default=0)
    start = max(marked, fenced)
    head = _JSON_NAME.match(text, start)
    name = known_name(head[1], tools) if head is not None else ""
    if head is None or not name or _is_json(text[start:].strip().removesuffix("```")):
        return None
    before = text[:start].rstrip().removesuffix(MISTRAL).removesuffix(LLAMA)
    prose = before[: before.rfind("```")] if fenced > marked else before
    return Split(prose.rstrip(), (TextCall(name, _arguments(text[head.end() :], mend=False)),))


def _is_json(text: str) -> bool:
    try:
        parse_loose(text)
    except ValueError:
        return False
    return True


def _arguments(text: str, *, mend: bool) -> str:
    """The arguments of a call: mended if only brackets at the end, or the kind of quotes, are wrong; otherwise as they
    are."""
    start = _JSON_ARGUMENTS.search(text)
    if start is None:
        return text.strip()
    given = text[start.end() :].strip()
    for candidate in (given, given[:-1], given[:-2], given[:-3]):
        value = _value(candidate.rstrip()) if mend else None
        if is_object(value):
            return compact(value)
    return given


def _value(text: str) -> object:
    try:
        return parse_loose(text)
    except ValueError:
        pass
    try:
        value = ast.literal_eval(text) if len(text) < 100_000 else None
        return value if is_object(value) and compact(value) else None
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
