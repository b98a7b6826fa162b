"""Tools added at run time, with a JSON Schema in place of a parameter class."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.events import ResultKind
from swecli.core.tools.base import Params, Preview, Tool, ToolContext, ToolError
from swecli.figures import cut, cut_line

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

MOST_PROBLEMS = 6
_TITLE = 120
_MOST_SHOWN = 20_000
"""Characters of arguments shown in an approval."""


class RawParams(Params):
    """Arguments by name, after they passed the tool's schema."""

    arguments: dict[str, Any]

    def values(self) -> dict[str, Any]:
        return self.arguments

    def given(self) -> dict[str, Any]:
        return self.arguments


class DynamicTool(Tool[RawParams]):
    """Base of tools from an external source. A subclass declares ``effects`` and works in ``run``.

    ``parameters`` is a JSON Schema object that any provider accepts (``portable_schema``); ``checked`` is the full
    schema for validating arguments; ``source`` is the provider of the tool.
    """

    params: ClassVar[type[Params]] = RawParams
    result_kind: ClassVar[ResultKind] = "output"

    def __init__(
        self,
        name: str,
        description: str,
        parameters: Mapping[str, Any],
        source: str,
        *,
        verb: str,
        checked: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.verb = verb
        self.source = source
        self._description = description
        self._parameters = parameters
        self._checked = parameters if checked is None else checked

    def description(self) -> str:
        return self._description

    def schema(self) -> Mapping[str, Any]:
        return self._parameters

    def validated(self, arguments: Mapping[str, Any]) -> RawParams:
        """The arguments, with unambiguous slips corrected.

        Raises:
            ToolError: they do not fit the schema; the message lists each problem.
        """
        tidied = _tidied(arguments, self._checked)
        problems = _problems(tidied, self._checked)
        if problems:
            lines = "\n".join(f"- {problem}" for problem in problems)
            properties = _mapping(self._checked.get("properties"))
            required = _names(self._checked.get("required"))
            names = ", ".join(name if name in required else f"{name}?" for name in properties) or "none"
            raise ToolError(f"Invalid arguments for {self.name}; nothing was run.\n{lines}\nParameters: {names}")
        return RawParams(tidied)

    def title(self, params: RawParams, ctx: ToolContext) -> str:
        """The first short text among the arguments."""
        values = params.arguments.values()
        text = next((value for value in values if isinstance(value, str) and value.strip()), "")
        return cut_line(text, _TITLE)

    async def preview(self, params: RawParams, ctx: ToolContext) -> Preview:
        text = json.dumps(params.arguments, ensure_ascii=False, indent=2)
        facts = () if len(text) <= _MOST_SHOWN else (f"arguments of {len(text):,} characters, shown in part",)
        return Preview((TextBlock(text[:_MOST_SHOWN]),), facts=facts)


# --- arguments ------------------------------------------------------------------------------------------------------


def _tidied(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Convert numbers, booleans, lists and objects given as text; remove null for absent values."""
    tidy = dict(arguments)
    required = _names(schema.get("required"))
    for name, declared in _mapping(schema.get("properties")).items():
        if name not in tidy:
            continue
        kinds = _kinds(declared)
        value = tidy[name]
        if value is None and kinds and "null" not in kinds and name not in required:
            del tidy[name]
        elif isinstance(value, str) and kinds and "string" not in kinds:
            tidy[name] = _as_meant(value, kinds)
    return tidy


def _kinds(declared: Any) -> frozenset[str]:
    """Types allowed for a property; empty if the schema does not state them plainly."""
    kind = _mapping(declared).get("type")
    return frozenset((kind,)) if isinstance(kind, str) else _names(kind)


_KINDS: Mapping[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def _as_meant(text: str, kinds: frozenset[str]) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    fits = any(isinstance(value, _KINDS.get(kind, ())) for kind in kinds)
    return value if fits and (not isinstance(value, bool) or "boolean" in kinds) else text


_UNCHECKED = frozenset(("pattern", "patternProperties", "propertyNames", "$schema", "$id", "id", "format"))
"""Left to the tool: matching a pattern from outside could take forever."""


def _problems(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """Problems as clauses; empty also if the schema itself is not understood."""
    import jsonschema  # only where such a tool is called
    from jsonschema.exceptions import SchemaError
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    plain = without_keys(schema, _UNCHECKED)
    try:
        jsonschema.Draft202012Validator.check_schema(plain)
        validator = jsonschema.Draft202012Validator(plain, registry=Registry())  # fetches nothing
        violations = cast("Iterable[ValidationError]", validator.iter_errors(dict(arguments)))  # pyright: ignore[reportUnknownMemberType]
        errors = sorted(violations, key=lambda error: [str(part) for part in error.path])
    except (SchemaError, Unresolvable, RecursionError):
        return []
    lines = [
        f"{'.'.join(str(part) for part in error.absolute_path) or 'arguments'}: {cut(error.message, 300)}"
        for error in errors[:MOST_PROBLEMS]
    ]
    return lines + ([f"and {len(errors) - MOST_PROBLEMS} more"] if len(errors) > MOST_PROBLEMS else [])


# --- schemas --------------------------------------------------------------------------------------------------------

_DROPPED = frozenset(
    (
        "$schema",
        "$id",
        "$comment",
        "$anchor",
        "$defs",
        "definitions",
        "title",
        "default",
        "examples",
        "additionalProperties",
        "unevaluatedProperties",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
        "pattern",
        "patternProperties",
        "propertyNames",
        "format",
        "contentEncoding",
        "contentMediaType",
        "readOnly",
        "writeOnly",
        "deprecated",
    )
)
"""Checked on each call, or useless to a model; some providers refuse schemas that contain them."""
_COMBINED = ("anyOf", "oneOf", "allOf")
_DEPTH = 24


def portable_schema(schema: Mapping[str, Any], describe: Callable[[str], str] = str) -> dict[str, Any]:
    """The schema in a form that all providers accept: an object at the top, references inlined, validation keywords
    removed, defaults named in descriptions. ``describe`` sanitises each text; a name or value that it changes is left
    out, as a call could not have both."""
    definitions = {**_mapping(schema.get("definitions")), **_mapping(schema.get("$defs"))}
    portable = _mapping(_portable(schema, definitions, describe, (), 0))
    properties = _mapping(portable.get("properties"))
    for word in _COMBINED:  # refused at the top
        for variant in _sequence(portable.pop(word, ())):
            properties = {**_mapping(_mapping(variant).get("properties")), **properties}
    required = [name for name in _sequence(portable.get("required")) if name in properties]
    requirements = {"required": required} if required else {}
    return {"type": "object", "properties": properties, **requirements}


def _portable(
    node: Any, definitions: Mapping[str, Any], describe: Callable[[str], str], within: tuple[str, ...], depth: int
) -> Any:
    if isinstance(node, list):
        return [_portable(item, definitions, describe, within, depth + 1) for item in cast("list[Any]", node)]
    if not isinstance(node, Mapping):
        return describe(node) if isinstance(node, str) else node
    fields = dict(cast("Mapping[str, Any]", node))
    reference = fields.pop("$ref", None)
    if isinstance(reference, str):
        name = reference.rpartition("/")[2]
        if name in within or name not in definitions or not reference.startswith("#"):
            fields.setdefault("type", "object")  # it holds itself, or is somewhere else
        else:
            fields = {**_mapping(definitions[name]), **fields}
            within = (*within, name)
    if depth > _DEPTH:
        return {"type": "object"}
    compact: dict[str, Any] = {}
    for key, value in fields.items():
        if key == "properties":
            named = _mapping(value).items()
            compact[key] = {
                name: _portable(inner, definitions, describe, within, depth + 1)
                for name, inner in named
                if _stays(name, describe)
            }
        elif key in ("enum", "const", "required", "type"):
            values = cast("list[Any]", value if isinstance(value, list) else [value])
            staying = [item for item in values if _stays(item, describe)]
            if staying:
                compact[key] = staying if isinstance(value, list) else value
        elif key == "description":
            compact[key] = describe(str(value))
        elif key not in _DROPPED and _stays(key, describe):
            compact[key] = _portable(value, definitions, describe, within, depth + 1)
    default = fields.get("default")
    if isinstance(default, (str, int, float)) and default != "" and len(str(default)) <= 60:
        told = compact.get("description", "")
        if str(default).lower() not in told.lower():
            compact["description"] = f"{told} (default: {describe(json.dumps(default))})".strip()
    return compact


def _stays(value: Any, describe: Callable[[str], str]) -> bool:
    return not isinstance(value, str) or describe(value) == value.strip()


def without_keys(node: Any, keys: frozenset[str]) -> Any:
    """The schema without these keywords; properties of the same names stay."""
    if isinstance(node, list):
        return [without_keys(item, keys) for item in cast("list[Any]", node)]
    if not isinstance(node, Mapping):
        return node
    result: dict[str, Any] = {}
    for key, value in cast("Mapping[str, Any]", node).items():
        if key in ("properties", "$defs", "definitions"):
            result[key] = {name: without_keys(inner, keys) for name, inner in _mapping(value).items()}
        elif key in ("enum", "const", "default", "examples"):
            result[key] = value
        elif key not in keys:
            result[key] = without_keys(value, keys)
    return result


def _mapping(value: Any) -> dict[str, Any]:
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}


def _sequence(value: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else ()


def _names(value: Any) -> frozenset[str]:
    return frozenset(name for name in _sequence(value) if isinstance(name, str))
