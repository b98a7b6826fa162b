"""The examples of the design document run as they stand there, and its formats are exact."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import swecli
from swecli.core.context_management import Bullet, ExecutionReflector, Playbook, Reflection, ToolCall
from tests.support.waiting import PATIENCE

DATA = Path(__file__).parents[2] / "data" / "playbook"
BLOCKS = re.findall(r"```python\n(.*?)```", (DATA / "readme_blocks.txt").read_text(), re.DOTALL)


def filled() -> Playbook:
    playbook = Playbook()
    told = (
        ("fil-00042", "file_operations", "List directory before reading files", 5, 0),
        ("cod-00016", "code_navigation", "Read multiple related files for complete picture", 4, 0),
        ("fil-00043", "file_operations", "Read file before writing to preserve data", 3, 0),
        ("tes-00007", "testing", "Run tests after code changes", 12, 0),
        ("cod-00015", "code_navigation", "Search for keywords before reading files", 8, 1),
    )
    for name, section, content, helpful, harmful in told:
        playbook.put(Bullet(name, section, content, helpful, harmful))
    return playbook


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.strip().splitlines()[0][:40])
def test_each_example_runs_unchanged(block: str) -> None:
    names = {"Bullet": Bullet, "Playbook": Playbook, "ExecutionReflector": ExecutionReflector, "ToolCall": ToolCall}
    exec(block, {**names, "playbook": filled(), "section": "testing", "content": "Build before test"})


def test_the_context_has_the_documented_form() -> None:
    assert filled().as_context() == (DATA / "context_format.txt").read_text().strip()
    assert Playbook().as_context() == ""
    assert filled().as_context(max_strategies=1).count("- [") == 1


def test_ids_have_a_prefix_and_five_digits_and_survive_a_round_trip() -> None:
    playbook = Playbook()
    one = playbook.add_bullet("file_operations", "Keep `a/b.txt` sorted")
    again = playbook.add_strategy("file_operations", "keep `a/b.txt` sorted.")
    assert re.fullmatch(r"fil-\d{5}", one.id)
    assert again is one
    playbook.tag_bullet(one.id, "helpful")
    assert playbook.tag_bullet("fil-99999", "helpful") is None
    with pytest.raises(ValueError, match="unknown tag"):
        one.tag("great")  # type: ignore[arg-type]
    copy = Playbook.from_dict(playbook.to_dict())
    assert copy.bullets() == playbook.bullets()
    assert Playbook.from_dict({}).bullets() == []
    assert copy.stats()["tags"] == {"helpful": 1, "harmful": 0, "neutral": 0}
    playbook.remove_bullet(one.id)
    assert playbook.bullets() == []


def reflected(*calls: tuple[str, dict[str, str], str | None], outcome: str = "success") -> Reflection | None:
    tools = [ToolCall(name, parameters, error=error) for name, parameters, error in calls]
    return ExecutionReflector().reflect("do it", tools, outcome)


@pytest.mark.parametrize(
    ("calls", "category", "words"),
    [
        ([("list_files", {"path": "."}, None), ("read_file", {"path": "a"}, None)], "file_operations", "List"),
        (
            [("read_file", {"path": "a"}, None), ("write_file", {"path": "a"}, None)],
            "file_operations",
            "before writing",
        ),
        ([("read_file", {"path": name}, None) for name in "abc"], "file_operations", "multiple"),
        ([("search", {"pattern": "x"}, None), ("read_file", {"path": "a"}, None)], "code_navigation", "Search"),
        ([("search", {"pattern": "x"}, None), ("search", {"pattern": "y"}, None)], "code_navigation", "multiple"),
        ([("edit_file", {"path": "a"}, None), ("run_command", {"command": "pytest"}, None)], "testing", "after"),
        ([("read_file", {"path": "tests/a"}, None), ("run_command", {"command": "pytest"}, None)], "testing", "Read"),
        (
            [
                ("write_file", {"path": "test_a.py"}, None),
                ("run_command", {"command": "pytest"}, None),
                ("edit_file", {"path": "a.py"}, None),
                ("run_command", {"command": "npm start"}, None),
            ],
            "testing",
            "failing test",
        ),
        (
            [("run_command", {"command": "npm install"}, None), ("run_command", {"command": "npm start"}, None)],
            "shell_commands",
            "Install",
        ),
        (
            [
                ("run_command", {"command": "pip install -r requirements.txt"}, None),
                ("run_command", {"command": "python main.py"}, None),
            ],
            "shell_commands",
            "Install",
        ),
        (
            [("run_command", {"command": "make build"}, None), ("run_command", {"command": "pytest"}, None)],
            "shell_commands",
            "Build",
        ),
        (
            [("run_command", {"command": "git status"}, None), ("run_command", {"command": "git push"}, None)],
            "shell_commands",
            "git status",
        ),
        ([("read_file", {"path": "a"}, "not found"), ("list_files", {"path": "."}, None)], "error_handling", "List"),
        (
            [("run_command", {"command": "x"}, "exit 127"), ("run_command", {"command": "y"}, None)],
            "error_handling",
            "environment",
        ),
        ([("edit_file", {"path": "a"}, "refused"), ("read_file", {"path": "a"}, None)], "error_handling", "precond"),
    ],
)
def test_each_documented_pattern_is_found(
    calls: list[tuple[str, dict[str, str], str | None]], category: str, words: str
) -> None:
    found = reflected(*calls)
    assert found is not None
    assert (found.category, words in found.content) == (category, True)
    assert found.confidence >= 0.6
    assert found.reasoning


def test_few_calls_show_nothing_and_failures_only_how_one_gets_over_them() -> None:
    assert reflected(("list_files", {}, None)) is None
    assert reflected(("list_files", {}, "no"), ("read_file", {"path": "a"}, "no")) is None
    listed = (("list_files", {}, None), ("read_file", {"path": "a"}, None))
    assert reflected(*listed, outcome="error") is None
    for later in ("ls", "pip install b", "git commit -m x", "rm -r build"):  # none of them needs what was installed
        installed = ("run_command", {"command": "pip install a"}, None), ("run_command", {"command": later}, None)
        assert reflected(*installed) is None, later
    assert ExecutionReflector(min_tool_calls=3).reflect("x", [ToolCall("ls"), ToolCall("read")], "success") is None
    assert ExecutionReflector(min_confidence=0.9).reflect("x", [ToolCall("ls"), ToolCall("read")], "success") is None


def test_the_names_cost_nothing_before_they_are_asked_for() -> None:
    code = "import swecli, sys, swecli.core.context_management; print([m for m in sys.modules if 'playbook' in m])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert run.stdout.strip() == "[]"
    assert swecli.Playbook is Playbook
