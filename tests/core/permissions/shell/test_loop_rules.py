"""Rules about commands see the words that only the proof knows, and counters stay numbers in loops."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.permissions.types import Rule
from tests.support.shell_workspace import ShellWorkspace

RULE = Rule("deny", "Bash(git log *)", "user")


@pytest.fixture
def workspace(tmp_path: Path) -> ShellWorkspace:
    return ShellWorkspace(tmp_path, secrets=False)


@pytest.mark.parametrize(
    "command",
    [
        "for s in log status; do git $s; done",
        "for g in git; do $g log; done",
        "for g in git; do timeout 5 $g log; done",
        'for s in log; do nice -n 5 git "$s"; done',
        'words=(status log); for s in "${words[@]}"; do git $s; done',
        "case a in a) git log;; esac",
    ],
)
@pytest.mark.parametrize("effect", ["deny", "ask"])
def test_a_rule_holds_for_words_that_a_loop_puts_in(workspace: ShellWorkspace, command: str, effect: str) -> None:
    assert workspace.decide(command).outcome == "allow"
    rule = Rule("deny" if effect == "deny" else "ask", RULE.text, "user")
    decision = workspace.decide(command, workspace.policy(rules=(rule,)))
    assert (decision.outcome, decision.rule) == (effect, rule)


def test_a_rule_about_another_command_leaves_the_loop_alone(workspace: ShellWorkspace) -> None:
    policy = workspace.policy(rules=(RULE,))
    assert workspace.decide("for s in status branch; do git $s; done", policy).outcome == "allow"


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("n=0; for f in a b; do n=$((n+1)); done; echo $((n))", "allow"),
        ("n=0; for f in a b; do n=$((n+1)); n=$(cat README.md); done; echo $((n))", "ask"),
        ("i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done", "allow"),
        ("i=0; while [ $i -lt 1001 ]; do i=$((i+1)); done", "ask"),
        ("i=9; until [ $i -le 0 ]; do ((i--)); done", "allow"),
        ("i=9; until [ $i -gt 9 ]; do ((i--)); done", "ask"),
        ("for ((i=0; i<3; i++)); do [ $i = 1 ] && continue; echo $i; done", "allow"),
        ("i=0; while [ $i -lt 3 ]; do [ $i = 1 ] && continue; i=$((i+1)); done", "ask"),
    ],
)
def test_a_loop_runs_if_it_counts_to_its_end(workspace: ShellWorkspace, command: str, outcome: str) -> None:
    assert workspace.decide(command).outcome == outcome


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("cd src && ls && cd - && cat README.md", "allow"),
        ("cd src && cd - && cd - && cat main.py", "allow"),
        ("cd src && cd a && cd - && cat main.py && cd - && cat b.py", "allow"),
        ("cd src && cd a && cd - && cat ../../outside/x", "ask"),
        ("cd -", "ask"),
        ("if true; then cd src; fi; cd - && ls", "allow"),
        ("for d in src; do cd $d; cd -; done; cd - && ls", "ask"),
    ],
)
def test_cd_back_leads_where_the_shell_came_from(workspace: ShellWorkspace, command: str, outcome: str) -> None:
    assert workspace.decide(command).outcome == outcome


@pytest.mark.parametrize("name", ["json.py", "argparse.py", "_colorize.py", "json/__init__.py", "re.cpython-311-x.so"])
def test_json_tool_asks_where_python_may_import_from_the_folder(workspace: ShellWorkspace, name: str) -> None:
    command = "python3 -m json.tool package.json"
    assert workspace.decide(command).outcome == "allow"
    (workspace.root / name).parent.mkdir(exist_ok=True)
    (workspace.root / name).write_text("")
    assert workspace.decide(command).outcome == "ask"
