"""What the model is told about the tools."""

from __future__ import annotations

import json
from typing import Annotated

import pytest
from msgspec import Meta

from swecli.core.llm.foreign_calls import ALIASES
from swecli.core.tools.base import Params, compact_schema
from swecli.core.tools.registry import ToolRegistry, builtin_tools
from swecli.features.subagents.tool import TaskTool

REGISTRY = ToolRegistry(builtin_tools())


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("Bash", "run_command"),
        ("Read", "read_file"),
        ("Grep", "search"),
        ("Glob", "list_files"),
        ("edit", "edit_file"),
        ("default_api.read_file", "read_file"),
        ("read_file:0", "read_file"),
        ("Read File", "read_file"),
        ("list-files", "list_files"),
        ("applyPatch", "apply_patch"),
        ("replace_in_file", "edit_file"),
    ],
)
def test_names_of_other_agents(name: str, tool: str) -> None:
    found = REGISTRY.get(name)
    assert found is not None
    assert found.name == tool


def test_every_alias_leads_to_a_tool() -> None:
    assert set(ALIASES.values()) <= {*REGISTRY.names(), TaskTool.name}


def test_unknown_names_get_the_nearest() -> None:
    assert REGISTRY.get("red_file") is None
    assert "Did you mean read_file?" in REGISTRY.unknown("red_file")
    assert "Did you mean" not in REGISTRY.unknown("zzzzzz")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("attempt_completion", "answer with text"),
        ("BashOutput", "job(id="),
        ("ExitPlanMode", "plan as your answer"),
        ("functions.multi_tool_use.parallel", "several calls"),
        ("str_replace_editor", "edit_file"),
    ],
)
def test_a_tool_that_only_others_have_gets_what_to_do_instead(name: str, advice: str) -> None:
    text = REGISTRY.unknown(name)
    assert advice in text
    assert "Did you mean" not in text


def test_schemas_are_sorted_stable_and_small() -> None:
    schemas = REGISTRY.schemas()
    assert [schema.name for schema in schemas] == sorted(schema.name for schema in schemas)
    again = ToolRegistry(reversed(builtin_tools())).schemas()
    dumped = [json.dumps([one.name, one.description, one.parameters]) for one in schemas]
    assert dumped == [json.dumps([one.name, one.description, one.parameters]) for one in again]
    # Roughly four bytes a token.
    assert sum(map(len, dumped)) < 6_400


def test_schemas_have_no_noise() -> None:
    text = json.dumps([schema.parameters for schema in REGISTRY.schemas()])
    for word in ("$ref", "$defs", "title", 'default"', "anyOf", "null"):
        assert word not in text


class Inner(Params):
    """For readers of the code."""

    title: str


class Odd(Params):
    default: Annotated[int, Meta(description="A number")] = 1
    inner: Inner | None = None
    items: list[Inner] = []


def test_properties_named_like_keywords_stay() -> None:
    inner = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    assert compact_schema(Odd) == {
        "type": "object",
        "properties": {
            "default": {"type": "integer", "description": "A number"},
            "inner": inner,
            "items": {"type": "array", "items": inner},
        },
    }
