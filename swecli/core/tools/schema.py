"""The JSON Schema of a tool's parameters with nothing in it that a model does not need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from swecli.core.tools.base import Params

_NOISE = frozenset(
    (
        "title",
        "default",
        "additionalProperties",
        "$defs",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
    )
)
"""Bounds are checked when a call comes; some providers refuse schemas that have them."""


def compact_schema(params: type[Params]) -> Mapping[str, Any]:
    """Deterministic: definitions inlined, titles and defaults left out, "or null" folded away.

    Defaults belong in the descriptions, where they are words; parameters that are not required have one.
    """
    schema = params.model_json_schema()
    return _object(_compact(schema, _object(schema.get("$defs", {}))))


def _compact(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_compact(entry, definitions) for entry in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    found = _object(cast("Any", node))
    if "$ref" in found:
        target = _object(definitions[str(found.pop("$ref")).rpartition("/")[2]])
        # What stands beside the reference wins, a description for example.
        found = {**target, **found}
    variants = [entry for entry in found.get("anyOf", ()) if entry != {"type": "null"}]
    if len(variants) == 1:
        del found["anyOf"]
        found = {**variants[0], **found}
        return _compact(found, definitions)
    compact: dict[str, Any] = {}
    for key, value in found.items():
        if key == "properties":
            compact[key] = {name: _compact(entry, definitions) for name, entry in _object(value).items()}
        elif key not in _NOISE:
            compact[key] = _compact(value, definitions)
    if compact.get("type") == "object":
        # A model class's docstring is for people who read the code.
        compact.pop("description", None)
    return compact


def _object(value: Any) -> dict[str, Any]:
    return dict(cast("Mapping[str, Any]", value))
