"""From the text of a model to parameters, or to an error that helps."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.llm.foreign_calls import _PARAMETERS_OF, own_name, stored_arguments
from swecli.core.tools.arguments import parse_arguments
from swecli.core.tools.base import AnyTool, ToolError
from swecli.core.tools.registry import builtin_tools
from swecli.core.validation import fields_by_name
from tests.support.thorough import examples

TOOLS = {tool.name: tool for tool in builtin_tools()}


@pytest.mark.parametrize(
    ("tool", "raw", "expected"),
    [
        ("read_file", '{"path": "a", "offset": "12"}', {"path": "a", "offset": 12, "limit": 2000, "pages": ""}),
        ("read_file", '{"path": "a", "limit": null}', {"path": "a", "offset": 1, "limit": 2000, "pages": ""}),
        ("read_file", '{"file_path": "a"}', {"path": "a", "offset": 1, "limit": 2000, "pages": ""}),
        ("read_file", json.dumps('{"path": "a"}'), {"path": "a", "offset": 1, "limit": 2000, "pages": ""}),
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


EDIT = {"path": "a", "old_string": "x", "new_string": "y", "replace_all": False, "edits": ()}
ONE_EDIT = {"old_string": "x", "new_string": "y", "replace_all": True}
SEARCH = {"pattern": "x", "path": "src", "glob": None, "ignore_case": False, "context": 0, "max_results": 100}


def run(command: str, **others: object) -> dict[str, object]:
    return {"command": command, "timeout": None, "background": False, "outside": False, **others}


CLINE = "------- SEARCH\n{}\n=======\n{}+++++++ REPLACE\n"


def edit(old: str, new: str) -> dict[str, object]:
    return {"old_string": old, "new_string": new, "replace_all": False}


@pytest.mark.parametrize(
    ("name", "arguments", "tool", "expected"),
    [
        ("Bash", {"command": "ls", "description": "List files", "timeout": 9}, "run_command", run("ls", timeout=9.0)),
        ("Bash", {"command": "npm start", "run_in_background": True}, "run_command", run("npm start", background=True)),
        ("bash", {"command": "ls", "description": "x", "workdir": "."}, "run_command", run("ls")),
        ("bash", {"command": "ls", "workdir": "my src"}, "run_command", run("cd 'my src' && ls")),
        ("bash", {"command": "a; b", "workdir": "src"}, "run_command", run("cd src && { a; b\n}")),
        ("bash", {"command": "a || b", "workdir": "src/"}, "run_command", run("cd src/ && { a || b\n}")),
        ("run_shell_command", {"command": "ls", "dir_path": "src"}, "run_command", run("cd src && ls")),
        ("run_terminal_cmd", {"command": "ls", "is_background": False, "explanation": "x"}, "run_command", run("ls")),
        (
            "shell",
            {"command": ["bash", "-lc", "ls | wc"], "timeout_ms": 1500},
            "run_command",
            run("ls | wc", timeout=1.5),
        ),
        ("shell", {"command": ["grep", "a b", "c"], "workdir": ""}, "run_command", run("grep 'a b' c")),
        ("exec_command", {"cmd": "ls", "justification": None}, "run_command", run("ls")),
        ("read", {"filePath": "a"}, "read_file", {"path": "a", "offset": 1, "limit": 2000}),
        ("read_file", {"absolute_path": "a", "start_line": 3, "end_line": 7}, "read_file", {"offset": 3, "limit": 5}),
        ("view", {"path": "a", "view_range": [2, 9]}, "read_file", {"path": "a", "offset": 2, "limit": 8}),
        ("view", {"path": "a", "view_range": [2, -1]}, "read_file", {"path": "a", "offset": 2, "limit": 2000}),
        ("ReadFile", {"path": "a", "line_offset": 4, "n_lines": 2}, "read_file", {"offset": 4, "limit": 2}),
        ("replace", {"file_path": "a", "old_string": "x", "new_string": "y", "instruction": "z"}, "edit_file", EDIT),
        ("edit", {"filePath": "a", "oldString": "x", "newString": "y", "replaceAll": False}, "edit_file", EDIT),
        (
            "StrReplaceFile",
            {"path": "a", "edit": [{"old": "x", "new": "y"}]},
            "edit_file",
            {"edits": [{**ONE_EDIT, "replace_all": False}]},
        ),
        ("search_replace", {"file": "a", "search": "x", "replace": "y"}, "edit_file", EDIT),
        ("edit", {"path": "a", "old": "x", "new": "y"}, "edit_file", EDIT),
        (
            "edit",
            {"path": "a", "edits": [{"oldText": "x", "newText": "y", "replaceAll": True}]},
            "edit_file",
            {"edits": [ONE_EDIT]},
        ),
        (
            "Grep",
            {"pattern": "x", "path": "src", "-i": True, "-C": 2},
            "search",
            {**SEARCH, "ignore_case": True, "context": 2},
        ),
        ("grep", {"pattern": "x", "path": "src", "include": "*.py"}, "search", {**SEARCH, "glob": "*.py"}),
        ("search_file_content", {"pattern": "x", "dir_path": "src"}, "search", SEARCH),
        ("list_directory", {"path": "src", "ignore": []}, "list_files", {"path": "src", "glob": None, "depth": None}),
        (
            "TodoWrite",
            {"todos": [{"content": "a", "status": "pending", "activeForm": "Doing a", "id": "1", "priority": "high"}]},
            "update_todos",
            {"todos": [{"text": "a", "status": "pending"}]},
        ),
        (
            "update_plan",
            {"explanation": "x", "plan": [{"step": "a", "status": "completed"}]},
            "update_todos",
            {"todos": [{"text": "a", "status": "completed"}]},
        ),
        (
            "manage_todo_list",
            {"todo_list": [{"title": "a", "status": "not-started"}, {"title": "b", "status": "done"}]},
            "update_todos",
            {"todos": [{"text": "a", "status": "pending"}, {"text": "b", "status": "completed"}]},
        ),
        (
            "ask_followup_question",
            {"question": "Which?", "follow_up": ["a", "b"]},
            "ask_user",
            {
                "questions": [
                    {
                        "question": "Which?",
                        "options": [{"label": "a", "description": ""}, {"label": "b", "description": ""}],
                        "multiple": False,
                    }
                ]
            },
        ),
        (
            "replace_in_file",
            {"path": "a", "diff": CLINE.format("x\ny", "z\n") + CLINE.format("q", "")},
            "edit_file",
            {"edits": [edit("x\ny", "z"), edit("q\n", "")]},
        ),
        (
            "apply_diff",
            {"path": "a", "diff": "<<<<<<< SEARCH\n:start_line:5\n-------\n  x\n=======\n  y\n>>>>>>> REPLACE\n"},
            "edit_file",
            {"edits": [edit("  x", "  y")]},
        ),
        (
            "AskUserQuestion",
            {"questions": [{"question": "a", "header": "b", "options": [{"label": "c"}], "multiSelect": True}]},
            "ask_user",
            {"questions": [{"question": "a", "options": [{"label": "c", "description": ""}], "multiple": True}]},
        ),
    ],
)
def test_calls_as_other_agents_teach_them(
    name: str, arguments: dict[str, object], tool: str, expected: dict[str, object]
) -> None:
    assert own_name(name) == tool
    found = parse_arguments(json.dumps(arguments), TOOLS[tool]).values()
    assert json.dumps({key: found[key] for key in expected}) == json.dumps(expected)


@pytest.mark.parametrize("tool", sorted(_PARAMETERS_OF))
def test_calls_in_the_record_are_read_by_the_parameters_of_today(tool: str) -> None:
    assert _PARAMETERS_OF[tool] == tuple(fields_by_name(TOOLS[tool].params))


def test_a_call_in_the_record_is_read_by_our_names() -> None:
    assert stored_arguments("Read", '{"filePath": "a", "explanation": "x"}') == {"path": "a"}
    assert stored_arguments("run_command", '{"cmd": ["ls", "a b"]}') == {"command": "ls 'a b'"}
    listed = {"command": json.dumps(["rm", "a; ls", "&&", "$(id)"])}
    assert stored_arguments("run_command", json.dumps(listed)) == {"command": "rm 'a; ls' '&&' '$(id)'"}
    assert stored_arguments("run_command", '{"command": "[ -f a ]"}') == {"command": "[ -f a ]"}
    assert stored_arguments("mcp__x__read", '{"filePath": "a"}') == {"filePath": "a"}
    assert stored_arguments("Read", '["a"]') == {}


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
        ("run_command", '{"command": "ls", "dry_run": true}', ("dry_run: is not a parameter",)),
        ("run_command", '{"command": "ls", "workdir": 3}', ("workdir: is not a parameter",)),
        ("run_command", '{"command": ["ls", 3]}', ("command: must be text",)),
        ("read_file", '{"path": "a", "start_line": 9, "end_line": 2}', ("end_line: is not a parameter",)),
        ("read_file", '{"path": "a", "view_range": [1]}', ("view_range: is not a parameter",)),
        ("edit_file", '{"path": "a", "diff": "<<<<<<< SEARCH\\nx\\n>>>>>>> REPLACE"}', ("diff: is not a parameter",)),
        ("list_files", '{"recursive": false}', ("recursive: is not a parameter",)),
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
