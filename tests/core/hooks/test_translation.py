"""Calls in Claude Code's words and back: nothing is lost on the way."""

from __future__ import annotations

import json
from typing import Any

import pytest

from swecli.core.hooks.translation import ToolUse, arguments_of, claude_mode, claude_name, response_of, views
from swecli.core.tools.arguments import parse_arguments
from swecli.core.tools.registry import ToolRegistry, builtin_tools

CALLS: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("run_command", {"command": "ls"}, "Bash", {"command": "ls"}),
    (
        "run_command",
        {"command": "make", "timeout": 2.5, "background": True},
        "Bash",
        {"command": "make", "timeout": 2500, "run_in_background": True},
    ),
    ("read_file", {"path": "a.py", "offset": 3}, "Read", {"file_path": "/w/a.py", "offset": 3}),
    ("write_file", {"path": "/x/b", "content": "c"}, "Write", {"file_path": "/x/b", "content": "c"}),
    (
        "edit_file",
        {"path": "a.py", "old_string": "1", "new_string": "2"},
        "Edit",
        {"file_path": "/w/a.py", "old_string": "1", "new_string": "2", "replace_all": False},
    ),
    (
        "edit_file",
        {"path": "a.py", "edits": [{"old_string": "1", "new_string": "2"}, {"old_string": "3", "new_string": "4"}]},
        "Edit",
        {
            "file_path": "/w/a.py",
            "old_string": "1\n3",
            "new_string": "2\n4",
            "edits": [{"old_string": "1", "new_string": "2"}, {"old_string": "3", "new_string": "4"}],
        },
    ),
    (
        "search",
        {"pattern": "x", "path": "src", "glob": "*.py", "ignore_case": True, "context": 2},
        "Grep",
        {"pattern": "x", "path": "/w/src", "glob": "*.py", "-i": True, "-C": 2, "output_mode": "content"},
    ),
    ("list_files", {"glob": "*.ts"}, "Glob", {"pattern": "*.ts", "path": "/w"}),
    ("list_files", {"path": "src", "depth": 3}, "Glob", {"pattern": "*", "path": "/w/src"}),
    ("web_fetch", {"url": "https://e.org"}, "WebFetch", {"url": "https://e.org", "prompt": ""}),
    (
        "update_todos",
        {"todos": [{"text": "a", "status": "completed"}]},
        "TodoWrite",
        {"todos": [{"content": "a", "status": "completed", "activeForm": "a"}]},
    ),
    (
        "ask_user",
        {"questions": [{"question": "q", "options": [{"label": "l"}]}]},
        "AskUserQuestion",
        {"questions": [{"question": "q", "header": "", "options": [{"label": "l"}], "multiSelect": False}]},
    ),
    ("mcp__fs__read", {"path": "x"}, "mcp__fs__read", {"path": "x"}),
]


@pytest.mark.parametrize(("tool", "ours", "name", "theirs"), CALLS)
def test_calls_are_told_in_claudes_words(tool: str, ours: dict[str, Any], name: str, theirs: dict[str, Any]) -> None:
    (view,) = views(ToolUse("c", tool, ours, "/w"))
    assert (view.name, dict(view.given)) == (name, theirs)
    assert {name, tool} <= set(view.subjects)


@pytest.mark.parametrize(("tool", "ours", "name", "theirs"), CALLS)
def test_what_is_given_back_unchanged_means_the_same(
    tool: str, ours: dict[str, Any], name: str, theirs: dict[str, Any]
) -> None:
    back = arguments_of(ToolUse("c", tool, ours, "/w"), theirs)
    registry = ToolRegistry(builtin_tools())
    found = registry.get(tool)
    if found is None:
        assert back == ours
        return
    was, now = (parse_arguments(json.dumps(one), found).values() for one in (ours, back))
    for one in (was, now):
        if "path" in one:
            one["path"] = one["path"].removeprefix("/w").removeprefix("/") or "."
    assert now == was


@pytest.mark.parametrize("tool", [tool.name for tool in builtin_tools()])
def test_every_tool_has_a_view(tool: str) -> None:
    for view in views(ToolUse("c", tool, {}, "/w")):
        assert view.name == claude_name(tool)
        assert tool in view.subjects


def test_a_partial_input_keeps_the_rest() -> None:
    use = ToolUse("c", "run_command", {"command": "ls", "timeout": 5.0}, "/w")
    assert arguments_of(use, {"command": "ls -a"}) == {"command": "ls -a", "timeout": 5.0}
    edit = ToolUse("c", "edit_file", {"path": "a", "old_string": "x", "new_string": "y"}, "/w")
    assert arguments_of(edit, {"file_path": "/w/b"}) == {"path": "/w/b", "old_string": "x", "new_string": "y"}
    assert arguments_of(edit, {"new_string": "z", "old_string": "x"})["path"] == "a"


def test_a_patch_is_an_edit_of_each_file() -> None:
    found = views(ToolUse("c", "apply_patch", {"input": "*** Begin"}, "/w", ("/w/a", "/w/b")))
    assert [(view.name, view.given["file_path"]) for view in found] == [("Edit", "/w/a"), ("Edit", "/w/b")]
    assert all("Write" in view.subjects for view in found)


def test_a_job_that_is_stopped_is_a_shell_that_is_killed() -> None:
    (view,) = views(ToolUse("c", "job", {"id": "j1", "stop": True}, "/w"))
    assert (view.name, view.given) == ("KillShell", {"shell_id": "j1"})


def test_results_have_the_fields_that_scripts_look_at() -> None:
    use = ToolUse("c", "run_command", {"command": "false"}, "/w")
    (view,) = views(use)
    said = response_of(view, "out", failed=True, exit_status=1)
    assert (said["stdout"], said["stderr"], said["exitCode"], said["success"]) == ("out", "", 1, False)
    write = ToolUse("c", "write_file", {"path": "a", "content": "x"}, "/w")
    (view,) = views(write)
    assert response_of(view, "ok", failed=False, exit_status=None)["filePath"] == "/w/a"


@pytest.mark.parametrize(
    ("mode", "yolo", "expected"),
    [
        ("default", False, "default"),
        ("accept-edits", False, "acceptEdits"),
        ("plan", False, "plan"),
        ("auto", False, "auto"),
        ("default", True, "bypassPermissions"),
    ],
)
def test_modes_have_their_names(mode: str, yolo: bool, expected: str) -> None:
    assert claude_mode(mode, yolo=yolo) == expected
