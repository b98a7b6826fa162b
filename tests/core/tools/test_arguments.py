"""From the text of a model to parameters, or to an error that helps."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.tools.arguments import parse_arguments
from swecli.core.tools.base import AnyTool, ToolError
from swecli.core.tools.registry import builtin_tools
from tests.support.thorough import examples

TOOLS = {tool.name: tool for tool in builtin_tools()}


@pytest.mark.parametrize(
    ("tool", "raw", "expected"),
    [
        ("read_file", '{"path": "a", "offset": "12"}', {"path": "a", "offset": 12, "limit": 2000}),
        ("read_file", '{"path": "a", "limit": null}', {"path": "a", "offset": 1, "limit": 2000}),
        ("read_file", '{"file_path": "a"}', {"path": "a", "offset": 1, "limit": 2000}),
        ("read_file", json.dumps('{"path": "a"}'), {"path": "a", "offset": 1, "limit": 2000}),
        ("list_files", "", {"path": ".", "glob": None, "depth": None}),
        ("list_files", '{"pattern": "*.py"}', {"path": ".", "glob": "*.py", "depth": None}),
        (
            "edit_file",
            '{"path": "a", "old_string": "x", "new_string": "y", "replace_all": "true"}',
            {"path": "a", "old_string": "x", "new_string": "y", "replace_all": True, "edits": ()},
        ),
        ("write_file", '{"path": "a", "content": "line\nbreak"}', {"path": "a", "content": "line\nbreak"}),
        ("write_file", '{"path": "a", "content": 12}', {"path": "a", "content": "12"}),
        ("update_todos", '{"todos": "[{\\"text\\": \\"a\\"}]"}', {"todos": [{"text": "a", "status": "pending"}]}),
    ],
)
def test_understood(tool: str, raw: str, expected: dict[str, object]) -> None:
    assert parse_arguments(raw, TOOLS[tool]).values() == expected


@pytest.mark.parametrize(
    ("tool", "raw", "says"),
    [
        ("read_file", '{"path": "a" "limit": 3}', ("line 1, column 14", 'a" ⟨here⟩"limit"', "Nothing was run")),
        ("write_file", '{"path": "a",\n"content": "never en', ("line 2", "cut off")),
        ("read_file", '{"path"', ("cut off",)),
        ("read_file", "", ("path: is required",)),
        ("read_file", "[1]", ("must be a JSON object, not a list",)),
        ("read_file", "null", ("not null",)),
        ("read_file", '{"path": "a", "path": "b"}', ("'path' appears twice",)),
        ("read_file", '{"path": "a", "offset": NaN}', ("NaN is not a JSON value",)),
        ("read_file", '{"path": "a", "offset": "x", "lines": 3}', ("offset: ", "got 'x'", "lines: is not a parameter")),
        ("read_file", '{"path": "a", "offset": 0}', ("offset: ", "must be at least 1, got 0")),
        ("read_file", '{"path": "a", "offset": true}', ("offset: must be a whole number from 1, got true",)),
        ("run_command", '{"command": "ls", "timeout": true}', ("timeout: must be a number above 0, got true",)),
        ("run_command", '{"command": "ls", "timeout": false}', ("timeout: must be a number above 0, got false",)),
        ("run_command", '{"command": true}', ("command: must be text, got true",)),
        ("job", '{"id": "j1", "wait": true}', ("wait: must be a number from 0, got true",)),
        ("list_files", '{"depth": true}', ("depth: must be a whole number from 1, got true",)),
        ("read_file", '{"path": "a", "file_path": "b"}', ("file_path: is not a parameter",)),
        ("edit_file", "{}", ("path: is required", "old_string and new_string are required", "replace_all?")),
        ("update_todos", '{"todos": [{"text": "a", "status": "doing"}]}', ("todos.0.status",)),
        ("read_file", "[" * 100_000, ("nested too deeply",)),
    ],
)
def test_refused_with_the_reason(tool: str, raw: str, says: tuple[str, ...]) -> None:
    with pytest.raises(ToolError) as refused:
        parse_arguments(raw, TOOLS[tool])
    for phrase in says:
        assert phrase in str(refused.value)


@given(raw=st.one_of(st.text(max_size=60), st.text(alphabet='{}[]",:\\pathun1 \n', max_size=40)))
@settings(deadline=None, max_examples=examples(120, 600))
def test_any_text_is_parameters_or_an_error(raw: str) -> None:
    for tool in TOOLS.values():
        check(raw, tool)


def check(raw: str, tool: AnyTool) -> None:
    try:
        params = parse_arguments(raw, tool)
    except ToolError as error:
        assert str(error)  # noqa: PT017
    else:
        assert isinstance(params, tool.params)
