"""JSON schemas as the providers' own answer formats take them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from swecli.core.llm.errors import WireError
from swecli.core.llm.json_values import JsonObject, as_list, as_object, as_text, is_list, is_object
from swecli.core.llm.protocols.base import Target
from swecli.core.llm.types import AnswerFormat, ModelRequest
from swecli.lazy_pattern import lazy_pattern

NAME = "answer"
"""OpenAI's formats have names."""
REFUSED = "The server does not take this schema as the format of the answer; swecli checks the answer itself: {}"
_REFUSES = lazy_pattern(
    r"output_config\.format|output_format|text\.format|response_?format|json_?schema|response_?(?:json_?)?schema"
    r"|response.?mime.?type|structured output|(?:parse|compile|invalid)[^\n]{0,20} grammar"
    r"|\b(?:invalid|unknown field|unsupported)\b[^\n]{0,10} \W?format\b|schema[^\n]{0,40}(?:too complex|not supported)",
    re.IGNORECASE,
)
_KEPT = ("type", "description", "title", "enum", "const", "format", "required", "$ref")
"""Keywords that are sent as they are. Others are left out, which makes a schema wider: swecli checks the answer with
the schema as its author wrote it."""
_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")
"""The ``format`` values that OpenAI and Anthropic know."""
_INEXPRESSIBLE = ("patternProperties", "propertyNames", "unevaluatedProperties", "prefixItems", "allOf", "$dynamicRef")
"""Keywords without which a schema would mean something else once its objects are closed."""


def wanted_schema(wish: AnswerFormat, request: ModelRequest, target: Target) -> Mapping[str, Any] | None:
    """The schema for the answer, if the model takes one in this request."""
    if not target.capabilities.output_format:
        return None
    with_tools = target.dialect.format_with_tools
    if request.tools and (with_tools == "never" or (with_tools == "last" and not wish.last)):
        return None
    return wish.schema


def refuses_format(error: WireError) -> bool:
    """Whether a server rejects the format of the answer, or its schema."""
    if error.kind not in ("bad_request", "server", "unknown"):
        return False
    return _REFUSES.search(f"{error.parameter} {error.words}") is not None


def closed(schema: Mapping[str, Any]) -> JsonObject | None:
    """The schema with only what OpenAI and Anthropic know, and without other properties than its own; None if that
    can't express it. Every value that it allows has the form of the original."""
    definitions = {**as_object(schema.get("definitions")), **as_object(schema.get("$defs"))}
    try:
        if _is_recursive(definitions):
            return None
        root = _closed(schema)
        made = {name: _closed(part) for name, part in definitions.items()}
    except _InexpressibleError:
        return None
    return {**root, "$defs": made} if made else root


def is_strict(schema: JsonObject) -> bool:
    """Whether a closed schema is one that OpenAI enforces: each object requires all of its properties."""
    if is_object(properties := schema.get("properties")) and set(as_list(schema.get("required"))) != set(properties):
        return False
    inner = [*as_object(schema.get("properties")).values(), *as_object(schema.get("$defs")).values()]
    inner += [*as_list(schema.get("anyOf")), schema.get("items", {})]
    return all(is_strict(as_object(part)) for part in inner if part)


class _InexpressibleError(Exception):
    """The schema has no closed form."""


def _closed(part: object) -> JsonObject:
    if not is_object(part) or any(word in part for word in _INEXPRESSIBLE):
        raise _InexpressibleError
    out: JsonObject = {key: part[key] for key in _KEPT if key in part}
    if out.get("format") not in _FORMATS:
        out.pop("format", None)
    if "$ref" in out:
        reference = as_text(out["$ref"])
        name = reference.removeprefix("#/$defs/").removeprefix("#/definitions/")
        if name == reference or "/" in name:
            raise _InexpressibleError
        return {"$ref": f"#/$defs/{name}"}
    kinds = out.get("type")
    if is_list(kinds) and len(kinds) != 1:
        return {"anyOf": [_closed({**part, "type": kind}) for kind in kinds]}
    if is_list(kinds):
        out["type"] = kinds[0]
    if choices := [*as_list(part.get("anyOf")), *as_list(part.get("oneOf"))]:
        out["anyOf"] = [_closed(choice) for choice in choices]
    if "items" in part:
        out["items"] = _closed(part["items"])
    elif out.get("type") == "array":
        raise _InexpressibleError
    if out.get("type") == "object" or "properties" in part:
        _close_object(part, out)
    else:
        out.pop("required", None)
    if not out:
        raise _InexpressibleError  # any value
    return out


def _close_object(part: Mapping[str, object], out: JsonObject) -> None:
    properties = as_object(part.get("properties"))
    if not properties or part.get("additionalProperties", False) is not False:
        raise _InexpressibleError
    out["type"] = "object"
    out["properties"] = {name: _closed(schema) for name, schema in properties.items()}
    out["required"] = [name for name in as_list(part.get("required")) if name in properties]
    out["additionalProperties"] = False


def _is_recursive(definitions: JsonObject) -> bool:
    """Whether a definition refers to itself, which Anthropic refuses."""
    uses = {name: _references(part) for name, part in definitions.items()}

    def reaches(name: str, goal: str, seen: set[str]) -> bool:
        return any(
            other == goal or (other not in seen and reaches(other, goal, seen | {other}))
            for other in uses.get(name, ())
        )

    return any(reaches(name, name, {name}) for name in uses)


def _references(part: object) -> set[str]:
    if is_object(part):
        own = {as_text(part.get("$ref")).rpartition("/")[2]} - {""}
        return own.union(*map(_references, part.values()))
    return set[str]().union(*map(_references, part)) if is_list(part) else set()


def plain_schema(schema: Mapping[str, Any]) -> JsonObject:
    """The schema for servers that read JSON Schema as it is."""
    return {key: value for key, value in schema.items() if key not in ("$schema", "$id")}


def openai_format(schema: Mapping[str, Any]) -> JsonObject | None:
    """Name, schema and strictness for OpenAI's formats, whose root is an object; None if it can't express the
    schema."""
    form = closed(schema)
    if form is None or form.get("type") != "object":
        return None
    return {"name": NAME, "schema": form, "strict": is_strict(form)}
