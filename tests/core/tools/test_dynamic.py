"""Tools with a JSON Schema in place of a class of parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from swecli.core.permissions.types import Effects
from swecli.core.tools.arguments import parse_arguments
from swecli.core.tools.base import ToolContext, ToolError, ToolOutcome, binding
from swecli.core.tools.dynamic import DynamicTool, RawParams, portable_schema
from swecli.core.tools.registry import ToolRegistry, builtin_tools

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "repo": {"type": "string"},
        "count": {"type": "integer", "minimum": 1},
        "tags": {"type": "array", "items": {"type": "string"}},
        "model_dump": {"type": "boolean"},
    },
    "required": ["repo"],
    "additionalProperties": False,
}


class Remote(DynamicTool):
    def effects(self, params: RawParams, ctx: ToolContext) -> Effects:
        return Effects(external=f"the server {self.source}")

    async def run(self, params: RawParams, ctx: ToolContext) -> ToolOutcome:
        return ToolOutcome(str(params.arguments))


def remote(name: str = "mcp__hub__list", source: str = "hub", schema: dict[str, Any] = SCHEMA) -> Remote:
    return Remote(name, f"Does {name}.", portable_schema(schema), source, verb=name, checked=schema)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ('{"repo": "a"}', {"repo": "a"}),
        ('{"repo": "a", "count": "3", "tags": "[\\"x\\"]"}', {"repo": "a", "count": 3, "tags": ["x"]}),
        ('{"repo": "a", "count": null}', {"repo": "a"}),
        ('{"repo": "12"}', {"repo": "12"}),
        ('{"repo": "a", "model_dump": "true"}', {"repo": "a", "model_dump": True}),
    ],
)
def test_arguments_by_schema(raw: str, expected: dict[str, Any]) -> None:
    params = parse_arguments(raw, remote())
    assert isinstance(params, RawParams)
    assert params.arguments == expected == params.values()


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ("{}", "'repo' is a required property"),
        ('{"repo": "a", "count": 0}', "count: 0 is less than the minimum"),
        ('{"repo": "a", "other": 1}', "'other' was unexpected"),
        ('{"repo": "a", "count": "true"}', "count: 'true' is not of type 'integer'"),
        ("[1]", "must be a JSON object"),
        ('{"repo"', "not valid JSON"),
    ],
)
def test_arguments_that_do_not_fit(raw: str, told: str) -> None:
    with pytest.raises(ToolError, match="othing was run") as error:
        parse_arguments(raw, remote())
    assert told in str(error.value)


def test_a_schema_that_is_no_schema_checks_nothing() -> None:
    odd = {"type": "object", "properties": {"a": {"type": 7}, "b": {"$ref": "http://nowhere.invalid/x.json"}}}
    assert parse_arguments('{"a": 1, "b": 2}', remote(schema=odd)).values() == {"a": 1, "b": 2}


def test_a_pattern_of_a_stranger_is_not_tried() -> None:
    slow = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    assert parse_arguments('{"a": "' + "a" * 60 + '!"}', remote(schema=slow)).values()["a"].endswith("!")


def test_the_binding_covers_the_arguments(tmp_path: Path) -> None:
    tool = remote()
    one, other = parse_arguments('{"repo": "a"}', tool), parse_arguments('{"repo": "b"}', tool)
    assert binding(tool.name, one, tmp_path, "") != binding(tool.name, other, tmp_path, "")


def test_a_schema_that_every_provider_takes() -> None:
    found = portable_schema(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "title": {"type": "string", "title": "Title", "default": "x", "description": "What it is called"},
                "node": {"$ref": "#/$defs/Node"},
                "kind": {"enum": ["a", "b"], "format": "word"},
            },
            "required": ["title", "missing"],
            "anyOf": [{"properties": {"extra": {"type": "string"}}, "required": ["extra"]}],
            "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
        }
    )
    assert found == {
        "type": "object",
        "properties": {
            "extra": {"type": "string"},
            "title": {"type": "string", "description": 'What it is called (default: "x")'},
            "node": {"type": "object", "properties": {"next": {"type": "object"}}},
            "kind": {"enum": ["a", "b"]},
        },
        "required": ["title"],
    }


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"properties": None}, {"required": "a"}])
def test_a_schema_without_properties(schema: dict[str, Any]) -> None:
    assert portable_schema(schema) == {"type": "object", "properties": {}}


def test_sources_come_and_go() -> None:
    registry = ToolRegistry(builtin_tools())
    registry.expect("hub")
    assert registry.pending == {"hub"}
    taken = registry.settle("hub", [remote("b"), remote("a"), remote("read_file")])
    assert taken == ("read_file",)
    assert [tool.name for tool in registry.dynamic()] == ["a", "b"]
    assert registry.settle("other", [remote("a", "other"), remote("c", "other")]) == ("a",)
    assert [tool.name for tool in registry.dynamic()] == ["a", "b", "c"]
    assert not registry.pending
    before = registry.revision
    registry.drop("hub")
    assert registry.revision > before
    assert registry.get("a") is None
    assert registry.get("c") is not None
    assert "c" not in {schema.name for schema in registry.schemas()}
