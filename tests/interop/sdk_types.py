"""Checks request bodies against the parameter types of the vendors' SDKs. Runs in an environment that has them:

    python sdk_types.py < bodies.json

``bodies.json`` maps a protocol to a list of bodies. Prints a JSON object: ``problems`` with a line for each field or
value that the newest types do not have, ``fields`` with the names of all request fields by protocol.
"""

from __future__ import annotations

import json
import sys
import types as builtin_types
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typing_extensions
from anthropic.types.beta.message_create_params import MessageCreateParamsStreaming  # pyright: ignore[reportMissingImports]
from google.genai import types as gemini  # pyright: ignore[reportMissingImports]
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming  # pyright: ignore[reportMissingImports]
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming  # pyright: ignore[reportMissingImports]
from typing_extensions import get_type_hints, is_typeddict

PARAMETERS = {
    "anthropic-messages": MessageCreateParamsStreaming,
    "openai-responses": ResponseCreateParamsStreaming,
    "openai-chat": CompletionCreateParamsStreaming,
}
GEMINI: Mapping[str, Any] = {
    "contents": gemini.Content,
    "systemInstruction": gemini.Content,
    "tools": gemini.Tool,
    "generationConfig": gemini.GenerationConfig,
    "toolConfig": gemini.ToolConfig,
}
WRAPPERS = (Annotated, typing_extensions.Required, typing_extensions.NotRequired, typing.Required, typing.NotRequired)
UNIONS = (Union, builtin_types.UnionType)


def problems(value: Any, kind: Any, path: str) -> list[str]:
    """What of ``value`` does not fit the type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in WRAPPERS:
        return problems(value, arguments[0], path)
    if isinstance(kind, typing_extensions.TypeAliasType):
        return problems(value, kind.__value__, path)
    if kind is Any or kind is object:
        return []
    if kind is None or kind is type(None):
        return [] if value is None else [f"{path}: not null"]
    if origin in UNIONS:
        return min((problems(value, one, path) for one in arguments), key=_weight)
    if origin is Literal:
        return [] if value in arguments else [f"{path}: {value!r} is none of {arguments}"]
    if is_typeddict(kind):
        return list(_of_dict(value, kind, path)) if isinstance(value, dict) else [f"{path}: no object"]
    if origin in (list, Iterable) or (isinstance(origin, type) and issubclass(origin, Iterable) and origin is not dict):
        if issubclass(origin, Mapping):
            return [] if isinstance(value, dict) else [f"{path}: no object"]
        if not isinstance(value, list):
            return [f"{path}: no list"]
        return [line for at, one in enumerate(value) for line in problems(one, arguments[0], f"{path}.{at}")]
    if origin is dict:
        return [] if isinstance(value, dict) else [f"{path}: no object"]
    if kind is float:
        return [] if isinstance(value, int | float) else [f"{path}: no number"]
    if isinstance(kind, type) and kind in (str, int, bool):
        return [] if type(value) is kind else [f"{path}: no {kind.__name__}"]
    return []


def _weight(lines: list[str]) -> tuple[int, int]:
    """Of the members of a union, the one whose ``type`` and ``role`` fit, then the one with the fewest problems."""
    other = sum(any(sign in line for sign in (".type: ", ".role: ", ": no ")) for line in lines)
    return other, len(lines)


def _of_dict(value: Mapping[str, Any], kind: Any, path: str) -> Iterator[str]:
    hints = get_type_hints(kind, include_extras=True)
    for name in kind.__required_keys__ - value.keys():
        yield f"{path}.{name}: missing"
    for name, entry in value.items():
        if name not in hints:
            yield f"{path}.{name}: unknown"
        else:
            yield from problems(entry, hints[name], f"{path}.{name}")


def of_gemini(body: Mapping[str, Any]) -> Iterator[str]:
    for name, value in body.items():
        kind = GEMINI.get(name)
        if kind is None:
            yield f"{name}: unknown"
            continue
        for at, one in enumerate(value if isinstance(value, list) else [value]):
            try:
                kind.model_validate(one)
            except ValueError as error:
                yield f"{name}.{at}: {error}"


def main() -> int:
    found: dict[str, list[str]] = {}
    for protocol, bodies in json.load(sys.stdin).items():
        lines: list[str] = []
        for body in bodies:
            if protocol == "gemini-generate":
                lines += of_gemini(body)
            else:
                lines += problems(body, PARAMETERS[protocol], "body")
        found[protocol] = sorted(set(lines))
    fields = {name: sorted(get_type_hints(kind)) for name, kind in PARAMETERS.items()}
    fields["gemini-generate"] = sorted(gemini.GenerateContentConfig.model_fields)
    json.dump({"problems": found, "fields": fields}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
