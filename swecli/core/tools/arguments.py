"""Parsing of tool arguments: from a model's text to validated parameters, or to an error it can act on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from msgspec.structs import FieldInfo

from swecli.core.llm.foreign_calls import own_arguments
from swecli.core.llm.json_values import is_too_deep, parse_loose
from swecli.core.tools.base import AnyTool, Params, ToolError
from swecli.core.tools.dynamic import DynamicTool
from swecli.core.validation import InvalidError, declared, fields_by_name, validated
from swecli.figures import cut

_AROUND = 40
_MAX_PROBLEMS = 6


def parse_arguments(raw: str, tool: AnyTool) -> Params:
    """The parameters in ``raw``; empty text means no arguments.

    Unambiguous slips are corrected: numbers and booleans as strings, null for an absent value, a list or the whole
    object encoded twice, another agent's parameters.

    Raises:
        ToolError: not JSON (the position is quoted), not an object, or invalid values (each is listed).
    """
    arguments = _decode(raw, tool.name)
    if isinstance(tool, DynamicTool):
        return tool.validated(arguments)
    fields = fields_by_name(tool.params)
    try:
        return validated(tool.params, _tidied(arguments, fields), lenient=True)
    except InvalidError as error:
        raise ToolError(_problems(error, tool.name, fields)) from error


def _decode(raw: str, name: str) -> dict[str, Any]:
    if not raw.strip():
        return {}
    value = _load(raw, name)
    if isinstance(value, str):
        value = _load(value, name)
    if not isinstance(value, dict):
        kind = "a list" if isinstance(value, list) else json.dumps(value)[:40]
        raise ToolError(f"The arguments of {name} must be a JSON object, not {kind}. Nothing was run.")
    return cast("dict[str, Any]", value)


def _load(raw: str, name: str) -> Any:
    if is_too_deep(raw):
        raise ToolError(f"The arguments of {name} are not valid JSON: nested too deeply. Nothing was run.")
    try:
        return json.loads(raw, strict=False, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ToolError(_bad_json(raw, name, error)) from error
    except ValueError as error:
        raise ToolError(f"The arguments of {name} are not valid JSON: {error}. Nothing was run.") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} appears twice")
    return table


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a JSON value")


def _bad_json(raw: str, name: str, error: json.JSONDecodeError) -> str:
    before, after = raw[max(0, error.pos - _AROUND) : error.pos], raw[error.pos : error.pos + _AROUND]
    near = f"{'…' if error.pos > _AROUND else ''}{before}⟨here⟩{after}{'…' if len(raw) > error.pos + _AROUND else ''}"
    cut = ""
    if error.pos >= len(raw.rstrip()) or error.msg.startswith("Unterminated"):
        cut = " The text seems cut off: if it was long, write the file in smaller steps."
    return (
        f"The arguments of {name} are not valid JSON: {error.msg} at line {error.lineno}, column {error.colno} "
        f"(character {error.pos}): {near}\nNothing was run.{cut} Send the call again with valid JSON."
    )


def _tidied(arguments: Mapping[str, Any], fields: Mapping[str, FieldInfo], *, entry: bool = False) -> dict[str, Any]:
    tidy = own_arguments(arguments, fields, entry=entry)
    for name, field in fields.items():
        value = tidy.get(name)
        kind = declared(field.type)
        if name in tidy and value is None and not field.required:
            del tidy[name]
        elif kind.is_list and name in tidy:
            value = _list_in(value) if isinstance(value, str) else value
            of = declared(kind.entry) if kind.within else kind
            if isinstance(value, list) and of.is_struct:
                inner = fields_by_name(of.of)
                value = [
                    _tidied(cast("dict[str, Any]", item), inner, entry=True) if isinstance(item, dict) else item
                    for item in cast("list[Any]", value)
                ]
            tidy[name] = value
    return tidy


def _list_in(text: str) -> Any:
    try:
        value = parse_loose(text)
    except ValueError:
        return text
    return cast("list[Any]", value) if isinstance(value, list) else text


def _problems(error: InvalidError, tool: str, fields: Mapping[str, FieldInfo]) -> str:
    lines: list[str] = []
    for problem in error.problems[:_MAX_PROBLEMS]:
        message = {"missing": "is required", "unknown": "is not a parameter"}.get(problem.kind, problem.message)
        if problem.message.startswith("must be"):
            message += f", got {_short(problem.given)}"
        lines.append(f"- {'.'.join(problem.place) or 'arguments'}: {message}")
    if len(error.problems) > _MAX_PROBLEMS:
        lines.append(f"- and {len(error.problems) - _MAX_PROBLEMS} more")
    names = ", ".join(name if field.required else f"{name}?" for name, field in fields.items())
    return f"Invalid arguments for {tool}; nothing was run.\n" + "\n".join(lines) + f"\nParameters: {names}"


def _short(value: Any) -> str:
    return cut(json.dumps(value) if value is None or isinstance(value, bool) else repr(value), 60)
