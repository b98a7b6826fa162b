"""Agent profiles: Claude Code's format, and what a profile comes to in a session."""

from __future__ import annotations

import pytest

from swecli.core.extensions.profiles import AgentProfile, built_in_profiles, read_profile, resolve_profile
from swecli.core.protocol.events import Mode
from swecli.core.tools.registry import ToolRegistry, builtin_tools
from tests.core.extensions.support import found

TOOLS = (*ToolRegistry(builtin_tools()).names(), "mcp__git__log", "mcp__git__diff", "mcp__web__get", "task")


def profile(front: str, body: str = "You review.") -> AgentProfile:
    made = read_profile(found(f"---\nname: reviewer\ndescription: Reviews code\n{front}---\n{body}\n", "r", "agents"))
    assert made is not None
    return made


def tools(front: str) -> set[str]:
    return set(resolve_profile(profile(front), tools=TOOLS, mode="default").tools)


def test_a_file_of_claude_code_reads_unchanged() -> None:
    made = profile("tools: Read, Grep, Glob, Bash\nmodel: sonnet\ncolor: blue\npermissionMode: acceptEdits\n")
    assert (made.name, made.description, made.prompt) == ("reviewer", "Reviews code", "You review.")
    assert (made.tools, made.model, made.mode) == (("Read", "Grep", "Glob", "Bash"), "sonnet", "accept-edits")
    assert made.problems == ()


@pytest.mark.parametrize(
    ("front", "expected"),
    [
        ("tools: Read, Grep, Bash\n", {"read_file", "search", "run_command", "job"}),
        ("tools: [read_file, mcp__git__log]\n", {"read_file", "mcp__git__log"}),
        ("tools: mcp__git\n", {"mcp__git__log", "mcp__git__diff"}),
        ("tools: mcp__git__*\n", {"mcp__git__log", "mcp__git__diff"}),
        ("tools: Edit, Write, Task\n", {"edit_file", "apply_patch", "write_file"}),
        ("tools: Bash(git diff:*)\n", {"run_command", "job"}),
        ('tools:\n  "*": false\n  read: true\n  list: true\n  bash: false\n', {"read_file", "list_files"}),
    ],
)
def test_tools_by_any_name(front: str, expected: set[str]) -> None:
    assert tools(front) == expected


def test_all_tools_but_those_that_are_refused_and_no_agents_of_its_own() -> None:
    assert tools("") == {*TOOLS} - {"task", "ask_user"}
    assert tools("tools: '*'\n") == {*TOOLS} - {"task", "ask_user"}
    assert tools("disallowedTools: Bash, mcp__web\n") == {*TOOLS} - {
        "task",
        "ask_user",
        "run_command",
        "job",
        "mcp__web__get",
    }


def test_tools_that_are_switched_off_by_name() -> None:
    assert {*TOOLS} - tools("tools:\n  write: false\n  edit: false\n  patch: false\n  bash: true\n") == {
        *("task", "ask_user", "write_file", "edit_file", "apply_patch"),
    }


def test_tools_that_are_not_there_are_named() -> None:
    made = resolve_profile(profile("tools: Read, NotebookEdit\n"), tools=TOOLS, mode="default")
    assert made.tools == ("read_file",)
    assert "NotebookEdit" in made.problems[0].text


@pytest.mark.parametrize(
    ("said", "session", "mode"),
    [
        ("plan", "auto", "plan"),
        ("acceptEdits", "default", "default"),
        ("acceptEdits", "auto", "accept-edits"),
        ("default", "plan", "plan"),
        ("bypassPermissions", "default", "default"),
        ("", "accept-edits", "accept-edits"),
    ],
)
def test_a_profile_is_never_looser_than_the_session(said: str, session: Mode, mode: Mode) -> None:
    front = f"permissionMode: {said}\n" if said else ""
    assert resolve_profile(profile(front), tools=TOOLS, mode=session).mode == mode


def test_a_mode_that_agents_cant_have_is_told() -> None:
    assert [problem.line for problem in profile("permissionMode: bypassPermissions\n").problems] == [4]


def test_a_model_that_is_inherited_is_none_of_its_own() -> None:
    assert resolve_profile(profile("model: opus\n"), tools=TOOLS, mode="default").model == "opus"
    assert resolve_profile(profile("model: inherit\n"), tools=TOOLS, mode="default").model == ""


def test_fields_without_effect_and_missing_ones_are_told() -> None:
    made = read_profile(found("---\nhooks: x\n---\n", "r", "agents"))
    assert made is not None
    assert made.name == "r"
    texts = " ".join(problem.text for problem in made.problems)
    assert "hooks has no effect" in texts
    assert "no description" in texts
    assert "no prompt" in texts


def test_those_that_come_with_swecli() -> None:
    known = {one.name: one for one in built_in_profiles()}
    assert set(known) == {"explore", "general", "review"}
    assert all(one.problems == () and one.prompt for one in known.values())
    explore = resolve_profile(known["explore"], tools=TOOLS, mode="auto")
    assert (explore.mode, explore.problems) == ("plan", ())
    assert not {"write_file", "edit_file", "run_command"} & set(explore.tools)
    assert resolve_profile(known["review"], tools=TOOLS, mode="default").problems == ()
    assert resolve_profile(known["general"], tools=TOOLS, mode="default").mode == "default"


def test_a_worktree_of_its_own() -> None:
    assert profile("worktree: true\n").worktree
    assert profile("isolation: worktree\n").worktree
    assert not profile("").worktree
    assert "unknown isolation 'vm'" in profile("isolation: vm\n").problems[0].text
