"""Misspelt rules are told, rules that hold are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.assembly.requirements import require_rules
from swecli.assembly.rules import rule_notices
from swecli.assembly.startup import Startup, read_startup
from swecli.core.permissions.types import Rule
from swecli.launch import LaunchOptions, StartError


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Bashh(rm *)", "Bashh takes no pattern"),
        ("Bash(", "expected Tool or Tool(pattern)"),
        ("Bassh", "unknown tool 'Bassh'"),
        ("run_comand", "unknown tool 'run_comand'"),
        ("", "expected Tool or Tool(pattern)"),
    ],
)
def test_a_misspelt_rule_is_named_with_its_origin(text: str, why: str) -> None:
    (told,) = rule_notices([Rule("deny", text, "flag", "--disallowed-tools")])
    assert told.startswith(f"--disallowed-tools: the deny rule {text!r} has no effect: ")
    assert why in told


@pytest.mark.parametrize(
    "text",
    [
        *("Bash(rm *)", "Bash", "Read(*.pem)", "Read", "Edit(docs/**)", "Grep", "Glob", "Write", "LS", "run_command"),
        *("WebFetch", "WebFetch(domain:example.com)", "ask_user", "edit_file(/a)", "TodoWrite"),
        *("mcp__server", "mcp__server__tool"),
    ],
)
def test_a_rule_that_can_hold_is_not_mentioned(text: str) -> None:
    assert rule_notices([Rule("allow", text, "user", "config.toml:2")]) == ()


def place(tmp_path: Path, text: str) -> Startup:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text(text)
    return read_startup(tmp_path, {"SWECLI_HOME": str(tmp_path / "home")}, {})


@pytest.mark.parametrize(("effect", "stops"), [("deny", True), ("ask", True), ("allow", False)])
def test_a_rule_that_would_silently_stop_nothing_stops_the_start(tmp_path: Path, effect: str, stops: bool) -> None:
    startup = place(tmp_path, f'[approval]\n{effect} = ["Bash(git log *)", "Bash(git push | cat)"]\n')
    options = LaunchOptions(cwd=tmp_path)
    if not stops:
        require_rules(options, startup)
        (rule,) = (rule for rule in startup.loaded.rules if "|" in rule.text)
        assert "no effect" in rule_notices([Rule("allow", rule.text, "user", rule.origin)])[0]
        return
    with pytest.raises(StartError, match="a rule matches one simple command") as refused:
        require_rules(options, startup)
    assert f"config.toml:2: the {effect} rule Bash(git push | cat): " in str(refused.value)


def test_a_broken_rule_of_the_command_line_stops_the_start(tmp_path: Path) -> None:
    options = LaunchOptions(cwd=tmp_path, disallowed_tools=("Bash(rm",))
    with pytest.raises(StartError, match="--disallowed-tools: the deny rule"):
        require_rules(options, place(tmp_path, ""))
